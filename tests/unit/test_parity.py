"""Parities: the cells against lists of bits, their levels against counters, and their odds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.privacy.guarantee import exp_bounds, randomised_response
from panprivacy.statistics.plan import users_beyond
from panprivacy.tables.cells.parity import ParityCells
from panprivacy.testing import SeededCoins

SIZES = [1, 7, 8, 9, 63, 64, 65, 1_000]
NO_COINS = None


class GivenCoins:
    """Coins that return what they were given, and note what they were asked."""

    def __init__(self, bits):
        self.bits, self.asked = np.array(bits, np.uint8), []

    def bernoulli(self, probability, size):
        self.asked.append((probability, size))
        return self.bits[:size].copy()


def random_bits(name, size):
    return SeededCoins(name).bernoulli(Fraction(1, 2), size)


@st.composite
def batches(draw):
    """Cells, slots of each row (-1 for none), and deltas or None."""
    cells = draw(st.sampled_from(SIZES))
    slots = draw(st.lists(st.integers(-1, cells - 1), max_size=40))
    deltas = st.lists(st.sampled_from([1, -1]), min_size=len(slots), max_size=len(slots))
    return cells, slots, draw(st.none() | deltas)


@pytest.mark.long
@settings(max_examples=150)
@given(batches(), st.integers(0, 9))
def test_each_row_toggles_its_cell_and_no_other(batch, seed):
    cells, slots, deltas = batch
    parities, bits = ParityCells(cells, Fraction(1)), random_bits(seed, cells)
    table = parities.initial(GivenCoins(bits))
    given_deltas = None if deltas is None else np.array(deltas, np.int64)
    halves = np.array_split(np.array(slots, np.int64), 2)
    parities.update(table, halves, given_deltas, 0, NO_COINS)
    toggled = [slots.count(cell) % 2 for cell in range(cells)]
    assert parities.ones(table).tolist() == (bits ^ np.array(toggled, np.uint8)).tolist()
    assert parities.is_table(table)


@pytest.mark.parametrize("cells", SIZES)
def test_birth_and_an_announced_intrusion_draw_the_same_coin_for_each_cell(cells):
    parities, coins = ParityCells(cells, Fraction(1)), GivenCoins(random_bits(1, cells))
    table, noise = parities.initial(coins), parities.fresh_noise(coins)
    assert coins.asked == 2 * [(1 - randomised_response(Fraction(1)), cells)]
    assert table.nbytes == parities.nbytes == math.ceil(cells / 8)
    assert parities.ones(table).tolist() == coins.bits.tolist()
    parities.rerandomise(table, noise)
    assert not parities.ones(table).any()


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_no_parity_is_likelier_than_its_epsilon_says(epsilon):
    noise, below = ParityCells(1, epsilon).noise, exp_bounds(epsilon)[0]
    assert below * (1 - Fraction(1, 10**12)) < (1 - noise) / noise <= below


def test_every_announced_intrusion_multiplies_the_contrast_by_that_of_a_draw():
    parities = ParityCells(1, Fraction(1))
    right = Fraction(1)
    for epoch in range(4):
        right = right * (1 - parities.noise) + (1 - right) * parities.noise
        assert parities.contrast(epoch) == 2 * right - 1


def strict(**sizes):
    """The plan of a strict stream."""
    return pp.DistinctCount(**{"epsilon": 1, "deletions": "strict", **sizes}).plan


@pytest.mark.parametrize(
    ("users", "cells"), [(0, 5), (1, 5), (2, 5), (9, 5), (40, 64), (1_000, 700)]
)
def test_a_cell_is_as_often_odd_as_coins_say(users, cells):
    """Exactly, by the binomial law of the users of a cell: the model of one level says the same."""
    odd = sum(
        Fraction(math.comb(users, met) * (cells - 1) ** (users - met), cells**users)
        for met in range(1, users + 1, 2)
    )
    assert float(odd) == pytest.approx((1 - (1 - 2 / cells) ** users) / 2, abs=1e-12)
    one = strict(expected=users or 1, memory=512)
    model = type(one.model(0))(1, cells, 0.5 * float(one.table.contrast(0)), 0.5, 2, 0.0)
    ones = one.table.noise + odd * (1 - 2 * one.table.noise)
    assert float(model.moments(np.float64(users))[0][0]) == pytest.approx(cells * float(ones))


@pytest.mark.parametrize(
    "sizes",
    [
        {"expected": (1_000, 10**6), "memory": 1 << 13},
        {"expected": (1_000, 10**9), "memory": 1 << 13, "epsilon": "0.1", "releases": 5},
        {"expected": 3_000, "memory": 512, "epsilon": 4, "intrusions": 1},
    ],
)
def test_parities_are_counters_modulo_2_in_an_eighth_of_the_memory(sizes):
    wide = {**sizes, "memory": 8 * sizes["memory"], "deletions": True, "bound": 1}
    counters, parities = pp.DistinctCount(**{"epsilon": 1, **wide}).plan, strict(**sizes)
    assert counters.chosen.modulus == 2
    assert (counters.levels, counters.cells_per_level) == (
        parities.levels,
        parities.cells_per_level,
    )
    assert counters.table.nbytes == pytest.approx(8 * parities.table.nbytes, rel=1e-3)
    users = np.geomspace(1_000, 10**6, 9)
    assert counters.relative_errors(users) == pytest.approx(parities.relative_errors(users))
    assert float(counters.guarantee.unseen_loss.epsilon) == pytest.approx(
        float(parities.guarantee.unseen_loss.epsilon)
    )


def test_in_the_same_memory_parities_err_less_where_memory_is_short():
    users, memory = 100_000, 1 << 16
    counters = pp.DistinctCount(
        epsilon=1, expected=users, memory=memory, deletions=True, bound=1
    ).plan
    gain = counters.relative_error() / strict(expected=users, memory=memory).relative_error()
    assert gain > math.sqrt(8)


def test_a_plan_says_what_a_strict_stream_is():
    plan = strict(expected=3_000)
    assert plan.range_of_states == (0, 1)
    assert plan.needs_deltas
    states = np.array([0, 1, 1, 2, -1])
    assert users_beyond(plan, states) == 2
    assert plan.truth(plan.name, states, states) == 4


def test_an_update_that_is_not_strict_counts_whoever_has_an_odd_number():
    """So much epsilon that noise hardly shows: six deviations, a false alarm below 1e-8."""
    users = np.arange(9_000)
    count = pp.DistinctCount(epsilon=15, expected=10_000, memory=1 << 16, deletions="strict")
    for _ in range(2):
        count.update(users[:4_000])  # enter twice
    count.update(users[4_000:], np.full(5_000, -1))  # leave without having entered
    reach = 6 * float(count.plan.model(0).deviation(5_000))
    assert abs(count.release().value - 5_000) <= reach < 1_000


@pytest.mark.parametrize(
    ("given_sizes", "said"),
    [
        ({"deletions": "Strict"}, 'deletions must be True or False, or "strict"'),
        ({"deletions": 1}, 'deletions must be True or False, or "strict"'),
        ({"deletions": "strict", "bound": 1}, "in a strict stream a user is in or out"),
        ({"deletions": "strict", "signed": True}, "in a strict stream a user is in or out"),
        ({"deletions": True}, "deletions needs bound=: .*; or say strict, if a user is in or out"),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(given_sizes, said):
    with pytest.raises(pp.PlanError, match=said):
        pp.DistinctCount(epsilon=1, **given_sizes)

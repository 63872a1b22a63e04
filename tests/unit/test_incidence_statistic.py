"""Counts by state at their edges: extreme epsilons, foreign laws, full tables, freed memory."""

from __future__ import annotations

import contextlib
import functools
from bisect import bisect_left

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.privacy.noise import uniform_below
from panprivacy.statistics.header import MOST_TEXT
from panprivacy.tables.cells.modular import ModularCells
from panprivacy.testing import SeededCoins


@pytest.mark.parametrize("epsilon", [40, 100, 10**6])
@pytest.mark.parametrize("bound", [1, 2, 7])
def test_with_a_huge_epsilon_answers_are_exact(bound, epsilon):
    visits = pp.Incidence(universe=10, bound=bound, epsilon=epsilon)
    visits.update([1, 2, 3])
    answer = visits.release(exactly=1).exactly(1)
    assert answer.value == pytest.approx(3, abs=0.01)
    assert answer.low <= 3 <= answer.high


@pytest.mark.parametrize("epsilon", [70, 100, 10**6])
def test_with_a_huge_epsilon_who_is_left_is_counted_exactly(epsilon):
    left = pp.DistinctCount(expected=10, bound=2, deletions=True, epsilon=epsilon)
    left.update(np.arange(8))
    assert left.release().value == pytest.approx(8, abs=3)


def test_a_law_cannot_be_changed_after_it_was_checked():
    weights = np.array([2, 1, 1, 1, 1, 1, 1])
    law = pp.Law("mine", weights)
    weights[0] = 1 << 40
    assert law.ratio == 2
    with pytest.raises(ValueError, match="WRITEABLE"):
        law.weights.flags.writeable = True


@pytest.mark.parametrize("seed", range(3))
def test_twice_the_users_beyond_a_unique_logarithm_are_refused_at_the_release(seed):
    coins = SeededCoins(seed)
    visits = pp.Incidence(bound=2, epsilon=20, expected=100_000, cells=50_000, coins=coins)
    visits.update(np.arange(200_000))
    with pytest.raises(pp.LostReleaseError, match="too full"):
        visits.release()


def fewest_users(bound):
    """About the fewest that the plan reads at epsilon 1."""

    def is_read(users):
        with contextlib.suppress(pp.PlanError):
            return bool(pp.plan("incidence", epsilon=1, expected=users, bound=bound))
        return False

    grid = np.geomspace(100, 100_000, 200).astype(int).tolist()
    return grid[bisect_left(grid, True, key=is_read)]


def releases_lost(runs, users, **arguments):
    """How many releases of so many users, all in state 1, are lost."""
    lost = 0
    for seed in range(runs):
        visits = pp.Incidence(**arguments, coins=SeededCoins(seed))
        visits.update(np.arange(users))
        try:
            visits.release()
        except pp.LostReleaseError:
            lost += 1
    return lost


@pytest.mark.parametrize("bound", [1, 3, 5])
def test_three_times_as_many_users_are_mostly_refused(bound):
    """One in four may come out; of 100, as many as 50 with a probability below 1e-7."""
    users = fewest_users(bound)
    assert releases_lost(100, 3 * users, epsilon=1, bound=bound, expected=users) > 50


def test_states_in_an_array_without_dimensions_are_refused():
    with pytest.raises(pp.PlanError, match="name a state"):
        pp.Incidence(universe=10, bound=3, epsilon=1).release(exactly=np.array(1))


def test_the_public_part_of_the_state_tells_laws_apart():
    weights = np.full((2, 2_000), 1_000)
    weights[0, 5] = weights[1, 600] = 1_300
    texts = []
    for row in weights:
        law = pp.Law.of(row.tolist())
        visits = pp.Incidence(universe=10, bound=1_900, epsilon=1, law=law)
        state = visits.state()
        texts.append(state[: visits.internals.memory.state_bytes - visits.plan.table.nbytes])
    assert texts[0] != texts[1]
    assert len(texts[0]) == len(texts[1]) < MOST_TEXT


def test_a_state_with_as_many_weights_of_ones_own_as_there_may_be_can_be_read():
    weights = [2**52] + [2**48] * 2_999
    make = functools.partial(
        pp.Incidence, universe=10, bound=2_900, epsilon=4, law=pp.Law.of(weights)
    )
    state = make().state()
    make().resume(state)
    with pytest.raises(pp.PlanError, match="at most 3,000 weights"):
        pp.Incidence(universe=10, bound=1, epsilon=1, law=pp.Law.of([*weights, 1]))


@pytest.mark.parametrize("law", [pp.Law.geometric(11, 1e-9), pp.Law.flat(11, 1e-30)])
def test_a_law_without_any_signal_says_so(law):
    for ask in (law.kernel, law.entry_deviation):
        with pytest.raises(pp.PlanError, match="leaves no signal"):
            ask()


def test_redrawn_noise_is_wiped(monkeypatch):
    drawn = []
    inner = uniform_below.__globals__["_uniform_bits"]

    def spy(*arguments):
        drawn.append(inner(*arguments))
        return drawn[-1]

    monkeypatch.setitem(uniform_below.__globals__, "_uniform_bits", spy)
    ModularCells(2_000, pp.Law.flat(11, 1)).initial(SeededCoins(1))
    assert len(drawn) > 1
    assert not any(array.any() for array in drawn)

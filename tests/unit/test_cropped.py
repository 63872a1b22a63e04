"""The cropped sum: exact identities of block laws, plans within reach, bounds that are met."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy import LostReleaseError, PlanError
from panprivacy.statistics.cropped.decoder import HashedCroppedModel
from panprivacy.statistics.cropped.decompounded import DecompoundedPlan
from panprivacy.statistics.cropped.plan import CroppedPlan
from panprivacy.statistics.cropped.sizes import CroppedSizes
from panprivacy.tables.cells.difference_sets import biquadratic, point, residues, singer
from panprivacy.tables.cells.law import on_blocks
from panprivacy.tables.cells.modular import BlockCells
from panprivacy.tables.decoders.blocks import CroppedModel
from panprivacy.tables.planning.blocks import block_chances
from panprivacy.testing import SeededCoins

from .test_law import EPSILONS, check_private

SETS = [
    *(residues(q) for q in (3, 7, 11, 19, 23, 31)),
    *(biquadratic(q) for q in (37, 101)),
    *(singer(q) for q in (7, 13, 15, 31, 40, 57)),
    *(point(q) for q in (2, 3, 6)),
]
TAUS = [1, 2, 3, 5, 8]
BLOCKS = [(chosen, tau) for chosen in SETS for tau in TAUS]
IDS = [f"{tau} x {chosen.family} {chosen.modulus}" for chosen, tau in BLOCKS]
EVERY_BLOCK = pytest.mark.parametrize(("chosen", "tau"), BLOCKS, ids=IDS)


def cropped(state, tau):
    return min(abs(state), tau)


def possible(chosen, tau):
    """All states up to a block below the modulus, on both sides of 0."""
    reach = tau * (chosen.modulus - 1)
    return range(-reach, reach + 1)


def counted(law, epoch):
    """The exact probability that a cell of each state counts, by summing over its noise."""
    weights = [int(weight) for weight in law.weights]
    marks = BlockCells(1, law)._marks(epoch).tolist()
    total = sum(weights)
    if epoch:
        noises = [
            (x - y, v * w) for (x, v), (y, w) in itertools.product(enumerate(weights), repeat=2)
        ]
        total **= 2
    else:
        noises = list(enumerate(weights))

    def chance(state):
        return Fraction(
            sum(w for noise, w in noises if marks[(noise + state) % len(weights)]), total
        )

    return chance


def check_affine(chance, states, tau):
    """Every state's probability lies on the line through those of 0 and tau."""
    absent, contrast = chance(0), chance(tau) - chance(0)
    assert contrast > 0
    for state in states:
        assert chance(state) == absent + contrast * cropped(state, tau) / tau
    return absent, contrast


@EVERY_BLOCK
def test_a_cell_counts_with_a_probability_that_is_affine_in_the_cropped_state(chosen, tau):
    law = on_blocks(chosen, tau, Fraction(1))
    states = possible(chosen, tau)
    absent, contrast = check_affine(counted(law, 0), states[:: max(len(states) // 40, 1)], tau)
    high, low = int(law.weights.max()), int(law.weights.min())
    weight = chosen.size * high + (chosen.modulus - chosen.size) * low
    assert absent == Fraction((chosen.modulus - chosen.size) * low, weight)
    assert contrast == (high - low) * (chosen.size - chosen.overlap) / weight


@EVERY_BLOCK
def test_between_any_two_states_the_probability_follows_the_autocorrelation_of_the_set(chosen, tau):
    """For all states at once, in whole numbers: how many high values meet a shift of themselves."""
    high = (
        on_blocks(chosen, tau, Fraction(1)).weights
        > on_blocks(chosen, tau, Fraction(1)).weights.min()
    )
    for state in possible(chosen, tau):
        meet = int((high & np.roll(high, state)).sum())
        assert meet == tau * chosen.size - cropped(state, tau) * (chosen.size - chosen.overlap)


@pytest.mark.parametrize(
    ("chosen", "tau"), [pair for pair in BLOCKS if pair[0].modulus * pair[1] < 50]
)
def test_after_an_announced_intrusion_it_is_affine_too(chosen, tau):
    law = on_blocks(chosen, tau, Fraction(1))
    states = possible(chosen, tau)
    absent, contrast = check_affine(counted(law, 1), states[:: max(len(states) // 9, 1)], tau)
    high, low = int(law.weights.max()), int(law.weights.min())
    weight = tau * (chosen.size * high + (chosen.modulus - chosen.size) * low)
    assert 1 - absent == Fraction(sum(int(w) ** 2 for w in law.weights), weight**2)
    assert (
        contrast == (high - low) ** 2 * tau * (chosen.size - chosen.overlap) / Fraction(weight) ** 2
    )


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize(("chosen", "tau"), [(residues(7), 3), (singer(13), 2), (point(2), 5)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_plans_know_these_probabilities(chosen, tau, epsilon, epoch):
    chance = counted(on_blocks(chosen, tau, epsilon), epoch)
    absent, contrast = block_chances(chosen, tau, pp.Budget(epsilon, 1), epoch)
    assert absent == pytest.approx(float(chance(0)), rel=1e-5)
    assert contrast == pytest.approx(float(chance(tau) - chance(0)), rel=1e-5)


@pytest.mark.parametrize("tau", [1, 100, 30_000])
def test_fresh_noise_is_taken_away_modulo_the_modulus(tau):
    """In counters of one, two and four bytes; the same coins draw the same noise again."""
    cells = BlockCells(500, pp.Law.block(tau, 7, 1))
    table = cells.initial(SeededCoins(1))
    before, noise = table.astype(np.int64), cells.initial(SeededCoins(2)).astype(np.int64)
    cells.rerandomise(table, cells.fresh_noise(SeededCoins(2)))
    assert np.array_equal(table, (before - noise) % (7 * tau))
    cells.rerandomise(table, cells.fresh_noise(SeededCoins(1)))
    assert cells.group_sums(table, 1, 1) == np.count_nonzero(table)


# Laws


@settings(max_examples=40)
@given(st.sampled_from([(1, 3), (2, 3), (10, 11), (1_000, 7), (3, 1_019)]), EPSILONS)
def test_no_value_of_a_block_law_is_more_likely_than_epsilon_allows(sizes, epsilon):
    law = pp.Law.block(*sizes, epsilon)
    check_private(law, epsilon)
    assert law.modulus == math.prod(sizes)
    assert law.members is None


@pytest.mark.long
def test_the_largest_block_law_is_as_private_as_small_ones():
    for epsilon in ("0.1", "1000"):
        check_private(pp.Law.block(1 << 20, 11, epsilon), Fraction(epsilon))


def test_the_high_values_are_blocks_of_residues():
    law = pp.Law.block(2, 7, 1)
    assert np.flatnonzero(law.weights == law.weights.max()).tolist() == [2, 3, 4, 5, 8, 9]
    assert pp.Law.block(1, 7, 1).weights.tolist() == pp.Law.flat(7, 1).weights.tolist()


@pytest.mark.parametrize(
    ("tau", "q"), [(0, 7), (2, 5), (2, 9), (1 << 23, 3), (1 << 25, 3), (1.5, 7), (2, "7")]
)
def test_numbers_that_make_no_block_law_are_refused(tau, q):
    with pytest.raises(pp.PlanError):
        pp.Law.block(tau, q, 1)


def test_states_cannot_be_read_back_from_blocks():
    with pytest.raises(pp.PlanError, match="cannot be undone"):
        pp.Incidence(universe=10, bound=5, epsilon=2, law=pp.Law.block(2, 7, 1))


# Plans


def units(tau, bound, epsilon=1):
    """The largest deviation in units of the root of the cells, without output noise."""
    plan = pp.plan("cropped-sum", tau=tau, bound=bound, universe=10**6, epsilon=epsilon)
    chances = block_chances(plan.chosen, tau, pp.Budget(epsilon, 1), 0)
    model = CroppedModel(10**6, 10**6, tau, *chances, 0.0)
    return model.deviation(np.linspace(0, tau * 10**6, 17)).max() / 1_000


@pytest.mark.parametrize(
    ("tau", "bound", "most"),
    [(10, 100, 22), (1_000, 5_000, 1_800), (10, 1_000_000, 22), (1, 1, 1), (100, 100, 109)],
)
def test_the_deviation_is_within_reach(tau, bound, most):
    assert 0.8 * most < units(tau, bound) < most


@pytest.mark.long
@given(st.integers(1, 300), st.integers(1, 60), st.sampled_from(["0.2", 1, 3, 8]))
@settings(max_examples=50)
def test_no_bound_makes_the_deviation_much_larger_than_tau(tau, times, epsilon):
    assert units(tau, tau * times, Fraction(epsilon)) <= tau / math.tanh(float(epsilon) / 2)


def test_the_plan_takes_the_set_with_the_smallest_error():
    families = {
        pp.plan("cropped-sum", tau=tau, bound=bound, universe=10**6, epsilon=epsilon).chosen.family
        for tau, bound in [(10, 10), (10, 100), (10, 640), (5, 500), (100, 10_000)]
        for epsilon in (1, 2, 4)
    }
    assert families >= {"point", "residues", "singer"}


@pytest.mark.parametrize(("tau", "bound"), [(10, 100), (7, 50), (3, 3), (1, 2), (1_000, 64_000)])
def test_blocks_reach_one_beyond_the_bound(tau, bound):
    plan = pp.plan("cropped-sum", tau=tau, bound=bound, universe=10, epsilon=5)
    assert plan.law.modulus == tau * plan.chosen.modulus >= bound + tau


@pytest.mark.long
def test_without_a_bound_states_may_be_64_times_tau():
    assert pp.plan("cropped-sum", tau=10, universe=100, epsilon=5).bound == 640
    largest = 1 << 22
    assert pp.plan("cropped-sum", tau=largest, universe=2, epsilon=5).bound == largest


def test_a_large_universe_gets_a_sample():
    plan = pp.plan("cropped-sum", tau=1_000, bound=60_000, universe=50_000_000, epsilon=1)
    assert plan.cells < plan.universe
    assert plan.table.nbytes <= 1 << 26


def test_an_announced_intrusion_multiplies_the_error():
    calm, planned = (
        pp.plan("cropped-sum", tau=10, bound=100, universe=10**6, epsilon=2 * (n + 1), intrusions=n)
        for n in (0, 1)
    )
    assert 10 < planned.absolute_error() / calm.absolute_error() < 20
    assert planned.absolute_error() == planned.absolute_error(0)


def test_the_margin_is_the_interval_of_the_largest_error():
    plan = pp.plan("cropped-sum", tau=10, bound=100, universe=10**5, epsilon=1)
    assert plan.absolute_margin(0.95) == pytest.approx(1.96 * plan.absolute_error(), rel=0.01)
    assert plan.absolute_error(500_000) <= plan.absolute_error()


def test_the_margin_of_hashed_cells_has_room_for_what_collisions_hide():
    plan = pp.plan("cropped-sum", tau=10, bound=100, expected=10_000, epsilon=1)
    assert plan.absolute_margin(0.95) == pytest.approx(
        math.hypot(1, 1.96) * plan.absolute_error(), rel=0.02
    )
    assert plan.absolute_margin(0.01) > plan.absolute_error()


# Deviations


def variance(model, states, sampled):
    """Of the count: exact, over the noise of cells and over every sample of users."""
    chances = model.absent + model.contrast * np.minimum(np.abs(states), model.tau) / model.tau
    samples = np.array(list(itertools.combinations(chances, sampled)))
    noise = (samples * (1 - samples)).sum(axis=1).mean()
    return noise + samples.sum(axis=1).var()


@given(
    st.lists(st.integers(-9, 9), min_size=2, max_size=7),
    st.integers(1, 5),
    st.integers(1, 7),
    st.floats(0.01, 0.6),
    st.floats(0.01, 0.39),
)
def test_no_states_err_more_than_is_said(states, tau, sampled, absent, contrast):
    cells = min(sampled, len(states))
    model = CroppedModel(len(states), cells, tau, absent, contrast, 0.0)
    total = float(sum(cropped(state, tau) for state in states))
    exact = math.sqrt(variance(model, np.array(states), cells)) * model._unit
    assert exact <= float(model.deviation(total)) * (1 + 1e-9)


@pytest.mark.parametrize("sampled", [1, 3, 6])
@pytest.mark.parametrize("states", [[2] * 6, [2, 2, 3, 3, 3, 2], [0, 0, 1, 0, 0, 0], [0] * 6])
def test_users_in_nearly_one_state_err_as_much(states, sampled):
    model = CroppedModel(6, sampled, 4, 0.3, 0.4, 0.0)
    exact = math.sqrt(variance(model, np.array(states), sampled)) * model._unit
    assert exact == pytest.approx(float(model.deviation(float(sum(states)))))


# Users that share cells


@st.composite
def shared(draw):
    """States of a few users, where they are cropped, and every way to hash them to a few cells."""
    tau, cells = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    states = np.array(draw(st.lists(st.integers(0, 9), min_size=1, max_size=5)))
    hashings = itertools.product(range(cells), repeat=len(states))
    sums = np.array([np.bincount(hashed, states, minlength=cells) for hashed in hashings])
    return states, tau, np.minimum(sums, tau)


@given(shared())
def test_the_sum_over_cells_lies_between_that_of_users_and_that_of_an_occupancy_problem(drawn):
    states, tau, over_cells = drawn
    limit, truth = tau * over_cells.shape[1], np.minimum(states, tau).sum()
    mean = over_cells.sum(axis=1).mean()
    assert limit * -math.expm1(-truth / limit) - 1e-9 <= mean <= truth + 1e-9


def test_an_occupancy_problem_attains_it():
    """Of users with tau each, 1 - (1 - 1/m)**n of all cells are full."""
    cells, users = 4, 5
    sums = [len(set(hashed)) for hashed in itertools.product(range(cells), repeat=users)]
    assert np.mean(sums) == pytest.approx(cells * (1 - (1 - 1 / cells) ** users))


@given(shared(), st.floats(0.01, 0.6), st.floats(0.01, 0.39))
def test_hashing_and_noise_together_vary_no_more_than_coins(drawn, absent, contrast):
    _, tau, over_cells = drawn
    cells = over_cells.shape[1]
    model = HashedCroppedModel(cells, cells, tau, absent, contrast, 0.0)
    chances = absent + contrast * over_cells / tau
    exact = (chances * (1 - chances)).sum(axis=1).mean() + chances.sum(axis=1).var()
    mean = over_cells.sum(axis=1).mean()
    said = float(CroppedModel.deviation(model, mean))
    assert math.sqrt(exact) * model._unit <= said * (1 + 1e-9)


def test_the_answer_of_hashed_cells_lies_between_both_ends():
    model = HashedCroppedModel(1_000, 1_000, 5, 0.3, 0.4, 1.0)
    counts = np.arange(0, 1_000, 10)
    answers = [model.estimate(count) for count in counts]
    assert answers == sorted(answers)
    for count, answer in zip(counts, answers, strict=True):
        cells = min(max(CroppedModel.unbiased(model, count), 0), model.limit)
        low, high = model.interval(answer, 0.5)
        assert low <= cells <= answer <= high
        if cells < 4_000:
            assert answer <= -5_000 * math.log1p(-cells / 5_000) < high


def test_full_cells_bound_nothing():
    model = HashedCroppedModel(1_000, 1_000, 5, 0.3, 0.4, 1.0)
    answer = model.estimate(900)
    assert math.isfinite(answer)
    assert model.interval(answer, 0.95)[1] == math.inf


def test_hashed_cells_are_as_many_as_err_least():
    plans = [
        pp.plan("cropped-sum", tau=10, bound=100, expected=10_000, cells=cells, epsilon=1)
        for cells in (None, 20_000, 1_000_000)
    ]
    assert plans[0].absolute_error() < min(plan.absolute_error() for plan in plans[1:])
    assert plans[0].law.modulus >= 10 + 4 * 100
    assert not plans[0].signed


@pytest.mark.long
def test_of_very_many_users_the_histogram_errs_less_in_less_memory(monkeypatch):
    def planned(expected):
        return pp.CroppedSum(tau=2, bound=8, expected=expected, epsilon=1).plan

    assert isinstance(planned(10_000), CroppedPlan)
    many = planned(300_000)
    assert isinstance(many, DecompoundedPlan)
    monkeypatch.setattr(CroppedSizes, "_decompounded", lambda *_: None)
    blocks = planned(300_001)  # plans of equal sizes are shared
    assert isinstance(blocks, CroppedPlan)
    assert many.table.nbytes < blocks.table.nbytes / 10
    assert many.absolute_error() < 0.6 * blocks.absolute_error()


def test_memory_for_all_hashed_counters_is_not_given_to_fewer_and_wider_ones():
    sizes = {"bound": 100, "expected": 1_000_000}
    free = pp.plan("incidence", epsilon=1, **sizes)
    assert free.table.nbytes == 2_000_000
    assert pp.plan("incidence", epsilon=1, memory=1 << 21, **sizes) == free
    cropped = pp.plan("cropped-sum", epsilon=1, tau=10, memory=1 << 21, **sizes)
    assert isinstance(cropped, DecompoundedPlan)
    assert cropped == pp.plan("cropped-sum", epsilon=1, tau=10, **sizes)


@pytest.mark.parametrize(
    "sizes", [{"expected": 9_999, "bound": 3}, {"expected": 10**5, "bound": 1}]
)
def test_few_users_and_parities_are_not_read_off_a_histogram(sizes):
    """Far more than expected would pass for few, now and then, and intervals would be too short."""
    assert isinstance(pp.CroppedSum(tau=1, epsilon=8, **sizes).plan, CroppedPlan)


def test_where_blocks_do_not_fit_the_histogram_does():
    sizes = {"tau": 2, "bound": 8, "expected": 300_000, "epsilon": 1}
    assert isinstance(pp.plan("cropped-sum", memory=600_000, **sizes), DecompoundedPlan)
    with pytest.raises(PlanError, match="memory"):
        pp.plan("cropped-sum", memory=60_000, **sizes)


def test_a_sum_of_very_many_users_errs_most_where_most_came():
    plan = pp.plan("cropped-sum", tau=2, bound=8, expected=300_000, epsilon=1)
    errors = [plan.absolute_error(share * plan.largest) for share in np.linspace(0, 1, 9)]
    assert max(errors) == errors[-1] == plan.absolute_error()


def test_so_many_users_that_no_histogram_can_be_read_lose_the_answer():
    summed = pp.CroppedSum(tau=2, bound=8, expected=100_000, epsilon=2)
    assert isinstance(summed.plan, DecompoundedPlan)
    summed.update(np.arange(1_000_000))
    with pytest.raises(LostReleaseError, match="too full to be read"):
        summed.release()


# Answers


@pytest.mark.parametrize("epsilon", [60, 100, 10**6])
@pytest.mark.parametrize("tau", [1, 3, 50])
def test_with_a_huge_epsilon_users_of_nothing_and_of_much_are_counted_exactly(tau, epsilon):
    spent = pp.CroppedSum(tau=tau, bound=200, universe=100, epsilon=epsilon)
    spent.update(np.arange(30), np.full(30, 180))
    answer = spent.release()
    assert answer.value == pytest.approx(30 * tau, abs=0.01)
    assert answer.low <= answer.value <= answer.high


def test_after_an_announced_intrusion_other_cells_count():
    """Within seven deviations of the truth; the count before it would be further off."""
    spent = pp.CroppedSum(tau=3, bound=30, universe=100_000, epsilon=20, intrusions=1, releases=2)
    spent.update(np.arange(50_000), np.full(50_000, 7))
    before = spent.release()
    spent.announce_intrusion()
    spent.update(np.arange(50_000), np.full(50_000, 20))
    after = spent.release()
    for answer in (before, after):
        assert abs(answer.value - 150_000) < 7 * spent.plan.absolute_error()
    assert spent.plan.absolute_error() < 10_000
    assert after.counts[0] > before.counts[0] + 10_000


def test_states_below_0_count_by_their_distance():
    spent = pp.CroppedSum(tau=5, bound=50, universe=1_000, epsilon=80)
    spent.update(np.arange(400), np.repeat([-50, -5], 200))
    assert spent.release().value == pytest.approx(2_000, abs=0.1)


def test_states_may_go_far_beyond_the_bound_on_the_way():
    def state(deltas):
        spent = pp.CroppedSum(tau=5, bound=50, universe=10, epsilon=1, coins=SeededCoins(1))
        for delta in deltas:
            spent.update([3], [delta])
        return spent.state()

    assert state([100] * 40 + [-100] * 40 + [7]) == state([7])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"tau": 0}, "tau must be"),
        ({"tau": 1.5}, "tau must be"),
        ({"tau": "7"}, "tau must be"),
        ({"tau": True}, "tau must be"),
        ({"tau": 1 << 23}, "tau must be at most"),
        ({"bound": 6}, r"tau \(7\) exceeds the bound"),
        ({"bound": 0}, "bound must be"),
        ({"bound": 1 << 23}, "bound must be at most"),
        ({"universe": 0}, "universe must be"),
        ({"universe": None}, "universe= .* or, for open-ended ids, expected="),
        ({"expected": 1_000}, "universe= .* or, for open-ended ids, expected="),
        ({"universe": None, "expected": 0}, "expected must be"),
        ({"universe": None, "expected": 600, "cells": 1_000}, "at least twice the 600 users"),
        ({"universe": None, "expected": 600, "bound": 1 << 22}, "more than 16,777,216 values"),
        ({"cells": 1_001}, "exceed the universe"),
        ({"cells": 0}, "cells must be"),
        ({"tau": 1_000, "intrusions": 2}, "65,003 values cannot be read after 2 announced"),
        ({"epsilon": "1e-18"}, "too small to leave any signal"),
        ({"epsilon": 1, "budget": pp.Budget("0.5", "1e-20")}, "too small to leave any signal"),
        ({"epsilon": 0}, "epsilon must be"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(arguments, says):
    with pytest.raises(pp.PlanError, match=says):
        pp.CroppedSum(**{"epsilon": 1, "tau": 7, "universe": 1_000, **arguments})

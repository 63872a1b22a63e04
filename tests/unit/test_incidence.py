"""Counts by state at their edges: extreme epsilons, foreign laws, full tables, freed memory."""

from __future__ import annotations

import contextlib
import functools
from bisect import bisect_left
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.cells.modular import ModularCells
from panprivacy.noise import uniform_below
from panprivacy.statistics.header import MOST_TEXT
from panprivacy.statistics.planner import check_useful, least_error
from panprivacy.statistics.release import COLUMNS
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


@pytest.mark.parametrize(
    "make",
    [
        lambda: pp.Incidence(universe=10**6, bound=10**6, epsilon="1e-18"),
        lambda: pp.DistinctCount(deletions=True, bound=10**6, epsilon="1e-18"),
        lambda: pp.Incidence(universe=10, bound=2, epsilon=2, budget=pp.Budget(1, 1e-20)),
    ],
)
def test_an_epsilon_that_leaves_no_signal_is_refused(make):
    with pytest.raises(pp.PlanError, match="too small"):
        make()


@pytest.mark.parametrize("weights", [[2, 1, 2, 1], [1] * 7])
def test_a_law_whose_noise_cannot_be_undone_is_refused(weights):
    with pytest.raises(pp.PlanError, match="cannot be undone"):
        pp.Incidence(universe=10, bound=3, epsilon=1, law=pp.Law.of(weights))


def test_a_law_cannot_be_changed_after_it_was_checked():
    weights = np.array([2, 1, 1, 1, 1, 1, 1])
    law = pp.Law("mine", weights)
    weights[0] = 1 << 40
    assert law.ratio == 2
    with pytest.raises(ValueError, match="WRITEABLE"):
        law.weights.flags.writeable = True


@pytest.mark.parametrize("weights", [[1, 0, 1], [1, -3, 1], [1.5, 2], [[1, 2]], [3]])
def test_a_law_is_checked_however_it_is_made(weights):
    with pytest.raises(pp.PlanError, match="weights"):
        pp.Law("mine", np.array(weights))


def test_small_bounds_get_the_law_with_the_smallest_error():
    plan = pp.Incidence(universe=100_000, bound=5, epsilon=4).plan
    budget = pp.Budget("3.9", "0.1")
    others = [pp.Law.flat(7, "3.9"), pp.Law.singer(13, "3.9")]
    for law in others:
        other = pp.Incidence(universe=100_000, bound=5, epsilon=4, law=law, budget=budget).plan
        assert plan.absolute_error(8) < other.absolute_error(8)


@pytest.mark.parametrize(
    ("arguments", "users"),
    [
        ({"expected": 50_000, "bound": 5, "epsilon": 1}, 1_000_000),
        ({"expected": 10_000, "bound": 1, "epsilon": 2}, 100_000),
        ({"cells": 3_000, "bound": 5, "epsilon": 6}, 30_000),
    ],
)
def test_a_table_that_is_too_full_is_refused(arguments, users):
    """A single frequency of pure noise passes once in 400 tables; three tables pass for no one."""
    refused = 0
    for seed in range(3):
        visits = pp.Incidence(**arguments, coins=SeededCoins(seed))
        visits.update(np.arange(users), np.arange(users) % arguments["bound"] + 1)
        try:
            visits.release()
        except pp.LostReleaseError as error:
            refused += "too full" in str(error)
    assert refused == 3


@pytest.mark.parametrize(
    "arguments",
    [
        {"bound": 2, "epsilon": 20, "expected": 4_000_000, "cells": 1_000_000},
        {"bound": 1, "epsilon": 2, "expected": 80_000_000, "cells": 20_000_000},
    ],
)
def test_loads_whose_logarithm_is_not_unique_are_refused(arguments):
    with pytest.raises(pp.PlanError, match="take more cells"):
        pp.Incidence(**arguments)


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


@pytest.mark.parametrize(
    "bound", [1, *(pytest.param(bound, marks=pytest.mark.slow) for bound in (2, 5)), 30]
)
def test_a_plan_at_the_limit_is_hardly_ever_lost(bound):
    """One in 1,000 is allowed; of 300, more than 8 with a probability below 1e-10."""
    users, lost = fewest_users(bound), 0
    for seed in range(300):
        coins = SeededCoins(seed)
        visits = pp.Incidence(epsilon=1, expected=users, bound=bound, coins=coins)
        visits.update(np.arange(users))
        try:
            visits.release()
        except pp.LostReleaseError:
            lost += 1
    assert lost <= 8


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


@pytest.mark.parametrize(("bound", "load"), [(1, 2.2), (2, 3), (6, 2.8)])
def test_a_plan_near_pi_is_hardly_ever_lost(bound, load):
    """The most users of these cells that the plan takes; the limits are those of the test above."""
    arguments = {"epsilon": 5, "bound": bound, "cells": 100_000}
    for users in np.linspace(load, 0.2, 200) * 100_000:
        with contextlib.suppress(pp.PlanError):
            pp.Incidence(**arguments, expected=int(users))
            break
    assert releases_lost(100, int(users), **arguments, expected=int(users)) <= 5


@pytest.mark.parametrize("bound", [1, 3, 5])
def test_three_times_as_many_users_are_mostly_refused(bound):
    """One in four may come out; of 100, as many as 50 with a probability below 1e-7."""
    users = fewest_users(bound)
    assert releases_lost(100, 3 * users, epsilon=1, bound=bound, expected=users) > 50


@pytest.mark.parametrize("release", [Fraction(1, 10**19), Fraction(1, 10**200)])
def test_a_release_of_hardly_any_epsilon_is_refused_at_the_plan(release):
    budget = pp.Budget(Fraction(1), release)
    for law in (pp.Law.of([5, 3, 2, 2]), pp.Law.flat(7, 1), None):
        with pytest.raises(pp.PlanError, match="too small"):
            pp.Incidence(universe=100, bound=3, law=law, epsilon=1 + release, budget=budget)


def test_a_release_of_very_much_epsilon_is_exact():
    visits = pp.Incidence(universe=10, bound=3, epsilon=1_501, budget=pp.Budget(1, 1_500))
    assert visits.release(exactly=1, confidence=1 - 1e-9).exactly(1).low <= 0


def test_states_in_an_array_without_dimensions_are_refused():
    with pytest.raises(pp.PlanError, match="name a state"):
        pp.Incidence(universe=10, bound=3, epsilon=1).release(exactly=np.array(1))


def test_quantiles_of_signed_states_count_from_the_lowest():
    visits = pp.Incidence(universe=4_000, bound=5, epsilon=50, signed=True)
    visits.update(np.arange(4_000), np.repeat([-2, -1, 1, 3], 1_000))
    answer = visits.release()
    assert [answer.quantile(share).value for share in (0.2, 0.4, 0.6, 0.9)] == [-2, -1, 1, 3]


def test_a_universe_gets_a_counter_each_as_far_as_memory_reaches():
    """Wider counters of a better law are not worth a sample of the users."""
    plan = pp.plan("incidence", universe=60_000_000, bound=100, epsilon=1)
    assert plan.cells == 60_000_000
    assert plan.table.nbytes <= 1 << 26


def test_the_public_part_of_the_state_tells_laws_apart():
    weights = np.full((2, 2_000), 1_000)
    weights[0, 5] = weights[1, 600] = 1_300
    texts = []
    for row in weights:
        law = pp.Law.of(row.tolist())
        visits = pp.Incidence(universe=10, bound=1_900, epsilon=1, law=law)
        state = visits.state()
        texts.append(state[: visits.state_bytes - visits.plan.table.nbytes])
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


def test_a_bad_plan_says_how_bad_it_is():
    bad = pp.DistinctCount(epsilon="0.2", expected=(10, 30), memory=256, deletions=True, bound=3)
    found = f"{least_error(bad.plan):.2g} times the number of users"
    with pytest.raises(pp.PlanError, match=found):
        check_useful(bad.plan, bad.sizes)


@pytest.mark.parametrize(
    "asked", [{"exactly": None}, {"exactly": 1.5}, {"at_least": "x"}, {"exactly": b"1"}]
)
def test_what_names_no_state_is_refused_and_costs_nothing(asked):
    visits = pp.Incidence(universe=100, bound=3, epsilon=1)
    spent = visits.ledger.spent
    with pytest.raises(pp.PlanError):
        visits.release(**asked)
    assert visits.ledger.spent == spent


def test_one_state_may_stand_for_a_list_of_one():
    visits = pp.Incidence(universe=100, bound=3, epsilon=1)
    named = visits.release(exactly=1, at_least=2).named
    assert {str(name) for name in named} == {"exactly 1", "at least 2"}


def test_an_answer_that_was_not_asked_for_is_refused():
    answer = pp.Incidence(universe=100, bound=3, epsilon=1).release(exactly=1)
    for ask in (lambda: answer.exactly(2), answer.distinct, lambda: answer.quantile(0.5)):
        with pytest.raises(pp.PlanError, match="this release answers exactly 1"):
            ask()


def test_cropped_moments_are_sums_of_powers():
    visits = pp.Incidence(universe=200, bound=5, epsilon=200, releases=3)
    visits.update([1, 2, 3, 3], [1, 2, 2, 3])
    one = visits.release(cropped_moment=(4, 2))
    assert one.cropped_moment(4, 2).value == pytest.approx(1 + 4 + 16, abs=0.1)
    assert [str(name) for name in one.answers()] == ["cropped moment 4**2"]
    both = visits.release(cropped_moment=[(2, 3), (5, 1)], cropped_sum=5)
    assert both.cropped_moment(2, 3).value == pytest.approx(1 + 8 + 8, abs=0.1)
    assert both.cropped_moment(5, 1).value == pytest.approx(both.cropped_sum(5).value, abs=0.1)
    assert visits.release().cropped_moment(4, 2).value == pytest.approx(21, abs=0.1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (5, "pair"),
        ("52", r"powers, such as 10\*\*2"),
        ((1, 2, 3), "pair"),
        ([(1, 2), 3], "pair"),
        ([(1, 2, 3)], "pair"),
        ((9, 2), "cropped_moment must lie within 1 to 5"),
        ((0, 2), "cropped_moment must lie within 1 to 5"),
        ((2, 0), "power"),
        ((2, 9), "power"),
        ((2, 1.5), "power"),
    ],
)
def test_moments_that_cannot_be_asked(wrong, message):
    visits = pp.Incidence(universe=200, bound=5, epsilon=1)
    with pytest.raises(pp.PlanError, match=message):
        visits.release(cropped_moment=wrong)
    assert visits.ledger.spent == visits.ledger.total - visits.release_epsilon
    wide = pp.Incidence(universe=200, bound=2_000, epsilon=1)
    with pytest.raises(pp.PlanError, match=r"tau\*\*power must be at most"):
        wide.release(cropped_moment=(2_000, 4))


def test_a_cropped_mean_is_the_sum_over_the_universe():
    visits = pp.Incidence(universe=200, bound=3, epsilon=100)
    visits.update([1, 1, 2])
    answer = visits.release(cropped_sum=(1, 3))
    assert answer.cropped_mean(3).value == pytest.approx(3 / 200, abs=1e-4)
    assert answer.cropped_mean(1).value == pytest.approx(2 / 200, abs=1e-4)
    hashed = pp.Incidence(expected=20_000, bound=3, epsilon=3).release()
    with pytest.raises(pp.PlanError, match="universe"):
        hashed.cropped_mean(3)


@pytest.mark.parametrize(("share", "most"), [(0.25, 1), (0.5, 2), (0.9, 4)])
def test_quantiles_of_activity_are_those_of_the_users_that_came(share, most):
    visits = pp.Incidence(universe=4_000, bound=9, epsilon=50)
    states = np.repeat([0, 1, 2, 3, 4], 800)
    visits.update(np.arange(4_000), states)
    answer = visits.release().quantile(share)
    assert (answer.low, answer.value, answer.high) == (answer.low, most, answer.high)
    assert answer.low <= most <= answer.high


def test_tables_come_as_arrow_and_as_pandas():
    visits = pp.Incidence(universe=4_000, bound=3, epsilon=2, signed=True, releases=2)
    whole = visits.release().to_pandas()
    assert whole["argument"].tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert ((whole["low"] <= whole["value"]) & (whole["value"] <= whole["high"])).all()
    named = visits.release(exactly=(1,), distinct=True).to_arrow()
    assert named.column_names == list(COLUMNS)
    assert named["question"].to_pylist() == ["exactly", "distinct"]
    assert named["argument"].to_pylist() == [1, None]


def test_redrawn_noise_is_wiped(monkeypatch):
    drawn = []
    inner = uniform_below.__globals__["_uniform_bits"]

    def spy(*arguments):
        drawn.append(inner(*arguments))
        return drawn[-1]

    monkeypatch.setitem(uniform_below.__globals__, "_uniform_bits", spy)
    ModularCells(2_000, pp.Law.flat(11, 1)).born(SeededCoins(1))
    assert len(drawn) > 1
    assert not any(array.any() for array in drawn)


def test_named_counts_that_do_not_fit_are_read_off_the_histogram():
    """With a tiny epsilon for each release the noise of a high moment exceeds 64 bits."""
    visits = pp.Incidence(universe=10**6, bound=15, epsilon=1e-6, releases=1_000)
    answer = visits.release(cropped_moment=(15, 8))
    assert answer.cropped_moment(15, 8).value >= 0


@pytest.mark.parametrize("wrong", [np.array(3), (True, 2), ["ab"], ("3", 2)])
def test_what_is_no_pair_is_refused_in_plain_words(wrong):
    visits = pp.Incidence(universe=200, bound=5, epsilon=1)
    with pytest.raises(pp.PlanError, match=r"pair \(tau, power\)|whole number from 1 to 5"):
        visits.release(cropped_moment=wrong)

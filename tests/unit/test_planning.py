"""Plans meet their targets, spend exactly epsilon, and are the best within reach."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.ground.validation import MOST_BYTES
from panprivacy.statistics.catalogue import kind_of
from panprivacy.statistics.cropped.decoder import LevelledCroppedModel
from panprivacy.statistics.cropped.plan import CroppedPlan
from panprivacy.statistics.density.plan import plan_density
from panprivacy.statistics.distinct.decoder import LevelModel
from panprivacy.statistics.distinct.plan import DistinctPlan, plan_distinct
from panprivacy.tables.planning.regret import WORST_ERROR, grid
from panprivacy.tables.planning.request import (
    LEAST_EPSILON,
    Request,
    budgets,
)  # fmt: skip

ONE = Request(Fraction(1))
KIB = 1_024


# Targets


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize("users", [1_000, 100_000, 10_000_000])
def test_more_epsilon_and_more_memory_are_never_worse(epsilon, users):
    error = plan_distinct((users, users), KIB, Request(epsilon)).relative_error(users)
    assert plan_distinct((users, users), KIB, Request(2 * epsilon)).relative_error(users) < error
    assert plan_distinct((users, users), 2 * KIB, Request(epsilon)).relative_error(users) <= error


def test_releases_and_announced_intrusions_cost_accuracy():
    errors = [
        plan_density(10_000, None, Request(Fraction(1), releases, intrusions)).relative_error(0.5)
        for releases, intrusions in [(1, 0), (9, 0), (9, 1)]
    ]
    assert errors[0] < errors[1] < errors[2]


# Splits


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction("0.7"), Fraction(10)])
@pytest.mark.parametrize(("releases", "intrusions"), [(1, 0), (7, 0), (1_000_000, 0), (3, 1)])
def test_budgets_of_counters_spend_exactly_epsilon(epsilon, releases, intrusions):
    request = Request(epsilon, releases, intrusions)
    for budget in budgets(request):
        assert budget.total(releases=releases, intrusions=intrusions) == epsilon


def test_a_budget_overrides_the_split():
    budget = pp.Budget("0.3", "0.2")
    for statistic in (
        pp.Density(universe=100, epsilon=1, budget=budget),
        pp.DistinctCount(epsilon=1, expected=100, budget=budget),
    ):
        assert statistic.plan.split.budget.state == budget.state
        assert statistic.plan.table.epsilon_state == Fraction(3, 10)
        assert statistic.ledger.spent == Fraction(3, 10)
        assert statistic.release().epsilon == 0.2


def test_a_budget_may_take_all_of_epsilon_and_not_more():
    sizes = {"universe": 10, "tau": 2, "bound": 4, "budget": pp.Budget("2", "1")}
    pp.CroppedSum(epsilon=7, releases=3, intrusions=1, **sizes)
    for arguments in ({"releases": 4, "intrusions": 1}, {"releases": 3}):
        with pytest.raises(pp.PlanError, match=r"costs epsilon [58] in all, above 4"):
            pp.CroppedSum(epsilon=4, **arguments, **sizes)


def test_a_budget_of_bits_may_add_up_to_more_than_epsilon():
    """State and release of 0.3 and 0.2 cost 0.42 together."""
    budget = pp.Budget("0.3", "0.2")
    density = pp.Density(universe=10, epsilon="0.42", budget=budget)
    density.release()
    p = 1 / (1 + math.exp(-0.3))
    exact = 0.3 + math.log(1 - p + p * math.exp(0.2))
    assert float(density.ledger.spent) == pytest.approx(exact, rel=1e-12)
    with pytest.raises(pp.PlanError, match="costs epsilon"):
        pp.Density(universe=10, epsilon="0.41", budget=budget)


# Density plans


def test_cells_may_be_chosen():
    assert plan_density(1_000, 10, ONE).cells == 10
    with pytest.raises(pp.PlanError, match=r"cells \(1,001\) exceed the universe \(1,000\)"):
        plan_density(1_000, 1_001, ONE)


# Small, equal and hopeless requests


@pytest.mark.parametrize(
    "make",
    [
        lambda: pp.Density(universe=1, epsilon=1),
        lambda: pp.Density(universe=5, cells=1, epsilon=1),
        lambda: pp.DistinctCount(expected=1, memory=1, epsilon=1),
        lambda: pp.DistinctCount(expected=(1, 10**12), memory=1, epsilon=1),
    ],
)
def test_the_smallest_tables_work(make):
    statistic = make()
    statistic.update([0])
    answer = statistic.release()
    assert 0 <= answer.low <= answer.value <= answer.high
    assert statistic.plan.table.nbytes == 1


def test_equal_requests_share_one_plan():
    wanted = {"expected": (1_000, 10**6), "memory": 4_096}
    first, second = (pp.DistinctCount(epsilon="0.5", **wanted) for _ in range(2))
    assert first.plan is second.plan
    assert pp.Density(universe=99, epsilon=2).plan is pp.Density(universe=99, epsilon=2.0).plan


@pytest.mark.parametrize("epsilon", [9.9e-7, 1e-9, "1e-20", "1e-100", pytest.param("1e-380")])
@pytest.mark.parametrize("statistic", ["density", "distinct", "cropped-sum", "incidence"])
def test_an_epsilon_that_leaves_no_signal_is_refused(statistic, epsilon):
    sizes = {
        "density": {"universe": 10},
        "distinct": {"expected": 10},
        "cropped-sum": {"universe": 10, "tau": 3},
        "incidence": {"universe": 10, "bound": 3},
    }[statistic]
    with pytest.raises(pp.PlanError, match=r"too small to leave any signal: most .* 0\.1 to 10"):
        kind_of(statistic)(**sizes, epsilon=epsilon)
    with pytest.raises(pp.PlanError, match="too small to leave any signal"):
        pp.plan(statistic, **sizes, epsilon=epsilon)


def test_the_largest_table_tells_nothing_where_epsilon_is_refused():
    """Of all statistics a density errs least for its memory: a bit for each of its users."""
    cells = 8 * MOST_BYTES
    assert plan_density(cells, cells, Request(LEAST_EPSILON)).relative_error() > 1


def test_the_tiny_shares_of_many_groups_are_taken():
    few = partial(pp.DistinctCount, expected=10, memory=1)
    pages = pp.Grouped(lambda share: few(epsilon=share), range(1_000), epsilon=1, per_user=1_000)
    assert pages.members[0].plan.request.epsilon == Fraction(1, 1_000)


@pytest.mark.parametrize(
    "make",
    [
        lambda epsilon: pp.Density(universe=8, epsilon=epsilon),
        pp.Ledger,
        lambda epsilon: pp.Grouped(
            lambda share: pp.Density(universe=8, epsilon=share), [1, 2], epsilon=epsilon, per_user=2
        ),
    ],
    ids=["statistic", "ledger", "groups"],
)
def test_an_epsilon_that_protects_nobody_is_warned_about(make):
    make(20)  # warnings are errors here, but for those of this kind
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(20)
        assert not caught
        make(21)
    (warning,) = caught
    assert warning.category is pp.WeakEpsilonWarning
    assert "epsilon 21 protects nobody" in str(warning.message)
    assert "\n" not in str(warning.message)


@pytest.mark.parametrize(
    ("statistic", "sizes", "said"),
    [
        ("distinct", {"memory": 10**12}, "memory must be at most 68,719,476,736"),
        ("density", {"universe": 10**13, "cells": 10**12}, "cells must be at most"),
        ("incidence", {"bound": 5, "expected": 10**12}, "a table of 2,000 GB is too large"),
        ("incidence", {"bound": 500, "universe": 10**12, "cells": 6 * 10**10}, "a table of 120 GB"),
        ("cropped-sum", {"tau": 300, "universe": 10**13, "cells": 5 * 10**10}, "a table of 100 GB"),
    ],
    ids=str,
)
def test_more_memory_than_there_may_be_is_refused_before_it_is_touched(statistic, sizes, said):
    with pytest.raises(pp.PlanError, match=said) as refused:
        kind_of(statistic)(**sizes, epsilon=1)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"universe": 0}, "universe"),
        ({"universe": 1.5}, "universe"),
        ({"cells": 0}, "cells"),
        ({"releases": 0}, "releases"),
        ({"intrusions": -1}, "intrusions"),
    ],
    ids=str,
)
def test_an_argument_that_is_out_of_range_is_refused_by_name(arguments, name):
    with pytest.raises(pp.PlanError, match=rf"^{name} must be"):
        pp.Density(**{"universe": 10, "epsilon": 1, **arguments})


def test_memory_and_expected_are_refused_by_name():
    with pytest.raises(pp.PlanError, match=r"^memory must be"):
        pp.DistinctCount(epsilon=1, memory=0)
    with pytest.raises(pp.PlanError, match=r"^expected must"):
        pp.DistinctCount(epsilon=1, expected=(5, 1))


@pytest.mark.parametrize("epsilon", [50, 300, 800])
def test_a_huge_epsilon_gives_the_exact_answer(epsilon):
    members = pp.Density(universe=8, epsilon=epsilon)
    members.update([1, 3])
    assert members.release().value == pytest.approx(1 / 4, abs=1e-6)


@pytest.mark.parametrize("epsilon", [1e5, 1e6])
def test_a_huge_epsilon_plans_the_levels_of_a_large_one(epsilon):
    large = pp.DistinctCount(epsilon=1e4).plan
    huge = pp.DistinctCount(epsilon=epsilon).plan
    assert abs(huge.levels - large.levels) <= 1
    assert abs(huge.cells - large.cells) <= huge.levels


def test_a_huge_epsilon_can_be_shared_with_an_announced_intrusion():
    members = pp.Density(universe=8, epsilon=300, intrusions=1)
    members.update([1, 3])
    members.announce_intrusion()
    assert members.release().value == pytest.approx(1 / 4, abs=1e-3)


def test_an_epsilon_beyond_all_reason_gives_the_exact_answer():
    assert pp.Density(universe=8, epsilon=10**6).release().value == 0


# Plans by target


def test_epsilon_alone_gives_the_plan_of_the_constructor():
    wanted = {"expected": (1_000, 10**6), "epsilon": 1}
    assert pp.plan("distinct", **wanted) is pp.DistinctCount(**wanted).plan
    assert pp.plan("density", universe=999, epsilon=1) == pp.Density(universe=999, epsilon=1).plan


def test_groups_that_take_thousands_of_gigabytes_together_are_refused_at_the_first():
    made = []

    def factory(epsilon):
        made.append(pp.Incidence(universe=10**9, bound=2, memory=1 << 21, epsilon=epsilon))
        return made[-1]

    with pytest.raises(pp.PlanError, match="65,535 states of 2 MB take 137 GB") as refused:
        pp.Grouped(factory, range(65_535), epsilon=1)
    assert len(made) == 1
    assert "\n" not in str(refused.value)


# Searches


@pytest.mark.parametrize(
    ("kind", "model", "called"),
    [
        ("distinct", LevelModel, "moments"),
        ("running-distinct", LevelModel, "moments"),
        ("cropped-sum", LevelledCroppedModel, "parts"),
    ],
)
def test_a_search_over_memories_predicts_the_errors_of_many_designs_at_once(
    monkeypatch, kind, model, called
):
    """A memory has up to 22 numbers of levels, and half a thousand designs."""
    calls, predict = [], getattr(model, called)
    monkeypatch.setattr(model, called, lambda *given: calls.append(1) or predict(*given))
    sizes = {"horizon": 3} if kind == "running-distinct" else {"tau": 7} if kind[0] == "c" else {}
    pp.plan(kind, expected=(1_000, 1_000_003), epsilon=2, error=2, **sizes)
    assert 0 < len(calls) < 300


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(5)])
def test_designs_have_the_same_errors_together_as_alone(epsilon):
    users = grid(1_000, 10**6)
    plan = plan_distinct((1_000, 10**6), KIB, Request(epsilon))
    designs = [replace(plan, cells_per_level=cells) for cells in (1, 50, 7_000)]
    together = DistinctPlan.planning_errors(designs, users)
    assert together == pytest.approx(np.array([one.relative_errors(users) for one in designs]))
    sums = pp.plan("cropped-sum", tau=7, expected=(1_000, 10**6), epsilon=epsilon)
    crops = [replace(sums, cells=cells * sums.levels) for cells in (1, 50, 7_000)]
    alone = [one.relative_errors(7 * users) for one in crops]
    together = np.fmin(CroppedPlan.planning_errors(crops, users), WORST_ERROR)
    assert together == pytest.approx(np.array(alone))

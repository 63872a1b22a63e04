"""Plans meet their targets, spend exactly epsilon, and are the best within reach."""

from __future__ import annotations

import math
import re
import warnings
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import panprivacy as pp
from panprivacy import statistics
from panprivacy._validate import MOST_BYTES
from panprivacy.addressing import MAX_UNIVERSE, Direct, Levelled, Sampled
from panprivacy.decoders.intervals import discrete_laplace_variance, noise_quantile
from panprivacy.guarantee import joint_releases, randomised_response
from panprivacy.planning.bits import best_split
from panprivacy.planning.request import (
    LEAST_EPSILON,
    Request,
    Split,
    budgets,
    noise_variance,
    release_shares,
)  # fmt: skip
from panprivacy.programs.counting import make_counting
from panprivacy.statistics.catalogue import KINDS, kind_of
from panprivacy.statistics.density.plan import MAX_DIRECT_CELLS, plan_density
from panprivacy.statistics.distinct.plan import DistinctPlan, plan_distinct
from panprivacy.statistics.planner import check_useful, least_error
from panprivacy.statistics.specification import Specification

ONE = Request(Fraction(1))
KIB = 1_024


# Targets


@pytest.mark.parametrize(
    ("users", "error"), [(10_000, 0.055), (279_379, 0.009), (1_000_000, 0.01), (10_000_000, 0.01)]
)
def test_64_kib_and_epsilon_1_are_good_for_ten_thousand_to_ten_million_users(users, error):
    assert plan_distinct((10_000, 10_000_000), 64 * KIB, ONE).relative_error(users) <= error


def test_a_plan_takes_no_more_memory_than_it_needs():
    """3,000 users are counted better in 8 KiB than in all of 64, where more noise is summed."""
    plan = plan_distinct((3_000, 3_000), 64 * KIB, ONE)
    larger = [
        DistinctPlan((3_000, 3_000), levels, 8 * 64 * KIB // levels, ONE, split)
        for levels in (1, 2, 4, 8)
        for split in [best_split(ONE, 8 * 64 * KIB // levels)]
    ]
    assert plan.table.nbytes <= 8 * KIB
    assert plan.relative_error(3_000) < min(full.relative_error(3_000) for full in larger)


@pytest.mark.parametrize("memory", [1, 10, 1_000, 64 * KIB])
@pytest.mark.parametrize("expected", [(1, 1), (100, 100), (1, 10**9), (10**6, 10**7)])
def test_a_plan_stays_within_its_memory(memory, expected):
    assert 1 <= plan_distinct(expected, memory, ONE).table.nbytes <= memory


@pytest.mark.parametrize("expected", [(1_000, 100_000), (10_000, 10_000_000), (1_000, 10**9)])
def test_a_plan_for_a_range_is_nowhere_far_worse_than_a_plan_for_that_number(expected):
    plan = plan_distinct(expected, 64 * KIB, ONE)
    for users in np.geomspace(*expected, 7).round().astype(int).tolist():
        assert plan.relative_error(users) <= 3.5 * plan_distinct(
            (users, users), 64 * KIB, ONE
        ).relative_error(users)


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


@pytest.mark.parametrize("epsilon", [Fraction(1, 1_000), Fraction(1, 3), 10, 30_000])
@pytest.mark.parametrize("releases", [1, 24, 1_000_000])
@pytest.mark.parametrize("intrusions", [0, 1, 2])
def test_a_split_of_bits_spends_nearly_all_of_epsilon(epsilon, releases, intrusions):
    request = Request(Fraction(epsilon), releases, intrusions)
    budget = best_split(request, 10_000).budget
    spent = budget.total(releases=releases, intrusions=intrusions)
    assert spent <= epsilon
    assert float(spent) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize(("cells", "releases", "epsilon", "less"), [
    (1_000, 1, "1", 0.94), (65_536, 24, "0.5", 0.76), (10_000, 24, "0.1", 0.53),
])  # fmt: skip
def test_what_the_exact_loss_of_bits_gains(cells, releases, epsilon, less):
    """Beside splits whose sum is epsilon; the numbers of docs/guarantees/releases.md."""
    request = Request(Fraction(epsilon), releases)
    summed = min(deviation(by_sum(request, share), cells) for share in release_shares())
    assert deviation(best_split(request, cells), cells) / summed == pytest.approx(less, abs=0.005)


def by_sum(request, share):
    """A split whose losses add up."""
    budget = pp.Budget(request.epsilon * (1 - share), request.epsilon * share / request.releases)
    contrast = float(2 * randomised_response(budget.state) - 1)
    return Split(budget, contrast, noise_variance(1, budget))


def deviation(split, cells):
    """Of a count of fair bits, in units of one user."""
    return math.sqrt(cells / 4 + split.noise_variance) / split.contrast


def split_by_hand(share):
    """A split of 1 whose release costs `share` of it."""
    state = Fraction(1 - share)
    present = randomised_response(state)
    budget = pp.Budget(state, joint_releases(present, 1 - state, 1))
    return Split(budget, float(2 * present - 1), noise_variance(1, budget))


@pytest.mark.parametrize("cells", [1, 100, 10_000, 1_000_000])
def test_the_best_split_is_as_good_as_any(cells):
    shares = np.linspace(0.001, 0.999, 999)
    best = min(deviation(split_by_hand(share), cells) for share in shares)
    assert deviation(best_split(ONE, cells), cells) <= 1.01 * best


def test_a_large_table_spends_nearly_all_of_epsilon_on_its_state():
    half = Split(pp.Budget("0.5", "0.5"), math.tanh(0.25), discrete_laplace_variance(2))
    best = best_split(ONE, 100_000)
    assert best.budget.release < Fraction(1, 10)
    assert 2.7 < (deviation(half, 100_000) / deviation(best, 100_000)) ** 2 < 4.5


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


def test_a_universe_that_fits_has_a_cell_for_every_user():
    plan = plan_density(1_000, None, ONE)
    assert (plan.cells, plan.key_bytes) == (1_000, 0)
    assert isinstance(plan.address(b""), Direct)


def test_a_universe_that_does_not_fit_is_sampled():
    plan = plan_density(MAX_UNIVERSE, None, ONE)
    assert (plan.cells, plan.key_bytes) == (MAX_DIRECT_CELLS, 16)
    assert isinstance(plan.address(bytes(16)), Sampled)
    assert plan.table.nbytes == 16 * KIB**2


def test_cells_may_be_chosen():
    assert plan_density(1_000, 10, ONE).cells == 10
    with pytest.raises(pp.PlanError, match=r"cells \(1,001\) exceed the universe \(1,000\)"):
        plan_density(1_000, 1_001, ONE)


UNIVERSES = pytest.mark.parametrize(
    ("statistic", "sizes"),
    [
        (pp.Density, {}),
        (pp.Incidence, {"bound": 4}),
        (pp.CroppedSum, {"tau": 2}),
        (pp.ThresholdCount, {"threshold": 4}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)


@UNIVERSES
@pytest.mark.parametrize(("cells", "key", "kind"), [(None, 0, Direct), (99, 16, Sampled)])
def test_a_universe_is_addressed_alike_in_all_plans(statistic, sizes, cells, key, kind):
    plan = statistic(universe=100, epsilon=1, cells=cells, **sizes).plan
    assert plan.key_bytes == key
    assert isinstance(plan.address(bytes(key)), kind)


@UNIVERSES
def test_no_plan_has_more_cells_than_a_universe_has_users(statistic, sizes):
    with pytest.raises(pp.PlanError, match=r"cells \(101\) exceed the universe \(100\); leave"):
        statistic(universe=100, epsilon=1, cells=101, **sizes)


def test_a_universe_beyond_all_ids_is_refused():
    with pytest.raises(pp.PlanError, match="universe must be at most"):
        pp.Density(universe=MAX_UNIVERSE + 1, epsilon=1, cells=1)


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


def test_a_distinct_plan_addresses_its_levels():
    plan = plan_distinct((1_000, 10**6), 4_096, ONE)
    address = plan.address(bytes(plan.key_bytes))
    assert isinstance(address, Levelled)
    assert address.cells == plan.cells == plan.levels * plan.cells_per_level
    assert plan.groups == plan.levels > 1


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


def test_a_huge_universe_is_sampled_within_the_usual_memory():
    assert pp.plan("density", universe=10**13, epsilon=1).table.nbytes == 1 << 24
    assert pp.plan("cropped-sum", universe=10**13, tau=10, epsilon=1).table.nbytes == 1 << 26


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


def test_a_margin_is_a_quantile_of_the_worst_error():
    for confidence in (0.8, 0.99):
        density = plan_density(1_000, None, ONE)
        quantile = noise_quantile(confidence, density.model(0).output_share(0.5))
        assert density.relative_margin(confidence) == quantile * density.relative_error(0.5)
        distinct = plan_distinct((1_000, 1_000), 4_096, ONE)
        quantile = noise_quantile(confidence, distinct.model(0).output_share(1_000.0))
        assert distinct.relative_margin(confidence) == pytest.approx(
            quantile * distinct.relative_error(1_000)
        )


@pytest.mark.parametrize("statistic", ["distinct", "cropped-sum"])
def test_a_plan_for_a_range_tells_errors_at_its_ends_and_middle(statistic):
    tau = {"tau": 10} if statistic == "cropped-sum" else {}
    plan = pp.plan(statistic, expected=(1_000, 100_000), epsilon=1, **tau)
    unit = tau.get("tau", 1)
    assert plan.told_at == (1_000 * unit, 10_000 * unit, 100_000 * unit)
    errors = [plan.relative_error(truth) for truth in plan.told_at]
    absolute = [plan.absolute_error(truth) for truth in plan.told_at]
    assert errors == pytest.approx(np.array(absolute) / plan.told_at)
    assert max(errors) <= plan.relative_error()
    assert max(absolute) <= plan.absolute_error()
    margins = [plan.relative_margin(0.95, truth) for truth in plan.told_at]
    assert all(1.9 < reach / one < 2.5 for reach, one in zip(margins, errors, strict=True))


def test_the_catalogue_has_each_statistic_of_the_package():
    """A statistic that can contribute has its folder there, and `merge` knows the catalogue."""
    folders = {kind.__module__.removeprefix("panprivacy.statistics.") for kind in KINDS}
    here = Path(statistics.__file__).parent
    assert folders == {f"{file.parent.name}.statistic" for file in here.glob("*/statistic.py")}


TRIALS = [(kind, trial) for kind in KINDS for trial in kind.trials]


@pytest.mark.parametrize(("kind", "trial"), TRIALS, ids=lambda one: one.name)
def test_errors_of_all_plans_say_in_their_names_what_they_are_relative_to(kind, trial):
    plan = pp.plan(kind.name, **trial.sizes, epsilon=4)
    assert not {"error", "margin"} & set(dir(plan))
    if plan.told_at:
        for truth in plan.told_at:
            error, margin = plan.absolute_error(truth), plan.absolute_margin(0.9, truth)
            assert plan.relative_error(truth) == pytest.approx(error / truth)
            assert plan.relative_margin(0.9, truth) == pytest.approx(margin / truth)
    else:
        assert plan.relative_error() == pytest.approx(plan.absolute_error() / plan.largest)
        assert plan.relative_margin(0.9) == pytest.approx(plan.absolute_margin(0.9) / plan.largest)


@pytest.mark.parametrize(("kind", "trial"), TRIALS, ids=lambda one: one.name)
def test_a_table_of_errors_has_the_ends_and_the_middle_of_every_range(kind, trial):
    """A range that is planned for, whether it was said or not."""
    plan = pp.plan(kind.name, **trial.sizes, epsilon=4)
    expected = trial.sizes.get("expected", kind.sizes_type.fields().get("expected"))
    if isinstance(getattr(expected, "default", expected), tuple):
        low, middle, high = plan.told_at
        assert low < middle < high
        assert middle == pytest.approx(math.sqrt(low * high))


def test_errors_of_answers_that_move_say_their_unit():
    assert not {"error", "margin"} & set(dir(pp.Continual))
    assert "absolute_margin" in dir(pp.Continual)


def test_groups_that_take_thousands_of_gigabytes_together_are_refused_at_the_first():
    made = []

    def factory(epsilon):
        made.append(pp.Incidence(universe=10**9, bound=2, memory=1 << 21, epsilon=epsilon))
        return made[-1]

    with pytest.raises(pp.PlanError, match="65,535 states of 2 MB take 137 GB") as refused:
        pp.Grouped(factory, range(65_535), epsilon=1)
    assert len(made) == 1
    assert "\n" not in str(refused.value)


TARGETS = pytest.mark.parametrize(
    ("statistic", "arguments", "error"),
    [("distinct", {"expected": 1_000}, 0.5), ("density", {"universe": 10_000}, 0.1)],
)


@TARGETS
def test_epsilon_and_an_error_give_the_smallest_memory_that_reaches_it(statistic, arguments, error):
    plan = pp.plan(statistic, **arguments, epsilon=1, error=error)
    assert plan.relative_margin(0.95) <= error
    half = pp.plan(statistic, **arguments, epsilon=1, memory=plan.table.nbytes // 2)
    assert half.relative_margin(0.95) > error


@TARGETS
def test_an_error_gives_the_smallest_epsilon_that_reaches_it(statistic, arguments, error):
    plan = pp.plan(statistic, **arguments, error=error, memory=256, confidence=0.99)
    less = plan.request.epsilon * Fraction(99, 100)
    assert plan.relative_margin(0.99) <= error
    assert plan.table.nbytes <= 256
    assert pp.plan(statistic, **arguments, epsilon=less, memory=256).relative_margin(0.99) > error


CROPPED = {"statistic": "cropped-sum", "tau": 10, "universe": 10_000}
HEAVY = {"statistic": "heavy-hitters", "k": 500, "total": 10_000}
THRESHOLD = {"statistic": "threshold", "threshold": 10, "universe": 10_000}
BLOCKS = pytest.mark.parametrize(
    "arguments", [CROPPED, HEAVY, THRESHOLD], ids=lambda one: one["statistic"]
)


@BLOCKS
def test_an_error_of_a_block_plan_is_a_share_of_the_largest_answer(arguments):
    plan = pp.plan(**arguments, epsilon=4)
    largest = {"cropped-sum": 100_000, "heavy-hitters": 500, "threshold": 10_000}
    share = plan.absolute_margin(0.95) / largest[arguments["statistic"]]
    assert plan.relative_margin(0.95) == pytest.approx(share)
    assert share < 1


@pytest.mark.long
@pytest.mark.parametrize("arguments", [CROPPED, THRESHOLD], ids=lambda one: one["statistic"])
def test_block_plans_are_found_by_memory_and_by_epsilon(arguments):
    target = pp.plan(**arguments, epsilon=4).relative_margin(0.95) * 1.1
    within = pp.plan(**arguments, epsilon=4, error=target)
    assert within.relative_margin(0.95) <= target
    half = within.table.nbytes // 2
    assert pp.plan(**arguments, epsilon=4, memory=half).relative_margin(0.95) > target
    loosest = pp.plan(**arguments, error=target)
    assert loosest.relative_margin(0.95) <= target
    less = loosest.request.epsilon * Fraction(99, 100)
    assert pp.plan(**arguments, epsilon=less).relative_margin(0.95) > target


@pytest.mark.parametrize(
    ("arguments", "memory"),
    [
        *((CROPPED, 10), (CROPPED, 999), (HEAVY, 4_000), (HEAVY, 70_000)),
        *((THRESHOLD, 10), (THRESHOLD, 999)),
    ],
)
def test_block_plans_stay_within_their_memory(arguments, memory):
    assert pp.plan(**arguments, epsilon=2, memory=memory).table.nbytes <= memory


def test_block_plans_are_those_of_the_constructors():
    cropped = pp.CroppedSum(tau=10, universe=10_000, epsilon=2, memory=999)
    assert cropped.plan == pp.plan(**CROPPED, epsilon=2, memory=999)
    heavy = pp.HeavyHitterCount(k=500, total=10_000, epsilon=4)
    assert heavy.plan == pp.plan(**HEAVY, epsilon=4)
    busy = pp.ThresholdCount(threshold=10, universe=10_000, epsilon=2, memory=999)
    assert busy.plan == pp.plan(**THRESHOLD, epsilon=2, memory=999)


@pytest.mark.parametrize(
    ("statistic", "size"), [(pp.CroppedSum, {"tau": 10}), (pp.ThresholdCount, {"threshold": 10})]
)
def test_cells_and_memory_are_two_words_on_one_size(statistic, size):
    with pytest.raises(pp.PlanError, match="cells= or memory=, not both"):
        statistic(universe=10_000, epsilon=2, memory=999, cells=9, **size)


WAY_OUT = r"bytes reaches this error at epsilon 1; .*would do"


@pytest.mark.parametrize(
    ("universe", "memory", "ways"),
    [(1_000, 128, {"epsilon"}), (100_000, 64, {"epsilon", "memory"}), (100_000, 16, {"memory"})],
)
def test_an_error_out_of_reach_is_refused_with_ways_that_reach_it(universe, memory, ways):
    wanted = {"universe": universe, "error": 0.05}
    with pytest.raises(pp.PlanError, match=WAY_OUT) as caught:
        pp.plan("density", epsilon=1, memory=memory, **wanted)
    _, hint = str(caught.value).split(";")
    larger_epsilon = re.findall(r"epsilon ([\d.]+)", hint)
    larger_memory = [int(size.replace(",", "")) for size in re.findall(r"of ([\d,]+) bytes", hint)]
    for epsilon in larger_epsilon:
        pp.plan("density", epsilon=epsilon, memory=memory, **wanted)
    for size in larger_memory:
        pp.plan("density", epsilon=1, memory=size, **wanted)
    assert ways == {name for name in ("epsilon", "memory") if name in hint}


def test_a_memory_that_is_no_power_of_two_is_used_up():
    plan = pp.plan("density", universe=1_000, epsilon=2, error=0.05, memory=125)
    assert plan.relative_margin(0.95) <= 0.05


def test_an_error_beyond_all_means_asks_for_more_users():
    with pytest.raises(pp.PlanError, match="only a larger problem would do"):
        pp.plan("density", universe=1, error=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"statistic": "distinct", "expected": 10}, "needs epsilon, or the error"),
        (
            {"statistic": "median", "epsilon": 1},
            "distinct.* heavy-hitters, .*running-cropped-sum and running-heavy-hitters",
        ),
        ({"statistic": "distinct", "tau": 3, "epsilon": 1}, "distinct has no tau="),
        ({"statistic": "cropped-sum", "universe": 9, "epsilon": 1}, "cropped-sum needs tau="),
        ({"statistic": "cropped-sum", "tau": 3, "epsilon": 1}, "say either universe="),
        ({**CROPPED, "epsilon": 1, "bound": 9}, r"tau \(10\) exceeds the bound \(9\)"),
        ({**CROPPED, "error": 0.1, "bound": 9}, r"tau \(10\) exceeds the bound \(9\)"),
        ({"statistic": "heavy-hitters", "k": 9, "epsilon": 1}, "heavy-hitters needs total="),
        ({**HEAVY, "epsilon": 1, "memory": 100}, "memory must be at least 2,000"),
        ({"statistic": "threshold", "threshold": 9, "epsilon": 1}, "threshold needs universe="),
        ({"statistic": "threshold", "universe": 9, "epsilon": 1}, "threshold needs threshold="),
        ({**THRESHOLD, "epsilon": 1, "bound": 9}, r"threshold \(10\) exceeds the bound \(9\)"),
        ({**THRESHOLD, "epsilon": 1, "expected": 9}, "threshold has no expected="),
        ({**THRESHOLD, "epsilon": 1, "bound": 2_000, "memory": 1}, "memory must be at least 2"),
        ({"statistic": "density", "epsilon": 1}, "density needs universe="),
        ({"statistic": "incidence", "epsilon": 1}, "incidence needs bound="),
        ({"statistic": "density", "universe": 9, "epsilon": 1, "confidence": 1}, "confidence must"),
        ({"statistic": "density", "universe": 9, "epsilon": 1, "memory": 0}, "memory must"),
        ({"statistic": "density", "universe": 9, "epsilon": 1, "error": 0}, "error must"),
    ],
    ids=str,
)
def test_a_target_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(pp.PlanError, match=message):
        pp.plan(**arguments)


def check(arguments, epsilon):
    """Ask whether a plan is of use, as the programs do."""
    sizes = dict(arguments)
    kind = kind_of(sizes.pop("statistic"))
    read = kind.sizes_type.read(kind.name, sizes)
    check_useful(read.plan(Request(Fraction(epsilon))), read)


def test_a_useful_plan_passes():
    check({"statistic": "distinct", "expected": (10, 10_000)}, 1)
    check({"statistic": "density", "universe": 1_000}, 1)
    check(CROPPED, 1)
    check(HEAVY, 4)
    check(THRESHOLD, 1)
    check({"statistic": "incidence", "bound": 3, "universe": 10_000}, 1)


SIZED = {**HEAVY, "cells": 40_000}
"""Such a plan is found eight times as fast."""


def test_the_way_out_of_noise_is_one():
    with pytest.raises(pp.PlanError, match="times k: the answer would be noise") as caught:
        check(SIZED, 1)
    (epsilon,) = re.findall(r"epsilon ([\d.]+)", str(caught.value))
    check(SIZED, epsilon)


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "epsilon"),
    [
        ({"statistic": "distinct", "expected": 5}, "0.01"),
        ({"statistic": "density", "universe": 3}, "0.1"),
        ({"statistic": "cropped-sum", "tau": 5, "expected": 100, "cells": 999}, 1),
        ({"statistic": "threshold", "threshold": 10, "universe": 100, "bound": 20}, 1),
        ({"statistic": "incidence", "bound": 9, "universe": 100}, "0.3"),
    ],
    ids=lambda one: one["statistic"] if isinstance(one, dict) else "",
)
def test_a_plan_whose_answer_would_be_noise_is_refused_with_a_way_out(arguments, epsilon):
    with pytest.raises(pp.PlanError, match=r"would be noise; .*epsilon [\d.]+ would do"):
        check(arguments, epsilon)


@pytest.mark.parametrize("statistic", ["distinct", "incidence"])
def test_noise_begins_where_the_limits_say(statistic):
    """The largest epsilon that is refused is just below the least that is taken."""
    sizes = kind_of(statistic).sizes_type.read(statistic, USEFUL[statistic])
    noise, useful = Fraction(1, 50), Fraction(8)
    for _ in range(7):
        middle = (noise + useful) / 2
        planned = sizes.plan(Request(middle))
        try:
            check_useful(planned, sizes)
            useful = middle
        except pp.PlanError:
            noise = middle
    errors = [least_error(sizes.plan(Request(epsilon))) for epsilon in (noise, useful)]
    assert errors[1] < planned.limits[0] <= errors[0]


USEFUL = {
    "distinct": {"expected": (200, 400), "memory": 512},
    "incidence": {"universe": 4_000, "bound": 3},
}


def test_what_several_statistics_are_advised_is_enough_for_them():
    """Each has only a part of the epsilon that is advised."""
    several = [
        Specification.from_text(text)
        for text in ("distinct,expected=200:400,memory=512", "incidence,universe=4_000,bound=3")
    ]
    with pytest.raises(pp.PlanError, match=r"epsilon [0-9.]+ would do") as refused:
        make_counting(several, epsilon=Fraction(1, 10), releases=1)
    (advised,) = re.findall(r"epsilon ([0-9.]+) would do", str(refused.value))
    make_counting(several[:1], epsilon=Fraction(advised) / 2, releases=1)

"""What the planner finds, by memory, by epsilon or by an error, and what it refuses as noise."""

from __future__ import annotations

import re
from contextvars import Context
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.intake.programs.counting import make_counting
from panprivacy.statistics.catalogue import kind_of
from panprivacy.statistics.plan import smallest_error
from panprivacy.statistics.specification import Specification
from panprivacy.statistics.useful import check_useful
from panprivacy.tables.planning.request import (
    Request,
)  # fmt: skip

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


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "memory"),
    [
        *((CROPPED, 10), (CROPPED, 999), (HEAVY, 4_000), (HEAVY, 70_000)),
        *((THRESHOLD, 10), (THRESHOLD, 999)),
    ],
)
def test_block_plans_stay_within_their_memory(arguments, memory):
    assert pp.plan(**arguments, epsilon=2, memory=memory).table.nbytes <= memory


@pytest.mark.long
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
            "distinct.* heavy-hitters, .*running-heavy-hitters and histogram",
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
    read = kind.entry.sizes.read(kind.entry.name, sizes)
    Context().run(check_useful, read, Request(Fraction(epsilon)))


@pytest.mark.long
def test_a_useful_plan_passes():
    check({"statistic": "distinct", "expected": (10, 10_000)}, 1)
    check({"statistic": "density", "universe": 1_000}, 1)
    check(CROPPED, 1)
    check(HEAVY, 4)
    check(THRESHOLD, 1)
    check({"statistic": "incidence", "bound": 3, "universe": 10_000}, 1)


SIZED = {**HEAVY, "cells": 40_000}
"""Such a plan is found eight times as fast."""


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("statistic", ["distinct", "incidence"])
def test_noise_begins_where_the_limits_say(statistic):
    """The largest epsilon that is refused is just below the least that is taken."""
    sizes = kind_of(statistic).entry.sizes.read(statistic, USEFUL[statistic])
    noise, useful = Fraction(1, 50), Fraction(8)
    for _ in range(7):
        middle = (noise + useful) / 2
        planned = sizes.plan(Request(middle))
        try:
            Context().run(check_useful, sizes, Request(middle))
            useful = middle
        except pp.PlanError:
            noise = middle
    errors = [smallest_error(sizes.plan(Request(epsilon))) for epsilon in (noise, useful)]
    assert errors[1] < planned.limits[0] <= errors[0]


USEFUL = {
    "distinct": {"expected": (200, 400), "memory": 512},
    "incidence": {"universe": 4_000, "bound": 3},
}


@pytest.mark.long
def test_what_several_statistics_are_advised_is_enough_for_them():
    """Each has only a part of the epsilon that is advised."""
    several = [
        Specification.from_text(text)
        for text in ("distinct,expected=200:400,memory=512", "incidence,universe=4_000,bound=3")
    ]
    with pytest.raises(pp.PlanError, match=r"epsilon [0-9.]+ would do") as refused:
        Context().run(make_counting, several, epsilon=Fraction(1, 10), releases=1)
    (advised,) = re.findall(r"epsilon ([0-9.]+) would do", str(refused.value))
    make_counting(several[:1], epsilon=Fraction(advised) / 2, releases=1)

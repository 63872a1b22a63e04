"""Room beyond the bound: nearly free, said by the plan, and states in it count right."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.catalogue import KINDS, kind_of
from panprivacy.statistics.distinct import net_plan
from panprivacy.statistics.incidence.query import IncidenceQuery
from panprivacy.statistics.soft import block_plans
from panprivacy.statistics.soft.block_plans import IN_PART
from panprivacy.tables.cells.modular import ModularCells
from panprivacy.tables.decoders.intervals import discrete_laplace_variance
from panprivacy.tables.planning.request import Request

ROOT = Path(__file__).parents[2]
SURE = 1 - 1e-6


def sizes_of(name, **sizes):
    kind = kind_of(name)
    return kind.entry.sizes.read(kind.entry.name, sizes)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 1, 2, 4])
@pytest.mark.parametrize("universe", [1_000, 1_000_000, 10_000_000])
@pytest.mark.parametrize("bound", [1, 2, 30, 300])
def test_room_costs_hardly_any_error_and_no_memory(bound, universe, epsilon):
    sizes = sizes_of("incidence", bound=bound, universe=universe)
    request = Request(Fraction(epsilon))
    tight, roomy = sizes.attempt(request, room=False), sizes.plan(request)
    assert roomy.table.nbytes == tight.table.nbytes
    assert tight.law.modulus <= roomy.law.modulus <= max(8 * (bound + 1), tight.law.modulus)
    for questions in (8, np.inf):
        assert roomy.absolute_error(questions) <= 1.0501 * tight.absolute_error(questions)
    assert roomy.range_of_states == (0, roomy.law.modulus - 1)


def test_there_is_room_where_users_are_many_and_none_where_it_would_cost():
    def reach(**sizes):
        return sizes_of("incidence", **sizes).plan(Request(Fraction(1))).range_of_states

    assert reach(bound=30, universe=10_000_000)[1] >= 90
    assert reach(bound=300, universe=1_000_000)[1] >= 600
    assert reach(bound=2, universe=10_000_000) == (0, 2)
    assert reach(bound=30, universe=10_000_000, signed=True)[1] < 90


@pytest.mark.long
def test_the_page_says_how_far_states_count_right():
    page = (ROOT / "docs" / "accuracy-answers.md").read_text()
    table = page.split("## Room beyond the bound")[1].split("\n\n## ")[0]
    head, _, *rows = (line.strip("| ") for line in table.splitlines() if line.startswith("|"))
    bounds = [int(words[5:].replace(",", "")) for words in map(str.strip, head.split("|")[2:])]
    assert len(rows) == 11
    for row in rows:
        epsilon, universe, *reach = (words.strip().replace(",", "") for words in row.split("|"))
        plans = [
            sizes_of("incidence", bound=bound, universe=int(universe)).plan(
                Request(Fraction(epsilon))
            )
            for bound in bounds
        ]
        assert [plan.range_of_states[1] for plan in plans] == [int(one) for one in reach]


@pytest.mark.parametrize(
    ("bound", "modulus", "least", "deviation"),
    [(30, 37, 30, 5_457), (100, 121, 30, 10_345), (30, 37, 2, 3_037), (100, 121, 2, 3_395)],
)
def test_a_threshold_costs_what_the_states_on_its_narrow_side_do(bound, modulus, least, deviation):
    visits = pp.Incidence(universe=1_000_000, bound=bound, epsilon=1)
    assert visits.plan.law.modulus == modulus
    (query,) = visits.plan.linear(IncidenceQuery(at_least=(least,)))
    (scale,) = visits.internals.releasing.reading(at_least=(least,)).scales
    estimates = visits.plan.model(0).named(query, 0, discrete_laplace_variance(float(scale)))
    assert float(estimates.deviations()) == pytest.approx(deviation, abs=1)
    flat = np.sqrt(1_000_000 * least * (1 - least / modulus)) / np.tanh(0.5)
    assert deviation == pytest.approx(flat, rel=0.15)


@pytest.mark.long
def test_states_at_three_times_the_bound_count_right():
    """Modulo the least modulus the state of 90 would be one of 16."""
    universe, bound, often = 10_000_000, 30, 1_000_000
    visits = pp.Incidence(universe=universe, bound=bound, epsilon=1)
    tight = visits.internals.memory.sizes.attempt(visits.plan.request, room=False).law.modulus
    assert bound < tight <= 3 * bound <= visits.plan.range_of_states[1]
    for _ in range(3):
        visits.update(np.arange(often), np.full(often, bound))
    named = pp.Incidence(universe=universe, bound=bound, epsilon=1)
    named.resume(visits.state())
    histogram = visits.release(confidence=SURE)
    asked = named.release(
        exactly=(3 * bound % tight,), at_least=(2, bound), distinct=True, confidence=SURE
    )
    for answer in (histogram, asked):
        for found, truth in [
            (answer.exactly(3 * bound % tight), 0),
            (answer.at_least(2), often),
            (answer.at_least(bound), often),
            (answer.distinct(), often),
        ]:
            assert found.low <= truth <= found.high, found
            assert abs(found.value - truth) < often / 2
    rows = histogram.to_pandas()
    assert rows["argument"].tolist() == [*range(bound + 1), bound + 1]
    assert rows["question"].tolist() == ["exactly"] * (bound + 1) + ["at_least"]
    assert len(rows) == len(histogram)
    last = rows.iloc[-1]
    assert last["low"] <= often <= last["high"]
    likely = histogram.to_pandas(constrained=True)
    assert likely["value"].sum() == pytest.approx(universe)
    assert likely["value"].iloc[-1] == pytest.approx(often, rel=0.2)
    assert histogram.quantile(0.5).value == 3 * bound


def test_a_law_of_ones_own_says_how_far_states_count_right():
    law = pp.Law.flat(103, 8)
    visits = pp.Incidence(universe=40_000, bound=5, epsilon=9, law=law)
    assert visits.plan.law == law
    assert visits.plan.range_of_states == (0, 102)
    for _ in range(20):
        visits.update(np.arange(20_000), np.full(20_000, 5))
    answer = visits.release(confidence=SURE)
    assert answer.exactly(5).high < 10_000 < answer.at_least(5).low
    signed = pp.Incidence(universe=1_000, bound=5, epsilon=9, law=law, signed=True).plan
    assert signed.range_of_states == (-51, 51)


@pytest.mark.parametrize("signed", [False, True])
def test_a_state_below_0_is_none_of_those_above_and_needs_signed_to_miss_a_threshold(signed):
    """Unsigned counters take it for one far above the bound."""
    law = pp.Law.flat(103, 8)
    visits = pp.Incidence(universe=40_000, bound=5, epsilon=9, law=law, signed=signed)
    visits.update(np.arange(30_000), np.full(30_000, -3))
    answer = visits.release(confidence=SURE)
    assert all(answer.exactly(state).high < 15_000 for state in range(1, 6))
    reached = answer.at_least(1)
    assert reached.high < 15_000 if signed else reached.low > 15_000


@pytest.mark.parametrize(
    ("make", "counted", "users"),
    [
        (lambda **sizes: pp.ThresholdCount(threshold=20, **sizes), 1, 3_000),
        (lambda **sizes: pp.CroppedSum(tau=20, **sizes), 20, 3_000),
    ],
)
def test_blocks_count_three_times_the_bound_right(make, counted, users):
    statistic = make(bound=1_000, universe=10_000, epsilon=4)
    plan = statistic.plan
    assert plan.range_of_states[1] >= 3_000
    for _ in range(3):
        statistic.update(np.arange(users), np.full(users, 1_000))
    answer = statistic.release(confidence=SURE)
    assert answer.low <= counted * users <= answer.high
    assert answer.low > counted * users / 2


@pytest.mark.parametrize("name", ["threshold", "cropped-sum"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 1, 4])
@pytest.mark.parametrize("bound", [20, 100, 2_000])
def test_room_of_blocks_costs_hardly_any_error_and_no_memory(name, bound, epsilon, monkeypatch):
    counted = {"threshold": {"threshold": 20, "below": 0}, "cropped-sum": {"tau": 20}}[name]
    sizes = sizes_of(name, **counted, universe=100_000, bound=bound)
    roomy = sizes.plan(Request(Fraction(epsilon)))
    monkeypatch.setattr(block_plans, "wider_sets", lambda *_: [])
    tight = sizes.plan(Request(Fraction(epsilon)))
    assert roomy.absolute_error() <= 1.0501 * tight.absolute_error()
    assert roomy.table.nbytes == tight.table.nbytes
    least = bound + roomy.block + roomy.block - 1
    assert tight.modulus <= roomy.modulus <= max(8 * least, tight.modulus)
    assert bound <= tight.range_of_states[1] <= roomy.range_of_states[1]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.entry.name)
def test_whatever_keeps_counters_says_which_sums_of_deltas_count_right(kind):
    for trial in kind.entry.trials:
        plan = kind.entry.sizes.read(kind.entry.name, trial.sizes).plan(Request(Fraction(4)))
        if isinstance(plan.table, ModularCells):
            low, high = plan.range_of_states
            bound = getattr(plan, "bound", 1)
            assert high >= bound
            assert low <= (-bound if getattr(plan, "signed", False) else 0)


@pytest.mark.parametrize("state", [11, 22, 33])
def test_who_is_left_with_three_times_the_bound_is_counted(state):
    users = 20_000
    left = pp.DistinctCount(epsilon=1, expected=100_000, deletions=True, bound=10)
    for _ in range(state // 11):
        left.update(np.arange(users), np.full(users, 5))
        left.update(np.arange(users), np.full(users, 6))
    answer = left.release(confidence=SURE)
    assert users / 2 < answer.low <= users <= answer.high


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 1, 2, 4])
@pytest.mark.parametrize("expected", [(3_000, 3_000), (100_000, 100_000), (1_000, 1_000_000)])
@pytest.mark.parametrize("bound", [1, 3, 10, 300])
def test_room_of_users_who_come_and_go_costs_hardly_any_error(
    bound, expected, epsilon, monkeypatch
):
    def plan():
        wanted = expected, 65_536, bound, Request(Fraction(epsilon))
        return net_plan.plan_net_distinct.__wrapped__(*wanted, signed=False)

    roomy = plan()
    monkeypatch.setattr(net_plan, "_ROOMS", ())
    tight = plan()
    assert roomy.table.nbytes <= 65_536
    assert roomy.law.modulus >= tight.law.modulus
    users = np.geomspace(*expected, 9)
    assert (roomy.relative_errors(users) <= 1.06 * tight.relative_errors(users)).all()
    if bound == 1:
        assert roomy == tight


def test_room_does_not_spoil_what_two_shards_add_up():
    sizes = {"expected": 100_000, "deletions": True, "bound": 5}
    plan = pp.DistinctCount(epsilon=2, **sizes).plan
    assert float(plan.model(1).deviation(100_000)) / 100_000 < 0.03


def test_the_page_says_how_far_users_who_come_and_go_count_right():
    page = (ROOT / "docs" / "accuracy-answers.md").read_text()
    said = re.search(
        r"bound of (\d+) at epsilon 1, states up to (\d+) count right where ([\d,]+) users are\s+"
        r"expected, and up to (\d+) where ([\d,]+) are",
        page,
    )
    bound, few, least, many, most = (int(number.replace(",", "")) for number in said.groups())
    for reach, expected in ((few, least), (many, most)):
        sizes = {"expected": expected, "deletions": True, "bound": bound}
        plan = pp.DistinctCount(epsilon=1, **sizes).plan
        assert plan.range_of_states == (-reach, reach)


def test_who_is_counted_in_noise_has_no_room():
    noise = pp.DistinctCount(epsilon=1, expected=10, memory=64, deletions=True, bound=2)
    assert noise.plan.range_of_states == (-2, 2)


@pytest.mark.long
def test_heavy_hitters_have_the_room_below_0_that_is_asked_for():
    sizes = {"k": 1_000, "total": 1_000_000, "epsilon": 4}
    plain, roomy = pp.plan("heavy-hitters", **sizes), pp.plan("heavy-hitters", **sizes, below=500)
    assert plain.range_of_states == (0, 1_000_000)
    assert roomy.range_of_states == (-500, 1_000_000)
    assert 1.1 < roomy.absolute_error() / plain.absolute_error() < 1.2
    assert plain.caveat == IN_PART
    assert roomy.caveat is None
    with pytest.raises(pp.PlanError, match="below= goes with no announced intrusion"):
        pp.plan("heavy-hitters", **sizes, below=500, intrusions=1)


@pytest.mark.parametrize(("least", "below"), [(2, 1), (10, 1), (10, 5), (30, 3)])
def test_room_of_an_incidence_costs_a_threshold_what_the_docs_say(least, below):
    def error(**sizes):
        plan = pp.plan("incidence", bound=30, universe=10**6, epsilon=1, **sizes)
        model, query = plan.model(0), plan.states.at_least(least)
        return plan, float(np.sqrt(model.named(query, 0, 0.0).constant))

    (plain, before), (roomy, after) = error(), error(below=below)
    assert roomy.range_of_states == (-below, plain.range_of_states[1] - below)
    modulus = plain.law.modulus
    claimed = [states * (1 - states / modulus) for states in (least, least + below)]
    assert after / before == pytest.approx(np.sqrt(claimed[1] / claimed[0]), rel=0.06)


def test_an_incidence_with_room_lists_states_below_0():
    visits = pp.Incidence(universe=1_000, bound=6, below=3, epsilon=60)
    states = np.repeat([-3, -1, 0, 2, 6], 200)
    visits.update(np.arange(1_000), states)
    answer = visits.release()
    assert [one.name.argument for one in answer.answers().values()][:10] == list(range(-3, 7))
    for state in (-3, -2, -1, 0, 2, 6):
        assert answer.exactly(state).value == pytest.approx((states == state).sum(), abs=0.5)
    assert answer.at_least(1).value == pytest.approx(400, abs=0.5)
    assert answer.cropped_sum(4).value == pytest.approx(1_200, abs=0.5)
    assert answer.quantile(0.25).value == -3
    with pytest.raises(pp.PlanError, match="signed=True is below= as far as the bound"):
        pp.plan("incidence", universe=10, bound=6, below=3, signed=True, epsilon=1)
    with pytest.raises(pp.PlanError, match=r"below= \(7\) exceeds the bound \(6\)"):
        pp.plan("incidence", universe=10, bound=6, below=7, epsilon=1)


@pytest.mark.parametrize("statistic", ["threshold", "cropped-sum"])
def test_the_reach_of_a_bound_that_nobody_said_is_room_enough(statistic):
    counted = {"threshold": {"threshold": 10}, "cropped-sum": {"tau": 10}}[statistic]
    plan = sizes_of(statistic, **counted, universe=100_000).plan(Request(Fraction(1)))
    assert 640 <= plan.range_of_states[1] < 8 * 640

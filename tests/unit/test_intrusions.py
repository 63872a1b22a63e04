"""Announced intrusions: what is planned for them, counted of them, and said beforehand."""

from __future__ import annotations

import math
from contextvars import Context
from datetime import timedelta
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.intake.programs.counting import Grouping, make_counting
from panprivacy.statistics.abilities import caution
from panprivacy.statistics.incidence.plan import EntryReading
from panprivacy.statistics.specification import Specification
from panprivacy.statistics.useful import check_useful
from panprivacy.tables.planning.request import Request
from tests.commands import run_command

MODULAR = {
    "incidence": {"universe": 100_000, "bound": 500},
    "cropped-sum": {"universe": 1_000_000, "tau": 10},
    "threshold": {"universe": 1_000_000, "threshold": 10},
    "distinct": {"expected": 3_000, "deletions": True, "bound": 100},
}
OTHERS = {
    "distinct": {"expected": 3_000},
    "density": {"universe": 50_000},
    "running-count": {"horizon": 24},
    "running-distinct": {"horizon": 24, "expected": 20_000},
}

# What is counted of them


def test_each_program_says_how_many_were_announced():
    texts = "distinct,expected=3000", "density,universe=50_000"
    counting = make_counting(
        list(map(Specification.from_text, texts)),
        epsilon=20,
        intrusions=2,
        grouping=Grouping(["home", "help"]),
    )
    assert (counting.guarantee.intrusions, counting.internals.memory.announced) == (2, 0)
    counting.announce_intrusion()
    assert counting.internals.memory.announced == 1
    for group in counting.members.values():
        assert [one.internals.memory.announced for one in group.statistics.values()] == [1, 1]


def test_the_statistics_of_a_program_cover_as_many_each():
    texts = "distinct,expected=3000", "cropped-sum,tau=2,universe=50_000"
    counting = make_counting(list(map(Specification.from_text, texts)), epsilon=9, intrusions=1)
    assert [one.guarantee.intrusions for one in counting.statistics.values()] == [1, 1]
    assert counting.ledger.spent == counting.internals.releasing.state_epsilon > 0


class Clock:
    now = 9_000.0

    def __call__(self):
        return self.now


def test_windows_announce_to_the_one_of_this_moment():
    clock = Clock()
    hourly = pp.Windowed(
        partial(pp.Density, universe=9, epsilon=2, intrusions=1),
        every=timedelta(hours=1),
        clock=clock,
    )
    before = hourly.current
    clock.now += 3_600
    hourly.announce_intrusion()
    assert hourly.current is not before
    assert hourly.current.internals.memory.announced == 1
    with pytest.raises(pp.BudgetError, match="1 announced intrusions were planned for"):
        hourly.announce_intrusion()
    clock.now += 3_600
    hourly.advance()
    assert hourly.current.internals.memory.announced == 0


# What is predicted of them


@pytest.mark.parametrize("intrusions", range(5))
@pytest.mark.parametrize("modulus", [3, 7, 103])
def test_the_planned_error_of_an_entry_is_that_of_the_kernel(modulus, intrusions):
    """For laws of few values, which lose a noticeable part of their spectrum to its zero."""
    law = pp.Law.flat(modulus, 1)
    spectrum = law.spectrum()[1:]
    exact = float((np.abs(spectrum) ** (-2.0 * (intrusions + 1))).sum() / modulus)
    assert law.entry_deviation(intrusions) ** 2 == pytest.approx(
        (exact - 1 + 1 / modulus) / modulus, rel=1e-6
    )
    entry = EntryReading(modulus, law.entry_deviation() ** 2, 0.5).after(intrusions)
    assert entry.spread == pytest.approx(exact, rel=1e-6)
    assert entry.flatness == pytest.approx(law.entry_deviation(intrusions) ** 2, rel=1e-6)


def test_the_error_of_an_entry_grows_by_sqrt_p_over_t():
    law = pp.Law.flat(503, 1)
    plan = pp.Incidence(universe=100_000, bound=502, law=law, epsilon=3, intrusions=1).plan
    t = math.tanh(1 / 2)
    assert plan.growth == pytest.approx((503 - t) / (t * math.sqrt(504)), rel=1e-6)
    assert plan.growth == pytest.approx(math.sqrt(503) / t, rel=0.01)


def test_the_growth_of_one_count_is_that_of_its_model():
    plan = pp.plan("cropped-sum", **MODULAR["cropped-sum"], epsilon=2)
    after, before = (plan.model(epoch).deviation(np.array([1e6])) for epoch in (1, 0))
    assert plan.growth == pytest.approx(float(after[0] / before[0]), rel=0.1)


@pytest.mark.parametrize("name", MODULAR)
def test_plans_of_counters_warn_of_what_an_announcement_does(name):
    plan = pp.plan(name, **MODULAR[name], epsilon=4, intrusions=1)
    assert plan.growth > 1.2
    assert f"about {plan.growth:.2g} times larger" in caution(plan)
    assert "new window" in caution(plan)


@pytest.mark.parametrize("name", OTHERS)
def test_plans_of_other_cells_do_not(name):
    assert caution(pp.plan(name, **OTHERS[name], epsilon=4, intrusions=1)) is None


@pytest.mark.parametrize("name", MODULAR)
def test_predicted_errors_rise_with_what_is_planned_for(name):
    sizes = Specification.from_text(f"{name}," + _written(MODULAR[name])).sizes
    most = {"incidence": 4}.get(name, 2)
    errors = [
        sizes.planned(Request(40, intrusions=covered)).relative_error()
        for covered in range(most + 1)
    ]
    assert errors == sorted(errors)
    assert errors[-1] > 1.2 * errors[0]


def _written(sizes):
    """As the command line takes them."""
    return ",".join(f"{key}={value}".lower() for key, value in sizes.items())


# What the command line says of them


@pytest.mark.long
def test_a_plan_prints_the_error_by_what_epsilon_covers():
    result = run_command(
        "plan", "incidence,universe=100_000,bound=500", "--epsilon", "4", "--intrusions", "2"
    )
    assert result.code == 0, result.stderr
    *_, zero, one, two, note = result.stdout.splitlines()
    planned = [
        pp.plan("incidence", **MODULAR["incidence"], epsilon=4, intrusions=covered)
        for covered in range(3)
    ]
    margins = [100 * plan.relative_margin(0.95) for plan in planned]
    assert zero.split() == ["0", f"±{margins[0]:.2g}", "%"]
    assert one.split() == ["1", f"±{margins[1]:.0f}", "%"]
    assert margins[2] > 1_000
    assert two.split() == ["2", "over", "1,000", "%"]
    assert note == f"note: {caution(planned[2])}"


def test_a_plan_of_bits_has_no_note():
    result = run_command("plan", "density,universe=1000", "--epsilon", "4", "--intrusions", "1")
    assert result.code == 0
    assert "note" not in result.stdout
    assert "by how many announced intrusions" in result.stdout


def test_errors_by_intrusions_are_of_as_many_releases():
    words = "plan", "density,universe=1000", "--epsilon", "4", "--releases", "5"
    lines = run_command(*words, "--intrusions", "2").stdout.splitlines()
    (of_epsilon,) = (line.split()[1:] for line in lines if line.split()[:1] == ["4"])
    assert lines[-1].split() == ["2", *of_epsilon[-2:]]


def test_a_plan_without_any_says_nothing_of_them():
    assert "intrusion" not in run_command("plan", "density,universe=1000", "--epsilon", "4").stdout


@pytest.mark.parametrize("intrusions", range(5))
@pytest.mark.parametrize(
    "stat",
    [
        "cropped-sum,tau=2,bound=2,universe=1_000_000",
        "threshold,threshold=2,bound=4,universe=1_000_000",
        "threshold,threshold=2,bound=4,universe=1_000_000,hard",
    ],
)
def test_counters_of_few_values_can_be_read_after_four(stat, intrusions):
    sizes = Specification.from_text(stat).sizes
    request = Request(Fraction(8), 1, intrusions)
    assert sizes.planned(request).relative_error() < 0.05
    Context().run(check_useful, sizes, request)


@pytest.mark.parametrize("announced", range(3))
@pytest.mark.parametrize(
    ("make", "sizes", "each"),
    [
        (pp.CroppedSum, {"tau": 3, "bound": 5, "universe": 60_000}, 3),
        (pp.CroppedSum, {"tau": 3, "bound": 5, "expected": 60_000}, 3),
        (pp.ThresholdCount, {"threshold": 4, "bound": 6, "universe": 60_000}, 1),
        (pp.ThresholdCount, {"threshold": 4, "bound": 6, "universe": 60_000, "hard": True}, 1),
    ],
)
def test_an_answer_is_right_after_each_announced_intrusion(make, sizes, each, announced):
    """Users come before, between and after; false alarms of 7 deviations are below 1e-6."""
    count = make(**sizes, epsilon=16, intrusions=2)
    for epoch, users in enumerate(np.array_split(np.arange(30_000), announced + 1)):
        if epoch:
            count.announce_intrusion()
        count.update(users, np.full(len(users), 4))
    truth = 30_000.0 * each
    off = abs(count.release().value - truth)
    assert off < 7 * float(np.max(count.plan.model(announced).deviation(truth))) < truth / 4


@pytest.mark.long
def test_more_than_can_be_read_is_refused_with_its_error_and_what_would_do():
    with pytest.raises(pp.PlanError, match=r"at least \S+ times the largest .* would do"):
        Context().run(
            make_counting,
            [Specification.from_text("cropped-sum,tau=10,universe=100_000")],
            epsilon=Fraction(4),
            intrusions=2,
        )


def test_run_says_what_counters_do_and_refuses_a_file(tmp_path):
    file = tmp_path / "visits.csv"
    file.write_text("id\n1\n2\n")
    stat = "cropped-sum,tau=10,universe=1_000_000"
    words = "--user", "id", "--stat", stat, "--epsilon", "9", "--intrusions", "1"
    result = run_command("run", file, *words)
    assert (result.code, result.stdout) == (2, "")
    caution, refused = result.stderr.splitlines()
    assert caution.startswith("panprivacy: cropped-sum: each announced intrusion adds noise")
    assert "--intrusions is for a pipe" in refused

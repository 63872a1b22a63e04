"""The command `panprivacy plan`."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.statistics.specification import Specification
from panprivacy.tables.planning.request import Request
from tests.commands import run_command
from tests.unit.test_cli_run import refused


@pytest.mark.long
@pytest.mark.parametrize(
    "sizes",
    [
        "distinct,expected=300",
        "cropped-sum,tau=5,universe=999",
        "threshold,threshold=5,universe=9999",
        "incidence,bound=5,universe=9999",
    ],
)
def test_a_plan_shows_errors_that_fall_with_epsilon(sizes):
    lines = run_command("plan", sizes, "--epsilon", "1").stdout.splitlines()
    rows = [line for line in lines if "±" in line][:5]  # before those by the number of people
    column = [float(line.split("±")[-1].split()[0].replace(",", "")) for line in rows]
    assert column == sorted(column, reverse=True)
    assert len(column) == 5


@pytest.mark.long
@pytest.mark.parametrize(
    ("sizes", "reach"),
    [
        ("incidence,bound=30,universe=10_000_000", "0 to 100"),
        ("incidence,bound=2,signed,universe=10_000", "-2 to 2"),
        ("threshold,threshold=10,universe=9999,below=0", "0 to 980"),
        ("threshold,threshold=10,universe=9999,below=5", "-5 to 660"),
        ("cropped-sum,tau=10,bound=30,universe=9999", "-30 to 30"),
        ("distinct,expected=3000,deletions,bound=6", "-6 to 6"),
        ("distinct,expected=3000", None),
    ],
)
def test_a_plan_says_which_states_count_right(sizes, reach):
    said = run_command("plan", sizes, "--epsilon", "1").stdout
    found = re.findall(r"count right from (.*)", said)
    assert found == ([] if reach is None else [reach])


@pytest.mark.long
@pytest.mark.parametrize(
    ("stat", "ends"),
    [
        ("distinct,expected=1000:100000", "1,000 / 10,000 / 100,000"),
        ("cropped-sum,tau=10,expected=1000:100000", "10,000 / 100,000 / 1,000,000"),
    ],
)
def test_a_plan_for_a_range_shows_the_errors_at_its_low_middle_and_high_end(stat, ends):
    lines = run_command("plan", stat, "--epsilon", "1").stdout.splitlines()
    years = next(row for row, line in enumerate(lines) if "365 windows of a year" in line)
    said, where, heads, *rows = lines[years - 8 : years]
    assert said.endswith("at the low, middle and high end of its range:")
    assert where == ends
    assert heads.count("bytes") == 4
    row = next(row for row in rows if row.split()[0] == "1")
    shown = [float(one) for one in re.findall(r"±([0-9.]+) %", row)]
    memory = int(re.findall(r"([0-9,]+) bytes", heads)[2].replace(",", ""))
    sizes = Specification.from_text(stat).sizes.within(memory)
    plan = sizes.planned(Request(Fraction(1)))
    told = [100 * plan.relative_margin(0.95, truth) for truth in plan.error_points]
    assert len(shown) == 12
    assert shown[6:9] == pytest.approx(told, rel=0.06)


@pytest.mark.parametrize(
    "arguments",
    [
        ["distinct,expected=1000:100000", "--error", "0.2"],
        ["density,universe=100000", "--error", "0.02"],
        ["cropped-sum,tau=10,universe=1e4", "--error", "0.1"],
        pytest.param(
            ["threshold,threshold=10,universe=1e4", "--error", "0.1"], marks=pytest.mark.long
        ),
        ["heavy-hitters,k=500,total=1e4", "--error", "0.7"],
        ["incidence,bound=3,universe=1e4", "--error", "0.1"],
    ],
)
def test_a_plan_finds_the_memory_for_an_error(arguments):
    result = run_command("plan", *arguments, "--epsilon", "2")
    assert result.code == 0
    assert "bytes of table reach" in result.stdout


@pytest.mark.parametrize(
    ("stat", "more"),
    [
        ("density,universe=1000", []),
        ("density,universe=1000", ["--error", "0.5"]),
        ("running-count,horizon=100", []),
        ("density,universe=1_000_000", ["--releases", "11", "--moves", "0.1"]),
    ],
)
def test_a_plan_says_what_a_year_of_daily_windows_costs(stat, more):
    said = run_command("plan", stat, "--epsilon", "1/3", *more).stdout
    (line,) = [one for one in said.splitlines() if "with daily windows" in one]
    name, *sizes = stat.split(",")
    parts = dict(part.split("=") for part in sizes)
    plan = pp.plan(name, epsilon="1/3", **{key: int(value) for key, value in parts.items()})
    _, year = plan.guarantee.year(86_400)
    if "--moves" not in more and "--error" not in more:
        assert line == f"with daily windows {plan.guarantee.says_of_year(86_400)}"
    if name == "running-count":
        assert year == plan.guarantee.loss
        assert "an event is counted in one window: it loses epsilon 0.333334" in line
        return
    assert year == plan.guarantee.over(365)
    assert ("delta 3.65e-7" in line) == ("--moves" in more)
    if not more:
        assert line.endswith(f"all 365 windows of a year, one of them seen, loses {year}")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["density", "--epsilon", "1"], "density needs universe=: how many users"),
        (["distinct,expected=300", "--epsilon", "0.1", "--error", "0.01"], "would"),
        (["distinct,expected=300", "--epsilon", "zero"], "positive finite"),
        (["density,universe=9,k=2", "--epsilon", "1"], "density has no k="),
        (["cropped-sum,universe=9", "--epsilon", "1"], "cropped-sum needs tau="),
        (["cropped-sum,tau=9", "--epsilon", "1"], "universe= (how many"),
        (["heavy-hitters,k=9", "--epsilon", "1"], "heavy-hitters needs total="),
        (["threshold,universe=9", "--epsilon", "1"], "threshold needs threshold="),
        (["threshold,threshold=9", "--epsilon", "1"], "threshold needs universe="),
        (["threshold,universe=9,threshold=3,tau=2", "--epsilon", "1"], "threshold has no tau="),
        (["incidence", "--epsilon", "1"], "incidence needs bound="),
        (["median", "--epsilon", "1"], "there are distinct, density"),
        (["distinct", "--epsilon", "1", "--releases", "0"], "--releases must be"),
        (["distinct", "--epsilon", "1", "--memory", "0"], "memory must be"),
        (["--epsilon", "1"], "such as: panprivacy plan distinct,expected=3000 --epsilon 1"),
    ],
)
def test_a_plan_that_cannot_be_met_says_what_would(arguments, says):
    assert says in refused("plan", *arguments)


@pytest.mark.long
def test_a_plan_says_for_what_it_is_where_nobody_did():
    planned = "planned for expected=1000:1000000000, as nothing else was said"
    assert planned in run_command("plan", "distinct", "--epsilon", "1").stdout
    assert "planned for" not in run_command("plan", "distinct,expected=99", "--epsilon", "4").stdout


def test_a_plan_of_tables_alone_covers_no_window_that_is_seen():
    said = run_command("plan", "overlap,expected=1000,covers=publication", "--epsilon", "4").stdout
    assert "365 windows of a year, where nobody sees the state, loses epsilon 1,460" in said

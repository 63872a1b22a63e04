"""The pages say how many people a count needs, as the plans do."""

from __future__ import annotations

import math

import pytest
from benchmarks.people import BETWEEN, PAGES, table

import panprivacy as pp
from panprivacy.cli.people import PEOPLE
from tests.commands import run_command
from tests.docs.pages import ROOT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_the_table_that_the_script_writes(page):
    (found,) = BETWEEN.finditer(page.read_text())
    assert found[0] == f"{found[1]}{table()}{found[2]}"


def test_a_plan_prints_the_same_errors():
    lines = run_command("plan", "distinct,expected=300", "--epsilon", "1").stdout.splitlines()
    start = lines.index("at epsilon 1, for a plan of exactly so many people in a window:")
    rows = [line.split(maxsplit=1) for line in lines[start + 1 : start + 1 + len(PEOPLE)]]
    shown = [line.strip("| ").split(" | ") for line in table().splitlines()[2:6]]
    assert rows == [[people, first] for people, first, _ in shown]
    assert rows[0] == ["100", "±69 %"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("1,000 people", 1_000),
        ("1,000 to 1,000,000 people", (1_000, 1_000_000)),
        ("1,000,000 people", 1_000_000),
    ],
)
def test_questions_say_what_a_year_costs(row, expected):
    lines = (ROOT / "docs/faq.md").read_text().splitlines()
    (said,) = (line for line in lines if line.startswith(f"| {row} |"))
    losses = [
        pp.plan(pp.DistinctCount, expected=expected, epsilon=1, releases=releases).guarantee.over(
            365
        )
        for releases in (1, 2, 24)
    ]
    rounded = [math.ceil(10 * loss.epsilon) / 10 for loss in losses]
    assert said == f"| {row} | {' | '.join(map(str, rounded))} |"

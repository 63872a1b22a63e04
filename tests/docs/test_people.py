"""The pages say how many people a count needs, as the plans do."""

from __future__ import annotations

import pytest
from benchmarks.people import BETWEEN, PAGES, table

from panprivacy.cli.people import PEOPLE
from tests.commands import run_command


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

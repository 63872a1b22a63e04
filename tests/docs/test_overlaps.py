"""What the page of overlaps predicts, the code predicts; what coins decide is measured anew."""

from __future__ import annotations

import pytest
from benchmarks import overlaps
from benchmarks.counters import table

PAGE = overlaps.PAGE.read_text()
ROWS = {line.split(" | ")[0].removeprefix("| "): line for line in PAGE.splitlines()}


def body(rows):
    """Rows of a table, without its head."""
    return table([""], rows).split("\n", 2)[2].strip()


def test_the_limits_and_the_errors_by_cells_are_those_of_the_code():
    missed = []
    assert body(overlaps.limit_rows(missed)) in PAGE
    assert body(overlaps.cell_rows()) in PAGE
    assert missed == []


@pytest.mark.parametrize("case", list(overlaps.made_up_cases()), ids=lambda case: case.name)
def test_predictions_are_those_of_the_code(case):
    shown = ROWS[case.name].split(" | ")
    assert shown[4:6] == [f"{100 * case.truth:.1f} %", f"{196 * case.predicted:.2f}"]


def test_nothing_was_outside_of_its_limits():
    assert "missed" not in PAGE
    assert "intervals that hold" in PAGE

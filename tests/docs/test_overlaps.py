"""What the page of overlaps predicts, the code predicts; what coins decide is measured anew."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from benchmarks import overlaps
from benchmarks.counters import table

import panprivacy as pp
from tests.docs.pages import ROOT

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


COVERS = {"tables and a look": "seizure", "tables only": "publication"}


def test_the_prices_of_the_how_to_are_those_of_the_accounting():
    page = (ROOT / "docs/overlaps.md").read_text()
    numbers = r"^\| (\d) \| ([a-z ]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$"
    rows = re.findall(numbers, page, re.MULTILINE)
    assert len(rows) == 6
    for epsilon, covers, *losses in rows:
        window = pp.OverlapSketch(
            epsilon=int(epsilon), expected=10_000, key=b"k" * 16, covers=COVERS[covers]
        )
        for windows, loss in zip((2, 8, 52), losses, strict=True):
            exact = window.guarantee.over(windows).epsilon
            assert exact <= Fraction(loss) <= exact * Fraction(101, 100)

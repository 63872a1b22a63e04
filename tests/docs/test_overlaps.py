"""What the page of overlaps predicts, the code predicts; what coins decide is measured anew."""

from __future__ import annotations

import dataclasses
import math
import re
from fractions import Fraction

import pyarrow.parquet as parquet
import pytest
from benchmarks import cohort_page, overlaps
from benchmarks.counters import table

import panprivacy as pp
from tests.docs.pages import ROOT, blocks

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


HOW_TO = ROOT / "docs/overlaps.md"
MEASURED = cohort_page.Measured.read(HOW_TO.read_text())


def test_the_script_writes_the_numbers_of_the_page():
    text = HOW_TO.read_text()
    assert MEASURED.written(text) == text
    changed = dataclasses.replace(MEASURED, held=MEASURED.held - 1, ours={1: (5, 99.0)})
    assert changed.written(text) != text
    assert cohort_page.Measured.read(changed.written(text)) == changed


def test_the_intervals_of_the_triangle_hold_as_often_as_they_say():
    """28 pairs of eight weeks in each run; those of a run share tables, so 28 count as 7."""
    assert MEASURED.intervals == 28 * MEASURED.runs
    spread = math.sqrt(0.95 * 0.05 / (MEASURED.intervals / 4))
    assert MEASURED.held / MEASURED.intervals > 0.95 - 4 * spread


@pytest.mark.parametrize("epsilon", sorted(MEASURED.ours))
def test_the_sizes_and_the_errors_beside_theta_are_those_of_the_plan(epsilon):
    size, error = MEASURED.ours[epsilon]
    statistic = cohort_page.plan_of(epsilon)
    predicted = 196 * statistic.plan.return_error(cohort_page.USERS)
    assert 0.5 < error / predicted < 1.6  # of 20 runs, 5 standard errors
    assert size == len(statistic.release().sketch.to_bytes())


def test_a_theta_sketch_names_what_it_holds():
    """It holds 4,096 of the hashes, so a list finds as many users and no others."""
    size, error, found, falsely = MEASURED.theta
    assert (falsely, size) == (0, pytest.approx(8 * found, rel=0.02))
    both = math.sqrt(0.5 * 0.5 / 4096)  # of a sample of the first window
    assert error == pytest.approx(196 * both, rel=0.6)


def test_what_duckdb_is_shown_to_do_it_does():
    duckdb = pytest.importorskip("duckdb")
    (query,) = [
        text for language, text, _ in blocks(HOW_TO) if language == "" and text.startswith("select")
    ]
    with duckdb.connect() as joined:
        joined.execute("create table rates (day integer, returned double)")
        joined.execute("insert into rates values (1, 0.5), (2, 0.5), (3, 0.1)")
        joined.execute("create table mails (day integer, mails_sent integer)")
        joined.execute("insert into mails values (1, 4000), (2, 0), (3, 7)")
        assert sorted(joined.execute(query).fetchall()) == [(1, 4_000, 0.5), (2, 0, 0.5)]


def test_duckdb_reads_sketches_of_a_parquet_file(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    window = pp.OverlapSketch(epsilon=4, expected=2_000, key=b"k" * 16)
    sketch = window.release().sketch.named(stream="site")
    parquet.write_table(sketch.to_arrow(), tmp_path / "sketches.parquet")
    with duckdb.connect() as stored:
        read = stored.execute("select stream, sketch from read_parquet(?)",
                              [str(tmp_path / "sketches.parquet")])  # fmt: skip
        ((stream, data),) = read.fetchall()
    assert (stream, pp.Sketch.read(data)) == ("site", sketch)

"""Tables of answers, in the libraries that people read them with."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.statistics.release import Lost

SUM = pp.Name("visits", "cropped_sum", (("tau", 10),))
ANSWER = pp.Release(1234.5, 1100.25, 1400.0, 0.95, 0.1, (7, 8), SUM, "visits")


@pytest.mark.parametrize("table", ["an answer", "a histogram", "windows"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_without_a_library_one_line_says_what_to_do(table, library, monkeypatch):
    monkeypatch.setattr("panprivacy.statistics.frames.find_spec", {library: None}.get)
    histogram = pp.Incidence(universe=50, bound=2, epsilon=1)
    windows = pp.Windowed(lambda: pp.Density(universe=20, epsilon=1), every=3_600).release
    make = {"an answer": lambda: ANSWER, "a histogram": histogram.release, "windows": windows}[
        table
    ]
    with pytest.raises(pp.PlanError, match=f"needs {library}: pip install {library}") as refused:
        getattr(make(), f"to_{library}")()
    assert "\n" not in str(refused.value)


TABLES = {
    "answers": lambda: pp.Answers([ANSWER.under(group="home"), Lost((SUM.under(None, "help"),))]),
    "a release": lambda: ANSWER,
    "a histogram": lambda: visits_of(2).release(),
    "windows": lambda: windows_of_two().release(),
}


def visits_of(bound):
    return pp.Incidence(universe=1_000, bound=bound, epsilon=1)


def windows_of_two():
    now = [0.0]
    density = pp.Windowed(lambda: pp.Density(universe=20, epsilon=1), 3_600, clock=lambda: now[0])
    now[0] = 7_200.0
    return density


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
class TestFrames:
    def test_whatever_reads_arrow_reads_it(self, make):
        table = make()
        rows = table.to_arrow().to_pylist()
        assert rows
        assert pa.table(table).to_pylist() == rows
        assert pl.DataFrame(table).equals(table.to_polars())
        assert table.to_polars().columns == table.to_arrow().column_names
        assert table.to_polars()["value"].to_list() == [row["value"] for row in rows]

    def test_pandas_has_every_number_or_says_what_has(self, make):
        table = make()
        assert table.to_pandas()["low"].notna().sum() == sum(
            row["low"] is not None for row in table.to_arrow().to_pylist()
        )
        if table is ANSWER:
            return
        for wrong in pd.DataFrame, np.asarray:
            with pytest.raises(
                TypeError, match=r"is no array: for a data frame take to_pandas\(\)"
            ):
                wrong(table)

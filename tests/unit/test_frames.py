"""Tables of answers, in the libraries that people read them with."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy import continual
from panprivacy.papers import online
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

    def test_pandas_makes_the_same_columns_of_it(self, make):
        table = make()
        if table is ANSWER:  # one number, as a float is, and no rows
            assert table.to_pandas().shape == (1, 14)
            return
        found, expected = pd.DataFrame(table), table.to_pandas()
        assert list(found.columns) == list(expected.columns)
        same = (one.astype(object).where(one.notna(), None) for one in (found, expected))
        pd.testing.assert_frame_equal(*same)
        for name in ("value", "low", "high", "argument"):
            assert found[name].dtype == expected[name].dtype, name
        assert pd.DataFrame(table, columns=["low", "group"]).columns.tolist() == ["low", "group"]

    def test_an_array_has_a_row_for_each_answer_and_is_none_of_numbers(self, make):
        table = make()
        if table is ANSWER:
            assert np.asarray(float(table)) == 1234.5
            return
        assert [row.value for row in np.asarray(table)] == pytest.approx(
            table.to_pandas()["value"].tolist(), nan_ok=True
        )
        with pytest.raises(TypeError, match=r"take one of them, such as to_pandas\(\)\['value'\]"):
            np.asarray(table, float)


def test_no_answers_make_an_empty_frame():
    assert pd.DataFrame(pp.Answers([])).empty
    assert pl.DataFrame(pp.Answers([])).height == 0


def test_print_shows_every_number_with_what_it_is_of():
    sums = pp.Answers([ANSWER.under("visits", "home"), ANSWER.under("calls", "home")])
    assert [line.split() for line in str(sums).splitlines()] == [
        ["statistic", "answer", "group", "value", "low", "high"],
        ["visits", "cropped", "sum", "10", "home", "1,234", "1,100", "1,400"],
        ["calls", "cropped", "sum", "10", "home", "1,234", "1,100", "1,400"],
    ]
    assert "calls cropped sum 10 of home: 1,234" in repr(sums)
    assert "<td>calls</td>" in sums._repr_html_()
    assert "statistic" not in str(pp.Answers([ANSWER]))


def test_print_shows_the_numbers_of_windows():
    start, end = (datetime(2026, 11, day, tzinfo=UTC) for day in (1, 2))
    windows = pp.Windows([
        pp.Window(start, end, True, ANSWER),
        pp.Window(start, end, True, None),
        pp.Window(start, end, False, b"a contribution"),
    ])  # fmt: skip
    assert [line.split() for line in str(windows).splitlines()] == [
        ["start", "end", "complete", "answer", "value", "low", "high"],
        [*_MOMENTS, "yes", "cropped", "sum", "10", "1,234", "1,100", "1,400"],
        [*_MOMENTS, "yes", "no", "answer"],
        [*_MOMENTS, "no", "bytes"],
    ]
    assert "1,234" in windows._repr_html_()
    assert str(pp.Windows([pp.Window(start, end, True, ANSWER)] * 30)).endswith(
        "after 9 earlier windows"
    )
    assert str(pp.Windows([])) == "no windows have ended"


_MOMENTS = ["2026-11-01", "00:00", "UTC", "2026-11-02", "00:00", "UTC"]


def test_a_window_is_found_by_its_place():
    windows = windows_of_two().release()
    assert windows[np.int64(-1)] is windows[1]
    with pytest.raises(TypeError, match=r"by their places, such as windows\[-1\]"):
        windows["home"]


def test_one_answer_is_a_number_and_several_are_not():
    one = pp.Answers([ANSWER])
    assert (int(one), float(one), round(one, 1), f"{one:.1f}") == (1234, 1234.5, 1234.5, "1234.5")
    for wrong in (int, float, round, "{:.1f}".format):
        with pytest.raises(TypeError, match="2 answers cannot be one number: choose one"):
            wrong(pp.Answers([ANSWER, ANSWER.under("calls")]))
        with pytest.raises(TypeError, match="a lost answer cannot be one number"):
            wrong(pp.Answers([Lost((SUM,))]))


def test_counters_print_their_last_answers():
    counter = continual.Counter(horizon=10, epsilon=10)
    answer = counter.step(1)
    assert str(counter).endswith("95 %) after step 1")
    assert str(counter).split()[0] == str(answer).split()[0]
    assert (float(counter), int(counter)) == (float(answer), int(answer))
    several = online.MultiCounter(30, 100, epsilon=1)
    lines = str(several).splitlines()
    assert lines[0].split() == ["counter", "value", "low", "high"]
    assert lines[21:] == ["20       0      0    0", "... and 9 more", "after step 0"]

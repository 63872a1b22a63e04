"""Parts of pages: tiles, tables, gauges and explanations."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from types import SimpleNamespace

import pytest

from panprivacy.service.dashboard import parts
from panprivacy.service.dashboard.parts import gauges, newest_table, sentence, show, tiles, when
from tests.dashboard.rows import ROW, START
from tests.service.binned import bins

GONE = dict.fromkeys(("value", "low", "high", "estimate", "standard_error", "bias"))
LOST = replace(ROW, **GONE)


@pytest.fixture
def look(board):
    return board.looks["shop"]


def test_a_question_begins_as_a_sentence():
    assert sentence("how many?") == "How many?"
    assert sentence("") == ""


def test_the_newest_answer_is_told_by_the_clock_of_the_zone(look):
    assert when([], look) == "nothing was released yet"
    assert when([ROW], look) == "newest answer: up to 2026-11-03 00:00:00 UTC"
    running = replace(ROW, end=None, complete=False, released=START + timedelta(hours=1))
    assert when([running], look).endswith("2026-11-02 01:00:00 UTC, not a whole window")


def test_a_tile_has_the_answer_its_interval_and_its_note(page, look):
    distinct = replace(ROW, statistic="distinct", question="", argument=None, arguments="")
    tiles([replace(distinct, note="mostly noise")], look, 4)
    (tile,) = page.root.all("div", "tile")
    assert tile.said[1:] == ["10", "8 to 12, 95 %", "mostly noise"]


def test_a_lost_answer_and_an_end_that_is_none_are_told_in_words(page, look):
    distinct = replace(ROW, statistic="distinct", question="", argument=None, arguments="")
    tiles([replace(distinct, high=float("inf"))], look, 4)
    assert "8 to no limit, 95 %" in page.root.said
    page.root.clear()
    tiles([replace(distinct, value=None, low=None, high=None)], look, 4)
    assert page.root.said[1:] == ["lost", "more users came than were planned for"]


def test_so_many_tiles_are_shown_and_the_rest_is_counted(page, look):
    distinct = replace(ROW, statistic="distinct", question="", argument=None, arguments="")
    rows = [replace(distinct, group=str(one)) for one in range(1_006)]
    tiles(rows, look, 6)
    assert len(page.root.all("div", "tile")) == 6
    assert page.root.said[-1] == "and 1,000 more"
    page.root.clear()
    tiles([], look, 6)
    assert page.root.said == ["The first answer comes at the end of the window."]


def test_a_table_has_a_row_for_each_answer_up_to_its_end(page, look):
    newest_table([ROW, LOST] * 31, look)
    rows = page.root.all("tbody")[0].all("tr")
    assert len(rows) == 60
    assert [one.text for one in rows[0].all("td", "number")][3:] == ["10", "1"]
    assert [one.text for one in rows[1].all("td", "number")] == ["lost"] * 3 + [""] * 2
    assert page.root.said[-1] == "And 2 more, in /v1/releases."
    page.root.clear()
    newest_table([], look)
    assert page.root.said == ["Nothing was released yet."]


def test_a_gauge_is_as_full_as_epsilon_is_spent_and_never_fuller(page):
    for share, width, style in ((Fraction(1, 4), "25.00", ""), (Fraction(3, 2), "100.00", "full")):
        page.root.clear()
        parts._gauge("Window", "epsilon", share, "more")
        (meter,) = page.root.all("div", "meter")
        assert meter.children[0].css == f"width: {width}%"
        assert ("full" in meter.children[0].styles) == (style == "full")
        assert meter.props["aria-valuenow"] == f"{float(width):.0f}"


def test_what_nobody_knows_has_no_gauge(page):
    gauges(SimpleNamespace(spent=None, year=None, promise=SimpleNamespace(guarantee=None)))
    assert page.root.children == []


def test_a_stream_of_windows_has_a_gauge_of_a_year_too(page, board):
    gauges(board.looks["shop"])
    assert [one.text for one in page.root.all("div", "name")] == [
        "This window",
        "Somebody who is in every window for a year",
    ]
    look = board.looks["shop"]
    spent, whole = look.spent.loss.epsilon, look.promise.guarantee.epsilon
    assert 0 < spent <= whole
    meter = page.root.all("div", "meter")[0]
    assert meter.props["aria-valuenow"] == f"{float(100 * spent / whole):.0f}"
    page.root.clear()
    gauges(board.looks["calls"])
    assert len(page.root.all("div", "gauge")) == 1


def test_a_year_of_short_windows_is_said_to_protect_nobody(page, look):
    whole = look.year.whole_loss
    long = replace(look.year, whole_loss=whole.times(Fraction(10) / whole.epsilon))
    gauges(SimpleNamespace(spent=look.spent, year=long, promise=look.promise))
    assert f"epsilon {long.loss.text(3)} of 10, with" in page.root.all("div", "gauge")[1].said[1]
    page.root.clear()
    short = replace(look.year, all_windows=31_536_000, whole_loss=whole.times(71_200))
    gauges(SimpleNamespace(spent=look.spent, year=short, promise=look.promise))
    said = " ".join(page.root.all("div", "gauge")[1].said)
    assert f"epsilon {short.loss.text(3)} so far" in said
    assert "protects nobody who is in all of them" in said
    assert f"it adds up to epsilon {short.whole_loss.text(3)}" in said
    assert f"of {short.whole_loss.text(3)}" not in said


def test_a_chart_is_drawn_anew(page):
    chart = parts.chart()
    show(chart, {"a": 1})
    show(chart, {"b": 2})
    assert (chart.options, chart.updates) == ({"b": 2}, 2)


def test_bins_are_neither_tiles_nor_rows(page, look):
    rows = [*bins([0, 10], [1, 2, 3]), ROW]
    tiles(rows, look, 8)
    newest_table(rows, look)
    assert len(page.root.all(style="tile")) == 1
    assert "3 bins of histograms are drawn above; /v1/releases has them." in page.root.said
    assert len(page.root.all("tr")) == 2


def test_an_interval_without_ends_is_any_value(page, look):
    tiles([replace(ROW, low=-math.inf, high=math.inf)], look, 8)
    assert "any value, 95 %" in page.root.said

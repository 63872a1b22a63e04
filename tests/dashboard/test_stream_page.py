"""The page of one stream: over time, by state and by group."""

from __future__ import annotations

import asyncio

import pytest

from panprivacy.service.dashboard.stream_page import _SPANS, StreamPage


@pytest.fixture
def made(page, board):
    live = []
    drawn = StreamPage(board.looks["shop"], live, asyncio.Lock())
    ((_, draw),) = live
    draw()
    return drawn


def test_a_line_is_drawn_of_the_chosen_question_and_span(made):
    assert made._line_says.text.startswith("2 answers; the band is their interval; times of UTC")
    made._span.chosen = "1 hour"
    made._draw_line()
    assert made._line_says.text.startswith("1 answer;")


def test_spans_are_in_seconds():
    assert _SPANS["everything"] is None
    assert [_SPANS[one] for one in ("1 hour", "1 day", "7 days", "30 days", "1 year")] == [
        *(3_600, 86_400, 604_800, 2_592_000, 31_536_000),
    ]


def test_what_there_is_nothing_of_is_hidden(made):
    assert "hidden" in made._groups.styles
    assert "hidden" not in made._line.styles


def test_before_any_answer_the_page_says_so(page, board):
    live = []
    drawn = StreamPage(board.looks["calls"], live, asyncio.Lock())
    live[0][1]()
    assert drawn._line_says.text == "Nothing was released yet."
    assert "hidden" in drawn._line.styles
    assert page.timers == []


def test_states_are_drawn_once(made, page):
    before = len(page.timers)
    made.draw()
    assert len(page.timers) == before == 1
    assert page.timers[0][2]

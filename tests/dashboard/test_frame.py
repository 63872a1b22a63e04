"""What is around every page: who sees which streams, and whether numbers are live."""

from __future__ import annotations

from datetime import timedelta

import pytest

from panprivacy.service.dashboard.frame import _ago, framed
from panprivacy.service.dashboard.guard import COOKIE
from tests.dashboard.rows import TOKENS


def draw(page, board, name="", token="board"):
    page.request.headers["cookie"] = f"{COOKIE}={TOKENS[token]}"
    drawn = []
    with framed(board, "http://service", name) as (looks, live):
        live.extend((look, lambda one=one: drawn.append(one)) for one, look in looks.items())
    return drawn


@pytest.mark.parametrize(
    ("token", "streams"), [("board", ["shop", "calls"]), ("shop", ["shop"]), ("web", [])]
)
def test_a_token_sees_its_streams(page, board, token, streams):
    drawn = draw(page, board, token=token)
    (nav,) = page.root.all("nav")
    assert nav.said == streams
    assert drawn == streams


def test_the_stream_of_a_page_is_the_current_one(page, board):
    draw(page, board, "shop")
    links = page.root.all("nav")[0].all("a")
    assert [one.props.get("aria-current") for one in links] == ["page", None]
    assert page.title == "shop · panprivacy"


def test_what_is_new_is_drawn_and_what_is_known_is_not_drawn_again(page, board):
    drawn = draw(page, board)
    ((_, tick, once),) = page.timers
    assert not once
    tick()
    assert drawn == ["shop", "calls"]
    board.looks["shop"].version += 1
    tick()
    assert drawn == ["shop", "calls", "shop"]


def test_who_may_see_something_else_now_begins_anew(page, board, monkeypatch):
    draw(page, board)
    monkeypatch.setattr(board.readers, "streams", lambda _token: [])
    page.timers[0][1]()
    assert page.gone == ["/"]


def test_the_status_says_whether_numbers_are_live(page, board):
    draw(page, board)
    (status,) = page.root.all("span", "status")
    (alert,) = page.root.all("div", "alert")
    assert status.text.startswith("live, newest answer ")
    assert "hidden" in alert.styles
    board.trouble = "it is gone"
    page.timers[0][1]()
    assert (status.text, "troubled" in status.styles, "hidden" in alert.styles) == (
        "not live",
        True,
        False,
    )
    assert "The release store cannot be read: it is gone." in alert.text
    board.trouble = None
    page.timers[0][1]()
    assert "troubled" not in status.styles


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0 s ago"),
        (119, "119 s ago"),
        (120, "2 minutes ago"),
        (7_199, "119 minutes ago"),
        (7_200, "2 hours ago"),
        (172_800, "2 days ago"),
    ],
)
def test_spans_are_told_in_the_largest_unit_of_which_there_are_two(seconds, said):
    assert _ago(timedelta(seconds=seconds)) == said

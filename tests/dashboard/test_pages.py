"""The pages of the dashboard: all streams, one stream, and what a seized state tells."""

from __future__ import annotations

import pytest

from panprivacy.service.dashboard.guard import COOKIE
from panprivacy.service.dashboard.pages import Pages
from tests.dashboard.rows import TOKENS, published
from tests.service.binned import bins


@pytest.fixture
def made(page, board):
    page.request.headers["cookie"] = f"{COOKIE}={TOKENS['board']}"
    return Pages(board, "http://service")


def test_each_page_has_its_address(made, page):
    assert {*page.routes} == {"/", "/streams/{name}", "/streams/{name}/explain"}
    assert page.routes["/"] == made.overview


def test_the_overview_has_a_card_for_each_stream_with_its_newest_answers(made, page):
    made.overview()
    cards = page.root.all("section", "card")
    assert [card.all("a")[0].text for card in cards] == ["shop", "calls"]
    assert cards[0].all("chart")[0].options
    assert not cards[1].all("chart")[0].options
    assert "nothing was released yet" in cards[1].said


def test_a_histogram_is_drawn_on_the_overview(made, page, board, store):
    published(store, bins([1, 10, 100], [1, 2, 3, 4], hours=24 * 30))
    board.follow()
    made.overview()
    options = page.root.all("chart")[0].options
    assert options["xAxis"]["type"] == "log"
    assert options["aria"]["label"]["description"].startswith("A density in 2 steps")


def test_a_stream_has_its_question_as_a_sentence(made, page):
    made.stream("shop")
    leads = [one.text for one in page.root.all("p", "lead")]
    assert leads
    assert all(text[:1].isupper() for text in leads)


@pytest.mark.parametrize("kind", ["stream", "explanation"])
def test_a_stream_that_is_none_is_told_as_one_that_may_not_be_seen(made, page, kind):
    getattr(made, kind)("none")
    assert [one.text for one in page.root.all("h1")] == ["There is no such stream"]


def test_an_explanation_says_where_it_comes_from(made, page):
    made.explanation("shop")
    said = " ".join(page.root.said)
    assert "What a seized state of shop can tell" in said
    assert "computed from the configuration and the release store" in said

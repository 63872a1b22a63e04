"""The cohort triangle: return rates of windows, and what they cost."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest

from panprivacy.privacy.guarantee import Guarantee
from panprivacy.service.dashboard import cohorts
from panprivacy.service.dashboard.cohorts import Cohorts, CohortTriangle, says_of_cost
from panprivacy.service.outgoing.store import ReleaseStore
from tests.service.doubles import Clock
from tests.service.test_sketches import begun, count

SERIES = ("overlap", None)


@pytest.fixture
def filled(tmp_path):
    """A store with the tables of four windows, and the stream that goes on."""
    with contextlib.closing(ReleaseStore(f"sqlite:///{tmp_path}/cohorts.db")) as store:
        clock = Clock()
        stream = begun(store, clock)
        count(stream, clock, *(range(500 * at, 500 * at + 1_000) for at in range(4)))
        yield store, stream, clock


def test_all_pairs_are_known_and_a_new_window_is_added(filled):
    store, stream, clock = filled
    found = Cohorts(store, "visits", stream.config)
    assert found.follow(released=True)
    table = found.known[SERIES]
    assert table.finished
    assert [len(row) for row in table.rows] == [3, 2, 1]
    assert table.rows[0][0].return_rate.value == pytest.approx(0.5, abs=0.2)
    assert not found.follow(released=True)
    assert not found.follow(released=False)
    count(stream, clock, range(1_000))
    assert not found.follow(released=False)
    assert found.follow(released=True)
    assert [len(row) for row in found.known[SERIES].rows] == [4, 3, 2, 1]


def test_little_is_computed_at_a_time(filled, monkeypatch):
    store, stream, _ = filled
    monkeypatch.setattr(cohorts, "_MOST_SECONDS", 0)
    found = Cohorts(store, "visits", stream.config)
    assert found.follow(released=True)
    assert not found.known[SERIES].rows
    monkeypatch.setattr(cohorts, "_MOST_SECONDS", 9)
    assert found.follow(released=False)
    assert found.known[SERIES].finished


def test_the_cost_is_that_of_the_accounting_object():
    promise = Guarantee(Fraction(2), unseen=Fraction(1), looks=True)
    said = says_of_cost(promise, 12)
    assert f"epsilon {promise.over(12, seen=0).text(3)}," in said
    assert f"and {promise.over(12, seen=1).text(3)} if somebody saw" in said
    unseen = Guarantee(Fraction(2), unseen=Fraction(2), looks=False)
    assert "somebody saw" not in says_of_cost(unseen, 12)


def test_the_triangle_has_a_row_for_each_window_and_noise_is_blank(filled, page):
    store, stream, _ = filled
    found = Cohorts(store, "visits", stream.config)
    drawn = CohortTriangle(stream.config, stream.guarantee, found)
    drawn.draw()
    assert "hidden" in drawn._card.styles, "nothing is known yet"
    found.follow(released=True)
    drawn.draw()
    assert "hidden" not in drawn._card.styles
    (body,) = drawn._table.all("tbody")
    pairs = [pair for row in found.known[SERIES].rows for pair in row]
    told = [pair for pair in pairs if pair.note is None]
    assert 3 <= len(told) < len(pairs)
    cells = body.all("td", "rate")
    assert len(cells) == len(told)
    assert [cell.all("div")[0].text for cell in cells] == [
        f"{100 * pair.return_rate.value:.0f} %" for pair in told
    ]
    assert [len(row.all("td")) for row in body.all("tr")] == [3, 2, 1]
    heads = [one.text for one in drawn._table.all("th", "number")]
    assert heads == ["1 later", "2 later", "3 later"]
    blank = [one for one in body.all("td", "number") if "rate" not in one.styles]
    assert all("noise" in one.props["title"] for one in blank)
    assert drawn._says.text == says_of_cost(stream.guarantee, 4)

"""Return rates of pairs of windows: of published tables, computed once."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.outgoing import returns
from panprivacy.service.outgoing.returns import ReturnRates, series_of
from tests.service.test_sketches import begun, count

SERIES = ("overlap", None)


@pytest.fixture
def filled(store, clock):
    """Four windows of a thousand users, of whom half come back in the next one."""
    stream = begun(store, clock)
    count(stream, clock, *(range(500 * at, 500 * at + 1_000) for at in range(4)))
    return store


def told(rates, listed):
    return json.loads(b"".join(piece.data for piece in rates.as_json(listed)))


def test_each_pair_of_windows_is_answered_with_an_interval(filled):
    rates = ReturnRates(filled)
    listed = rates.windows("visits", SERIES, 52)
    found = told(rates, listed)
    assert [one["id"] for one in found["windows"]] == [one.id for one in listed]
    ids = [one.id for one in listed]
    pairs = [(one["first"], one["second"]) for one in found["pairs"]]
    assert pairs == [(a, b) for at, a in enumerate(ids) for b in ids[at + 1 :]]
    for one in found["pairs"]:
        truth = 0.5 if ids.index(one["second"]) - ids.index(one["first"]) == 1 else 0
        rate = one["return_rate"]
        assert rate["low"] <= rate["value"] <= rate["high"]
        assert rate["value"] == pytest.approx(truth, abs=0.2)
        assert one["intersection"]["value"] == pytest.approx(1_000 * truth, abs=200)


@pytest.mark.parametrize("windows", [0, 1])
def test_fewer_than_two_windows_have_no_pairs(filled, windows):
    rates = ReturnRates(filled)
    listed = rates.windows("visits", SERIES, 52)[:windows]
    assert told(rates, listed)["pairs"] == []
    assert len(told(rates, listed)["windows"]) == windows


def test_a_pair_is_computed_once_and_old_ones_are_forgotten(filled, monkeypatch):
    computed = []
    plain = returns._pair
    monkeypatch.setattr(returns, "_pair", lambda *two: computed.append(two) or plain(*two))
    rates = ReturnRates(filled)
    listed = rates.windows("visits", SERIES, 52)
    first = told(rates, listed)
    assert len(computed) == 6
    assert told(rates, listed) == first
    assert rates.newest("visits", SERIES) == rates.known(*listed[-2:])
    assert len(computed) == 6
    monkeypatch.setattr(returns, "_MOST_PAIRS", 3)
    rates = ReturnRates(filled)
    told(rates, listed)
    assert len(rates._known) == 3


def test_only_windows_of_one_statistic_and_group_are_compared(filled):
    rates = ReturnRates(filled)
    assert len(rates.windows("visits", SERIES, 2)) == 2
    assert rates.windows("visits", ("overlap", "a"), 9) == []
    assert rates.windows("visits", ("other", None), 9) == []
    assert rates.newest("visits", ("other", None)) is None


def test_tables_that_cannot_be_compared_say_why(store, clock):
    count(begun(store, clock), clock, [1])
    count(begun(store, clock, key="another key, public"), clock, [1])
    rates = ReturnRates(store)
    pair = rates.newest("visits", SERIES)
    assert pair.return_rate is None
    assert "another addressing key" in pair.note
    listed = rates.windows("visits", SERIES, 2)
    assert told(rates, listed)["pairs"][0]["note"] == pair.note
    (gone,) = ReturnRates(store).of(listed[0], [replace(listed[1], id=99)])
    assert gone.note == "one of the tables was deleted"


def test_the_series_of_a_stream_are_its_statistics_and_groups():
    stat = ({"name": "overlap", "expected": 9}, {"name": "distinct"})
    plain = {"epsilon": Fraction(1), "window": "1d", "stat": stat}
    assert series_of(StreamConfig(**plain)) == [("overlap", None)]
    grouped = StreamConfig(**plain, by="page", groups=("a", "b"))
    assert series_of(grouped) == [("overlap", "a"), ("overlap", "b")]

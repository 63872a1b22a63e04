"""Published tables of a service that runs, read by a program elsewhere."""

from __future__ import annotations

import json

import pytest

import panprivacy as pp
from panprivacy.errors import InputError, PlanError
from panprivacy.service.sketch_client import SketchClient
from tests.service.test_client import answer, answering
from tests.unit.test_sketch import published

ROWS = [
    {"id": number, "statistic": statistic, "group": group}
    for number, statistic, group in [
        (1, "who", None), (2, "overlap", None), (5, "overlap", "home"), (6, "overlap", None),
    ]
]  # fmt: skip


def listing(rows=ROWS):
    return answer(200, json.dumps(rows).encode())


def test_the_newest_tables_of_a_series_are_read_oldest_first(tmp_path):
    tables = [published([1]), published([2])]
    answers = [listing(), *(answer(200, one.to_bytes()) for one in tables)]
    with answering(tmp_path / "s", *answers) as (url, asked):
        assert SketchClient(url, "pp_word").sketches("my visits") == tables
    paths = [one.split(b" ")[1] for one in asked]
    assert paths == [
        b"/v1/sketches?stream=my+visits&limit=10000",
        b"/v1/sketches/my%20visits/2",
        b"/v1/sketches/my%20visits/6",
    ]
    assert all(b"Authorization: Bearer pp_word" in one for one in asked)


@pytest.mark.parametrize(
    ("asked_for", "number"),
    [({"statistic": "who"}, b"1"), ({"group": "home"}, b"5"), ({"newest": 1}, b"6")],
)
def test_a_series_is_that_of_a_statistic_and_a_group(tmp_path, asked_for, number):
    with answering(tmp_path / "s", listing(), answer(200, published([1]).to_bytes())) as (
        url, asked,
    ):  # fmt: skip
        assert len(SketchClient(url, "pp_word").sketches("visits", **asked_for)) == 1
    assert asked[1].split(b" ")[1] == b"/v1/sketches/visits/" + number


def test_a_stream_without_tables_has_none(tmp_path):
    with answering(tmp_path / "s", listing([])) as (url, _):
        assert SketchClient(url, "pp_word").sketches("visits") == []


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (answer(404, b'{"detail": "there is no such stream"}'), InputError, "no such stream"),
        (answer(502, b"<html>"), PlanError, "no panprivacy service"),
        (answer(200, b"<html>"), PlanError, "no panprivacy service"),
        (answer(200, b'{"a": 1}'), PlanError, "no panprivacy service"),
        (b"", PlanError, "no service answers at unix:"),
    ],
)
def test_what_is_no_answer_is_an_error_in_one_line(tmp_path, given, error, said):
    with answering(tmp_path / "s", given) as (url, _), pytest.raises(error, match=said):
        SketchClient(url, "pp_word").sketches("visits")


def test_a_table_that_is_damaged_is_refused(tmp_path):
    cut = published([1]).to_bytes()[:-1]
    with (
        answering(tmp_path / "s", listing(ROWS[:1]), answer(200, cut)) as (url, _),
        pytest.raises(InputError, match="damaged"),
    ):
        SketchClient(url, "pp_word").sketches("visits")


def test_what_cannot_be_asked_is_refused():
    for service, token in (("ftp://x", "pp_word"), ("http://127.0.0.1:1", "two words")):
        with pytest.raises(PlanError):
            SketchClient(service, token)
    with pytest.raises(pp.PlanError, match="newest"):
        SketchClient("http://127.0.0.1:1", "pp_word").sketches("visits", newest=0)

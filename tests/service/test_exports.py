"""Files of answers: nothing is lost on the way into them."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import asdict, astuple, fields, replace
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import panprivacy as pp
from panprivacy.service.outgoing.exports import WRITERS, as_csv, as_json, as_parquet, preferred
from panprivacy.service.outgoing.records import Page, Published

START = datetime(2026, 1, 5, 7, 30, 0, 123_456, tzinfo=UTC)
PLAIN = Published(
    stream="shop",
    start=START,
    end=START + timedelta(hours=1),
    complete=True,
    number=1,
    statistic="visitors",
    question="distinct",
    argument=None,
    arguments="",
    group=None,
    value=1234.5,
    low=1_000.1,
    high=math.inf,
    estimate=1234.5,
    standard_error=120.25,
    bias=0.5,
    confidence=0.95,
    epsilon=0.1,
    note="beyond the planned range",
    released=START + timedelta(hours=2),
)
INCIDENCE = replace(
    PLAIN,
    group='a "b", ü\nc',
    question="at_least",
    argument=3,
    arguments="state=3",
    high=2_000,
    end=None,
)
LOST = replace(
    PLAIN,
    value=None,
    low=None,
    high=None,
    estimate=None,
    standard_error=None,
    bias=None,
    note=None,
    complete=False,
)
ANSWERS = [PLAIN, INCIDENCE, LOST]


def whole(write, answers, size=1_000):
    """The file of answers that come in pages."""
    parts = [answers[at : at + size] for at in range(0, len(answers), size)] or [[]]
    pages = [Page(part, number == len(parts)) for number, part in enumerate(parts, 1)]
    pieces = [*write(pages)]
    assert [piece.is_last for piece in pieces] == [page.is_last for page in pages]
    return b"".join(piece.data for piece in pieces)


@pytest.mark.parametrize("kind", WRITERS)
def test_pages_make_the_same_file(kind):
    read = {
        "application/json": json.loads,
        "text/csv": bytes,
        "application/vnd.apache.parquet": lambda file: pq.read_table(io.BytesIO(file)),
    }[kind]
    many = ANSWERS * 3
    assert {
        size: read(whole(WRITERS[kind], many, size)) == read(whole(WRITERS[kind], many))
        for size in (1, 2, 4, 9)
    } == dict.fromkeys((1, 2, 4, 9), True)


def test_json_has_every_field():
    rows = json.loads(whole(as_json, ANSWERS), parse_constant=pytest.fail)
    moment = "2026-01-05T07:30:00.123456Z"
    assert [list(row) for row in rows] == [[field.name for field in fields(Published)]] * 3
    assert [row["start"] for row in rows] == [moment] * 3
    assert [row["high"] for row in rows] == ["inf", 2_000, None]
    assert [row["standard_error"] for row in rows] == [120.25, 120.25, None]
    assert [row["end"] for row in rows][1:] == [None, "2026-01-05T08:30:00.123456Z"]
    assert [row["complete"] for row in rows] == [True, True, False]
    times = {name: datetime.fromisoformat(rows[0][name]) for name in ("start", "end", "released")}
    assert Published(**{**rows[0], **times, "high": math.inf}) == PLAIN


def test_csv_has_every_field():
    rows = list(csv.DictReader(io.StringIO(whole(as_csv, ANSWERS).decode(), newline="")))
    assert list(rows[0]) == [field.name for field in fields(Published)]
    assert [row["group"] for row in rows] == ["", 'a "b", ü\nc', ""]
    assert [row["high"] for row in rows] == ["inf", "2000", ""]
    assert [row["complete"] for row in rows] == ["true", "true", "false"]
    assert [float(row["value"]) for row in rows[:2]] == [1234.5, 1234.5]
    assert rows[0]["released"] == "2026-01-05T09:30:00.123456Z"


FORMULAS = [
    "=1+1",
    "+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "-",
    "\N{FULLWIDTH EQUALS SIGN}1",
    "\N{FULLWIDTH PLUS SIGN}1",
    "\N{FULLWIDTH HYPHEN-MINUS}1",
    "\N{FULLWIDTH COMMERCIAL AT}a",
    "'a",
]


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("field", ["stream", "statistic", "arguments", "group", "note"])
def test_no_cell_of_csv_is_a_formula(field, text):
    answer = replace(PLAIN, **{field: text})
    (row,) = csv.DictReader(io.StringIO(whole(as_csv, [answer]).decode(), newline=""))
    assert row[field] == f"'{text}"
    assert json.loads(whole(as_json, [answer]))[0][field] == text


def test_negative_numbers_of_csv_stay_numbers():
    answer = replace(PLAIN, value=-2.5, low=-math.inf, argument=-3, group="-7", arguments="a=-1")
    (row,) = csv.DictReader(io.StringIO(whole(as_csv, [answer]).decode(), newline=""))
    cells = [row[name] for name in ("value", "low", "argument", "group", "arguments")]
    assert cells == ["-2.5", "-inf", "-3", "-7", "a=-1"]


def test_parquet_has_every_field_and_its_type():
    table = pq.read_table(io.BytesIO(whole(as_parquet, ANSWERS)))
    assert [tuple(row.values()) for row in table.to_pylist()] == [astuple(one) for one in ANSWERS]
    types = {
        name: table.schema.field(name).type
        for name in ("start", "complete", "argument", "high", "bias")
    }
    assert types == {
        "start": pa.timestamp("us", tz="UTC"),
        "complete": pa.bool_(),
        "argument": pa.int64(),
        "high": pa.float64(),
        "bias": pa.float64(),
    }


def test_parquet_keeps_the_types_of_columns_without_answers():
    empty, full = (
        pq.read_schema(io.BytesIO(whole(as_parquet, answers))) for answers in ([], [INCIDENCE])
    )
    assert empty == full
    assert empty.names == list(asdict(PLAIN))


def columns_of(kind, data):
    if kind == "application/json":
        return list(json.loads(data)[0])
    if kind == "text/csv":
        return next(csv.reader(io.StringIO(data.decode(), newline="")))
    return pq.read_schema(io.BytesIO(data)).names


@pytest.mark.parametrize("kind", WRITERS)
def test_the_columns_are_those_of_a_release_of_the_library_and_of_its_moment(kind):
    release = pp.DistinctCount(epsilon=1, expected=10_000).release()
    before, after = ["stream", "start", "end", "complete", "number"], ["released"]
    expected = [*before, *release.to_arrow().column_names, *after]
    assert columns_of(kind, whole(WRITERS[kind], [PLAIN])) == expected


def test_the_columns_of_parquet_have_the_types_of_a_release_of_the_library():
    table = pp.DistinctCount(epsilon=1, expected=10_000).release().to_arrow()
    schema = pq.read_schema(io.BytesIO(whole(as_parquet, [PLAIN])))
    assert {name: schema.field(name).type for name in table.column_names} == {
        name: table.schema.field(name).type for name in table.column_names
    }


@pytest.mark.parametrize("writer", [as_json, as_csv])
def test_times_are_written_in_utc(writer):
    moment = START.astimezone(timezone(timedelta(hours=5)))
    assert whole(writer, [replace(PLAIN, start=moment)]) == whole(writer, [PLAIN])


def test_no_answers_are_a_file_too():
    assert whole(as_json, []) == b"[]"
    assert whole(as_csv, []).decode().strip().split(",") == list(asdict(PLAIN))


def test_each_media_type_has_its_writer():
    fronts = {kind: whole(write, [PLAIN])[:4] for kind, write in WRITERS.items()}
    assert fronts == {
        "application/json": b'[{"s',
        "text/csv": b"stre",
        "application/vnd.apache.parquet": b"PAR1",
    }
    assert next(iter(WRITERS)) == "application/json"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("a/a, b/b", "a/a"),
        ("b/b, a/a;q=0.9", "b/b"),
        ("a/*;q=0.1, b/*;q=0.2", "b/b"),
        ("*/*, a/a;q=0", "b/b"),
        ("A/A;Q=1", "a/a"),
        ("b/b;level=1;q=0.5", "b/b"),
        ("b/b ; q=0.5 , c/c", "b/b"),
        ("a/a;q=0.000, b/b;q=0", None),
        ("c/c", None),
        ("", "a/a"),
        (None, "a/a"),
        (",,;;=,a/a;q=x", "a/a"),
        ("b/b;q=0.2,b/b;v=2;q=0.6,a/a;q=0.4", "b/b"),
    ],
)
def test_preferred(accept, kind):
    assert preferred(accept, ["a/a", "b/b"]) == kind

"""A stream of amounts that users add: from the configuration to the store."""

from __future__ import annotations

import json
from fractions import Fraction

import pyarrow as pa
import pytest

from panprivacy.errors import InputError, PlanError
from panprivacy.intake.sources import BodyReader
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.config.values import ConfigError
from panprivacy.service.stream import Stream

from .doubles import HOUR

STAT = {"name": "incidence", "bound": 30, "unit": 60, "expected": 1_000}
ASKED = {**STAT, "mean": True, "quantile": [0.5], "histogram": [1, 5]}


def config(stat=ASKED, **given):
    return StreamConfig(stat=(stat,), epsilon=Fraction(10**5), window="1h", **given)


def bodies(stream, kind, body):
    reader = BodyReader(stream.config.columns(stream.config.make_counting()).wanted())
    return reader.read(kind, bytearray(body))


@pytest.fixture
def made(store, clock):
    def make(**given):
        one = config(**given)
        one.check()
        return Stream("stay", one, store, durable=False, clock=clock)

    return make


ROWS = {"user": ["ada"] * 3 + ["grace"], "value": [60.0, 180.0, 60.0, 540.0]}


def arrow(rows):
    sink = pa.BufferOutputStream()
    table = pa.table(rows)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


BODIES = {
    "json": json.dumps(ROWS).encode(),
    "ndjson": "".join(
        json.dumps({"user": user, "value": value}) + "\n"
        for user, value in zip(*ROWS.values(), strict=True)
    ).encode(),
    "csv": b"user,value\nada,60\nada,180\nada,60.0\ngrace,5.4e2\n",
    "arrow": arrow(ROWS),
}


@pytest.mark.parametrize("kind", BODIES)
def test_amounts_of_users_are_counted_and_stored(kind, made, store, clock):
    stream = made()
    stream.take(bodies(stream, kind, BODIES[kind]))
    clock.now += HOUR
    stream.advance()
    found = {(row.question, row.arguments): row.value for row in store.answers()}
    # Hundreds of cells at epsilon 100,000: noise moves no cell in any run.
    assert {name: round(value, 2) for name, value in found.items()} == {
        ("between", "first=1,last=4"): 0,
        ("at_least", "state=5"): 2,
        ("quantile", "share=0.5"): 5,
        ("mean", ""): 7,
    }


def test_both_columns_have_names(made):
    stream = made(user="visitor", value="seconds")
    body = json.dumps({"visitor": ["ada"], "seconds": [61]}).encode()
    stream.take(bodies(stream, "json", body))


@pytest.mark.parametrize(
    ("amount", "reason"),
    [("null", "null"), ("-1", "below 0"), ("1801", "beyond 30 units of 60"), ('"x"', "numbers")],
)
def test_a_row_that_cannot_be_counted_is_refused(amount, reason, made):
    stream = made()
    before = stream.described()
    body = f'{{"user": ["ada", "grace"], "value": [1, {amount}]}}'
    with pytest.raises(InputError, match=reason) as caught:
        stream.take(bodies(stream, "json", body.encode()))
    assert caught.value.row == 2
    assert "grace" not in str(caught.value)
    assert stream.described() == before


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"delta": "change"}, "leave out delta="),
        ({"stat": {**STAT, "unit": -60}}, "above 0"),
        ({"value": "s", "stat": {"name": "distinct"}}, "value= is for"),
    ],
)
def test_what_does_not_go_together_is_refused(given, reason):
    with pytest.raises((ConfigError, PlanError), match=reason):
        config(**given).check()


def test_all_statistics_of_such_a_stream_read_amounts():
    both = StreamConfig(stat=(STAT, {"name": "distinct"}), epsilon=Fraction(10**5), window="1h")
    with pytest.raises(ConfigError, match="distinct does not read amounts"):
        both.check()

"""A stream that is counted by its values: from the configuration to the store."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from panprivacy.errors import InputError
from panprivacy.intake.sources import BodyReader
from panprivacy.service.config.loading import load
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.config.values import ConfigError
from panprivacy.service.stream import Stream

from .doubles import HOUR

PAGE = Path(__file__).parents[2] / "docs/histogram.md"
STAT = {"name": "histogram", "low": 0.5, "high": 8, "bins": 3}
MEDIAN = {**STAT, "edges": None, "quantile": [0.5, 0.9], "mean": True, "per_user": 5}


def config(stat=STAT, **given):
    plain = {name: one for name, one in stat.items() if one is not None}
    return StreamConfig(stat=(plain,), epsilon=Fraction(10**5), window="1h", **given)


def bodies(stream, kind, body):
    reader = BodyReader(stream.config.columns(stream.config.make_counting()).wanted())
    return reader.read(kind, bytearray(body))


@pytest.fixture
def made(store, clock):
    def make(**given):
        one = config(**given)
        one.check()
        return Stream("times", one, store, durable=False, clock=clock)

    return make


BODIES = {
    "json": json.dumps({"value": [0.75, 3, "4.5", 100]}),
    "json, one type": json.dumps([{"value": 0.75}, {"value": 3}, {"value": 4.5}, {"value": 100}]),
    "ndjson": '{"value": 0.75}\n{"value": 3}\n{"value": 4.5, "x": []}\n{"value": 1e2}\n',
    "csv": "value\n0.75\n3\n4.5\n100\n",
}


@pytest.mark.parametrize("name", BODIES)
def test_numbers_of_a_body_are_counted_and_stored(name, made, store, clock):
    stream = made()
    stream.take(bodies(stream, name.partition(",")[0], BODIES[name].encode()))
    clock.now += HOUR
    stream.advance()
    rows = store.answers()
    assert [round(row.value) for row in rows] == [0, 1, 2, 0, 1]
    assert rows[0].arguments == "low=-inf,high=0.5"
    assert {row.question for row in rows} == {"count"}


def test_percentiles_are_stored(made, store, clock):
    stream = made(stat=MEDIAN, value="ms")
    body = json.dumps({"ms": [0.6] * 60 + [7.9] * 40}).encode()
    stream.take(bodies(stream, "json", body))
    clock.now += HOUR
    stream.advance()
    found = {(row.question, row.arguments): row for row in store.answers()}
    assert list(found) == [("quantile", "share=0.5"), ("quantile", "share=0.9"), ("mean", "")]
    assert found["quantile", "share=0.5"].high <= 3.0
    assert found["quantile", "share=0.9"].low >= 5.5
    assert "a user of up to 5 events in all loses" in stream.described()["guarantee"]


def test_the_configuration_of_the_page_is_read(tmp_path):
    (block,) = re.findall("```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "panprivacy.toml"
    path.write_text(block)
    (stat,) = load(path).streams["requests"].stat
    assert list(map(float, stat["quantile"])) == [0.5, 0.95, 0.99]


def test_a_row_that_is_no_number_is_refused_and_nothing_is_counted(made):
    stream = made()
    before = stream.described()
    for body in ('{"value": [1, "x"]}', '{"value": [1, null]}', '{"value": [1, true]}'):
        with pytest.raises(InputError) as caught:
            stream.take(bodies(stream, "json", body.encode()))
        assert caught.value.row == 2
    assert stream.described() == before


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"value": "ms", "user": "who"}, "users or values"),
        ({"value": "ms", "stat": {"name": "running-count"}}, "value= is for"),
        ({"stat": {"name": "histogram"}}, "low= and high="),
        ({"stat": {**STAT, "quantile": 2}}, "share from 0 to 1"),
    ],
)
def test_what_does_not_go_together_is_refused(given, reason):
    with pytest.raises(ConfigError, match=reason):
        config(**given).check()

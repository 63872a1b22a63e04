"""Routes of published tables: their list, their bytes, and who came back."""

from __future__ import annotations

from fractions import Fraction

import pytest

import panprivacy as pp
from tests.service import asking
from tests.service.asking import client_in, refused
from tests.service.test_returns import told
from tests.service.test_sketches import begun, count

STREAM = """
[streams.visits]
epsilon = 6
window = "1h"
ids = "integers"
[[streams.visits.stat]]
name = "overlap"
expected = 1_000
[streams.pages]
epsilon = 6
window = "1h"
by = "page"
groups = ["home", "help"]
[[streams.pages.stat]]
name = "overlap"
expected = 1_000
[streams.plain]
epsilon = 6
window = "1h"
[[streams.plain.stat]]
name = "distinct"
"""


@pytest.fixture
def filled(tmp_path, monkeypatch, clock):
    """A service whose stream has published three tables."""
    monkeypatch.setattr(asking, "STREAMS", STREAM)
    with client_in(tmp_path) as client:
        stream = begun(client.engine.store, clock)
        count(stream, clock, *(range(500 * at, 500 * at + 1_000) for at in range(3)))
        yield client


def test_tables_are_listed_and_read_as_files(filled, tmp_path):
    listed = filled.ask("GET", "/v1/sketches?stream=visits", "visits").json()
    assert [one["size"] > 0 for one in listed] == [True] * 3
    assert filled.ask("GET", "/v1/sketches", "read").json() == listed
    assert filled.ask("GET", "/v1/sketches?limit=1", "read").json() == listed[-1:]
    before = listed[0]["released"].replace("+", "%2B")
    assert filled.ask("GET", f"/v1/sketches?before={before}", "read").json() == []
    answers = [filled.ask("GET", f"/v1/sketches/visits/{one['id']}", "visits") for one in listed]
    assert {one.headers["Content-Type"] for one in answers} == {"application/octet-stream"}
    (tmp_path / "a.sketch").write_bytes(answers[0].content)
    first, second = pp.Sketch.read(tmp_path / "a.sketch"), pp.Sketch.read(answers[1].content)
    assert pp.overlap(first, second).return_rate().value == pytest.approx(0.5, abs=0.2)


def test_overlaps_are_those_of_the_tables(filled):
    found = filled.ask("GET", "/v1/overlaps?stream=visits", "visits").json()
    rates = filled.app.api.tables.rates
    assert found == told(rates, rates.windows("visits", ("overlap", None), 12))
    assert len(found["pairs"]) == 3
    two = filled.ask("GET", "/v1/overlaps?stream=visits&windows=2&statistic=overlap", "read").json()
    assert two["pairs"] == found["pairs"][-1:]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/v1/sketches?stream=other", 404, "there is no such stream"),
        ("/v1/sketches?limit=0", 400, "limit must be a whole number from 1 to 10,000"),
        ("/v1/sketches/visits/99", 404, "there is no such table"),
        ("/v1/sketches/pages/1", 404, "there is no such table"),
        ("/v1/sketches/visits/-1", 404, "there is no such table"),
        ("/v1/sketches/visits/9" + 30 * "9", 404, "there is no such table"),
        ("/v1/overlaps", 400, "stream must say whose windows are compared"),
        ("/v1/overlaps?stream=visits&windows=53", 400, "windows must be a whole number from 1 to"),
        ("/v1/overlaps?stream=plain", 404, "publishes no tables"),
        ("/v1/overlaps?stream=visits&statistic=x", 404, "statistic must be one of those"),
        ("/v1/overlaps?stream=pages", 400, "group must be one of the groups"),
        ("/v1/overlaps?stream=visits&group=a", 404, "or left out without groups"),
    ],
)
def test_what_is_not_there_is_refused_in_words(filled, path, status, says):
    assert says in refused(filled.ask("GET", path, "read"), status)


def test_a_token_reads_the_tables_of_its_streams_alone(filled):
    for path in ("/v1/sketches", "/v1/sketches?stream=pages", "/v1/sketches/pages/1",
                 "/v1/overlaps?stream=pages", "/v1/overlaps"):  # fmt: skip
        assert "this token may not" in refused(filled.ask("GET", path, "visits"), 403)
    for path in ("/v1/sketches", "/v1/sketches/visits/1", "/v1/overlaps?stream=visits"):
        assert "this token may not" in refused(filled.ask("GET", path, "ingest"), 403)


def test_the_newest_return_rate_is_a_metric(filled):
    text = filled.ask("GET", "/metrics", "read").text
    labels = '{group="",statistic="overlap",stream="visits"}'
    found = {
        name: float(line.split()[-1])
        for line in text.splitlines()
        for name in ("", "_low", "_high")
        if line.startswith(f"panprivacy_return_rate{name}{labels}")
    }
    assert found["_low"] <= found[""] <= found["_high"]
    assert found[""] == pytest.approx(0.5, abs=0.2)


def test_noise_is_no_metric(tmp_path, monkeypatch, clock):
    monkeypatch.setattr(asking, "STREAMS", STREAM)
    with client_in(tmp_path) as client:
        stream = begun(client.engine.store, clock, epsilon=Fraction(1))
        count(stream, clock, [1], [2])
        text = client.ask("GET", "/metrics", "read").text
        assert "panprivacy_return_rate{" not in text

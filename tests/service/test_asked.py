"""What is asked for in a request: its query, its headers and its formats."""

from __future__ import annotations

import pytest

from panprivacy.intake.sources import MEDIA_TYPES
from tests.service.asking import ANNOUNCE, BODIES, NUMBERS, RELEASE, UPDATES, refused


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 257, "\x7f", "é", "a\tb"])
def test_absurd_batch_ids_are_refused(shared, key):
    before = shared.state
    answer = shared.ask(
        "POST",
        UPDATES,
        "ingest",
        content=NUMBERS,
        headers=[
            (b"Content-Type", b"application/octet-stream"),
            (b"Idempotency-Key", key.encode("latin-1")),
        ],
    )
    assert refused(answer, 400) == "Idempotency-Key must be 1 to 256 visible ASCII characters"
    assert shared.state == before


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "csv",
        "text/csv, text/csv",
        "text/csv; charset=utf-16",
        'text/csv; header=present; charset="latin1"',
        "text/csv; charset=utf-8; charset=latin1",
    ],
)
def test_other_formats_are_refused(shared, kind):
    before = shared.state
    headers = {} if kind is None else {"Content-Type": kind}
    answer = shared.ask("POST", UPDATES, "ingest", content=NUMBERS, headers=headers)
    assert "must be" in refused(answer, 415)
    assert shared.state == before


@pytest.mark.parametrize(
    "kind", ["TEXT/CSV", "text/csv;charset=UTF-8", 'text/csv; charset="us-ascii"', " text/csv ;x=y"]
)
def test_media_types_may_be_written_otherwise(shared, kind):
    assert shared.send(BODIES["text/csv"], kind).status_code == 202


def test_a_refusal_of_a_format_names_the_others(shared):
    answer = shared.send(NUMBERS, "text/plain")
    assert answer.headers["Accept"] == ", ".join(MEDIA_TYPES)
    answer = shared.send(NUMBERS, Content_Encoding="br")
    assert answer.headers["Accept-Encoding"] == "gzip, zstd"


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Content-Encoding", "br", 415),
        ("Content-Encoding", "gzip", 400),
        ("Content-Encoding", "identity, br", 415),
        ("Content-Encoding", "IDENTITY", 202),
        ("Transfer-Encoding", "gzip, chunked", 501),
        ("Transfer-Encoding", "chunked, chunked", 501),
        ("Transfer-Encoding", "Chunked", 202),
    ],
)
def test_codings(shared, header, value, status):
    answer = shared.send(NUMBERS, **{header: value})
    assert answer.status_code == status
    if status != 202:
        refused(answer, status)


@pytest.mark.parametrize(
    "name",
    ["Content-Type", "Idempotency-Key", "Authorization", "Content-Encoding"],
)
def test_repeated_headers_are_refused(shared, name):
    before = shared.state
    headers = {
        "Content-Type": "application/octet-stream",
        "Idempotency-Key": "k",
        "Authorization": "Bearer pp_ingest",
        "Content-Encoding": "identity",
    }
    pairs = [*headers.items(), (name, headers[name])]
    answer = shared.ask("POST", UPDATES, content=NUMBERS, headers=pairs)
    assert refused(answer, 400) == f"{name} is given more than once"
    assert shared.state == before


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=-1",
        "limit=000000001999999",
        "limit=",
        "limit=1.5",
        "limit=100001",
        f"limit={'9' * 5000}",
        "limit=%D9%A3",
        "limit=1&limit=2",
        "since=yesterday",
        "since=",
        "since=2026-13-01",
        "since=0001-01-01T00:00:00%2B23:00",
        "before=9999-12-31T23:59:59-23:00",
        "before=1",
        "since=2026-01-01&since=2026-01-02",
        "format=xml",
        "format=",
        "stream=visits&stream=pages",
    ],
)
def test_wrong_questions(shared, query):
    refused(shared.ask("GET", f"/v1/releases?{query}", "read"), 400)


@pytest.mark.parametrize(
    ("method", "path", "takes"),
    [
        ("POST", f"{UPDATES}?durble=1", "durable"),
        ("POST", f"{UPDATES}?durable=0&x", "durable"),
        ("POST", f"{RELEASE}?durable=1", "none"),
        ("POST", f"{ANNOUNCE}?seen=1", "none"),
        ("GET", "/v1/releases?streams=visits", "stream, since, before, limit, format"),
        ("GET", "/v1/streams?=", "none"),
    ],
)
def test_query_parameters_that_mean_nothing_are_refused(client, method, path, takes):
    before = client.state
    roles = {UPDATES: "ingest", RELEASE: "release", ANNOUNCE: "announce"}
    role = roles.get(path.partition("?")[0], "read")
    answer = client.ask(method, path, role, content=NUMBERS if role == "ingest" else None)
    assert refused(answer, 400).endswith(f"this path takes {takes}")
    assert client.state == before


@pytest.mark.parametrize("path", ["/metrics?x=1", "/healthz?1700000000"])
def test_a_probe_may_ask_with_what_means_nothing(shared, path):
    assert shared.ask("GET", path, "read").status_code == 200


def test_no_format_is_left(shared):
    answer = shared.ask("GET", "/v1/releases", "read", headers={"Accept": "text/html"})
    assert refused(answer, 406).startswith("Accept must let one of application/json, ")

"""The description of the interface says what the application does: neither less nor more."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import httpx
import jsonschema_rs
import pyarrow as pa
import pytest

from panprivacy.intake.sources import MEDIA_TYPES
from panprivacy.service.config.tokens import hash_of
from panprivacy.service.outgoing.exports import WRITERS, as_json
from panprivacy.service.outgoing.records import FIELDS, NULLABLE, Page, Published
from panprivacy.service.web import app, asked, beacons, openapi, protocol
from panprivacy.service.web.app import application
from panprivacy.service.web.metrics import FORMATS
from panprivacy.statistics.frames import COLUMNS
from tests.service.asking import STREAMS, client_in, ipc
from tests.service.running import Service

MAY_ALL = f"""
[[tokens]]
name = "all"
may = ["ingest", "read", "release", "announce"]
sha256 = "{hash_of("pp_all")}"
"""
SITE = """
[streams.site]
epsilon = 1
window = "300d"
by = "page"
groups = ["/", "/help"]
ignore_others = true
[[streams.site.stat]]
name = "distinct"
expected = "1000:1e6"
[streams.site.beacon]
origins = ["https://example.org"]
"""
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
METHODS = {"get", "post", "put", "patch", "delete", "options", "head", "trace"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with client_in(tmp_path_factory.mktemp("described")) as one:
        yield one


@pytest.fixture(scope="module")
def described(client):
    return client.ask("GET", "/v1/openapi.json").json()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("described"), STREAMS + SITE + MAY_ALL) as one:
        yield one.start()


def operations(described):
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_every_route_is_described_and_the_other_way_round(client, described):
    routes = {
        (method.lower(), route.path)
        for route in application(client.engine).routes
        for method in {*route.app.methods} - {"HEAD"}
    }
    assert routes == {(method, path) for method, path, _ in operations(described)}


def test_operations_have_names_of_their_own(described):
    names = [operation["operationId"] for _, _, operation in operations(described)]
    assert len({*names}) == len(names)


def test_every_format_is_described(described):
    paths = described["paths"]
    updates = paths["/v1/streams/{name}/updates"]["post"]
    assert [*updates["requestBody"]["content"]] == [*MEDIA_TYPES]
    assert [*paths["/v1/releases"]["get"]["responses"]["200"]["content"]] == [*WRITERS]
    assert [*paths["/metrics"]["get"]["responses"]["200"]["content"]] == [*FORMATS]


EMPTY = {"csv": b"user\n", "tsv": b"user", "json": b"[]", "arrow": ipc(pa.table({"user": [0][:0]}))}


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_what_is_said_of_empty_bodies_holds(described, client, kind):
    """A body without rows is a batch; one without bytes is one of some formats alone."""
    update = described["paths"]["/v1/streams/{name}/updates"]["post"]
    schema = update["requestBody"]["content"][kind]["schema"]
    for body in {b"", EMPTY.get(MEDIA_TYPES[kind], b"")}:
        if MEDIA_TYPES[kind] == "json":
            sound = bool(body) and jsonschema_rs.is_valid(schema, json.loads(body))
        else:
            sound = jsonschema_rs.is_valid(schema, body.decode("latin-1"))
        assert client.send(body, kind).status_code == (202 if sound else 400), body
        assert sound or not body


def test_a_row_is_described_column_by_column(described):
    row = described["components"]["schemas"]["Row"]
    assert row["required"] == [*row["properties"]] == [one.name for one in fields(Published)]
    assert [*COLUMNS] == [name for name in row["properties"] if name in COLUMNS]
    for name, column in row["properties"].items():
        assert column["description"] == FIELDS[name][1] != ""
        kinds = {one.get("type", "inf") for one in column.get("anyOf", [column])}
        assert kinds, name
        assert ("null" in kinds) == (name in NULLABLE)


@pytest.mark.parametrize("value", [5.5, float("inf"), None])
def test_rows_are_as_they_are_described(described, value):
    now = datetime(2026, 1, 5, tzinfo=UTC)
    names = {"statistic": "a", "question": "exactly", "arguments": "state=3", "stream": "visits"}
    answers = [
        Published(
            **names, start=now, end=None, complete=True, number=1, argument=argument, group=group,
            value=value, low=value, high=value, estimate=value, standard_error=1.0, bias=0.0,
            confidence=0.95, epsilon=1.0,
            note=group and "a note", released=now,
        )
        for argument, group in ((3, None), (None, "home"))
    ]  # fmt: skip
    schema = described["components"]["schemas"]["Row"]
    for row in json.loads(next(as_json([Page(answers, is_last=True)])).data):
        assert jsonschema_rs.is_valid(schema, row)
        assert not jsonschema_rs.is_valid(schema, {**row, "argument": "3"})


def test_every_status_that_a_route_has_is_described(described):
    """Those of the protocol and of unknown paths belong to no route."""
    code = "".join(Path(module.__file__).read_text() for module in (app, asked, beacons, openapi))
    written = {*re.findall(r"Problem\(\s*([0-9]{3})", code)} | {"401", "403", "408", "413", "429"}
    shown = {status for *_, operation in operations(described) for status in operation["responses"]}
    assert shown - {"200", "201", "202", "204"} == written - {"405"}
    assert {"405", "414", "431"}.isdisjoint(shown)
    assert "Problem(405" not in Path(protocol.__file__).read_text()


@pytest.mark.parametrize(
    ("method", "path", "request_", "status"),
    [
        ("POST", "/v1/streams/{name}/updates", {}, 415),
        ("POST", "/v1/streams/{name}/updates", {"headers": {"Transfer-Encoding": "x"}}, 501),
        ("POST", "/v1/streams/{name}/updates", {"params": {"durable": 1}}, 415),
        ("POST", "/v1/streams/{name}/release", {}, 201),
        ("POST", "/v1/streams/{name}/announce", {}, 400),
        ("POST", "/v1/streams/{name}/announce", {"headers": {"Idempotency-Key": "x"}}, 409),
        ("GET", "/v1/releases", {"headers": {"Accept": "a/b"}}, 406),
        ("GET", "/v1/releases", {"params": {"format": "x"}}, 400),
        ("GET", "/v1/releases", {"params": {"stream": "x"}}, 404),
        ("GET", "/healthz", {}, 200),
    ],
)
def test_statuses_are_described(described, client, method, path, request_, status):
    where = path.replace("{name}", "visits")
    headers = {**request_.get("headers", {}), "Authorization": "Bearer pp_visits"}
    if path == "/v1/releases" and "params" not in request_:
        where += "?stream=visits"
    if request_.get("params", {}).get("stream") == "x" or "format" in request_.get("params", {}):
        headers["Authorization"] = "Bearer pp_read"
    answer = client.ask(method, where, **{**request_, "headers": headers})
    assert answer.status_code == status, answer.text
    assert str(status) in described["paths"][path][method.lower()]["responses"]


def schemathesis(service, folder, *options, parameters=""):
    """Generate requests from the document of a service, and check what it answers."""
    config = folder / "schemathesis.toml"
    config.write_text(parameters + CHECKS)
    command = [SCHEMATHESIS, "--config-file", config, "run", service.url("/v1/openapi.json")]
    command += ["--header", "Authorization: Bearer pp_all", "--no-color", *options]
    command += ["--request-timeout", "60"]  # how fast the machine is, is tested elsewhere
    result = subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


VISITS = 'parameters = { "path.name" = "visits" }\n'
VISITED = """
parameters = { "path.name" = "site", "header.Origin" = "https://example.org" }
"""
"""So that drawn visits are counted."""
_LONGEST_RUN = 300
"""Seconds after which generated requests end, however few a slow machine has made of them."""
CHECKS = """
[[operations]]
include-operation-id = "update"
checks.positive_data_acceptance.enabled = false  # a schema does not say what is a sound body
[[operations]]
include-operation-id = "visit"
checks.missing_required_header.expected-statuses = [403, 404]  # 404 for a stream without a beacon
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("parameters", "phases"),
    [("", "coverage"), (VISITS, "coverage,fuzzing"), (VISITED, "coverage,fuzzing")],
)
def test_generated_requests(service, tmp_path, parameters, phases):
    """Drawn paths are nearly all unknown: what is drawn goes to a stream that there is."""
    said = service.said
    schemathesis(
        service, tmp_path, "--phases", phases, "--max-examples", "20", parameters=parameters
    )
    assert service.said == said
    assert service.status() == "ok"


@pytest.mark.slow
@pytest.mark.timeout(3 * _LONGEST_RUN)
@pytest.mark.parametrize("parameters", ["", VISITS, VISITED])
def test_many_generated_requests(service, tmp_path, parameters):
    said = service.said
    options = ["--max-examples", "1000", "--max-time", f"{_LONGEST_RUN}"]
    schemathesis(service, tmp_path, *options, parameters=parameters)
    assert service.said == said
    assert service.status() == "ok"


@pytest.mark.long
def test_the_daemon_shows_the_same_document(service, described):
    assert httpx.get(service.url("/v1/openapi.json"), verify=False).json() == described

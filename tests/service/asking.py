"""Ask the interface of a service in memory, as the roles of its tokens."""

from __future__ import annotations

import asyncio
import io
import json
import re
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import httpx
import numpy as np
import pyarrow as pa
import pyrage
import pytest

from panprivacy.service.config import loading
from panprivacy.service.config.tokens import hash_of
from panprivacy.service.engine import LocalEngine
from panprivacy.service.outgoing.records import Entry, Published
from panprivacy.service.web.app import application
from panprivacy.service.web.openapi import document

ROLES = {
    "ingest": (["ingest"], None),
    "read": (["read"], None),
    "release": (["release"], None),
    "announce": (["announce"], None),
    "visits": (["ingest", "read", "release", "announce"], ["visits"]),
}


STREAMS = """
[streams.visits]
epsilon = 1
window = "300d"
releases = 3
ids = "integers"
[[streams.visits.stat]]
name = "distinct"
expected = "1000:1e6"
[streams.pages]
epsilon = 4
window = "300d"
by = "page"
groups = ["home", "help"]
per_user = 2
[[streams.pages.stat]]
name = "distinct"
expected = "1000:1e6"
[streams.clocked]
epsilon = 1
window = "300d"
releases = 3
every = "100d"
[[streams.clocked.stat]]
name = "distinct"
expected = "1000:1e6"
"""


UPDATES = "/v1/streams/visits/updates"


RELEASE = "/v1/streams/visits/release"


ANNOUNCE = "/v1/streams/visits/announce"


READ_ROUTES = ["/v1/streams", "/v1/releases", "/v1/sketches", "/metrics"]


OPEN_ROUTES = ["/healthz", "/v1/openapi.json"]


START = datetime(2026, 1, 5, 7, 30, tzinfo=UTC)


def tokens_table():
    """The `[[tokens]]` of `ROLES`; each token is pp_ and its name."""
    for name, (may, streams) in ROLES.items():
        limited = "" if streams is None else f"streams = {json.dumps(streams)}\n"
        digest = hash_of(f"pp_{name}")
        yield f'[[tokens]]\nname = "{name}"\nmay = {json.dumps(may)}\n'
        yield f'sha256 = "{digest}"\n{limited}'


def config_text(server="", checkpoint=""):
    return f"[server]\n{server}\n{checkpoint}\n{''.join(tokens_table())}{STREAMS}"


def checkpoint_table():
    return f'[checkpoint]\nrecipient = "{pyrage.x25519.Identity.generate().to_public()}"'


def engine_in(folder, server="", checkpoint=""):
    path = folder / "service.toml"
    path.write_text(config_text(server, checkpoint))
    return LocalEngine(loading.load(path))


class Client:
    """Asks the application of an engine, without sockets."""

    def __init__(self, engine):
        self.engine = engine
        self.app = application(engine)
        self.runner = asyncio.Runner()
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app),
            base_url="http://service",
            verify=False,
            trust_env=False,
        )

    def close(self):
        self.runner.run(self._http.aclose())
        self.runner.close()

    def ask(self, method, path, role=None, **request):
        """An answer."""
        return self.runner.run(self.asking(method, path, role, **request))

    async def asking(self, method, path, role=None, *, headers=None, **request):
        headers = httpx.Headers(headers)
        if role is not None:
            headers["Authorization"] = f"Bearer pp_{role}"
        answer = await self._http.request(method, path, headers=headers, **request)
        check_described(answer)
        return answer

    def send(self, body, kind="application/octet-stream", path=UPDATES, role="ingest", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", path, role, content=body, headers={"Content-Type": kind, **named})

    @property
    def state(self):
        """Batch ids and tables of all streams."""
        return [stream.state() for stream in self.engine.streams.values()]


def check_described(answer):
    """A route answers as the OpenAPI document says; a HEAD as a GET."""
    method = answer.request.method.lower().replace("head", "get")
    path = re.sub("^/v1/streams/[^/]+/", "/v1/streams/{name}/", answer.request.url.path)
    path = re.sub("^/v1/sketches/[^/]+/[^/]+$", "/v1/sketches/{name}/{id}", path)
    operation = document()["paths"].get(path, {}).get(method)
    if operation is None:
        assert answer.status_code in (404, 405)
        return
    described = operation["responses"][str(answer.status_code)]
    if "content" in described:
        assert answer.headers["Content-Type"].partition(";")[0] in described["content"]
    else:
        assert answer.content == b""


@contextmanager
def client_in(folder, server="", checkpoint=""):
    engine = engine_in(folder, server, checkpoint)
    client = Client(engine)
    engine.bodies.start()
    engine.unpacker.start()
    try:
        yield client
    finally:
        engine.unpacker.stop()
        engine.bodies.stop()
        client.close()
        engine.store.close()


def refused(answer, status):
    """The detail of a problem."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert list(problem) == ["title", "status", "detail"]
    assert problem["status"] == status
    assert "\n" not in problem["detail"]
    return problem["detail"]


def ipc(table, new=pa.ipc.new_stream):
    file = io.BytesIO()
    with new(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


IDS = [7, -1, 7, 2**62]


TABLE = pa.table({"user": IDS})


BODIES = {
    "application/vnd.apache.arrow.stream": ipc(TABLE),
    "application/vnd.apache.arrow.file": ipc(TABLE, pa.ipc.new_file),
    "application/octet-stream": np.array(IDS, "<i8").tobytes(),
    "application/x-ndjson": "".join(f'{{"user": {one}}}\n' for one in IDS).encode(),
    "application/jsonl": "".join(f'{{"user": {one}}}\n' for one in IDS).encode(),
    "application/json": json.dumps({"user": IDS}).encode(),
    "text/csv": "\n".join(["user", *map(str, IDS)]).encode(),
    "text/tab-separated-values": "\n".join(["page\tuser", *(f"x\t{one}" for one in IDS)]).encode(),
}


NUMBERS = BODIES["application/octet-stream"]


async def all_at_once(client, bodies):
    """Send some bodies, each with its headers, before any of them is answered."""
    named = {"Content-Type": "application/octet-stream"}
    return await asyncio.gather(*(
        client.asking("POST", UPDATES, "ingest", content=body, headers={**named, **headers})
        for body, headers in bodies
    ))  # fmt: skip


def wait_for(holds):
    waits = threading.Event()
    for _ in range(1_000):
        if holds():
            return
        waits.wait(0.01)
    pytest.fail("it does not come")


def chunks(*sizes):
    async def generate():
        for size in sizes:
            yield bytes(size)

    return generate()


def asked(state):
    return {"argument": state, "arguments": f"state={state}"}


def publish(client, count):
    """One number a second."""
    entry = Entry("visits", START, START + timedelta(days=300), 1, 1)
    row = Published(
        stream="visits",
        start=START,
        end=None,
        complete=True,
        number=1,
        statistic="visits",
        question="exactly",
        argument=0,
        arguments="state=0",
        group=None,
        value=1.0,
        low=0.0,
        high=float("inf"),
        estimate=1234.5,
        standard_error=120.25,
        bias=0.5,
        confidence=0.95,
        epsilon=1.0,
        note=None,
        released=START,
    )
    client.engine.store.spend([entry])
    fields = {name: getattr(row, name) for name in Published.__dataclass_fields__}
    client.engine.store.publish(
        [
            Published(**{**fields, **asked(one), "released": START + timedelta(seconds=one)})
            for one in range(count)
        ]
    )

"""The interface: each route, what it answers to whom, and what it refuses."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import sys
import threading
from functools import partial
from urllib.parse import urljoin

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from panprivacy.intake.sources import MEDIA_TYPES, BodyReader
from panprivacy.service.engine import Sweeper
from panprivacy.service.incoming import admission
from panprivacy.service.incoming.admission import Shared
from panprivacy.service.outgoing.exports import WRITERS
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from tests.service.asking import (
    ANNOUNCE,
    BODIES,
    IDS,
    NUMBERS,
    OPEN_ROUTES,
    READ_ROUTES,
    RELEASE,
    ROLES,
    UPDATES,
    all_at_once,
    checkpoint_table,
    chunks,
    client_in,
    ipc,
    publish,
    refused,
    wait_for,
)

# Updates


def test_there_is_a_body_of_each_media_type():
    assert BODIES.keys() == MEDIA_TYPES.keys()


def taken(client, monkeypatch):
    """What the stream visits is asked to count."""
    seen, stream = [], client.engine.streams["visits"]
    take = stream.take_together

    def spied(several, **named):
        seen.extend(
            [one for batch in sent.batches for one in batch.column(0).to_pylist()]
            for sent in several
        )
        return take(several, **named)

    monkeypatch.setattr(stream, "take_together", spied)
    return seen


@pytest.fixture
def seen(client, monkeypatch):
    """What the stream visits is asked to count."""
    return taken(client, monkeypatch)


@pytest.fixture
def threads(client, monkeypatch):
    """The names of the threads in which streams count."""
    names = []
    for stream in client.engine.streams.values():

        def spied(several, take=stream.take_together, **named):
            names.extend(threading.current_thread().name for _ in several)
            return take(several, **named)

        monkeypatch.setattr(stream, "take_together", spied)
    return names


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_each_format_counts_the_same(client, kind, seen):
    before = client.state
    answer = client.send(BODIES[kind], kind)
    assert (answer.status_code, answer.content) == (202, b"")
    assert seen == [IDS]
    assert client.state[1:] == before[1:]


@pytest.mark.parametrize("size", [1_000, 100_000])
def test_a_batch_changes_its_stream_alone_and_its_body_is_overwritten(client, size, received):
    before = client.state
    assert client.send(np.arange(1, size + 1, dtype="<i8").tobytes()).status_code == 202
    assert client.state[0] != before[0]
    assert client.state[1:] == before[1:]
    assert len(received[0]) == 8 * size
    wait_for(lambda: not any(received[0]))


def test_a_refused_body_is_overwritten(client, received):
    refused(client.send(b"\x01" * 15), 400)
    assert received == [bytearray(15)]


def test_many_rows_in_few_bytes_do_not_hold_up_others(client, threads):
    table = pa.table({"user": np.zeros(200_000, np.int64)})
    body = ipc(
        table, partial(pa.ipc.new_stream, options=pa.ipc.IpcWriteOptions(compression="zstd"))
    )
    assert len(body) < 2_000
    answer = client.send(body, "application/vnd.apache.arrow.stream")
    assert (answer.status_code, threads) == (202, ["panprivacy-visits"])
    client.send(NUMBERS)
    assert threads[1:] == ["MainThread"]


def test_a_bad_body_among_others_is_refused_alone(client, seen):
    lines = {"Content-Type": "application/x-ndjson"}
    good, bad = b'{"user": 1}\n{"user": 2}', b'{"user": 3}\n{"user": '
    rest = b"4}\n"
    answers = client.runner.run(
        all_at_once(client, [(good, lines), (bad, lines), (rest, lines), (good, lines)])
    )
    assert [answer.status_code for answer in answers] == [202, 400, 400, 202]
    assert "row 2" in answers[1].json()["detail"]
    assert seen == [[1, 2], [1, 2]]


def test_of_bodies_that_come_together_each_has_its_own_answer(client, seen, received):
    key = {"Idempotency-Key": "a"}
    text = {"Content-Type": "text/csv"}
    other = np.arange(1_000, dtype="<i8").tobytes()
    bodies = [
        (NUMBERS, key), (b"short", {}), (other, key), (b"user\n1,\n", text), (b"user\n5\n", text),
    ]  # fmt: skip
    answers = client.runner.run(all_at_once(client, bodies))
    assert [answer.status_code for answer in answers] == [202, 400, 202, 400, 202]
    assert "8 bytes" in refused(answers[1], 400)
    assert seen == [np.frombuffer(NUMBERS, "<i8").tolist(), [*range(1_000)], [5]]
    wait_for(lambda: len(received) == 5 and not any(map(any, received)))
    once = client.state
    assert client.send(other, Idempotency_Key="a").status_code == 202
    assert client.state == once, "the second body of that name was not counted"


def test_a_fault_in_one_body_is_its_own(client, monkeypatch):
    """Those that came with it are counted, and their names are remembered for that alone."""
    stream = client.engine.streams["visits"]
    checked = stream.reception.check

    def fail(counting, batches):
        if batches[0].num_rows == 1_000:
            raise ZeroDivisionError
        return checked(counting, batches)

    monkeypatch.setattr(stream.reception, "check", fail)
    named = [{"Idempotency-Key": name} for name in "abc"]
    bad = np.arange(1_000, dtype="<i8").tobytes()
    bodies = list(zip([NUMBERS, bad, NUMBERS], named, strict=True))
    answers = client.runner.run(all_at_once(client, bodies))
    assert [answer.status_code for answer in answers] == [202, 500, 202]
    kept = stream.reception.batch_ids
    assert [name in kept for name in (b"a", b"b", b"c")] == [True, False, True]


def test_bodies_of_groups_are_counted_in_a_thread(client, threads):
    """However few bytes: each group that they touch takes time."""
    path = UPDATES.replace("visits", "pages")
    assert client.send(b"user,page\nada,home\n", "text/csv", path).status_code == 202
    assert threads == ["panprivacy-pages"]


@pytest.mark.parametrize(("size", "status"), [(80, 202), (9, 400), (800_008, 202), (800_009, 400)])
def test_a_body_is_freed_when_it_has_its_answer(client, size, status, received):
    gc.collect()
    gc.disable()
    try:
        assert client.send(b"\x01" * size).status_code == status
        wait_for(lambda: sys.getrefcount(received[0]) == 2)
    finally:
        gc.enable()


NO_ROOM = "the service has too little memory now, and nothing of this was counted: come again"


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (ZeroDivisionError, 500, "failed with ZeroDivisionError; please report it"),
        (MemoryError, 503, NO_ROOM),
    ],
)
def test_a_fault_in_counting_is_told_to_all_that_came_together(
    client, monkeypatch, error, status, told, received
):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(client.engine.streams["visits"], "take_together", fail)
    for answer in client.runner.run(all_at_once(client, [(NUMBERS, {})] * 3)):
        assert refused(answer, status) == told
        assert answer.headers.get("Retry-After") == ("1" if status == 503 else None)
    assert len(received) == 3
    assert not any(map(any, received))


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/octet-stream"])
def test_a_body_for_which_there_is_no_memory_is_refused_and_counts_later(client, monkeypatch, kind):
    """Reading takes more memory than what is read."""
    body = b'{"user": 1}' if kind.endswith("json") else bytes(8)
    with monkeypatch.context() as tight:
        tight.setattr(BodyReader, "read", no_memory)
        answer = client.send(body, kind, Idempotency_Key="a")
        assert refused(answer, 503) == NO_ROOM
    before = client.state
    assert client.send(body, kind, Idempotency_Key="a").status_code == 202
    assert client.state != before


def no_memory(*_):
    raise MemoryError


def test_a_batch_id_is_counted_once(client):
    assert client.send(NUMBERS, Idempotency_Key="a").status_code == 202
    once = client.state
    other = np.arange(1000, dtype="<i8").tobytes()
    assert client.send(other, Idempotency_Key="a").status_code == 202
    assert client.state == once
    assert client.send(other, Idempotency_Key="b").status_code == 202
    assert client.state != once


def test_a_refused_batch_does_not_use_up_its_id(client):
    refused(client.send(b"short", Idempotency_Key="a"), 400)
    before = client.state
    assert client.send(NUMBERS, Idempotency_Key="a").status_code == 202
    assert client.state != before


@pytest.mark.parametrize("value", ["2", "", "true", "-1", "1&durable=0"])
def test_durable_is_0_or_1(shared, value):
    before = shared.state
    refused(shared.send(NUMBERS, path=f"{UPDATES}?durable={value}"), 400)
    assert shared.state == before


def test_without_checkpoint_nothing_is_durable(shared):
    before = shared.state
    answer = shared.send(NUMBERS, path=f"{UPDATES}?durable=1")
    assert refused(answer, 400) == "this service keeps no checkpoint: leave out durable=1"
    assert shared.state == before
    assert shared.send(NUMBERS, path=f"{UPDATES}?durable=0").status_code == 202


@pytest.mark.long
def test_durable_waits_for_the_next_checkpoint(tmp_path):
    with client_in(tmp_path, checkpoint=checkpoint_table()) as client:
        client.engine.keeper.start()
        answer = client.send(NUMBERS, path=f"{UPDATES}?durable=1")
        assert (answer.status_code, answer.content) == (200, b"")
        sealed = tmp_path / "panprivacy.sealed"
        assert sealed.exists()
        sealed.unlink()
        (tmp_path / "panprivacy.sealed.new").mkdir()
        answer = client.send(NUMBERS, path=f"{UPDATES}?durable=1")
        assert "a retry counts it again" in refused(answer, 503)
        answer = client.send(NUMBERS, path=f"{UPDATES}?durable=1", Idempotency_Key="a")
        assert "retry with the same Idempotency-Key" in refused(answer, 503)
        assert answer.headers["Retry-After"] == "1"
        (tmp_path / "panprivacy.sealed.new").rmdir()
        client.engine.keeper.stop()


def test_a_service_that_waits_takes_nothing(tmp_path):
    (tmp_path / "panprivacy.sealed").write_bytes(b"sealed")
    with client_in(tmp_path, checkpoint=checkpoint_table()) as client:
        before = client.state
        reason = "the service waits for its checkpoint to be restored"
        assert refused(client.ask("GET", "/v1/streams", "read"), 503) == reason
        for path, role in ((UPDATES, "ingest"), (RELEASE, "release")):
            answer = client.ask("POST", path, role, content=NUMBERS)
            assert refused(answer, 503) == reason
            assert answer.headers["Retry-After"] == "5"
        health = client.ask("GET", "/healthz")
        assert (health.status_code, health.json()["status"]) == (503, "waiting for restore")
        assert "panprivacy_waiting_for_restore 1.0" in client.ask("GET", "/metrics", "read").text
        assert client.ask("GET", "/v1/releases", "read").json() == []
        assert client.state == before


# How much is under way


def test_a_long_body_is_refused_before_it_comes(shared, tmp_path):
    with client_in(tmp_path, "max_body_bytes = 1000\nmax_waiting_bytes = 3000") as client:
        before = client.state
        reason = "a body may have 1,000 bytes; send it in parts"
        assert refused(client.send(bytes(1_001)), 413) == reason
        assert client.state == before
        assert client.send(bytes(1_000)).status_code == 202


def test_a_long_body_of_unknown_length_is_refused(tmp_path):
    with client_in(tmp_path, "max_body_bytes = 1000\nmax_waiting_bytes = 3000") as client:
        before = client.state
        answer = client.send(chunks(400, 400, 400), Transfer_Encoding="chunked")
        assert refused(answer, 413) == "a body may have 1,000 bytes; send it in parts"
        assert client.state == before
        assert client.send(chunks(400, 400, 200)).status_code == 202


@pytest.mark.parametrize("status", [202, 413])
def test_a_sweep_follows_each_body_whatever_becomes_of_it(tmp_path, monkeypatch, status):
    """What has come of one that is refused passed the same registers and the same stack."""
    swept = []
    monkeypatch.setattr(Sweeper, "soon", lambda _: swept.append(True))
    with client_in(tmp_path, "max_body_bytes = 1000\nmax_waiting_bytes = 3000") as client:
        sent = chunks(400, 400, 400 if status == 413 else 200)
        assert client.send(sent, Transfer_Encoding="chunked").status_code == status
    assert swept == [True]


# Who may


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", UPDATES, {"ingest", "visits"}),
        ("POST", "/v1/streams/pages/updates", {"ingest"}),
        ("POST", RELEASE, {"release", "visits"}),
        ("POST", "/v1/streams/pages/release", {"release"}),
        ("POST", ANNOUNCE, {"announce", "visits"}),
        ("POST", "/v1/streams/pages/announce", {"announce"}),
        ("GET", "/v1/streams", {"read"}),
        ("GET", "/v1/releases", {"read"}),
        ("GET", "/v1/releases?stream=visits", {"read", "visits"}),
        ("GET", "/v1/releases?stream=pages", {"read"}),
        ("GET", "/v1/sketches", {"read"}),
        ("GET", "/v1/sketches?stream=visits", {"read", "visits"}),
        ("GET", "/v1/overlaps?stream=visits", {"read", "visits"}),
        ("GET", "/metrics", {"read"}),
    ],
)
def test_roles(client, method, path, allowed):
    before = client.state
    for role in {*ROLES} - allowed:
        assert "this token may not" in refused(client.ask(method, path, role), 403)
    for header in ({}, {"Authorization": "pp_read"}, {"Authorization": "Bearer pp_other"}):
        answer = client.ask(method, path, headers=header)
        assert refused(answer, 401) == "send a known token: Authorization: Bearer pp_..."
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert client.state == before
    for role in allowed:
        assert client.ask(method, path, role).status_code not in (401, 403)


def test_strangers_do_not_learn_which_streams_there_are(shared):
    answers = [
        shared.ask("POST", f"/v1/streams/{name}/updates", role).content
        for name in ("pages", "unknown")
        for role in (None, "read", "visits")
    ]
    assert answers[:3] == answers[3:]
    asked = [
        shared.ask("GET", f"/v1/releases?stream={name}", "visits").content
        for name in ("pages", "unknown")
    ]
    assert asked[0] == asked[1]


@pytest.mark.parametrize("path", OPEN_ROUTES)
def test_anybody_may_ask_for_health_and_description(shared, path):
    assert shared.ask("GET", path).status_code == 200


# Announced intrusions


def test_an_announcement_needs_a_name_and_that_it_was_planned_for(client):
    before = client.state
    answer = client.ask("POST", ANNOUNCE, "announce")
    assert "needs an Idempotency-Key" in refused(answer, 400)
    answer = client.ask("POST", ANNOUNCE, "announce", headers={"Idempotency-Key": "monday"})
    assert "set intrusions = 1 in its table" in refused(answer, 409)
    assert client.state == before


# Releases


def test_releases_until_none_is_left(client):
    for _ in range(2):
        answer = client.ask("POST", RELEASE, "release")
        assert (answer.status_code, answer.json()) == (201, {"released": True})
        assert client.ask("GET", urljoin(RELEASE, answer.headers["Location"]), "read").json()
    answer = client.ask("POST", RELEASE, "release")
    assert "no release is left" in refused(answer, 409)
    rows = client.ask("GET", "/v1/releases", "read").json()
    assert [row["number"] for row in rows] == [1, 2]


def test_a_stream_with_a_clock_releases_by_it_alone(shared):
    answer = shared.ask("POST", "/v1/streams/clocked/release", "release")
    assert "releases on a clock" in refused(answer, 409)


def test_pages_of_releases(client):
    publish(client, 10)

    def states(**asked):
        answer = client.ask("GET", "/v1/releases", "read", params=asked)
        return [row["argument"] for row in answer.json()], answer.json()

    assert states()[0] == [*range(10)]
    last, rows = states(limit=4)
    assert last == [6, 7, 8, 9]
    before, _ = states(limit=4, before=rows[0]["released"])
    assert before == [2, 3, 4, 5]
    assert states(since=rows[1]["released"])[0] == [7, 8, 9]
    assert states(since="2026-01-05T07:30:03", before="2026-01-05T08:30:05+01:00")[0] == [3, 4]
    assert states(stream="visits", limit=1)[0] == [9]
    assert states(stream="pages")[0] == []


@pytest.mark.parametrize("name", ["unknown", "", "Visits", "a%00b", "../visits", "é", "a'--"])
def test_unknown_streams(shared, name):
    answer = shared.ask("GET", "/v1/releases", "read", params={"stream": name})
    assert refused(answer, 404) == "there is no such stream"


@pytest.mark.parametrize(
    ("accept", "format_", "kind"),
    [
        (None, None, "application/json"),
        ("*/*", None, "application/json"),
        ("text/html,*/*;q=0.8", None, "application/json"),
        ("text/csv", None, "text/csv"),
        ("text/csv;q=0.5, application/json;q=0.4", None, "text/csv"),
        ("application/json;q=0, text/*", None, "text/csv"),
        ("application/vnd.apache.parquet", None, "application/vnd.apache.parquet"),
        ("text/html", "json", "application/json"),
        ("application/json", "csv", "text/csv"),
        (None, "parquet", "application/vnd.apache.parquet"),
    ],
)
def test_formats_of_releases(client, accept, format_, kind):
    publish(client, 3)
    headers = {} if accept is None else {"Accept": accept}
    if accept is None:
        del client._http.headers["Accept"]
    params = {} if format_ is None else {"format": format_}
    answer = client.ask("GET", "/v1/releases", "read", headers=headers, params=params)
    assert answer.headers["Content-Type"].partition(";")[0] == kind
    assert answer.headers["Vary"] == "Accept"
    count = {
        "application/json": lambda file: len(json.loads(file)),
        "text/csv": lambda file: len(file.splitlines()) - 1,
        "application/vnd.apache.parquet": lambda file: pq.read_table(io.BytesIO(file)).num_rows,
    }
    assert count[kind](answer.content) == 3


def test_a_store_that_fails(client, monkeypatch):
    def fail(_, **__):
        message = "the database fails: it is gone"
        raise StoreError(message)

    monkeypatch.setattr(ReleaseStore, "pages", fail)
    answer = client.ask("GET", "/v1/releases", "read")
    assert refused(answer, 503) == "the database fails: it is gone"
    assert answer.headers["Retry-After"] == "5"


# Streams, metrics and health


def quiet(client):
    """What is told without anything of time in it."""
    metrics = client.ask("GET", "/metrics", "read").text
    streams = client.ask("GET", "/v1/streams", "read").json()
    return metrics, streams, client.ask("GET", "/healthz").json()


def test_nothing_that_is_told_depends_on_rows(client):
    before = quiet(client)
    ids = np.arange(200_000, dtype="<i8")
    assert client.send(ids.tobytes(), Idempotency_Key="a").status_code == 202
    for one in range(50):
        assert client.send(ids[:one].tobytes()).status_code == 202
        refused(client.send(b"short"), 400)
    text = pa.table({"user": ["a"] * 1000, "page": ["home"] * 1000})
    arrow = "application/vnd.apache.arrow.stream"
    assert client.send(ipc(text), arrow, "/v1/streams/pages/updates").status_code == 202
    assert quiet(client) == before


def test_streams_are_described(shared):
    streams = {one["name"]: one for one in shared.ask("GET", "/v1/streams", "read").json()}
    assert list(streams) == ["visits", "pages", "clocked"]
    assert streams["visits"]["releases_planned"] == 3
    assert (streams["visits"]["window_seconds"], streams["visits"]["zone"]) == (300 * 86_400, "UTC")
    assert streams["pages"]["epsilon"] == 4


def test_health(client, monkeypatch):
    assert client.ask("GET", "/healthz").json()["status"] == "ok"

    def fail(_):
        message = "the database fails: it is gone"
        raise StoreError(message)

    monkeypatch.setattr(admission, "_FRESH_SECONDS", 0)
    monkeypatch.setattr(ReleaseStore, "check", fail)
    answer = client.ask("GET", "/healthz")
    assert (answer.status_code, answer.json()["status"]) == (503, "troubled")
    assert list(answer.json()["troubles"]) == ["release store"]
    assert "gone" not in answer.text  # a database may name its host
    answer = client.ask("GET", "/healthz", "read")
    assert answer.json()["troubles"] == {"release store": "the database fails: it is gone"}
    metrics = client.ask("GET", "/metrics", "read").text
    assert 'panprivacy_trouble{what="release store"} 1.0' in metrics


def test_however_many_ask_for_health_the_disk_is_written_once(client, monkeypatch):
    checks = []
    monkeypatch.setattr(ReleaseStore, "check", lambda _: checks.append(1))

    async def many():
        await asyncio.gather(*(client.asking("GET", "/healthz") for _ in range(100)))

    client.runner.run(many())
    assert len(checks) == 1


def test_what_is_shared_is_made_anew(monkeypatch):
    made = []

    async def make():
        made.append(1)
        if len(made) == 2:
            raise StoreError
        return len(made)

    async def ask():
        shared = Shared(make)
        assert [await shared.get(), await shared.get()] == [1, 1]
        monkeypatch.setattr(admission, "_FRESH_SECONDS", 0)
        with pytest.raises(StoreError):
            await shared.get()
        assert await shared.get() == 3

    asyncio.run(ask())


# The rest of HTTP


@pytest.mark.parametrize(
    ("path", "allowed"),
    [(path, "GET, HEAD") for path in (*READ_ROUTES, *OPEN_ROUTES)]
    + [(path, "POST") for path in (UPDATES, RELEASE)],
)
def test_other_methods_are_refused(shared, path, allowed):
    before = shared.state
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "X"):
        if method in allowed.split(", "):
            continue
        answer = shared.ask(method, path, "ingest", content=NUMBERS)
        assert answer.headers["Allow"] == allowed
        if method == "HEAD":
            assert (answer.status_code, answer.content) == (405, b"")
        else:
            assert refused(answer, 405) == f"this path takes {allowed}"
    assert shared.state == before


@pytest.mark.parametrize("path", [*READ_ROUTES, *OPEN_ROUTES])
def test_what_is_asked_is_not_kept_by_caches(shared, path):
    for method in ("GET", "HEAD"):
        answer = shared.ask(method, path, "read")
        assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    if path in READ_ROUTES:
        assert shared.ask("GET", path).headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/streams/",
        f"{UPDATES}/",
        "/healthz/",
        "//healthz",
        "/v1/streams//updates",
        "/v1/streams/visits/../visits/updates/x",
        "/v1/streams/..%2F..%2Fetc/passwd",
        "/v1/streams/%2e%2e/%2e%2e/etc",
        "/etc/passwd",
        "/V1/STREAMS",
    ],
)
def test_unknown_paths(shared, path):
    answer = shared.ask("GET", path, "read")
    assert refused(answer, 404) == "there is nothing at this path; see /v1/openapi.json"


def test_a_browser_of_another_origin_is_not_let_in(shared):
    origin = {"Origin": "https://elsewhere.example"}
    preflight = shared.ask(
        "OPTIONS", UPDATES, headers={**origin, "Access-Control-Request-Method": "POST"}
    )
    beacon = shared.ask(
        "POST", UPDATES, content=b"x", headers={**origin, "Content-Type": "text/plain"}
    )
    assert (preflight.status_code, beacon.status_code) == (405, 401)
    for answer in (preflight, beacon, shared.ask("GET", "/healthz", headers=origin)):
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("size", [8, 8 * 100_000])
def test_a_fault_tells_its_type_alone(client, monkeypatch, caplog, size):
    def fail(*_, **__):
        raise KeyError("canary")

    monkeypatch.setattr(BodyReader, "read", fail)
    before = client.state
    assert refused(client.send(bytes(size)), 500) == "failed with KeyError; please report it"
    assert client.state == before
    assert [record.getMessage() for record in caplog.records] == [
        "a request failed; please report it error=KeyError"
    ]
    assert not any(record.exc_info for record in caplog.records)


def test_every_writer_can_be_named(shared):
    for kind in WRITERS:
        name = kind.rpartition("/")[2].rpartition(".")[2]
        answer = shared.ask("GET", f"/v1/releases?format={name}", "read")
        assert answer.headers["Content-Type"].partition(";")[0] == kind

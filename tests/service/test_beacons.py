"""Visits that pages tell: who counts as whom, what is refused, and what a page gets."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager

import httpx
import pytest

from panprivacy.service.config import loading
from panprivacy.service.engine import LocalEngine
from panprivacy.service.stream import Stream
from panprivacy.service.web import beacons
from tests.forensic.test_service import keys_in
from tests.service.asking import Client, chunks, refused, tokens_table

SITE = "https://example.org"
STREAMS = """
[streams.site]
epsilon = 1
window = "300d"
[[streams.site.stat]]
name = "distinct"
expected = 1_000
[streams.site.beacon]
origins = ["https://example.org", "http://127.0.0.1:8000"]
proxies = ["127.0.0.1", "10.0.0.0/8", "2001:db8:aaaa::/48"]
[streams.pages]
epsilon = 1
window = "300d"
by = "page"
groups = ["/", "/help"]
ignore_others = true
[[streams.pages.stat]]
name = "distinct"
expected = 1_000
[streams.pages.beacon]
origins = ["https://example.org"]
[streams.closed]
epsilon = 1
window = "300d"
by = "referrer"
groups = ["-", "news.example"]
[[streams.closed.stat]]
name = "distinct"
expected = 1_000
[streams.closed.beacon]
origins = ["https://example.org"]
[streams.clicks]
epsilon = 1
window = "300d"
[[streams.clicks.stat]]
name = "running-count"
horizon = 1_000
[streams.clicks.beacon]
origins = ["https://example.org"]
[streams.visits]
epsilon = 1
window = "300d"
[[streams.visits.stat]]
name = "distinct"
expected = 1_000
"""


class Recorder:
    """Keeps the rows that a stream is given, as the body counter reads them."""

    def __init__(self, engine):
        self.rows, self._count = [], engine.bodies.count
        engine.bodies.count = self

    async def __call__(self, stream, kind, content, batch_id, token=""):
        if not token:
            self.rows.append(json.loads(content))
        await self._count(stream, kind, content, batch_id, token)
        assert not any(content)  # it is overwritten


@contextmanager
def started(folder, peer="127.0.0.1"):
    path = folder / "service.toml"
    path.write_text("".join(tokens_table()) + STREAMS)
    engine = LocalEngine(loading.load(path))
    client = Client(engine)
    where = None if peer is None else (peer, 4711)
    client._http = httpx.AsyncClient(
        transport=httpx.ASGITransport(client.app, client=where),
        base_url="http://service",
        verify=False,
        trust_env=False,
    )
    client.recorder = Recorder(engine)
    engine.bodies.start()
    try:
        yield client
    finally:
        engine.bodies.stop()
        client.close()
        engine.store.close()


@pytest.fixture
def client(tmp_path):
    with started(tmp_path) as one:
        yield one


def visit(client, body=b"/\n", stream="site", **changed):
    """Tell a visit as a browser behind the proxy does; a header that is None is left out."""
    headers = {"Origin": SITE, "Content-Type": "text/plain;charset=UTF-8", "User-Agent": "Some/1",
               "X-Forwarded-For": "192.0.2.1"}  # fmt: skip
    headers |= {name.replace("_", "-"): value for name, value in changed.items()}
    headers = [(name, value) for name, value in headers.items() if value is not None]
    return client.ask("POST", f"/v1/streams/{stream}/beacon", content=body, headers=headers)


def ids(client):
    return [row["user"] for row in client.recorder.rows]


# The script


def test_the_script_is_small_and_readable_and_asks_the_browser_for_little():
    text = beacons.SCRIPT.decode()
    assert len(beacons.SCRIPT) < 1_000
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith("// ")
    words = "cookie localStorage sessionStorage indexedDB userAgent screen language canvas plugins"
    for kept in f"{words} timezone search hash title".split():
        assert kept not in text.partition("(function")[2]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_script_is_the_same_for_everybody(client, method):
    path = "/v1/streams/{}/beacon.js"
    answers = [
        client.ask(method, path.format(name) + query, headers=headers)
        for name, query in (("site", ""), ("pages", "?v=2"))
        for headers in ({}, {"If-None-Match": '"1"', "Cookie": "a=b", "User-Agent": "Other/2"})
    ]
    first = dict(answers[0].headers)
    assert first == {
        "content-length": str(len(beacons.SCRIPT)),
        "content-type": "text/javascript; charset=utf-8",
        "cache-control": "public, max-age=3600",
        "access-control-allow-origin": "*",
        "cross-origin-resource-policy": "cross-origin",
        "x-content-type-options": "nosniff",
    }
    for answer in answers:
        assert answer.status_code == 200
        assert {**answer.headers, "connection": ""} == {**first, "connection": ""}
        assert answer.content == beacons.SCRIPT or method == "HEAD"


@pytest.mark.parametrize("name", ["visits", "nothing"])
def test_a_stream_without_a_beacon_has_no_script_and_takes_no_visit(client, name):
    before = client.state
    says = refused(client.ask("GET", f"/v1/streams/{name}/beacon.js"), 404)
    assert says == refused(visit(client, stream=name), 404)
    assert "no stream of this name that has a beacon" in says
    assert client.state == before


# A visit


def test_a_visit_is_counted_and_answered_for_its_site_alone(client):
    before = client.state
    answer = visit(client)
    assert answer.status_code == 204
    assert answer.content == b""
    allowed = answer.headers["Access-Control-Allow-Origin"]
    assert (allowed, answer.headers["Vary"]) == (SITE, "Origin")
    assert "Set-Cookie" not in answer.headers
    assert client.recorder.rows == [{"user": "4:c0000201 Some/1"}]
    for number in range(40):  # each redraws a cell, which changes with an even chance
        visit(client, User_Agent=str(number))
    assert client.state != before


def test_a_visitor_is_an_address_and_a_user_agent(client):
    same = {"X_Forwarded_For": "2001:db8::1"}, {"X_Forwarded_For": "2001:DB8:0:0:9::2"}
    for one in (*same, {}, {"X_Forwarded_For": "::ffff:192.0.2.1"}, {"User_Agent": "Other/2"},
                {"User_Agent": None}, {"X_Forwarded_For": "192.0.2.2"}):  # fmt: skip
        assert visit(client, **one).status_code == 204
    found = ids(client)
    assert found[0] == found[1] == "6:20010db800000000 Some/1"
    assert found[2] == found[3]
    assert len({*found}) == 5


def test_a_long_user_agent_is_cut(client):
    for end in ("a", "b"):
        assert visit(client, User_Agent="x" * 600 + end).status_code == 204
    first, second = ids(client)
    assert first == second == "4:c0000201 " + "x" * 512


def test_what_a_person_reads_stays_within_declared_groups(client):
    for page in ("/", "/help", "/secret", "/", ""):
        assert visit(client, f"{page}\nelsewhere.example".encode(), "pages").status_code == 204
    assert [row["page"] for row in client.recorder.rows] == ["/", "/help", "/secret", "/", "-"]
    for host in ("", "news.example"):
        assert visit(client, f"/\n{host}".encode(), "closed").status_code == 204
    before = client.state
    says = refused(visit(client, b"/\nsecret.example", "closed"), 400)
    assert "secret" not in says
    assert client.state == before


def test_an_event_that_is_of_nobody_has_no_visitor(client):
    assert visit(client, stream="clicks", X_Forwarded_For="nobody").status_code == 204
    assert client.recorder.rows == [{}]


def test_visits_at_once_are_all_counted(client):
    async def all_of_them():
        headers = {"Origin": SITE, "Content-Type": "text/plain", "X-Forwarded-For": "192.0.2.1"}
        path = "/v1/streams/site/beacon"
        return await asyncio.gather(*(
            client.asking("POST", path, content=b"/", headers={**headers, "User-Agent": f"{i}"})
            for i in range(100)
        ))  # fmt: skip

    answers = client.runner.run(all_of_them())
    assert {one.status_code for one in answers} == {204}
    assert len({*ids(client)}) == 100


# Proxies


@pytest.mark.parametrize(
    ("hops", "counts"),
    [
        ("203.0.113.9, 192.0.2.1", "c0000201"),  # what the visitor says of themselves is not heard
        ("203.0.113.9,192.0.2.1, 10.1.2.3", "c0000201"),
        ("192.0.2.1,::ffff:10.1.2.3,2001:db8:aaaa::1", "c0000201"),
        ("10.1.2.3, 10.3.2.1", "a010203"),  # a proxy that visits
        ("nobody, 192.0.2.1", "c0000201"),
    ],
)
def test_the_last_address_that_is_no_proxy_counts(client, hops, counts):
    assert visit(client, X_Forwarded_For=hops).status_code == 204
    assert ids(client) == [f"4:{counts} Some/1"]


@pytest.mark.parametrize(
    "hops", [None, "", "unknown", "192.0.2.1, 10.1.2.3, _hidden", "1.2.3.4:80"]
)
def test_a_proxy_has_to_name_the_visitor(client, hops):
    says = refused(visit(client, X_Forwarded_For=hops), 400)
    assert "have it set X-Forwarded-For" in says
    assert not client.recorder.rows


@pytest.mark.parametrize("hops", [None, "203.0.113.9", "rubbish"])
def test_who_is_no_proxy_names_nobody(tmp_path, hops):
    with started(tmp_path, "192.0.2.77") as client:
        answer = visit(client, X_Forwarded_For=hops)
        assert answer.status_code == 204
        assert ids(client) == ["4:c000024d Some/1"]
        assert answer.headers["Connection"] == "close"


def test_a_proxy_keeps_its_connection(client):
    assert "Connection" not in visit(client).headers


def test_a_unix_socket_shows_no_visitor(tmp_path):
    with started(tmp_path, None) as client:
        refused(visit(client), 400)
        assert visit(client, stream="clicks").status_code == 204


# What is refused


@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        ({"Origin": None}, 403, "Origin must be one of"),
        ({"Origin": "null"}, 403, "Origin must be one of"),
        ({"Origin": "http://example.org"}, 403, "Origin must be one of"),
        ({"Origin": "https://example.org.evil.example"}, 403, "Origin must be one of"),
        ({"Origin": "https://example.org/"}, 403, "Origin must be one of"),
        ({"Content_Type": None}, 415, "Content-Type must be text/plain"),
        ({"Content_Type": "application/json"}, 415, "Content-Type must be text/plain"),
        ({"Content_Type": "text/plain; charset=latin-1"}, 415, "a text must be UTF-8"),
        ({"Content_Encoding": "gzip"}, 415, "leave out Content-Encoding"),
        ({"Transfer_Encoding": "gzip"}, 501, "Transfer-Encoding must be chunked"),
        ({"body": b"\xff\n"}, 400, "a visit must be a text in UTF-8"),
        ({"body": b"x" * 4_097}, 413, "a body may have 4,096 bytes"),
        ({"body": b"x" * 10**6}, 413, "a body may have 4,096 bytes"),
    ],
)
def test_bad_visits(client, changed, status, says):
    before = client.state
    answer = visit(client, **changed)
    assert says in refused(answer, status)
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert client.state == before


def test_a_long_body_in_chunks_is_refused_before_all_of_it_has_come(client):
    says = refused(visit(client, chunks(4_096, 1, 10**9)), 413)
    assert "a body may have 4,096 bytes" in says


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("OPTIONS", "beacon", "POST"),
        ("GET", "beacon", "POST"),
        ("HEAD", "beacon", "POST"),
        ("POST", "beacon.js", "GET, HEAD"),
        ("OPTIONS", "beacon.js", "GET, HEAD"),
    ],
)
def test_other_methods_are_refused(client, method, path, allowed):
    """Browsers ask with OPTIONS before what is not a plain text: nothing else is taken."""
    answer = client.ask(method, f"/v1/streams/site/{path}", headers={"Origin": SITE})
    assert answer.status_code == 405
    assert answer.headers["Allow"] == allowed


def test_a_query_and_headers_that_come_twice_are_refused(client):
    path = "/v1/streams/site/beacon"
    headers = [("Origin", SITE), ("Content-Type", "text/plain"), ("X-Forwarded-For", "192.0.2.1")]
    refused(client.ask("POST", f"{path}?page=/", content=b"/", headers=headers), 400)
    for name, value in (("Origin", SITE), ("User-Agent", "a"), ("User-Agent", "b")):
        headers.append((name, value))
        if name == "Origin":
            assert "Origin is given more" in refused(
                client.ask("POST", path, content=b"/", headers=headers), 400
            )
            headers.pop()


def test_a_service_that_waits_takes_no_visit(client):
    client.engine.waiting = True
    assert visit(client).status_code == 503
    assert client.ask("GET", "/v1/streams/site/beacon.js").status_code == 200


def test_visits_that_wait_take_no_room_of_senders_with_a_token(client):
    stream = client.engine.streams["site"]

    async def crowd():
        headers = {"Origin": SITE, "Content-Type": "text/plain", "X-Forwarded-For": "192.0.2.1"}
        told = [
            asyncio.ensure_future(
                client.asking("POST", "/v1/streams/site/beacon", content=b"/", headers=headers)
            )
            for _ in range(600)
        ]
        while not any(one.done() for one in told):
            await asyncio.sleep(0.001)
        batch = {"content": b'{"user": "a"}', "headers": {"Content-Type": "application/x-ndjson"}}
        sent = await client.asking("POST", "/v1/streams/visits/updates", "ingest", **batch)
        stream.windows.lock.release()
        return sent, await asyncio.gather(*told)

    stream.windows.lock.acquire()
    sent, answers = client.runner.run(crowd())
    assert sent.status_code == 202
    statuses = [one.status_code for one in answers]
    assert {*statuses} == {204, 429}
    assert 300 <= statuses.count(204) <= 350


def test_the_guarantee_is_that_of_the_stream(client):
    for name in ("site", "pages", "closed", "clicks"):
        stream = client.engine.streams[name]
        assert stream.guarantee == stream.config.guarantee
        assert stream.described()["epsilon"] == 1


@pytest.mark.parametrize("name", ["site", "pages", "closed"])
def test_the_key_of_a_window_is_gone_with_it(client, store, clock, name):
    """The tables of a window hash a visitor with keys of their own."""
    stream = Stream(name, client.engine.streams[name].config, store, clock=clock)
    row = json.dumps({"user": "4:c0000201 Some/1", "page": "/", "referrer": "-"}).encode()
    keys = []
    for _ in range(3):
        stream.take(stream.columns.body_reader.read("ndjson", bytearray(row)))
        keys += keys_in(stream.state())
        clock.now = stream.ends.timestamp()
        stream.advance()
        stream.advance()
    assert len({*keys}) == len(keys) >= 3

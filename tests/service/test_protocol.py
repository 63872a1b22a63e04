"""Whoever can reach the port: an answer or a closed connection, and nothing is changed or told."""

from __future__ import annotations

import asyncio
import gc
import gzip
import io
import json
import socket
import struct
import threading
import time
import weakref
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from http.client import HTTPResponse
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panprivacy.intake.sources import BodyReader
from panprivacy.service.incoming.problems import Problem
from panprivacy.service.server import Server
from panprivacy.service.web import protocol
from panprivacy.service.web.app import application
from panprivacy.service.web.heads import UNPARSED_BYTES
from tests.service.asking import (
    BODIES,
    STREAMS,
    UPDATES,
    Client,
    checkpoint_table,
    client_in,
    engine_in,
    ipc,
    wait_for,
)
from tests.service.running import Service

CANARY = "8412345677"
PATIENCE = 60.0
"""Seconds after which what has not come will not come, however busy the machine is."""
NUMBERS = BODIES["application/octet-stream"]


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes


class Served:
    """A service in this process that listens at a port, so that its state can be compared."""

    def __init__(self, folder, server="", checkpoint=""):
        self.engine = engine_in(folder, server, checkpoint)
        self._sock = socket.create_server(("127.0.0.1", 0), backlog=1_024)
        self.port = self._sock.getsockname()[1]
        app = application(self.engine)
        self.server = Server(app, app.api, self.engine.keeper.hurry)
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self._sock]})

    @contextmanager
    def limited(self, **limits):
        """New connections have other limits meanwhile."""
        state = self.server.server_state
        before, state.limits = state.limits, replace(state.limits, **limits)
        try:
            yield
        finally:
            state.limits = before

    def __enter__(self):
        self.engine.keeper.start()
        self.engine.bodies.start()
        self.engine.unpacker.start()
        self._thread.start()
        wait_for(lambda: self.server.started)
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self._thread.join()
        self.engine.unpacker.stop()
        self.engine.bodies.stop()
        self.engine.keeper.stop()
        self.engine.store.close()

    @property
    def state(self):
        return [stream.state() for stream in self.engine.streams.values()]

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port))
        sock.settimeout(PATIENCE)
        return closing(sock)

    def talk(self, *parts, pause=0.0, half_close=False):
        """All that comes back until the service closes the connection, or goes silent."""
        with self.connect() as sock:
            with suppress(OSError):  # what is refused may be cut off
                for part in parts:
                    sock.sendall(part)
                    time.sleep(pause)
                if half_close:
                    sock.shutdown(socket.SHUT_WR)
            return answers_in(received(sock))

    def check_others(self):
        """Another client is answered meanwhile."""
        (answer,) = self.talk(get("/healthz", close=True))
        assert answer.status == 200


def received(sock):
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def answers_in(raw):
    """Answers one after another, and nothing between or after them."""
    answers = []
    while raw:
        head, _, raw = raw.partition(b"\r\n\r\n")
        line, *fields = head.decode("ascii").split("\r\n")
        headers = dict(field.lower().split(": ", 1) for field in fields)
        size = int(headers.get("content-length", 0))
        answers.append(Answer(int(line.split()[1]), headers, raw[:size]))
        assert len(raw) >= size
        raw = raw[size:]
    return answers


def head(method, path, *fields, token="ingest", version="1.1", host="Host: here"):
    lines = [f"{method} {path} HTTP/{version}", *([host] if host else []), *fields]
    if token:
        lines.append(f"Authorization: Bearer pp_{token}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def get(path, *, close=False, **named):
    return head("GET", path, *(["Connection: close"] if close else []), **named)


def post(body, *fields, path=UPDATES, close=False, **named):
    fields = [*fields, "Content-Type: application/octet-stream", f"Content-Length: {len(body)}"]
    fields += ["Connection: close"] if close else []
    return head("POST", path, *fields, **named) + body


def chunked(*fields, **named):
    fields = [*fields, "Content-Type: application/octet-stream", "Transfer-Encoding: chunked"]
    return head("POST", UPDATES, *fields, **named)


def check_problem(answer, status):
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = json.loads(answer.body)
    assert problem["status"] == status
    assert "\n" not in problem["detail"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    with Served(folder, 'timeout = "1s"\nmax_body_bytes = 1000000') as service:
        yield service


@pytest.fixture
def unchanged(served):
    """The service, whose state is the same afterwards."""
    before = served.state
    yield served
    assert served.state == before
    room = served.engine.admission
    wait_for(lambda: not (room._bytes._held or room._requests._held))
    served.check_others()


# What is no request


UNSOUND = {
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 9, 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "HTTP/3.1": (get("/healthz").replace(b"HTTP/1.1", b"HTTP/3.1"), 400),
    "bare LF": (b"GET /healthz HTTP/1.1\nHost: a\n\n", 400),
    "no host": (get("/healthz", host=""), 400),
    "two hosts": (get("/healthz", host="Host: a\r\nHost: a"), 400),
    "unknown method": (b"BREW /healthz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "CONNECT": (b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 400),
    "space in name": (head("POST", UPDATES, "Content-Length : 4") + b"abcd", 400),
    "folded": (head("GET", "/healthz", "X: a\r\n b"), 400),
    "NUL": (head("GET", "/healthz", "X: a\0b"), 400),
    "lone CR": (head("GET", "/healthz", "X: a\rb"), 400),
    "length and chunks": (
        head("POST", UPDATES, "Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
        400,
    ),
    "chunks and length": (chunked("Content-Length: 5") + b"0\r\n\r\n", 400),
    "two lengths": (
        head("POST", UPDATES, "Content-Length: 8", "Content-Length: 9") + b"a" * 9,
        400,
    ),
    "list of lengths": (head("POST", UPDATES, "Content-Length: 8, 8") + b"a" * 8, 400),
    "negative length": (head("POST", UPDATES, "Content-Length: -8") + b"a" * 8, 400),
    "signed length": (head("POST", UPDATES, "Content-Length: +8") + b"a" * 8, 400),
    "hexadecimal length": (head("POST", UPDATES, "Content-Length: 0x8") + b"a" * 8, 400),
    "length beyond 64 bits": (head("POST", UPDATES, f"Content-Length: {2**64}"), 400),
    "other coding": (head("POST", UPDATES, "Transfer-Encoding: gzip"), 400),
    "hidden coding": (head("POST", UPDATES, "Transfer-Encoding: xchunked"), 400),
    "chunk of letters": (chunked() + b"zz\r\nabc\r\n0\r\n\r\n", 400),
    "negative chunk": (chunked() + b"-8\r\nabcdefgh\r\n0\r\n\r\n", 400),
    "chunk beyond 64 bits": (chunked() + b"f" * 17 + b"\r\nabc\r\n0\r\n\r\n", 400),
    "short chunk": (chunked() + b"2\r\nabcdefgh\r\n0\r\n\r\n", 400),
    "chunk with bare LF": (chunked() + b"8\nabcdefgh\n0\n\n", 400),
    "chunks of HTTP/1.0": (chunked(version="1.0") + b"8\r\nabcdefgh\r\n0\r\n\r\n", 400),
    "coding of HTTP/1.0": (head("GET", "/healthz", "Transfer-Encoding: x", version="1.0"), 400),
    "long URL": (get(f"/{'a' * 100_000}"), 414),
    "long header": (head("GET", "/healthz", f"X: {'a' * 100_000}"), 431),
    "many headers": (head("GET", "/healthz", *["X: a"] * 5_000), 431),
    "many empty headers": (head("GET", "/healthz", *["X:"] * 200), 431),
    "long length of a body": (head("POST", UPDATES, f"Content-Length: {2**62}"), 415),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSOUND)
def test_what_is_no_request_is_refused(unchanged, name):
    sent, status = UNSOUND[name]
    (answer,) = unchanged.talk(sent)
    check_problem(answer, status)
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("name", UNSOUND)
def test_byte_by_byte_it_is_refused_as_well(unchanged, name):
    sent, status = UNSOUND[name]
    step = 1 if len(sent) < 1_000 else 5_000
    parts = [sent[at : at + step] for at in range(0, len(sent), step)]
    (answer,) = unchanged.talk(*parts, pause=0.0001)
    check_problem(answer, status)


def test_what_follows_a_sound_request_does_not_take_its_answer(served):
    first, second = served.talk(post(NUMBERS) + b"\0\0\0\0\r\n\r\n")
    assert (first.status, first.body) == (202, b"")
    check_problem(second, 400)
    assert second.headers["connection"] == "close"


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.0"])
def test_an_offer_of_another_protocol_is_left_out(served, protocol):
    """The connection ends with the answer: what follows might be meant for that protocol."""
    offer = "Connection: Upgrade", f"Upgrade: {protocol}"
    (answer,) = served.talk(head("GET", "/healthz", *offer))
    assert answer.status == 200
    for sent in (post(NUMBERS, *offer), chunked(*offer) + b"8\r\nabcdefgh\r\n0\r\n\r\n"):
        first, *others = served.talk(sent + post(NUMBERS))
        assert (first.status, first.body) == (202, b"")
        assert not others


def test_an_endless_head_is_refused(unchanged):
    answers = unchanged.talk(get("/healthz")[:-2], *[b"X: " + b"a" * 997] * 2_000)
    check_problem(answers[0], 431)


@pytest.mark.parametrize("before", [b"", get("/healthz"), post(b"", token="none")])
@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nHost: a\r\nX: "])
def test_little_of_an_endless_head_is_in_memory(unchanged, monkeypatch, before, start):
    """The parser joins the parts of a name or a value that has not ended."""
    sizes, parse = [], protocol.GuardedProtocol.data_received
    monkeypatch.setattr(
        protocol.GuardedProtocol,
        "data_received",
        lambda self, data: (sizes.append(len(data)), parse(self, data)),
    )
    with unchanged.connect() as sock:
        with suppress(OSError):
            sock.sendall(before + start + b"a" * 1_000_000)
        answers = answers_in(received(sock))
    check_problem(answers[-1], 414 if start == b"GET /" else 431)
    assert sum(sizes) - len(before) <= UNPARSED_BYTES + (1 << 12)


def test_an_endless_name_is_refused(unchanged):
    answers = unchanged.talk(b"GET /healthz HTTP/1.1\r\n", *[b"a" * 4_096] * 500)
    assert not answers or answers[0].status in (400, 431)


def test_a_trailer_is_no_header(unchanged):
    body = b"8\r\nabcdefgh\r\n0\r\n"
    trailer = b"Authorization: Bearer pp_ingest\r\nIdempotency-Key: a\r\n\r\n"
    (answer,) = unchanged.talk(chunked("Connection: close", token=None) + body + trailer)
    check_problem(answer, 401)


@pytest.mark.parametrize("target", ["http://elsewhere/healthz", "/healthz?a=%00", "/%68ealthz"])
def test_other_ways_to_write_a_path(unchanged, target):
    (answer,) = unchanged.talk(get(target, close=True))
    assert answer.status == 200


@pytest.mark.parametrize(
    "target", ["/../etc/passwd", "/v1/streams/../../healthz", "/%2e%2e/%00", "/%ff%fe", "/%", "/\\"]
)
def test_odd_paths_are_nowhere(unchanged, target):
    (answer,) = unchanged.talk(get(target, close=True))
    check_problem(answer, 404)


def test_all_of_the_service_has_no_options(unchanged):
    (answer,) = unchanged.talk(head("OPTIONS", "*", "Connection: close"))
    check_problem(answer, 404)


# Slow ones


@pytest.mark.long
def test_a_slow_head_is_given_up(unchanged):
    slow = [bytes([byte]) for byte in get("/healthz")]
    with unchanged.limited(head_seconds=0.5), unchanged.connect() as sock:
        with suppress(OSError):
            for byte in slow:
                sock.sendall(byte)
                time.sleep(0.05)
                unchanged.check_others()
        (answer,) = answers_in(received(sock))
    check_problem(answer, 408)


def test_others_do_not_wait_for_a_head_that_is_under_way(unchanged):
    with unchanged.limited(head_seconds=2 * PATIENCE), unchanged.connect() as sock:
        sock.sendall(get("/healthz", close=True)[:-1])
        unchanged.check_others()
        sock.sendall(b"\n")
        (answer,) = answers_in(received(sock))
    assert answer.status == 200


@pytest.mark.long
@pytest.mark.parametrize("sent", [b"", b"\r\n", get("/healthz"), get("/healthz") + b"\r\n"])
def test_an_idle_connection_is_closed(unchanged, monkeypatch, sent):
    monkeypatch.setattr(unchanged.server.config, "timeout_keep_alive", 0.5)
    began = time.monotonic()
    with unchanged.limited(head_seconds=0.5):
        answers = unchanged.talk(sent)
    assert [one.status for one in answers] == [200] * sent.startswith(b"GET")
    assert time.monotonic() - began > 0.4


@pytest.mark.long
def test_empty_lines_keep_no_connection(unchanged):
    with unchanged.limited(head_seconds=0.5), unchanged.connect() as sock:
        sock.sendall(get("/healthz"))
        began = time.monotonic()
        with pytest.raises(OSError):  # noqa: PT012 - whichever of them meets the closed connection
            while time.monotonic() < began + PATIENCE:
                sock.sendall(b"\r\n")
                time.sleep(0.1)
        assert time.monotonic() - began > 0.4


@pytest.mark.long
@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_slow_body_is_given_up(unchanged, framing):
    if framing == "length":
        start, part = post(bytes(8_000))[:-8_000], b"a"
    else:
        start, part = chunked(), b"1\r\na\r\n"
    with unchanged.connect() as sock:
        with suppress(OSError):
            sock.sendall(start)
            for _ in range(30):
                sock.sendall(part)
                time.sleep(0.05)
                unchanged.check_others()
        (answer,) = answers_in(received(sock))
    check_problem(answer, 408)
    assert answer.headers["connection"] == "close"


@pytest.mark.long
def test_the_rest_of_a_refused_body_is_not_waited_for(unchanged):
    with unchanged.limited(rest_seconds=0.5), unchanged.connect() as sock:
        sock.sendall(post(bytes(900_000), token=None)[:-800_000])
        (answer,) = answers_in(received(sock))  # to the end of what the service sends
        check_problem(answer, 401)
        assert answer.headers["connection"] == "close"
        end = time.monotonic() + PATIENCE
        with pytest.raises(OSError):  # noqa: PT012
            while time.monotonic() < end:
                sock.sendall(b"a")
                time.sleep(0.05)


def test_a_refused_body_that_came_leaves_the_connection_open(unchanged):
    answers = unchanged.talk(post(b"abc"), get("/healthz", close=True), pause=0.1)
    assert [one.status for one in answers] == [400, 200]


# Long ones


def test_a_long_body_is_refused_while_it_is_sent(unchanged):
    for sent in (post(bytes(8_000_000)), chunked() + b"7a1200\r\n" + bytes(8_000_000)):
        (answer,) = unchanged.talk(sent)
        check_problem(answer, 413)


def test_many_small_chunks_are_one_body(served):
    body = b"".join(b"1\r\n%c\r\n" % byte for byte in NUMBERS) + b"0\r\n\r\n"
    (answer,) = served.talk(chunked("Connection: close") + body)
    assert answer.status == 202


@pytest.mark.parametrize(
    ("coding", "status"),
    [("gzip", 413), ("zstd", 400), ("deflate", 415), ("br", 415), ("gzip, identity", 415)],
)
def test_bombs_are_not_unpacked(unchanged, coding, status):
    bomb = gzip.compress(bytes(10_000_000))  # no zstd
    (answer,) = unchanged.talk(post(bomb, f"Content-Encoding: {coding}", close=True))
    check_problem(answer, status)


def test_a_body_is_asked_for_if_it_is_wanted(served):
    expect = "Expect: 100-continue"
    with served.connect() as sock:
        sock.sendall(post(NUMBERS, expect, close=True)[: -len(NUMBERS)])
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(NUMBERS)
        (answer,) = answers_in(received(sock))
        assert answer.status == 202
    for refused, status in (
        (post(bytes(2_000_000), expect)[:-2_000_000], 413),
        (post(NUMBERS, expect, token=None)[: -len(NUMBERS)], 401),
        (post(NUMBERS, expect, "Idempotency-Key: a b")[: -len(NUMBERS)], 400),
    ):
        (answer,) = served.talk(refused)  # and no 100 before it
        check_problem(answer, status)
        assert answer.headers["connection"] == "close"


def test_an_old_client_is_sent_no_100(served):
    sent = post(NUMBERS, "Expect: 100-continue", version="1.0")
    (answer,) = served.talk(sent[: -len(NUMBERS)], NUMBERS, pause=0.1)
    assert (answer.status, answer.headers["connection"]) == (202, "close")


# Connections


def test_a_small_batch_is_answered_without_a_task(served, monkeypatch):
    asked = []
    ask = protocol.GuardedProtocol._ask
    monkeypatch.setattr(
        protocol.GuardedProtocol,
        "_ask",
        lambda *given: asked.append(given[1].scope["path"]) or ask(*given),
    )
    sent = post(NUMBERS), post(NUMBERS), post(b"7"), get("/healthz", close=True)
    answers = served.talk(b"".join(sent))
    assert [answer.status for answer in answers] == [202, 202, 400, 200]
    assert {"date", "content-length"} <= answers[0].headers.keys()
    assert asked == ["/healthz"]


def status_of_next(sock):
    """Of the answer that is read from a connection; its body is read as well."""
    with closing(HTTPResponse(sock)) as answer:
        answer.begin()
        answer.read()
        return answer.status


def one_by_one(service, *sent, pause=0.0):
    """What is said on one connection to each of some requests, sent when those before are over."""
    statuses = []
    with service.connect() as sock:
        for one in sent:
            time.sleep(pause)
            sock.sendall(one)
            statuses.append(status_of_next(sock))
    return statuses


@pytest.fixture
def seen(monkeypatch):
    """The heads that were parsed, how many requests went to the application, and all bodies."""
    spied = SimpleNamespace(heads=0, asked=0, bodies=[])
    parsed, ask = protocol.GuardedProtocol.on_headers_complete, protocol.GuardedProtocol._ask
    read = BodyReader.read

    def on_headers_complete(self):
        spied.heads += 1
        parsed(self)

    def asked(*given):
        spied.asked += 1
        ask(*given)

    def read_body(reader, kind, body):
        spied.bodies.append(bytes(body))
        return read(reader, kind, body)

    monkeypatch.setattr(protocol.GuardedProtocol, "on_headers_complete", on_headers_complete)
    monkeypatch.setattr(protocol.GuardedProtocol, "_ask", asked)
    monkeypatch.setattr(BodyReader, "read", read_body)
    return spied


FIRST, SECOND = b"first678", b"second78"


def test_a_head_that_was_there_before_is_not_parsed_again(served, seen):
    assert one_by_one(served, post(FIRST), post(SECOND), post(FIRST)) == [202] * 3
    assert (seen.heads, seen.asked, seen.bodies) == (1, 0, [FIRST, SECOND, FIRST])


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (post(SECOND + FIRST), 202),
        (post(SECOND, "X: y"), 202),
        (post(SECOND, token="INGEST"), 401),
        (post(SECOND).replace(b": 8", b": 08"), 202),
        (post(SECOND[1:]).replace(b" HTTP", b"? HTTP"), 400),
        (post(SECOND).replace(b"octet-stream", b"octet-STREAM"), 202),
        (chunked() + b"8\r\nsecond78\r\n0\r\n\r\n", 202),
        (get("/healthz"), 200),
    ],
)
def test_any_other_head_is_parsed(served, seen, sent, status):
    assert one_by_one(served, post(FIRST), sent, post(FIRST)) == [202, status, 202]
    assert seen.heads == 3
    assert seen.bodies[0] == FIRST


@pytest.mark.parametrize("after", [b"\r\n", b"\r\n\r\n"])
def test_what_follows_a_body_does_not_move_the_next_one(served, seen, after):
    body = b"\r\n\r\n5678"
    assert one_by_one(served, *[post(body) + after] * 3) == [202] * 3
    assert seen.bodies == [body] * 3


def test_requests_that_come_while_one_with_the_same_head_waits(served, seen):
    with served.connect() as sock:
        sock.sendall(post(FIRST))
        assert status_of_next(sock) == 202
        sock.sendall(post(SECOND) + post(FIRST) + post(SECOND, close=True))
        assert [one.status for one in answers_in(received(sock))] == [202] * 3
    assert seen.bodies == [FIRST, SECOND, FIRST, SECOND]


def test_the_same_head_within_another_one_is_no_request(served, seen):
    with served.connect() as sock:
        for sent, status in ((post(FIRST), 202), (b"GE", None), (post(FIRST), 400)):
            sock.sendall(sent)
            time.sleep(0.1)
            assert status is None or status_of_next(sock) == status
    assert seen.bodies == [FIRST]


def test_the_same_head_waits_for_the_answer_before(served, seen):
    stream = served.engine.streams["visits"]
    with served.connect() as sock:
        sock.sendall(post(FIRST))
        assert status_of_next(sock) == 202
        with stream.windows.lock:
            for body in (SECOND, FIRST):
                sock.sendall(post(body))
                time.sleep(0.1)
            assert seen.heads == 1
        assert [status_of_next(sock) for _ in range(2)] == [202] * 2
    assert seen.bodies[-1] == FIRST


def test_a_token_that_is_taken_away_is_not_known_by_its_head(tmp_path, seen):
    with Served(tmp_path) as service, service.connect() as sock:
        for status in (202, 202, 401):
            sock.sendall(post(FIRST))
            assert status_of_next(sock) == status
            if seen.heads and len(seen.bodies) == 2:
                service.engine.tokens.take_over([])
    assert seen.bodies == [FIRST] * 2


def test_what_finds_no_room_goes_to_the_application(served, seen, monkeypatch):
    def full(*_):
        raise Problem(429, "too much is under way; come again")

    with served.connect() as sock:
        for _ in range(2):
            sock.sendall(post(FIRST))
            assert status_of_next(sock) == 202
            monkeypatch.setattr(served.engine.admission, "hold_complete", full)
    assert (seen.heads, seen.asked, seen.bodies) == (2, 1, [FIRST] * 2)


@pytest.mark.long
def test_a_connection_that_is_used_stays_open_and_is_closed_when_it_is_idle(served, monkeypatch):
    monkeypatch.setattr(served.server.config, "timeout_keep_alive", 2)
    assert one_by_one(served, *[post(FIRST)] * 6, pause=0.4) == [202] * 6
    began = time.monotonic()
    answers = served.talk(post(FIRST), post(FIRST), pause=0.4)
    assert [one.status for one in answers] == [202] * 2
    assert 2.3 < time.monotonic() - began < PATIENCE / 2


@pytest.mark.parametrize("at", [1, 40, -1])
def test_a_batch_in_two_pieces_is_answered_by_the_application(served, at):
    whole = post(NUMBERS, close=True)
    (answer,) = served.talk(whole[:at], whole[at:], pause=0.1)
    assert answer.status == 202


def test_pipelined_requests_are_answered_in_order(served):
    sent = [post(NUMBERS), get("/v1/streams"), post(b"x"), get("/nowhere"), get("/healthz")]
    answers = served.talk(b"".join([*sent, post(NUMBERS, close=True)]))
    assert [one.status for one in answers] == [202, 403, 400, 404, 200, 202]


def test_a_hundred_pipelined_requests(served):
    answers = served.talk(post(NUMBERS) * 99 + post(NUMBERS, close=True))
    assert [one.status for one in answers] == [202] * 100
    assert served.server.server_state.total_requests == 0


# Who sends ahead and does not read


AHEAD = get("/v1/openapi.json", token=None) * 4_000


@pytest.fixture
def connected(served):
    """A connection, and the protocol that it has in the service."""
    there = {*served.server.server_state.connections}
    with served.connect() as sock:
        wait_for(lambda: {*served.server.server_state.connections} - there)
        (made,) = {*served.server.server_state.connections} - there
        yield sock, made


def waiting(made, reader):
    """Bytes that a connection has in memory: what was sent ahead, and what has not left."""
    unsent = 0 if made.transport.is_closing() else made.transport.get_write_buffer_size()
    return reader.ahead + unsent


def test_who_sends_ahead_has_one_request_parsed_and_little_in_memory(served, connected, seen):
    sock, made = connected
    reader = made.reader
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    sock.setblocking(False)
    most, answers = 0, 0
    for _ in range(200):
        with suppress(BlockingIOError):
            sock.send(AHEAD)
        time.sleep(0.001)
        most, before, answers = max(most, waiting(made, reader)), answers, seen.asked
        assert len(made.pipeline) <= 1
        assert answers - before <= 50  # one in a millisecond, and some time has passed
    assert most <= (1 << 12) + (1 << 14)
    assert seen.heads < 200
    served.check_others()


def test_who_reads_slowly_has_all_answers_in_the_end(served):
    sent = get("/v1/openapi.json", token=None) * 30 + get("/healthz", close=True)
    with served.connect() as sock:
        sock.sendall(sent)
        time.sleep(0.1)
        answers = answers_in(received(sock))
    assert [one.status for one in answers] == [200] * 31
    assert len({one.body for one in answers[:-1]}) == 1


@pytest.mark.long
def test_who_reads_nothing_is_cut_off(served, connected):
    sock, made = connected
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    sock.setblocking(False)
    end = time.monotonic() + PATIENCE
    with served.limited(unread_seconds=0.3):
        while made in served.server.server_state.connections:
            assert time.monotonic() < end
            with suppress(OSError):
                sock.send(AHEAD)
            time.sleep(0.01)


def test_a_sender_with_a_token_need_not_wait_its_turn(served, connected, monkeypatch):
    sock, made = connected
    reader = made.reader
    turns = []  # of others as well: those of an earlier test may still be there
    monkeypatch.setattr(served.server.server_state.turns, "add", turns.append)
    sock.sendall(post(FIRST))
    assert status_of_next(sock) == 202
    sock.sendall(post(SECOND) * 19 + post(SECOND, close=True))
    assert [one.status for one in answers_in(received(sock))] == [202] * 20
    assert reader.go_on not in turns


def test_large_bodies_are_read_in_turns_and_small_ones_at_once(served, monkeypatch):
    pieces, turns = served.server.server_state.pieces, []
    add = pieces.add
    monkeypatch.setattr(pieces, "add", lambda go_on: (turns.append(go_on), add(go_on)))
    with served.limited(piece_bytes=1 << 12), served.connect() as sock:
        sock.sendall(post(FIRST))
        assert status_of_next(sock) == 202
        assert not turns
        sock.sendall(post(bytes(960_000)))
        assert status_of_next(sock) == 202
        read = len(turns)
        assert read >= 4  # of 256 KiB each
        sock.sendall(post(SECOND, close=True))
        assert [one.status for one in answers_in(received(sock))] == [202]
    assert len(turns) == read


@pytest.mark.parametrize("together", [True, False], ids=["with its head", "after its head"])
def test_bodies_in_chunks_are_read_in_small_pieces_and_in_turns(served, monkeypatch, together):
    """One of 256 KiB may be 40,000 chunks, for which others would wait."""
    pieces, turns, sizes = served.server.server_state.pieces, [], []
    add, parse = pieces.add, protocol.GuardedProtocol.data_received
    monkeypatch.setattr(pieces, "add", lambda go_on: (turns.append(go_on), add(go_on)))
    monkeypatch.setattr(
        protocol.GuardedProtocol,
        "data_received",
        lambda self, data: (sizes.append(len(data)), parse(self, data)),
    )
    with served.connect() as sock:
        sock.sendall(post(FIRST))  # its token is known from now on
        assert status_of_next(sock) == 202
        head, body = chunked("Connection: close"), b"1\r\n\0\r\n" * 16_000 + b"0\r\n\r\n"
        before = sum(sizes)
        sock.sendall(head + body if together else head)
        if not together:
            wait_for(lambda: sum(sizes) == before + len(head))
            sock.sendall(body)
        sock.shutdown(socket.SHUT_WR)  # its end is not read before what comes before it
        assert [one.status for one in answers_in(received(sock))] == [202]
    assert sum(sizes) == before + len(head) + len(body)
    assert max(sizes[-20:]) <= 1 << 12
    assert len(turns) >= 10


def test_a_long_query_is_refused(unchanged):
    for path in ("/v1/releases", UPDATES):
        (answer,) = unchanged.talk(get(f"{path}?{'a&' * 1_000}", close=True))
        check_problem(answer, 400 if path == "/v1/releases" else 405)
    (answer,) = unchanged.talk(get(f"/healthz?{'a&' * 1_000}", close=True))
    assert answer.status == 200


def test_old_clients_are_answered(served):
    (answer,) = served.talk(get("/healthz", version="1.0", host=""))
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    (answer,) = served.talk(post(NUMBERS, "Connection: keep-alive", version="1.0"))
    assert answer.status == 202


def test_a_sender_that_has_said_all_is_answered(served):
    before = served.state
    answers = served.talk(post(NUMBERS) + post(np.arange(500).tobytes()), half_close=True)
    assert [one.status for one in answers] == [202, 202]
    assert served.state != before


@pytest.mark.parametrize(
    "sent",
    [
        post(NUMBERS)[:-1],
        post(NUMBERS)[:30],
        post(NUMBERS)[: -len(NUMBERS)],
        chunked() + b"8\r\nabcdefgh\r\n",
        chunked() + b"8\r\nabcdefgh\r\n0\r\n",
    ],
)
@pytest.mark.parametrize("how", ["half-closed", "closed", "reset"])
def test_a_sender_that_goes_away_in_between_changes_nothing(unchanged, sent, how):
    if how == "half-closed":
        assert unchanged.talk(sent, half_close=True) == []
        return
    with unchanged.connect() as sock:
        sock.sendall(sent)
        time.sleep(0.05)
        if how == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.long
def test_senders_that_do_not_wait_for_durability(tmp_path):
    with Served(tmp_path, checkpoint=checkpoint_table()) as service:
        before = service.state
        for number in range(100):
            with service.connect() as sock:
                key = f"Idempotency-Key: {number}"
                sock.sendall(post(NUMBERS, key, path=f"{UPDATES}?durable=1"))
        service.check_others()
        last = post(NUMBERS, "Idempotency-Key: 0", path=f"{UPDATES}?durable=1", close=True)
        (answer,) = service.talk(last)
        assert (answer.status, answer.body) == (200, b"")
        wait_for(lambda: not service.server.server_state.tasks)
        assert service.state != before
        assert not service.engine.keeper._waiting


def test_a_connection_without_a_request_makes_no_trouble(served, caplog):
    for _ in range(3):
        with served.connect():
            pass
    served.check_others()
    wait_for(lambda: not served.server.server_state.connections)
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


def test_a_flood_of_idle_connections_makes_room(unchanged):
    with unchanged.limited(connections=50), ExitStack() as flood:
        socks = [flood.enter_context(unchanged.connect()) for _ in range(300)]
        unchanged.check_others()
        (answer,) = unchanged.talk(post(b"short", close=True))
        check_problem(answer, 400)
        assert len(unchanged.server.server_state.connections) <= 50
        assert socks[0].recv(1) == b""


def test_a_connection_that_has_ended_leaves_nothing_to_the_garbage_collector(served):
    there = {*served.server.server_state.connections}
    gc.disable()
    try:
        with served.connect():
            wait_for(lambda: {*served.server.server_state.connections} - there)
            (made,) = map(weakref.ref, {*served.server.server_state.connections} - there)
        wait_for(lambda: made() is None)
    finally:
        gc.enable()


def test_a_request_that_is_under_way_is_not_cut_off(served):
    sent = post(NUMBERS, close=True)
    with served.limited(connections=20), served.connect() as sock:
        sock.sendall(sent[:-1])
        wait_for(lambda: served.engine.admission._requests._held)
        flood = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(60)]
        served.check_others()
        sock.sendall(sent[-1:])
        (answer,) = answers_in(received(sock))
        for one in flood:
            one.close()
    assert answer.status == 202


# Every request gets an answer


def test_what_is_too_much_is_told_to_come_again(tmp_path, monkeypatch):
    with client_in(tmp_path, "max_body_bytes = 80000\nmax_waiting_bytes = 400000") as client:
        stream, counted = client.engine.streams["visits"], []
        take = stream.take_together

        def spied(several, **named):
            counted.extend(sum(batch.num_rows for batch in sent.batches) for sent in several)
            return take(several, **named)

        monkeypatch.setattr(stream, "take_together", spied)

        async def slow():
            for _ in range(10):
                await asyncio.sleep(0.005)
                yield bytes(8_000)

        async def many():
            headers = {"Content-Type": "application/octet-stream", "Content-Length": "80000"}
            return await asyncio.gather(
                *(
                    client.asking("POST", UPDATES, "ingest", content=slow(), headers=headers)
                    for _ in range(60)
                )
            )

        answers = client.runner.run(many())
        statuses = [answer.status_code for answer in answers]
        assert {*statuses} == {202, 429}
        assert 1 <= statuses.count(202) == len(counted)
        assert {one.headers["Retry-After"] for one in answers if one.status_code == 429} == {"1"}
        assert not client.engine.admission._bytes._held


@contextmanager
def trickling(service, connections, came):
    """Connections of one token, each with a part of a chunked body and a byte now and then."""
    socks = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(connections)]
    ended = threading.Event()

    def send(part):
        for sock in socks:
            with suppress(OSError):  # it was told to come again
                sock.sendall(part)

    def trickle():
        while not ended.wait(0.5):
            send(b"1\r\na\r\n")

    send(chunked() + b"%x\r\n" % came + bytes(came) + b"\r\n")
    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        yield socks
    finally:
        ended.set()
        thread.join()
        for sock in socks:
            sock.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("connections", "came"), [(40, 8_000), (700, 1), (60, 1_000_000)], ids=["few", "many", "long"]
)
def test_one_slow_sender_keeps_no_other_out(tmp_path, connections, came):
    """Not those of other tokens, nor those of another stream."""
    row = b'{"user": "ada", "page": "home"}\n'
    fields = "Content-Type: application/x-ndjson", f"Content-Length: {len(row)}"
    others = [
        post(NUMBERS, close=True, token="visits"),
        head("POST", "/v1/streams/pages/updates", "Connection: close", *fields) + row,
    ]
    with Served(tmp_path, 'timeout = "1h"\nmax_waiting_bytes = 60_000_000') as service:
        door = service.engine.admission
        with trickling(service, connections, came):
            wait_for(lambda: door._requests._held.get("ingest", 0) >= min(connections, 15))
            for sent in others * 3:
                began = time.monotonic()
                (answer,) = service.talk(sent)
                assert answer.status == 202, answer.body
                assert time.monotonic() - began < PATIENCE / 2
                time.sleep(0.2)
            assert 0 < door._bytes._held["ingest"] <= 30_000_000
            assert 0 < door._requests._held["ingest"] <= 500
        wait_for(lambda: not (door._bytes._held or door._requests._held))


# Bodies


def mutated(body):
    """A body with some bytes changed, left out, repeated or put in."""
    places = st.integers(0, len(body))
    odd = [b"\0", b'"', b"[" * 500, b"{", b"\xff\xff\xff\xff", b"\r\n", b",", b"\\u", b"nan"]
    pieces = st.one_of(st.binary(max_size=12), st.sampled_from(odd))
    steps = st.lists(st.tuples(places, st.integers(0, 40), pieces), min_size=1, max_size=4)

    def apply(steps):
        changed = bytearray(body)
        for start, length, piece in steps:
            changed[start : start + length] = piece
        return bytes(changed)

    return steps.map(apply)


DELTAS = {"user": ["ada", "grace", "ada"], "page": ["home", "help", "home"]}
TEXT_BODIES = {
    "application/vnd.apache.arrow.stream": ipc(pa.table(DELTAS)),
    "application/vnd.apache.arrow.file": ipc(
        pa.table({name: pa.array(values).dictionary_encode() for name, values in DELTAS.items()}),
        pa.ipc.new_file,
    ),
    "application/octet-stream": bytes(24),
    "application/x-ndjson": b'{"user": "ada", "page": "home"}\n{"user": "b", "page": "help"}\n',
    "application/jsonl": b'{"user": "ada", "page": "home"}\r\n',
    "application/json": json.dumps(DELTAS).encode(),
    "text/csv": b'user,page\nada,home\n"gr""ace",help\n',
    "text/tab-separated-values": b"user\tpage\nada\thome\n",
}


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    with client_in(tmp_path_factory.mktemp("fuzzed")) as client:
        yield client


@pytest.mark.long
@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize(("stream", "bodies"), [("visits", BODIES), ("pages", TEXT_BODIES)])
def test_mutated_bodies_are_counted_or_refused(fuzzed, kind, stream, bodies):
    path = f"/v1/streams/{stream}/updates"

    @settings(max_examples=60, suppress_health_check=[*HealthCheck])
    @given(mutated(bodies[kind]))
    def check(body):
        before = fuzzed.state
        answer = fuzzed.send(body, kind, path)
        assert answer.status_code in (202, 400)
        if answer.status_code == 400:
            assert fuzzed.state == before

    check()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"[" * 1_000_000),
        ("application/json", b'{"user":' * 100_000),
        ("application/x-ndjson", b"[" * 1_000_000),
        ("application/json", b'{"user": [1, "a"]}'),
        ("application/json", b'{"user": [1e400]}'),
        ("application/json", b'{"user": ["\xff"]}'),
        ("application/json", b"\0" * 1_000),
        ("application/json", b""),
        ("application/x-ndjson", b"\0\n" * 1_000),
        ("text/csv", b"user\n\xff\xfe\0\n"),
        ("text/csv", b'user\n"' + b"a" * 300_000),
        ("text/csv", b"," * 1_000_000),
        ("text/csv", b"user\n1,2\n"),
        ("application/octet-stream", b"a" * 1_001),
        ("application/vnd.apache.arrow.stream", b"\xff" * 100_000),
        ("application/vnd.apache.arrow.file", b"ARROW1\0\0" * 100),
    ],
)
def test_absurd_bodies_are_refused(fuzzed, kind, body):
    before = fuzzed.state
    answer = fuzzed.send(body, kind)
    assert answer.status_code == 400, answer.text
    assert fuzzed.state == before


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/json"])
def test_deep_nesting_in_other_fields_does_no_harm(fuzzed, kind):
    deep = b'{"user": 1, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert fuzzed.send(deep, kind).status_code in (202, 400)


# Nothing is told


BROKEN = {
    "application/vnd.apache.arrow.stream": ipc(pa.table({"user": [CANARY, None]})),
    "application/vnd.apache.arrow.file": ipc(pa.table({"user": [CANARY]}), pa.ipc.new_file),
    "application/octet-stream": CANARY.encode() * 3,
    "application/x-ndjson": f'{{"user": "{CANARY}"}}\n{{{CANARY}\n'.encode(),
    "application/jsonl": f'{{"{CANARY}": "{CANARY}"}}\n'.encode(),
    "application/json": f'{{"user": ["{CANARY}", 1]}}'.encode(),
    "text/csv": f"{CANARY},{CANARY}\n{CANARY}\n".encode(),
    "text/tab-separated-values": f'user\n{CANARY}\n"{CANARY}'.encode(),
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("daemon"), STREAMS) as service:
        yield service.start()


def every_field():
    """Requests with a canary in each place where one can stand."""
    yield f"/{CANARY}", {}, b""
    yield f"/v1/streams/{CANARY}/updates", {}, b""
    yield f"{UPDATES}?durable={CANARY}&{CANARY}={CANARY}", {}, NUMBERS
    yield f"{UPDATES}?durable={CANARY}", {"Content-Type": "application/octet-stream"}, NUMBERS
    for name in ("Authorization", "Content-Type", "Content-Encoding", "Accept", "X", "Host"):
        yield UPDATES, {name: CANARY}, CANARY.encode()
    yield UPDATES, {"Authorization": f"Bearer {CANARY}"}, NUMBERS
    octets = {"Content-Type": "application/octet-stream"}
    yield UPDATES, {**octets, "Idempotency-Key": f"{CANARY} {CANARY}"}, NUMBERS
    yield UPDATES, {"Content-Type": f"text/csv; charset={CANARY}"}, NUMBERS
    for kind, body in BROKEN.items():
        yield UPDATES, {"Content-Type": kind}, body
        yield "/v1/streams/pages/updates", {"Content-Type": kind}, body


@pytest.mark.long
def test_no_answer_and_no_log_tells_what_was_sent(daemon):
    before = daemon.said
    for path, headers, body in every_field():
        answer = daemon.client.post(
            daemon.url(path), content=body, headers={**daemon.headers("ingest"), **headers}
        )
        assert 400 <= answer.status_code < 500, (path, headers)
        assert CANARY not in answer.text
        assert CANARY not in str(answer.headers)
    for name in ("stream", "limit", "since", "before", "format"):
        answer = daemon.client.get(
            daemon.url(f"/v1/releases?{name}={CANARY}"), headers=daemon.headers("read")
        )
        assert 400 <= answer.status_code < 500, name
        assert CANARY not in answer.text
    for raw in (
        f"{CANARY}\r\n\r\n".encode(),
        f"GET /{CANARY} HTTP/1.1\r\nX: {CANARY}\0\r\n\r\n".encode(),
        head("POST", UPDATES, f"Transfer-Encoding: {CANARY}", f"{CANARY}: {CANARY}"),
        chunked() + CANARY.encode() * 3,
    ):
        answer = exchange(daemon, raw)
        assert b" 400 " in answer
        assert CANARY.encode() not in answer
    assert daemon.said == before


def exchange(service, sent):
    host, _, port = service.url().removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.settimeout(30)
        with suppress(OSError):
            sock.sendall(sent)
        return received(sock)


def peak(service):
    """The most memory that a service has had, in bytes."""
    status = Path(f"/proc/{service.pid}/status").read_text()
    (line,) = [one for one in status.splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) << 10


@pytest.mark.long
def test_memory_is_bounded(daemon):
    """Many long bodies that are refused at once take no more than what may wait."""
    daemon.send([1])
    before = peak(daemon)
    bomb = io.BytesIO()
    table = pa.table({"user": np.zeros(20_000_000, np.int64)})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(bomb, table.schema, options=options) as writer:
        writer.write_table(table)
    arrow = {"Content-Type": "application/vnd.apache.arrow.stream"}
    for _ in range(5):
        answer = daemon.client.post(
            daemon.url(UPDATES),
            content=bomb.getvalue(),
            headers={**daemon.headers("ingest"), **arrow},
        )
        assert answer.status_code == 400
    senders = [
        threading.Thread(target=exchange, args=(daemon, sent))
        for sent in [
            chunked() + b"10000000\r\n" + bytes(30_000_000),
            post(bytes(30_000_000), close=True),
            get("/healthz")[:-2] + b"a" * 30_000_000,
            post(bytes(30_000_000), token=None),
        ]
        * 3
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert peak(daemon) - before < 250_000_000
    assert daemon.send([1]).status_code == 202


@pytest.mark.long
def test_thousands_of_connections_do_not_keep_others_out(daemon):
    host, _, port = daemon.url().removeprefix("http://").rpartition(":")
    before = daemon.said
    flood = [socket.create_connection((host, int(port))) for _ in range(3_000)]
    try:
        assert daemon.send([1]).status_code == 202
    finally:
        for sock in flood:
            sock.close()
    assert daemon.said == before


@contextmanager
def unlike(client: Client):
    before = client.state
    yield
    assert client.state != before


def test_the_state_is_what_changes_when_a_batch_is_counted(fuzzed):
    """Else the comparisons above would show nothing."""
    with unlike(fuzzed):
        assert fuzzed.send(np.arange(10_000).tobytes()).status_code == 202
    with unlike(fuzzed):
        assert fuzzed.send(NUMBERS, Idempotency_Key="fresh").status_code == 202


@pytest.mark.parametrize(
    "body", [b"null", b" null\n", b"null null", b'{"user": 1}\n' * 5 + b"null"]
)
@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_a_bare_null_is_no_row(daemon, kind, body):
    """pyarrow ends the process where JSON begins with null; the daemon would go with it."""
    headers = daemon.headers("ingest", Content_Type=kind)
    answer = daemon.client.post(daemon.url(UPDATES), content=body, headers=headers)
    assert answer.status_code == 400

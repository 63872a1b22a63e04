"""What comes over a connection is taken apart as the library does it, and copied once."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import itertools
import socket
import threading
import time
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st
from nats.errors import ProtocolError
from nats.protocol.parser import Parser

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.queues import BrokerError, Queue
from panprivacy.cluster.transport import MessageParser, _Incoming, new_client
from tests.cluster.nats import NatsServer, found_nats

LONG = 3 << 20
"""More than is read at once."""
ROOM = "max_payload: 8388608"


class Client:
    """Keeps what a parser tells it."""

    def __init__(self, parser):
        self.parser, self.report = parser(self), []

    async def _process_msg(self, sid, subject, reply, content, headers):
        self.report.append((sid, subject, reply, type(content), bytes(content), headers))

    async def _process_ping(self):
        self.report.append("ping")

    async def _process_pong(self):
        self.report.append("pong")

    async def _process_info(self, info):
        self.report.append(info)

    async def _process_err(self, reason):
        self.report.append(reason)

    def after(self, pieces):
        async def parse():
            for piece in pieces:
                await self.parser.parse(piece)

        asyncio.run(parse())
        return self.report


words = st.text("abcdefgh", min_size=1, max_size=8).map(str.encode)
content = st.one_of(st.binary(max_size=40), st.just(b"\r\nMSG a 1 2\r\n"), st.just(b"PING\r\n"))


@st.composite
def messages(draw):
    subject, reply, body = (
        draw(words),
        draw(st.sampled_from([b"", b"$JS.ACK.q.c.1", b"me"])),
        draw(content),
    )
    front = b" ".join(filter(None, [subject, b"7", reply]))
    if draw(st.booleans()):
        return b"MSG %s %d\r\n%s\r\n" % (front, len(body), body)
    headers = b"NATS/1.0\r\nNats-Msg-Id: %s\r\n\r\n" % draw(words)
    size = len(headers) + len(body)
    return b"HMSG %s %d %d\r\n%s%s\r\n" % (front, len(headers), size, headers, body)


lines = st.sampled_from(
    [b"PING\r\n", b"PONG\r\n", b"+OK\r\n", b"-ERR 'no'\r\n", b'INFO {"a": 1}\r\n']
)


@pytest.mark.long
@given(st.lists(messages() | lines, max_size=12), st.data())
def test_all_is_taken_apart_as_the_library_does_however_it_is_cut(parts, data):
    wire = b"".join(parts)
    cuts = data.draw(st.lists(st.integers(0, len(wire)), max_size=8).map(sorted))
    pieces = [wire[start:end] for start, end in itertools.pairwise([0, *cuts, len(wire)])]
    ours, theirs = (
        Client(MessageParser).after(map(memoryview, pieces)),
        Client(Parser).after([wire]),
    )
    queued = [one for one in ours if isinstance(one, tuple) and one[2].startswith(b"$JS.ACK.")]
    assert {one[3] for one in queued} <= {memoryview}
    plain = [(*one[:3], bytes, *one[4:]) if isinstance(one, tuple) else one for one in ours]
    assert plain == theirs


def test_a_new_connection_begins_with_a_line():
    client = Client(MessageParser)
    client.after([b"MSG a 1 10\r\ncut"])
    client.parser.reset()
    assert client.after([b"PING\r\n"]) == ["ping"]


def test_a_server_cannot_ask_for_more_memory_than_a_message_takes():
    with pytest.raises(ProtocolError):
        Client(MessageParser).after([b"MSG a 1 99999999999999\r\nx"])


@pytest.mark.parametrize(
    "said",
    [
        b"INFO {\r\n",
        b"INFO \xff\r\n",
        b"-ERR \r\n",
        b"-ERR '\xff'\r\n",
        b"HMSG a 1 $JS.ACK.x 9 7\r\n",
        pytest.param(b"INFO " + bytes(LONG), id="endless", marks=pytest.mark.long),
    ],
)
def test_what_cannot_be_read_ends_the_connection_and_no_more(said):
    with pytest.raises(ProtocolError):
        Client(MessageParser).after([said, b"12345678901"])


class Source:
    """Tells whether it was asked to pause."""

    paused = False

    def pause_reading(self):
        assert not self.paused
        self.paused = True

    def resume_reading(self):
        assert self.paused
        self.paused = False


@given(st.lists(st.integers(0, 1 << 19), max_size=20))
def test_what_came_is_read_once_and_in_order_and_more_waits_for_room(sizes):
    async def run():
        incoming, source = _Incoming(), Source()
        incoming.connection_made(source)
        sent, got = bytearray(), bytearray()
        for number, size in enumerate(sizes, start=1):
            if source.paused or not size:
                if len(got) < len(sent):
                    got += await incoming.read()
                continue
            into = incoming.get_buffer(-1)[:size]
            into[:] = bytes([number]) * len(into)
            sent += into
            incoming.buffer_updated(len(into))
        incoming.connection_lost(None)
        source.paused = False  # and nothing more is asked of it
        while not incoming.at_eof():
            got += await incoming.read()
        assert got == sent
        assert not await incoming.read()

    asyncio.run(run())


def test_who_reads_or_writes_hears_why_the_connection_was_lost():
    async def run():
        incoming = _Incoming()
        incoming.connection_made(Source())
        await incoming.drained()
        incoming.pause_writing()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(incoming.drained(), 0.01)
        incoming.resume_writing()
        await incoming.drained()
        incoming.pause_writing()
        incoming.connection_lost(ConnectionResetError("by peer"))
        with pytest.raises(ConnectionResetError, match="by peer"):
            await incoming.read()
        with pytest.raises(ConnectionResetError, match="was lost"):
            await asyncio.wait_for(incoming.drained(), 1)

    asyncio.run(run())


@contextmanager
def scripted(*scripts):
    """The address of a server that says what is in a script: on each connection the next one.

    It waits for a line for each `None`; at the end of a script but the last, it closes.
    """

    def talk(listener):
        for script in scripts:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as heard:
                for said in script:
                    heard.readline() if said is None else connection.sendall(said)
                if script is scripts[-1]:
                    heard.read()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=talk, args=(listener,), daemon=True)
        thread.start()
        yield f"nats://127.0.0.1:{listener.getsockname()[1]}"
    thread.join(5)


INFO = b'INFO {"max_payload": 1000}\r\n'


def test_what_a_connection_left_of_a_message_is_no_part_of_the_next_connection():
    cut = [INFO, None, None, b"PONG\r\n", b"-ERR 'Stale Connection'\r\nMSG a 1 1000\r\ncut"]
    good = [INFO, None, None, *[b"PONG\r\n", None] * 2, b"PONG\r\n"]

    async def run(url):
        client, again = new_client(), asyncio.Event()

        async def told():
            again.set()

        await client.connect(url, reconnected_cb=told, reconnect_time_wait=0.01)
        await asyncio.wait_for(again.wait(), 5)
        await client.flush(2)
        await client.close()

    with scripted(cut, good) as url:
        asyncio.run(run(url))


@pytest.mark.parametrize("said", [b"INFO []\r\n", b"INFO\r\n", INFO + b"-ERR 'a\xff'\r\n"])
@pytest.mark.parametrize("before", [False, True])
def test_a_handshake_that_cannot_be_read_is_tried_again(said, before):
    good = [INFO, None, None, b"PONG\r\n"]
    with scripted(*[good] * before, [said], [*good, None, b"PONG\r\n"]) as url:
        broker = Broker(url, patience=0.5)
        until = time.monotonic() + 20
        while True:
            assert time.monotonic() < until
            with suppress(BrokerError):
                assert broker.most_message == 1_000 - 512
                if not before:
                    break
                before = False
                time.sleep(0.2)
        broker.close()


@pytest.mark.long
def test_who_asks_for_tls_tells_nothing_to_who_has_none():
    """Or who is in between would say that there is none, and be told the password."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        heard = []

        def talk():
            connection, _ = listener.accept()
            with connection:
                connection.sendall(INFO)
                heard.append(connection.recv(1 << 12))

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        broker = Broker(f"tls://me:secret@127.0.0.1:{listener.getsockname()[1]}", patience=0.5)
        with pytest.raises(BrokerError, match="secure connection required"):
            broker.wait()
        broker.close()
        thread.join(5)
    assert heard == [b""]


@pytest.mark.parametrize("cut", [2, 7, 12, 40])
def test_what_comes_behind_a_line_of_the_handshake_is_read_next(cut):
    behind = b'PONG\r\nINFO {"connect_urls": ["127.0.0.2:4222"]}\r\n'
    script = [INFO, None, None, behind[:cut], behind[cut:], None, b"PONG\r\n"]

    async def run(url):
        client = new_client()
        await asyncio.wait_for(client.connect(url), 5)
        await client.flush(2)
        assert len(client.discovered_servers) == 1
        await client.close()

    with scripted(script) as url:
        asyncio.run(run(url))


@pytest.fixture
def certificate(tmp_path, monkeypatch):
    """Of this machine, and trusted; the lines of a server that has it."""
    key, now = generate_private_key(SECP256R1()), dt.datetime.now(dt.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "nats")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now).not_valid_after(now + dt.timedelta(hours=1))
    signed = made.add_extension(here, critical=False).sign(key, hashes.SHA256())
    path, secret = tmp_path / "certificate.pem", tmp_path / "key.pem"
    path.write_bytes(signed.public_bytes(Encoding.PEM))
    secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return f'tls {{ cert_file: "{path}", key_file: "{secret}" }}\n'


@pytest.fixture(params=["asyncio", "uvloop"])
def event_loops(request, monkeypatch):
    """Of both kinds: processes of Ray have the latter."""
    policy = pytest.importorskip(request.param)
    monkeypatch.setattr(asyncio, "new_event_loop", policy.new_event_loop)


@pytest.mark.long
@pytest.mark.usefixtures("event_loops")
@pytest.mark.parametrize("scheme", ["nats", "tls"])
def test_long_messages_come_through(scheme, certificate):
    extra = certificate if scheme == "tls" else ""
    queue = Queue("panprivacy", "long", 1, 0)
    sent = [np.random.default_rng(at).bytes(LONG + at) for at in range(4)]
    with NatsServer(found_nats(), extra=extra + ROOM) as server:
        broker = Broker(server.url.replace("nats", scheme))
        assert broker.most_message > LONG
        at = broker.open(queue)
        broker.publish([(queue, one) for one in sent])
        found = []
        while len(found) < len(sent):
            pulled = broker.pull(queue, at, 4, 1.0)
            assert {type(one) for _, one in pulled} <= {memoryview}, "the client has our parser"
            found += [bytes(one) for _, one in pulled]
            at = pulled[-1][0] if pulled else at
        assert sorted(found) == sorted(sent)
        broker.close()

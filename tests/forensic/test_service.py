"""Nothing is left of what a daemon took in, and of an older state of its own.

Every listener of one daemon gets ids of its own in every format, in whole bodies and in parts, in
bodies that are refused and in such that never end. A moment later nothing of them may be in the
memory of the daemon, in registers, in files, in its log or in its sockets: neither as they came,
nor as a hash. The same daemon without its launcher shows that the search finds what is there.

A daemon copies its state at every checkpoint. Two states of different moments are two looks, of
which the guarantee covers one: of the state at a checkpoint nothing may be left that differs from
the current one, and no key that opens the sealed file.

In the state are, by design: cells, which are noisy; the key by which ids are addressed; and for
each batch that its sender named, a hash of that name.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import fcntl
import gzip
import hashlib
import http.client
import io
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyrage
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from panprivacy import SystemCoins
from panprivacy.service.config.tokens import hash_of
from panprivacy.statistics.containers import OWN_BYTES
from panprivacy.statistics.header import read_header
from panprivacy.tables.hashing import KEY_BYTES, hash_byte_strings, hash_integers, key_words

from .memory import (
    Needles,
    count_in_process,
    needs_administrator,
    pieces,
    processes_below,
    search_files,
    search_open_files,
    search_process,
    search_process_for_each,
    search_registers,
)
from .test_memory import HARDENED, LETTERS, PLAIN, busy_time, bytes_of, wait_until, write_all

pytestmark = needs_administrator

SMALL, LARGE = 2_000, 20_000
"""Ids of a body that the event loop counts, and of one that is longer than 256 KiB."""
MOST_BODY = 1 << 20
IDLE_SECONDS = 2.0
TOKEN = "pp_forensic"
NOTHING = (0, 0, 0, 0)
STATE_PIECE = 16
_HEADERS_PIECES = 1_700
"""More than is in front of a table: public texts, and places for releases that wait."""
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_PIDFD_GETFD = 438
_LIBC = ctypes.CDLL(None)

CONFIG = """
[server]
listen = "127.0.0.1:{port}"
max_body_bytes = {most_body}
[checkpoint]
recipient = "{recipient}"
every = "1s"
[[tokens]]
name = "all"
may = ["ingest", "read", "release"]
sha256 = "{token}"
"""
STREAM = """
[streams.{name}]
epsilon = 1
window = "3650d"
{rest}
[[streams.{name}.stat]]
name = "distinct"
expected = "1000:1e6"
"""
STREAMS = {
    "texts": "",
    "numbers": 'ids = "integers"',
    "addresses": 'ids = "addresses"',
    "pages": 'by = "page"\ngroups = ["home", "help"]\nignore_others = true',
    "udp": 'user = "remote_addr"\nids = "addresses"\n'
    '[[streams.udp.syslog]]\nlisten = "udp://127.0.0.1:{udp}"',
    "unix": 'user = "remote_addr"\n[[streams.unix.syslog]]\nlisten = "unix:{folder}/log.sock"',
    "piped": '[streams.piped.stdin]\nformat = "csv"',
}


# Ids


def texts(count):
    drawn = np.frombuffer(SystemCoins().key(16 * count), np.uint8)
    data = LETTERS[drawn % 64].tobytes()
    return [data[i : i + 16] for i in range(0, len(data), 16)]


def numbers(count):
    drawn = np.frombuffer(SystemCoins().key(8 * count), np.uint64) % 10**18 + 10**18
    return [str(value).encode() for value in drawn]


def addresses(count):
    digits = SystemCoins().key(16 * count).hex(":", 2).encode()
    return [digits[i : i + 39] for i in range(0, len(digits), 40)]


def packed(rows, ids):
    """The ids as the library counts them: whole numbers, or byte strings of one length."""
    if ids is numbers:
        return np.array(rows).astype(np.int64)
    if ids is addresses:
        return [bytes.fromhex(row.replace(b":", b"").decode()) for row in rows]
    return rows


def windows_of(rows, ids):
    """What is searched for as 8 bytes, and as 16."""
    held = packed(rows, ids)
    if ids is numbers:
        words = held.astype(np.uint64)
        python = (words & (2**30 - 1)) | (words >> np.uint64(30) & (2**30 - 1)) << np.uint64(32)
        short = bytes_of(words, words.byteswap(), words.astype(float).view(np.uint64), python)
        return short, pieces(rows, 16)
    if ids is addresses:
        halves = np.frombuffer(b"".join(held), ">u8").astype(np.uint64)
        return bytes_of(halves, halves.byteswap()), pieces(rows, 16)
    wide = [row[at : at + 8].decode().encode("utf-16-le") for row in rows for at in (0, 8)]
    return pieces(rows), pieces(wide, 16)


def digest_windows(rows, ids):
    """Hashes of ids, by pieces of 8 raw bytes and of 16 digits."""
    held = packed(rows, ids)
    held = [struct.pack("<q", one) for one in held.tolist()] if ids is numbers else held
    forms = [*rows, *held] if held is not rows else rows
    raw = b"".join(kind(form).digest() for form in forms for kind in (hashlib.sha256, hashlib.md5))
    digits = raw.hex().encode()
    return (
        np.frombuffer(raw, np.uint8).reshape(-1, 8),
        np.frombuffer(digits, np.uint8).reshape(-1, 16),
    )


def keyed_windows(rows, ids, key):
    """The library's own hashes of ids under the key of a state."""
    found = np.empty(len(rows), np.uint64)
    held = packed(rows, ids)
    if ids is numbers:
        hash_integers(held, *key_words(key), found)
    else:
        data = np.frombuffer(b"".join(held), np.uint8)
        ends = np.arange(len(held) + 1, dtype=np.int64) * len(held[0])
        hash_byte_strings(frozen(ends), data, *key_words(key), found)
    return bytes_of(found)


def frozen(array):
    array.flags.writeable = False
    return array


def needles_of(parts):
    """From pairs of windows of 8 and of 16 bytes."""
    return Needles.of(*(windows for pair in parts for windows in pair))


# Bodies


def csv(rows):
    return b"\n".join([b"user", *rows, b""])


def tsv(rows):
    return b"\n".join([b"other\tuser", *(b"1\t" + row for row in rows), b""])


def grouped_csv(rows):
    pages = [b"home", b"help", b"shop"]
    lines = [row + b"," + pages[place % 3] for place, row in enumerate(rows)]
    return b"\n".join([b"user,page", *lines, b""])


def ndjson(rows):
    return b"".join(b'{"user": "%s"}\n' % row for row in rows)


def ndjson_numbers(rows):
    return b"".join(b'{"user": %s}\n' % row for row in rows)


def json_columns(rows):
    return b'{"user": ["' + b'", "'.join(rows) + b'"]}'


def json_rows(rows):
    return b'[{"user": "' + b'"}, {"user": "'.join(rows) + b'"}]'


def json_numbers(rows):
    return b'{"user": [' + b", ".join(rows) + b"]}"


def int64(rows):
    return np.array(rows).astype("<i8").tobytes()


def arrow(rows):
    return arrow_stream(pa.array(rows).cast(pa.string()))


def arrow_numbers(rows):
    return arrow_stream(pa.array(np.array(rows).astype(np.int64)))


def arrow_dictionary(rows):
    return arrow_stream(pa.array(rows).cast(pa.string()).dictionary_encode())


def arrow_stream(column):
    table = pa.table({"user": column})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def log_line(row):
    return row + b' - - [01/Oct/2025:13:55:36 +0200] "GET / HTTP/1.1" 200 12 "-" "-"'


ARROW, INT64 = "application/vnd.apache.arrow.stream", "application/octet-stream"
NDJSON, JSON = "application/x-ndjson", "application/json"
CSV, TSV = "text/csv", "text/tab-separated-values"


# The daemon


@dataclass(frozen=True)
class Daemon:
    """A daemon that runs.

    Args:
        process: the daemon.
        folder: where it writes all that it writes.
        port: of HTTP.
        udp: port of syslog.
        identity: opens its checkpoints.
        connections: that stay open.
    """

    process: subprocess.Popen
    folder: Path
    port: int
    udp: int
    identity: pyrage.x25519.Identity
    connections: list = field(default_factory=list)

    def connection(self):
        """A connection that stays open, as those of collectors do."""
        made = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        self.connections.append(made)
        return made

    def post(self, stream, kind, body, *, query="", headers=None, connection=None):
        """The status of the answer."""
        used = connection or self.connection()
        sent = {**head(kind), **(headers or {})}
        used.request("POST", f"/v1/streams/{stream}/updates{query}", body, sent)
        answer = used.getresponse()
        answer.read()
        return answer.status

    def raw_connection(self):
        """A connection below HTTP."""
        made = socket.create_connection(("127.0.0.1", self.port))
        self.connections.append(made)
        return made

    def begin(self, sock, stream, kind, length):
        """Send the head of a request."""
        lines = [f"POST /v1/streams/{stream}/updates HTTP/1.1", "Host: localhost"]
        lines += [f"{name}: {value}" for name, value in head(kind).items()]
        sock.sendall("\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode())

    def states(self):
        """The states of the last checkpoint, one after another."""
        return pyrage.decrypt(self.sealed(), [self.identity])

    def sealed(self):
        """The last checkpoint."""
        return (self.folder / "panprivacy.sealed").read_bytes()

    def log(self):
        """What it wrote to standard error."""
        return (self.folder / "stderr.log").read_text()


def head(kind):
    return {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}


@contextlib.contextmanager
def running(program, folder, streams=None):
    """A daemon, once it listens; with other streams if they are given as TOML."""
    identity = pyrage.x25519.Identity.generate()
    ports = {"port": free_port(socket.SOCK_STREAM), "udp": free_port(socket.SOCK_DGRAM)}
    known = {"recipient": identity.to_public(), "token": hash_of(TOKEN), "most_body": MOST_BODY}
    tables = streams or "".join(
        STREAM.format(name=name, rest=rest.format(udp=ports["udp"], folder=folder))
        for name, rest in STREAMS.items()
    )
    (folder / "config.toml").write_text(CONFIG.format(port=ports["port"], **known) + tables)
    wanted = {name: str(folder) for name in ("HOME", "TMPDIR", "NUMBA_CACHE_DIR", "MPLCONFIGDIR")}
    with (folder / "stderr.log").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, *program, "serve", "config.toml"],
            cwd=folder,
            env={**os.environ, **wanted},
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    daemon = Daemon(process, folder, ports["port"], ports["udp"], identity)
    with process:
        try:
            wait_until(lambda: is_up(daemon))
            yield daemon
        finally:
            for connection in daemon.connections:
                connection.close()
            process.kill()


def free_port(kind):
    with socket.socket(type=kind) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def is_up(daemon):
    assert daemon.process.poll() is None, daemon.log()
    return "listening where=" in daemon.log() and (daemon.folder / "panprivacy.sealed").exists()


# What is sent: every case has ids of its own


def posted(stream, kind, write, *, query="", headers=None, status=202, repeats=2, keep=True):
    """Bodies on one connection that stays open."""

    def send(daemon, rows):
        connection = daemon.connection()
        for part in np.array_split(np.array(rows), repeats):
            body = write(part.tolist())
            named = {"query": query, "headers": headers, "connection": connection}
            answered = daemon.post(stream, kind, body, **named)
            assert answered == status, (stream, kind, answered)
        if not keep:
            connection.close()

    return send


def compressed(encoding, pack):
    """Bodies of CSV that the service unpacks."""
    headers = {"Content-Encoding": encoding}
    return posted("texts", CSV, lambda rows: pack(csv(rows)), headers=headers)


def zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


def chunked(stream, kind, write, status=202, close=False):
    """A body in chunks that end anywhere."""

    def send(daemon, rows):
        body = write(rows)
        cuts = range(0, len(body), 9_999)
        parts = (body[at : at + 9_999] for at in cuts)
        connection = daemon.connection()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            answered = daemon.post(stream, kind, parts, connection=connection)
            assert answered == status

    return send


def refused(stream, kind, write, last):
    """Bodies of which the last row cannot be counted."""
    return posted(stream, kind, lambda rows: write(rows) + last, status=400)


def trickled(stream, kind, write):
    """A body in many small segments."""

    def send(daemon, rows):
        body, sock = write(rows), daemon.raw_connection()
        daemon.begin(sock, stream, kind, len(body))
        for at in range(0, len(body), 999):
            sock.sendall(body[at : at + 999])
            time.sleep(0.001)
        assert b" 202 " in sock.recv(1_000)

    return send


def cut_off(stream, kind, write):
    """A body whose sender goes away before its end."""

    def send(daemon, rows):
        body, sock = write(rows), daemon.raw_connection()
        daemon.begin(sock, stream, kind, len(body) + 1)
        sock.sendall(body)
        time.sleep(0.2)
        sock.close()

    return send


def beyond_limit(stream, kind, write):
    """A body that is longer than may be, of which the sender sends a part nevertheless."""

    def send(daemon, rows):
        sock = daemon.raw_connection()
        daemon.begin(sock, stream, kind, MOST_BODY + 1)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(write(rows))
            assert b" 413 " in sock.recv(1_000)

    return send


def sent_by_udp(daemon, rows):
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        for place, row in enumerate(rows):
            sock.sendto(
                b"<190>Nov 21 14:00:00 web1 nginx: " + log_line(row), ("127.0.0.1", daemon.udp)
            )
            if place % 100 == 0:
                time.sleep(0.002)


def sent_by_unix(daemon, rows):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.connect(str(daemon.folder / "log.sock"))
        for row in rows:
            sock.send(b"<190>Nov 21 14:00:00 web1 nginx: " + log_line(row))


def sent_bad_lines(daemon, rows):
    """Lines that are refused one by one."""
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        for row in rows[:300]:
            sock.sendto(
                b"<190>Nov 21 14:00:00 web1 nginx: x" + log_line(row), ("127.0.0.1", daemon.udp)
            )


def piped(daemon, rows):
    """Standard input, in parts; the first says what the columns are."""
    data = csv(rows)
    for at in range(0, len(data), 50_000):
        write_all(daemon.process.stdin, data[at : at + 50_000])
        time.sleep(0.005)


@dataclass(frozen=True)
class Case:
    """One way in.

    Args:
        ids: makes ids.
        send: sends them.
        count: how many.
    """

    ids: Callable
    send: Callable
    count: int = SMALL


def sizes(name, ids, stream, kind, write):
    """The same in small bodies and in large ones."""
    return {
        f"{name}, small": Case(ids, posted(stream, kind, write), SMALL),
        f"{name}, large": Case(ids, posted(stream, kind, write, repeats=1), LARGE),
    }


CASES = {
    **sizes("arrow texts", texts, "texts", ARROW, arrow),
    **sizes("arrow dictionary", texts, "texts", ARROW, arrow_dictionary),
    **sizes("arrow numbers", numbers, "numbers", ARROW, arrow_numbers),
    **sizes("int64", numbers, "numbers", INT64, int64),
    "int64, larger": Case(numbers, posted("numbers", INT64, int64, repeats=1), 2 * LARGE),
    **sizes("ndjson texts", texts, "texts", NDJSON, ndjson),
    **sizes("ndjson numbers", numbers, "numbers", NDJSON, ndjson_numbers),
    **sizes("csv texts", texts, "texts", CSV, csv),
    **sizes("csv numbers", numbers, "numbers", CSV, csv),
    **sizes("csv addresses", addresses, "addresses", CSV, csv),
    **sizes("arrow addresses", addresses, "addresses", ARROW, arrow),
    **sizes("csv groups", texts, "pages", CSV, grouped_csv),
    **sizes("tsv texts", texts, "texts", TSV, tsv),
    **sizes("json columns", texts, "texts", JSON, json_columns),
    **sizes("json rows", texts, "texts", JSON, json_rows),
    **sizes("json numbers", numbers, "numbers", JSON, json_numbers),
    "gzip": Case(texts, compressed("gzip", gzip.compress), LARGE),
    "zstd": Case(texts, compressed("zstd", zstd), LARGE),
    "durable": Case(texts, posted("texts", CSV, csv, query="?durable=1", status=200)),
    "bodies of 1 id": Case(texts, posted("texts", CSV, csv, repeats=100), 100),
    "chunked, small": Case(texts, chunked("texts", CSV, csv)),
    "chunked, large": Case(texts, chunked("texts", CSV, csv), LARGE),
    "chunked, beyond the limit": Case(texts, chunked("texts", CSV, csv, status=413), 4 * LARGE),
    "trickled, small": Case(texts, trickled("texts", CSV, csv)),
    "trickled, large": Case(texts, trickled("texts", CSV, csv), LARGE),
    "refused csv, small": Case(texts, refused("texts", CSV, csv, b'"\n')),
    "refused csv, large": Case(texts, refused("texts", CSV, csv, b'"\n'), LARGE * 2),
    "refused ndjson": Case(texts, refused("texts", NDJSON, ndjson, b"{\n")),
    "refused ndjson, large": Case(texts, refused("texts", NDJSON, ndjson, b"{\n"), LARGE * 2),
    "refused null": Case(texts, refused("texts", NDJSON, ndjson, b'{"user": null}\n')),
    "refused int64": Case(numbers, refused("numbers", INT64, int64, b"1")),
    "refused int64 for texts": Case(numbers, refused("texts", INT64, int64, b"")),
    "refused json": Case(texts, refused("texts", JSON, json_columns, b"]")),
    "refused json, large": Case(texts, refused("texts", JSON, json_columns, b"]"), LARGE * 2),
    "refused texts for numbers": Case(texts, refused("numbers", CSV, csv, b"")),
    "refused address": Case(addresses, refused("addresses", CSV, csv, b"x\n")),
    "refused address, large": Case(addresses, refused("addresses", CSV, csv, b"x\n"), LARGE),
    "refused arrow": Case(texts, refused("numbers", ARROW, arrow, b"")),
    "refused kind": Case(texts, posted("texts", "text/plain", csv, status=415)),
    "refused stream": Case(texts, posted("nobody", CSV, csv, status=404)),
    "refused kind, large": Case(
        texts, posted("texts", "text/plain", csv, status=415, repeats=1), LARGE
    ),
    "cut off, small": Case(texts, cut_off("texts", CSV, csv)),
    "cut off, large": Case(texts, cut_off("texts", CSV, csv), LARGE),
    "beyond the limit": Case(texts, beyond_limit("texts", CSV, csv)),
    "beyond the limit, large": Case(texts, beyond_limit("texts", CSV, csv), LARGE),
    "udp": Case(addresses, sent_by_udp, 5_000),
    "udp, refused": Case(addresses, sent_bad_lines, 300),
    "unix": Case(texts, sent_by_unix),
    "stdin": Case(texts, piped, LARGE),
}


@dataclass(frozen=True)
class Submission:
    """What a case has sent."""

    case: Case
    rows: list

    def windows(self):
        """Ids as they came, and as numbers."""
        return windows_of(self.rows, self.case.ids)

    def digests(self):
        """Hashes that anybody can compute."""
        return digest_windows(self.rows, self.case.ids)

    def keyed(self, keys):
        """Hashes under the keys of a daemon."""
        return [keyed_windows(self.rows, self.case.ids, key) for key in keys]


def send_all(daemon, names):
    """Send the ids of some cases; they are told by case."""
    sent = {}
    for name in names:
        case = CASES[name]
        sent[name] = Submission(case, case.ids(case.count))
        case.send(daemon, sent[name].rows)
    return sent


def rest(daemon):
    """Wait until it does no more than its clock asks for, and a moment longer."""
    wait_until(lambda: busy_share(daemon) < 0.1)
    time.sleep(IDLE_SECONDS)


def busy_share(daemon):
    before = busy_time(daemon.process)
    time.sleep(1)
    return (busy_time(daemon.process) - before) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def held_still(daemon):
    """Memory and files do not change while they are searched.

    It is stopped between two checkpoints: while one is written the state is there once more.
    """
    wait_until(lambda: _stopped_between_checkpoints(daemon))
    try:
        yield
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def _stopped_between_checkpoints(daemon):
    """Whether it was idle for a moment after a new checkpoint, and is stopped in that idleness."""
    file = daemon.folder / "panprivacy.sealed"
    before = file.stat().st_mtime_ns
    wait_until(lambda: file.stat().st_mtime_ns != before)
    written, busy = file.stat().st_mtime_ns, busy_time(daemon.process)
    time.sleep(0.3)
    idle = busy_time(daemon.process) == busy
    daemon.process.send_signal(signal.SIGSTOP)
    if idle and file.stat().st_mtime_ns == written and busy_time(daemon.process) == busy:
        return True
    daemon.process.send_signal(signal.SIGCONT)
    return False


def found(daemon, needles):
    """How much is left in memory, in registers, in open files, and in files."""
    family, folder = processes_below(daemon.process.pid), daemon.folder
    return (
        sum(search_process(one, needles) for one in family),
        sum(search_registers(one, needles) for one in family),
        sum(search_open_files(one, needles, Path(os.devnull)) for one in family),
        search_files(folder, needles),
    )


def left(daemon, sent):
    """Where something is left, and of which case in memory; nothing if there is nothing."""
    needles = needles_of(one.windows() for one in sent.values())
    with held_still(daemon):
        places = found(daemon, needles)
        if places == NOTHING:
            return {}
        family = processes_below(daemon.process.pid)
        counts = by_case(sent, sum(search_process_for_each(one, needles) for one in family))
    return {"places": places} | {name: count for name, count in counts.items() if count}


def by_case(sent, counts):
    """What was found of each case, whose windows are of 8 and of 16 bytes."""
    return dict(zip(sent, counts.reshape(-1, 2).sum(axis=1).tolist(), strict=True))


def unread(process):
    """Bytes that wait in the sockets and pipes of a process."""
    handle = os.pidfd_open(process.pid)
    try:
        return sum(_unread_in(handle, int(link.name)) for link in _streams(process))
    finally:
        os.close(handle)


def _streams(process):
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it has just been closed
            if str(link.readlink()).startswith(("socket:", "pipe:")):
                yield link


def _unread_in(handle, number):
    taken = _LIBC.syscall(_PIDFD_GETFD, handle, number, 0)
    if taken < 0:  # it has just been closed
        return 0
    try:
        return struct.unpack("i", fcntl.ioctl(taken, termios.FIONREAD, b"\0" * 4))[0]
    except OSError:  # a socket that listens, or the end of a pipe that is written to
        return 0
    finally:
        os.close(taken)


@pytest.fixture
def folder(tmp_path, compiled):
    """Where a daemon writes all that it writes, with a copy of its own of what is compiled.

    With that at hand it compiles nothing while it holds its first batch.
    """
    return Path(shutil.copytree(compiled, tmp_path / "written"))


HTTP = [
    *("csv groups, small", "csv addresses, small", "trickled, small", "arrow texts, large"),
    *("ndjson texts, large", "csv texts, large", "chunked, large", "refused csv, large"),
]
SHOWN = {"HTTP": HTTP, "UDP": ["udp"], "Unix": ["unix"], "standard input": ["stdin"]}
"""What leaves ids in a daemon without its launcher, by listener."""

FAST = [
    "gzip",
    "zstd",
    *(name for names in SHOWN.values() for name in names),
    *("int64, small", "json columns, small", "durable"),
    *("refused json", "refused int64 for texts", "refused address"),
    *("refused kind", "udp, refused", "cut off, small", "beyond the limit"),
]
"""One for each listener, each format, each kind of id, and each way to refuse or to be cut off;
bodies that the event loop counts, and long ones. The slow tests try all."""


@pytest.mark.long
def test_nothing_is_left_of_what_came(folder):
    with running(HARDENED, folder) as daemon:
        sent = send_all(daemon, FAST)
        rest(daemon)
        assert left(daemon, sent) == {}
        assert unread(daemon.process) == 0


@pytest.mark.long
def test_no_idempotency_key_is_left(folder):
    """It names a batch, and a sender may make it of what belongs to a user."""
    names = [f"{place}{secrets.token_hex(6)}" for place in ("open", "shut") for _ in range(15)]
    with running(HARDENED, folder) as daemon:
        kept = daemon.connection()
        for number, name in enumerate(names):
            connection = kept if name.startswith("open") else daemon.connection()
            query, status = ("?durable=1", 200) if number % 5 == 0 else ("", 202)
            sent = {"query": query, "headers": {"Idempotency-Key": name}, "connection": connection}
            assert daemon.post("numbers", INT64, int64(numbers(SMALL)), **sent) == status
            if connection is not kept:
                connection.close()
        rest(daemon)
        assert {name: count_in_process(daemon.process.pid, name.encode()) for name in names} == (
            dict.fromkeys(names, 0)
        )


@pytest.mark.slow
def test_nothing_is_left_of_the_last_that_came(folder):
    """Of each case alone: what comes after it overwrites nothing."""
    with running(HARDENED, folder) as daemon:
        for name in CASES:
            sent = send_all(daemon, [name])
            rest(daemon)
            assert (name, left(daemon, sent)) == (name, {})
            while daemon.connections:
                daemon.connections.pop().close()


@pytest.mark.slow
def test_no_hash_of_an_id_is_left(folder):
    """Neither one that anybody can compute, nor one under a key that is in the state."""
    with running(HARDENED, folder) as daemon:
        sent = send_all(daemon, CASES)
        rest(daemon)
        with held_still(daemon):
            assert found(daemon, needles_of(one.digests() for one in sent.values())) == NOTHING
            keys = keys_in(daemon.states())
            assert len(keys) == len(STREAMS) + 1  # of two groups
            hashed = [each for one in sent.values() for each in one.keyed(keys)]
            assert found(daemon, Needles.of(*hashed)) == NOTHING


def keys_in(states):
    """The addressing keys of all tables in a checkpoint."""
    stream, keys = io.BytesIO(states), []
    while stream.tell() < len(states):
        header = read_header(stream)
        public = header.public()
        if OWN_BYTES in public:
            stream.seek(public[OWN_BYTES], os.SEEK_CUR)
        else:
            keys.append(stream.read(KEY_BYTES))
            stream.seek(header.body_bytes - KEY_BYTES, os.SEEK_CUR)
    return keys


@pytest.mark.slow
def test_without_hardening_the_same_search_finds_ids(folder):
    """The control: it sees what is there, of each listener."""
    with running(PLAIN, folder) as daemon:
        sent = send_all(daemon, [name for names in SHOWN.values() for name in names])
        rest(daemon)
        with held_still(daemon):
            needles = needles_of(one.windows() for one in sent.values())
            in_memory = by_case(sent, search_process_for_each(daemon.process.pid, needles))
    for names in SHOWN.values():
        assert sum(in_memory[name] for name in names) > 100


# The state


NUMBERED = """
[streams.numbers]
epsilon = 1
window = "3650d"
ids = "integers"
retries = 0
[[streams.numbers.stat]]
name = "density"
universe = {users}
memory = {memory}
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "memory", [1 << 16, pytest.param(1 << 22, marks=pytest.mark.slow)], ids=["64 KiB", "4 MiB"]
)
def test_no_older_state_is_left(memory, folder):
    """Of each checkpoint only what is in the current state as well, which is there once."""
    with running(HARDENED, folder, NUMBERED.format(users=8 * memory, memory=memory)) as daemon:
        older = []
        for _ in range(2):
            feed(daemon, memory)
            older.append((daemon.states(), secrets_of(daemon.sealed(), daemon.identity)))
        feed(daemon, memory)
        rest(daemon)
        with held_still(daemon):
            now, keys = daemon.states(), secrets_of(daemon.sealed(), daemon.identity)
            stale = np.concatenate([changed(state, now) for state, _ in older])
            assert len(stale) > memory // STATE_PIECE
            secrets = np.frombuffer(b"".join([keys, *(one for _, one in older)]), np.uint8)
            assert found(daemon, Needles.of(stale, secrets.reshape(-1, 8))) == NOTHING
            current = Needles.of(parts_of(now))
            assert found(daemon, current) == (current.size, 0, 0, 0)


def feed(daemon, memory):
    """Users that touch a good part of a table."""
    users = np.frombuffer(SystemCoins().key(4 * 2 * memory), np.uint32) % np.uint32(8 * memory)
    for part in np.array_split(users.astype("<i8"), -(-len(users) // 100_000)):
        assert daemon.post("numbers", INT64, part.tobytes(), query="?durable=1") == 200


def parts_of(state):
    """Pieces of the table of a state, which are long enough to be unlike all others."""
    whole = len(state) // STATE_PIECE * STATE_PIECE
    rows = np.frombuffer(state[len(state) - whole :], np.uint8).reshape(-1, STATE_PIECE)
    return np.ascontiguousarray(rows[_HEADERS_PIECES:])


def changed(older, now):
    """Pieces of an older state that are not in the current one."""
    before, after = parts_of(older), parts_of(now)
    return before[(before != after).any(axis=1)]


def secrets_of(sealed, identity):
    """All keys that open a file of age: its shared secret, and what is derived from it."""
    front, _, rest_of = sealed.partition(b"\n---")
    stanza, wrapped = _stanza(front)
    ephemeral = decoded(stanza.split()[2])
    private = X25519PrivateKey.from_private_bytes(bits_of(str(identity)))
    own = private.public_key().public_bytes_raw()
    shared = private.exchange(X25519PublicKey.from_public_bytes(ephemeral))
    wrapping = derived(shared, ephemeral + own, b"age-encryption.org/v1/X25519")
    file_key = ChaCha20Poly1305(wrapping).decrypt(bytes(12), decoded(wrapped), None)
    nonce = rest_of.partition(b"\n")[2][:16]
    return b"".join(
        [shared, wrapping, file_key, derived(file_key, nonce, b"payload"),
         derived(file_key, b"", b"header")]
    )  # fmt: skip


def _stanza(front):
    """The stanza of X25519; age adds one of another kind, so that nobody relies on their number."""
    lines = front.split(b"\n")
    at = next(place for place, line in enumerate(lines) if line.startswith(b"-> X25519 "))
    return lines[at], lines[at + 1]


def derived(key, salt, info):
    return HKDF(hashes.SHA256(), 32, salt, info).derive(key)


def decoded(text):
    return base64.b64decode(text + b"=" * (-len(text) % 4))


def bits_of(identity):
    """The 32 bytes of an identity in Bech32."""
    digits = identity.lower().rpartition("1")[2][:-6]
    number = 0
    for digit in digits:
        number = number << 5 | BECH32.index(digit)
    return (number >> 5 * len(digits) - 256).to_bytes(32, "big")

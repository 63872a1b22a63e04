"""Log lines that arrive as datagrams: headers, what is refused, and what stays behind."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import socket
import subprocess
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.errors import InputError
from panprivacy.intake.sources import Column
from panprivacy.intake.sources.log_lines import read_combined
from panprivacy.intake.sources.reader import Input, Stop
from panprivacy.service.incoming.datagrams import (
    DATAGRAM_BYTES,
    Listener,
    _bounds,
    _join_lines,
)
from panprivacy.service.sockets import datagram_address, datagram_socket

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
LOGGER = shutil.which("logger")
LINE = b'192.0.2.1 - - [21/Nov/2026:14:00:00 +0000] "GET /a HTTP/1.1" 200 15 "-" "curl/8.0: x"'
QUOTED = b'[zoo@123 tiger="hun\\]gry \\" \\\\"]'


def message_of(datagram):
    """The message of one datagram, as one line, as a `Listener` takes it out of its block."""
    text = bytearray(datagram)
    start, end = _bounds(text, 0, len(text))
    _join_lines(text, start, end)
    return bytes(text[start:end])


# Headers


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"<190>Nov 21 14:00:00 web1 nginx: ", id="nginx"),
        pytest.param(b"<190>Nov  1 14:00:00 nginx: ", id="nginx, nohostname"),
        pytest.param(b"<190>Nov 21 14:00:00 web1.example.org my_tag: ", id="nginx, with a tag"),
        pytest.param(b"<13>Nov 21 14:00:00 httpd: ", id="logger, local"),
        pytest.param(b"<13>Nov 21 14:00:00 httpd[17507]: ", id="logger -i"),
        pytest.param(b"<13>Nov 21 14:00:00 my app: ", id="logger, a tag with a space"),
        pytest.param(b"<86>Nov 21 14:00:00 web1 sshd[12]: ", id="a pid"),
        pytest.param(b"<13>Nov 21 14:00:00 2001:db8::1 httpd: ", id="an address for a host"),
        pytest.param(b"<13>2026-11-21T14:00:00.000000+00:00 web1 httpd: ", id="rsyslog forwards"),
        pytest.param(b"<165>1 2026-11-21T14:00:00.000Z web1 app 123 - - ", id="RFC 5424"),
        pytest.param(b"<165>1 - - - - - - ", id="RFC 5424, nothing known"),
        pytest.param(b"<165>1 - - - - - - \xef\xbb\xbf", id="RFC 5424, with a mark"),
        pytest.param(
            b'<13>1 2026-11-21T15:03:06.659117+00:00 vm httpd - - [timeQuality isSynced="0"] ',
            id="logger, to a server",
        ),
        pytest.param(b"<13>1 - web1 a - mm " + QUOTED + b" ", id="escaped brackets"),
        pytest.param(b'<13>1 - web1 a - mm [a][b c="["]' + QUOTED + b" ", id="several elements"),
        pytest.param(b"<13>", id="only a priority"),
        pytest.param(b"<13>Nov 21 14:00:00 ", id="only a time"),
        pytest.param(b"", id="none"),
    ],
)
def test_header_is_taken_off(header):
    assert message_of(header + LINE) == LINE


@pytest.mark.parametrize(
    ("datagram", "message"),
    [
        (b"<13>1 - - - - - -", b""),
        (b"<13>Nov 21 14:00:00 nginx:", b""),
        (b"<13>Nov 21 14:00:00 nginx: \n", b""),
        (b"", b""),
        (LINE + b"\n", LINE),
        (LINE + b"\0", LINE),
        (LINE + b"\n\0\n", LINE),
        (b"a\nb\n\nc\n", b"a b  c"),
        (b"<13>Nov 21 14:00:00 nginx: first: second: x", b"first: second: x"),
        (b"<13>Nov 21 14:00:00 nginx:  two spaces", b" two spaces"),
        (
            b"<13>Nov 21 14:00:00 nginx: <13>Nov 21 14:00:00 nginx: x",
            b"<13>Nov 21 14:00:00 nginx: x",
        ),
        (b"<13>1 - a b c d [open x", b"1 - a b c d [open x"),
        (b"<1900>Nov 21 14:00:00 nginx: x", b"<1900>Nov 21 14:00:00 nginx: x"),
        (b"Nov 21 14:00:00 nginx: x", b"Nov 21 14:00:00 nginx: x"),
    ],
)
def test_message_of(datagram, message):
    assert message_of(datagram) == message


def words(*, without=b""):
    letters = bytes(set(range(0x21, 0x7F)) - set(without)).decode()
    return st.text(st.sampled_from(letters), min_size=1, max_size=32).map(str.encode)


priorities = st.integers(0, 191).map(lambda number: b"<%d>" % number)
months = st.sampled_from(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())
times = st.builds(
    b"%b %2d %02d:%02d:%02d ".__mod__,
    st.tuples(
        *(months, st.integers(1, 31), st.integers(0, 23), st.integers(0, 59), st.integers(0, 60))
    ),
)
hosts = words().filter(lambda host: not host.endswith(b":")).map(lambda host: host + b" ")
pids = st.integers(0, 1 << 22).map(lambda pid: b"[%d]" % pid)
tags = st.builds(b"%b%b: ".__mod__, st.tuples(words(without=b":[]"), st.just(b"") | pids))
rfc_3164 = st.tuples(priorities, times, st.just(b"") | hosts, tags).map(b"".join)


def escaped(value):
    for special in (b"\\", b'"', b"]"):
        value = value.replace(special, b"\\" + special)
    return value


fields = st.builds(
    b' %b="%b"'.__mod__, st.tuples(words(without=b'=]"'), st.binary(max_size=20).map(escaped))
)
elements = st.builds(
    b"[%b%b]".__mod__, st.tuples(words(without=b'=]"'), st.lists(fields, max_size=3).map(b"".join))
)
stamps = st.sampled_from([b"-", b"2026-11-21T14:00:00Z", b"2026-11-21T14:00:00.123456+02:00"])
names = st.just(b"-") | words()
rfc_5424 = st.builds(
    b"%b1 %b %b %b %b %b %b %b".__mod__,
    st.tuples(
        *(priorities, stamps, names, names, names, names),
        st.just(b"-") | st.lists(elements, min_size=1, max_size=3).map(b"".join),
        st.sampled_from([b"", b"\xef\xbb\xbf"]),
    ),
)
messages = st.binary(max_size=200).filter(
    lambda text: b"\n" not in text and not text.endswith(b"\0") and text[:1] != b"\xef"
)


@pytest.mark.long
@given(rfc_3164 | rfc_5424, messages)
def test_any_message_comes_out_of_any_header(header, message):
    assert message_of(header + message) == message


@given(messages.filter(lambda text: not text.startswith(b"<")))
def test_what_has_no_header_is_a_message(message):
    assert message_of(message) == message


SNIPPETS = [
    *(b"<13>", b"1 ", b"- ", b"[", b"]", b'"', b"\\", b" ", b":", b": ", b"a", b"\n", b"\0"),
    *(b"Nov 21 14:00:00 ", b"2026-11-21T14:00:00Z ", b"nginx: ", b'[a b="', b"\xef\xbb\xbf"),
]


@given(st.lists(st.sampled_from(SNIPPETS) | st.binary(max_size=8), max_size=40).map(b"".join))
def test_any_bytes_give_one_line_that_ends_them(datagram):
    message = message_of(datagram)
    end = datagram.rstrip(b"\n\0").replace(b"\n", b" ")
    assert b"\n" not in message
    assert end.endswith(message)


@pytest.mark.parametrize("repeated", SNIPPETS)
@pytest.mark.parametrize("start", [b"<13>1 - a b c d [", b'<13>1 - a b c d [a b="', b"<13>1 ", b""])
def test_the_time_that_a_datagram_takes_grows_with_its_length(start, repeated):
    """Not with its square: eight times as long, that would be 64 times as much."""

    def least_time(length):
        datagram, taken = (start + repeated * length)[:length], []
        for _ in range(5):
            before = time.thread_time()
            message_of(datagram)
            taken.append(time.thread_time() - before)
        return min(taken)

    assert least_time(DATAGRAM_BYTES) < 24 * max(least_time(DATAGRAM_BYTES // 8), 1e-4)


@pytest.fixture
def unix(tmp_path):
    return f"unix:{tmp_path}/log.sock"


def open_socket(listen):
    return datagram_socket(datagram_address(listen))


def test_file_is_removed_at_close(tmp_path, unix):
    listener = Listener(open_socket(unix), pytest.fail, pytest.fail)
    assert (tmp_path / "log.sock").is_socket()
    listener.close()
    assert not list(tmp_path.iterdir())
    listener.close()


# Draining


class Scene:
    """A listener at one end of a pair of sockets; notes what it hands over and reports."""

    def __init__(self, take=None):
        receiver, self.sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.setblocking(False)
        self.taken, self.reports, self.now = [], [], 1_000.0
        self.listener = Listener(
            receiver, take or self.note, self.reports.append, clock=lambda: self.now
        )

    def note(self, lines):
        """Take lines; refuse a block in which one has the word "bad"."""
        if b"bad" in bytes(lines):
            raise InputError("this line is bad", row=1)
        self.taken.append(bytes(lines))

    def drain(self, *datagrams):
        for datagram in datagrams:
            self.sender.send(datagram)
        self.listener.drain()

    @property
    def lines(self):
        return b"".join(self.taken).splitlines()

    @property
    def is_clean(self):
        return not any(self.listener._block)

    def close(self):
        self.listener.close()
        self.sender.close()


@pytest.fixture
def scene():
    with closing(Scene()) as scene:
        yield scene


def test_lines_are_handed_over_together(scene):
    scene.drain(b"<13>Nov 21 14:00:00 nginx: a", b"<13>1 - - - - - - b\nc\n", b"d\0")
    assert scene.taken == [b"a\nb c\nd\n"]


def test_block_cannot_be_written_to(scene):
    blocks = []
    with closing(Scene(blocks.append)) as scene:
        scene.drain(b"x")
    assert isinstance(blocks[0], memoryview)
    assert blocks[0].readonly


def test_nothing_waits_nothing_is_handed_over(scene):
    scene.drain()
    assert scene.taken == []


@pytest.mark.long
@given(st.lists(st.binary(max_size=300), max_size=8), st.sampled_from([None, InputError, KeyError]))
def test_no_byte_of_a_datagram_stays(datagrams, raised):
    seen = []

    def take(lines):
        seen.append(bytes(lines))
        if raised is not None:
            raise raised("x")

    with closing(Scene(take)) as scene:
        with suppress(KeyError):
            scene.drain(*datagrams)
        assert bool(seen) <= bool(datagrams)  # empty messages are as if they had not come
        assert scene.is_clean


def test_the_stack_is_wiped_whatever_was_taken(scene, monkeypatch):
    wiped = []
    monkeypatch.setattr(
        "panprivacy.service.incoming.datagrams.wipe_stack", lambda: wiped.append([*scene.taken])
    )
    scene.drain(b"a")
    scene.drain(b"bad")
    assert wiped == [[b"a\n"], [b"a\n"]]


@pytest.mark.parametrize("size", [DATAGRAM_BYTES - 1, DATAGRAM_BYTES])
def test_longest_datagrams_are_taken_until_the_block_is_full(scene, size):
    text = b"x" * size
    for _ in range(3):
        scene.drain(*[text] * 2)
        assert scene.is_clean
    assert scene.taken == [2 * (text + b"\n")] * 3


def test_block_is_bounded_and_the_rest_waits(scene):
    scene.listener._sock.close()
    scene.listener._sock = Scripted(b"y" * 60_000, times=40)
    scene.drain()
    assert len(scene.lines) == 17  # (1 MiB - 64 KiB) / 60,001 bytes, and the last that begins there
    assert scene.is_clean
    scene.drain()
    scene.drain()
    assert len(scene.lines) == 40


def test_a_call_takes_so_many_datagrams(scene):
    scene.listener._sock.close()
    scene.listener._sock = Scripted(b"y", times=5_000)
    scene.drain()
    assert len(scene.lines) == 4_096
    scene.drain()
    assert len(scene.lines) == 5_000


class Scripted:
    """A socket at which the same datagram waits many times."""

    def __init__(self, datagram, *, times):
        self.datagram, self.times = datagram, times

    def recv_into(self, buffer, size, flags):
        if not self.times:
            raise BlockingIOError
        self.times -= 1
        buffer[: len(self.datagram)] = self.datagram
        return len(self.datagram)

    def fileno(self):
        return -1


def test_receiving_fails_in_the_middle_and_nothing_stays(scene):
    class Broken(Scripted):
        def recv_into(self, buffer, size, flags):
            if not self.times:
                raise OSError(5, "broken")
            return super().recv_into(buffer, size, flags)

    scene.listener._sock.close()
    scene.listener._sock = Broken(b"y" * 60_000, times=3)
    with pytest.raises(OSError, match="broken"):
        scene.drain()
    assert scene.is_clean


# What is refused


def test_truncated_datagram_is_refused_whole(scene):
    secret = b"z" * (DATAGRAM_BYTES + 1)
    scene.drain(b"a", secret, b"b")
    assert scene.lines == [b"a", b"b"]
    assert scene.reports == ["a datagram is longer than 65,536 bytes"]
    assert scene.is_clean


@pytest.mark.long
@given(st.lists(st.sampled_from([b"good", b"bad", b"good " * 400]), max_size=9))
def test_good_lines_are_counted_and_bad_ones_left_out(datagrams):
    with closing(Scene()) as scene:
        scene.drain(*datagrams)
        assert scene.lines == [text for text in datagrams if text != b"bad"]
        assert len(scene.reports) == (b"bad" in datagrams)
        assert scene.is_clean


def test_one_bad_line_costs_few_calls(scene):
    calls = []

    def take(lines):
        calls.append(len(lines))
        scene.note(lines)

    scene.listener._take = take
    scene.listener._sock.close()
    scene.listener._sock = Scripted(b"good", times=4_095)
    real, scene.listener._sock.recv_into = scene.listener._sock.recv_into, None
    order = iter([b"bad"])

    def recv_into(buffer, size, flags):
        scene.listener._sock.datagram = next(order, b"good")
        return real(buffer, size, flags)

    scene.listener._sock.recv_into = recv_into
    scene.drain()
    assert len(scene.lines) == 4_094
    assert len(calls) < 40


def test_reports_are_limited_and_show_no_content(scene):
    for second in (0, 1, 59, 60, 61, 119, 120):
        scene.now = 1_000.0 + second
        scene.drain(b"bad secret", b"bad secret", b"good")
    assert scene.reports == ["this line is bad"] * 3
    assert len(scene.lines) == 7


def test_each_reason_has_its_own_limit(scene):
    scene.drain(b"bad", bytes(DATAGRAM_BYTES + 1))
    scene.drain(b"bad", bytes(DATAGRAM_BYTES + 1))
    assert len(scene.reports) == len(set(scene.reports)) == 2


def test_what_was_reported_long_ago_is_forgotten(scene):
    scene.drain(b"bad")
    scene.now += 60
    scene.drain(bytes(DATAGRAM_BYTES + 1))
    assert len(scene.listener._told) == 1


def test_other_errors_end_the_call(scene):
    def take(lines):
        raise KeyError("x")

    scene.listener._take = take
    with pytest.raises(KeyError):
        scene.drain(b"a", b"b")
    assert scene.is_clean
    assert scene.reports == []


# Real senders


def combined(names, into):
    """Count lines of the combined format by some of their fields."""
    columns = [Column(name) for name in names]

    def take(lines):
        with closing(Input(io.BytesIO(lines), None, Stop())) as file:
            for batch in list(read_combined(file, columns)):  # all lines, or none
                into.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))

    return take


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def nginx(folder, port, *logs):
    """A web server that answers everything, and logs by syslog."""
    paths = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    (folder / "nginx.conf").write_text(
        f"daemon off; user root; pid {folder}/pid; error_log {folder}/errors warn; events {{}}\n"
        "http {\n"
        + "".join(f"{name}_temp_path {folder}/{name};\n" for name in paths)
        + "".join(f"access_log {log} combined;\n" for log in logs)
        + f"server {{ listen 127.0.0.1:{port}; return 200 x; }} }}\n"
    )
    command = [NGINX, "-p", folder, "-c", folder / "nginx.conf"]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield server
    finally:
        server.terminate()
        server.wait()


async def ask(port, agent):
    """One request of a browser."""
    for _ in range(100):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            break
        except ConnectionRefusedError:
            await asyncio.sleep(0.05)
    writer.write(b"GET /a HTTP/1.0\r\nUser-Agent: " + agent + b"\r\n\r\n")
    assert b"200 OK" in await reader.read()
    writer.close()
    await writer.wait_closed()


async def browse(listeners, port, agents, arrived):
    """Ask for each agent while the listeners drain; wait until everything has arrived."""
    loop = asyncio.get_running_loop()
    for listener in listeners:
        loop.add_reader(listener._sock.fileno(), listener.drain)
    for agent in agents:
        await ask(port, agent)
    for _ in range(100):
        if arrived():
            break
        await asyncio.sleep(0.05)
    for listener in listeners:
        loop.remove_reader(listener._sock.fileno())


def test_a_user_that_is_no_utf8_is_left_out_and_told(scene):
    counts = Counter()
    scene.listener._take = combined(["remote_user"], counts)
    good = LINE.replace(b"- - [", b"- ann [")
    scene.drain(good, good.replace(b"ann", b"ann\xff"), good)
    assert counts == {(b"ann",): 2}
    assert scene.reports == ["column 'remote_user' holds a text that is not UTF-8"]


@pytest.mark.skipif(NGINX is None or os.geteuid() != 0, reason="needs nginx, and root to run it")
def test_lines_of_a_real_nginx_are_counted_exactly(tmp_path, unix):
    agents = [b"browser %d" % (i % 7) for i in range(60)] + [b'x"\\ y: [z] \xc3\xa9', b"a" * 5_000]
    counts, reports = [Counter() for _ in range(3)], []
    names = ["remote_addr", "request", "status", "http_user_agent"]
    listeners = [
        Listener(open_socket(address), combined(names, count), reports.append)
        for address, count in zip([unix, *["udp://127.0.0.1:0"] * 2], counts, strict=True)
    ]
    udp, named = (listener._sock.getsockname()[1] for listener in listeners[1:])
    port = free_port()
    logs = [
        f"syslog:server={unix},nohostname",
        f"syslog:server=127.0.0.1:{udp}",
        f"syslog:server=127.0.0.1:{named},nohostname,tag=web_1,facility=local0,severity=debug",
    ]
    try:
        with nginx(tmp_path, port, *logs):
            done = lambda: all(count.total() == len(agents) for count in counts)  # noqa: E731
            asyncio.run(browse(listeners, port, agents, done))
    finally:
        for listener in listeners:
            listener.close()
    written = {b'x"\\ y: [z] \xc3\xa9': rb"x\x22\x5C y: [z] \xC3\xA9"}
    expected = Counter(
        (b"127.0.0.1", b"GET /a HTTP/1.0", 200, written.get(agent, agent)) for agent in agents
    )
    assert counts == [expected] * 3
    assert reports == []


@pytest.mark.skipif(LOGGER is None, reason="needs logger, by which Apache sends its lines")
@pytest.mark.parametrize("options", [[], ["-i"], ["--rfc3164"], ["--rfc5424"]])
@pytest.mark.parametrize("kind", ["udp", "unix"])
def test_lines_of_a_real_logger_are_counted(tmp_path, unix, kind, options):
    sock = open_socket(unix if kind == "unix" else "udp://127.0.0.1:0")
    count, reports = Counter(), []
    listener = Listener(sock, combined(["remote_addr", "http_user_agent"], count), reports.append)
    where = ["-u", sock.getsockname()]
    if kind == "udp":
        where = ["-d", "-n", "127.0.0.1", "-P", str(sock.getsockname()[1])]
    try:
        command = [LOGGER, *where, "-t", "httpd", *options]
        subprocess.run(command, input=LINE + b"\n" + LINE + b"\n", check=True)
        listener.drain()
    finally:
        listener.close()
    assert count == {(b"192.0.2.1", b"curl/8.0: x"): 2}
    assert reports == []


@pytest.mark.parametrize(
    "datagram", [b"", b"<190>Nov 21 00:00:00 nginx: ", b"<13>1 - - - - - -", b"\n"]
)
def test_an_empty_message_is_as_if_it_had_not_come(scene, datagram):
    scene.drain(datagram, b"a", datagram)
    assert (scene.taken, scene.reports) == ([b"a\n"], [])

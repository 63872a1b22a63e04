"""Log lines are taken apart as a slow reference does it, and never quoted."""

import re
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from panprivacy.intake.sources import Column, Prefixes, open_source, text
from panprivacy.intake.sources.log_lines import FIELDS, _find_fields, _lines, only_wanted_groups
from panprivacy.intake.sources.log_lines import PARTS as REQUEST_PARTS
from panprivacy.intake.sources.text import BYTE_ORDER_MARK
from tests.unit.reading import PROPERTY, SECRET, batches, locals_of_thread, pipe, refusal
from tests.unit.test_addresses import as_python_reads, fenced

ALL = [Column(name) for name in FIELDS]
OTHER_FORMAT = "this line is not in the combined log format"
NGINX = (
    b'203.0.113.7 - ann [10/Oct/2025:13:55:36 +0200] "GET /a?b=\\x22c HTTP/1.1" 200 1234 '
    b'"https://example.org/" "Mozilla/5.0 (X11; Linux x86_64)"'
)
COMMON = b'::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 304 -'
PARTS = (
    b'203.0.113.7| |-| |ann| |[|10/Oct/2025:13:55:36 +0200|] "|GET /\\"x\\\\ HTTP/1.1|"| |200| |-|'
    b' "|https://example.org/|" "|Mozilla/5.0|"| |0.003|\r'
).split(b"|")
INSIDE_QUOTES = rb'((?:[^"\\]|\\.)*)'
NUMBERS = re.compile(INSIDE_QUOTES + rb'" (-|[0-9]+) (-|[0-9]+)', re.DOTALL)
AGENT = re.compile(rb' "%b" "%b"(?: |\r?\Z)' % (INSIDE_QUOTES, INSIDE_QUOTES), re.DOTALL)


def reference(line):
    """The fields of a line of the combined format, or None; slowly."""
    address, _, rest = line.partition(b" ")
    identity, _, rest = rest.partition(b" ")
    head, found, rest = rest.partition(b'] "')
    user, _, time = head.rpartition(b" [")
    if not (address and identity and found and user and time) or set(b"[]") & set(time):
        return None
    if not (numbers := NUMBERS.match(rest)):
        return None
    rest = rest[numbers.end() :]
    agent = AGENT.match(rest)
    if not agent and rest not in (b"", b"\r"):
        return None
    user = b"" if user == b'""' else user
    return [address, user, time, *numbers.groups(), *(agent.groups() if agent else (b"", b""))]


def values(fields):
    """What is handed out for the fields of a line."""
    known = [None if field in (b"", b"-") else field for field in fields]
    return tuple(
        field and int(field) if name in ("status", "body_bytes_sent") else field
        for name, field in zip(FIELDS, known, strict=True)
    )


@st.composite
def lines(draw):
    """A line of which a few parts are missing, doubled or strange."""
    parts = list(PARTS[: draw(st.sampled_from([len(PARTS), len(PARTS), 14, 18, 19]))])
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(parts) - 1))
        strange = st.sampled_from([b"", b"-", b'"', b'""', b"\\", b"[", b"]", b" ", b"\r", b" ["])
        parts[at : at + draw(st.integers(0, 2))] = [
            draw(strange | st.sampled_from(PARTS) | st.text(max_size=9).map(str.encode))
        ]
    return b"".join(parts).replace(b"\n", b"")


def rows(path, *columns, kind="combined", **options):
    """All rows, as tuples of the wanted columns."""
    with open_source(str(path), columns=columns, format=kind, **options) as source:
        return [tuple(row.values()) for batch in source.batches() for row in batch.to_pylist()]


def from_file(tmp_path, data, *columns, **options):
    path = tmp_path / "access.log"
    path.write_bytes(data)
    return rows(path, *columns, **options)


def from_pipe(data, *columns, **options):
    with pipe(data) as path:
        return rows(path, *columns, **options)


@pytest.fixture
def blocks(monkeypatch):
    """Set the size of a raw block, in bytes."""
    return lambda size: monkeypatch.setattr(text, "BLOCK_BYTES", size)


class TestCombined:
    @pytest.mark.long
    @PROPERTY
    @given(st.lists(lines(), max_size=5), st.integers(1, 400), st.booleans(), st.booleans())
    def test_agrees_with_the_reference(self, blocks, tmp_path, written, size, piped, ended):
        blocks(size)
        data = b"\n".join(written) + (b"\n" if ended and written else b"")
        assume(not data.startswith(BYTE_ORDER_MARK))
        expected = [reference(line) for line in data.removesuffix(b"\n").split(b"\n") if data]
        read = from_pipe if piped else lambda *a: from_file(tmp_path, *a)
        if None not in expected:
            assert read(data, *ALL) == [values(fields) for fields in expected]
            return
        error = refusal(read, data, *ALL)
        assert error.reason == OTHER_FORMAT
        assert piped or error.row == expected.index(None) + 1

    @pytest.mark.long
    @PROPERTY
    @given(st.lists(lines() | st.binary(max_size=30), max_size=4), st.integers(0, 9))
    def test_the_kernel_stays_inside(self, written, cut):
        """A read behind the last byte would end this process."""
        data = b"".join(line + b"\n" for line in written)
        data = data[min(cut, len(data) - 1) :] if data else data
        expected = [reference(line) for line in data.split(b"\n")[:-1]]
        bounds = np.empty((len(expected), 2 * len(FIELDS)), np.int32)
        bad = _find_fields(fenced(data), bounds)
        assert bad == (expected.index(None) if None in expected else -1)
        for row, fields in enumerate(expected[:bad] if bad >= 0 else expected):
            assert [data[a:b] for a, b in bounds[row].reshape(-1, 2)] == fields

    def test_the_kernel_takes_any_bytes(self):
        rng = np.random.default_rng(1)
        letters = np.frombuffer(b'- []"\\\n1a\r', np.uint8)
        for size in range(1, 400):
            data = rng.choice(letters, size).tobytes() + b"\n"
            bounds = np.empty((data.count(b"\n"), 2 * len(FIELDS)), np.int32)
            expected = [reference(line) for line in data.split(b"\n")[:-1]]
            bad = _find_fields(fenced(data), bounds)
            assert bad == (expected.index(None) if None in expected else -1)

    @pytest.mark.parametrize(
        ("request_line", "expected"),
        [
            (b"GET / HTTP/1.1", (b"GET", b"/", None)),
            (b"GET /shop?id=7&x=? HTTP/2.0", (b"GET", b"/shop", b"id=7&x=?")),
            (b"POST /a? HTTP/1.1", (b"POST", b"/a", None)),
            (b"GET ?x HTTP/1.1", (b"GET", None, b"x")),
            (b"GET /a b?c d HTTP/1.1", (b"GET", b"/a b", b"c d")),
            (rb"GET /\"a\"?\x22 HTTP/1.1", (b"GET", rb"/\"a\"", rb"\x22")),
            (b"OPTIONS * HTTP/1.1", (b"OPTIONS", b"*", None)),
            (b"GET / ", (b"GET", b"/", None)),
            (b"GET  HTTP/1.1", (b"GET", None, None)),
            (b"GET /", (None, None, None)),
            (b" / x", (None, b"/", None)),
            (rb"\x16\x03\x01", (None, None, None)),
            (b" ", (None, None, None)),
            (b"-", (None, None, None)),
            (b"", (None, None, None)),
        ],
    )
    def test_parts_of_the_request(self, tmp_path, request_line, expected):
        line = NGINX.replace(b"GET /a?b=\\x22c HTTP/1.1", request_line)
        columns = [Column(name) for name in ("query", "remote_addr", "path", "method")]
        query, address, path, method = from_file(tmp_path, line + b"\n", *columns)[0]
        assert (method, path, query) == expected
        assert address == b"203.0.113.7"

    @pytest.mark.long
    @PROPERTY
    @given(st.lists(st.text(" ?/aG\t\r", max_size=9).map(str.encode), min_size=1, max_size=9))
    def test_parts_agree_with_a_slow_reference(self, tmp_path, requests):
        data = b"".join(b'::1 - - [t] "%b" 200 1\n' % one for one in requests)
        read = from_file(tmp_path, data, *map(Column, REQUEST_PARTS))
        for one, found in zip(requests, read, strict=True):
            method, _, rest = one.partition(b" ")
            target, space, _ = rest.rpartition(b" ")
            path, _, query = target.partition(b"?")
            expected = (method, path, query) if space else (b"", b"", b"")
            assert found == tuple(part or None for part in expected)

    def test_fields(self, tmp_path):
        data = NGINX + b"\r\n" + COMMON + b"\n" + NGINX + b' "-" rt=0.1'
        nginx, common, longer = from_file(tmp_path, data, *ALL)
        assert nginx == longer
        assert nginx == (
            *(b"203.0.113.7", b"ann", b"10/Oct/2025:13:55:36 +0200"),
            *(b"GET /a?b=\\x22c HTTP/1.1", 200, 1234),
            *(b"https://example.org/", b"Mozilla/5.0 (X11; Linux x86_64)"),
        )
        assert common[:3] == (b"::1", None, b"10/Oct/2000:13:55:36 -0700")
        assert common[4:] == (304, None, None, None)

    @pytest.mark.parametrize(
        ("user", "expected"),
        [
            (b"ann lee", b"ann lee"),
            (b"a [b] c", b"a [b] c"),
            (b'x [t] \\"GET', b'x [t] \\"GET'),
            (b"a] \\x22 [b", b"a] \\x22 [b"),
            (b'""', None),
            (b'"', b'"'),
        ],
    )  # fmt: skip
    def test_outsiders_choose_the_user(self, tmp_path, user, expected):
        data = NGINX.replace(b"ann", user)
        assert from_file(tmp_path, data, Column("remote_user")) == [(expected,)]

    def test_order_types_and_no_rows(self, tmp_path):
        path = tmp_path / "access.log"
        path.write_bytes(NGINX)
        (batch,) = batches(path, *ALL[::-1], kind="combined")
        types = [pa.int64() if n in ("status", "body_bytes_sent") else pa.binary() for n in FIELDS]
        assert batch.schema == pa.schema(list(zip(FIELDS, types, strict=True))[::-1])
        batch.validate(full=True)
        assert from_file(tmp_path, b"", *ALL) == []

    def test_addresses(self, tmp_path):
        column = Column("remote_addr", address=Prefixes(24, 64))
        parsed = from_file(tmp_path, NGINX + b"\n" + COMMON, column)
        first, second = as_python_reads(b"203.0.113.0"), bytes(16)
        assert parsed == [(first,), (second,)]
        host = NGINX.replace(b"203.0.113.7", SECRET.encode())
        error = refusal(from_file, tmp_path, NGINX + b"\n" + host, column)
        assert (error.row, error.reason) == (2, "this is not an IP address")

    @pytest.mark.parametrize("line", [b"", SECRET.encode(), b" ".join([SECRET.encode()] * 20)])
    @pytest.mark.parametrize("size", [1, 300, 1 << 20])
    def test_refusals(self, blocks, tmp_path, line, size):
        blocks(size)
        data = (NGINX + b"\n") * 7 + line + b"\n" + NGINX
        error = refusal(from_file, tmp_path, data, *ALL)
        assert (error.row, error.reason) == (8, OTHER_FORMAT)

    @pytest.mark.parametrize("piped", [False, True])
    def test_a_user_that_is_no_utf8_is_refused(self, tmp_path, piped):
        data = NGINX + b"\n" + NGINX.replace(b"ann", b"ann\xff") + b"\n"
        read = from_pipe if piped else lambda *a: from_file(tmp_path, *a)
        error = refusal(read, data, Column("remote_user"))
        assert error.row == 2
        assert error.reason == "column 'remote_user' holds a text that is not UTF-8"
        assert len(read(data, Column("status"))) == 2, "fields that nobody wants may be anything"

    def test_unknown_field(self, tmp_path):
        error = refusal(from_file, tmp_path, NGINX, Column("host"))
        listed = ", ".join(map(repr, (*FIELDS, *REQUEST_PARTS)))
        assert str(error) == f"there is no column 'host'; the fields of a line are {listed}"

    def test_what_is_no_text(self, tmp_path):
        assert "gzip" in str(refusal(from_file, tmp_path, b"\x1f\x8b\x08", *ALL))


class TestIntegers:
    USER = Column("remote_user", integers=True)

    @pytest.mark.parametrize(
        "number", [0, 7, -7, 10**18, -(10**18), 2**63 - 1, -(2**63), 1 - 2**63]
    )
    @pytest.mark.parametrize("zeros", ["", "0", "0" * 30])
    def test_numbers(self, tmp_path, number, zeros):
        written = f"{'-' * (number < 0)}{zeros}{abs(number)}".encode()
        data = NGINX.replace(b"ann", written) + b"\n" + COMMON
        assert from_file(tmp_path, data, self.USER) == [(number,), (None,)]

    @pytest.mark.parametrize(
        "written",
        [
            *("8412345x", "--1", "+1", "1.0", "0x1", " 1", "1 ", "é"),
            *map(str, (2**63, -(2**63) - 1, 2**64, 2**64 + 1, 10**20 - 1, 10**30)),
        ],
    )
    def test_no_numbers(self, tmp_path, written):
        data = COMMON + b"\n" + NGINX.replace(b"ann", written.encode())
        error = refusal(from_file, tmp_path, data, self.USER)
        assert error.row == 2
        assert error.reason == "column 'remote_user' must hold whole numbers of at most 64 bits"

    def test_a_status_beyond_64_bits(self, tmp_path):
        data = COMMON.replace(b"304", b"8412345" * 4)
        error = refusal(from_file, tmp_path, data, Column("status"))
        assert error.reason == "column 'status' must hold whole numbers of at most 64 bits"


PATTERN = r"^(?P<ip>\S+)(?: (?P<user>\S*))?(?: n=(?P<n>\S+))?$"
IP, USER, N = Column("ip"), Column("user"), Column("n", integers=True)


class TestLines:
    words = st.text(st.sampled_from("ab1-é"), min_size=1, max_size=20)
    tables = st.lists(st.tuples(words, st.none() | words | st.just("")), max_size=8)

    @pytest.mark.long
    @PROPERTY
    @given(tables, st.integers(1, 60), st.booleans(), st.sampled_from(["\n", "\r\n"]))
    def test_any_cut_gives_the_same_ids(self, blocks, tmp_path, table, size, piped, end):
        blocks(size)
        data = "".join(
            ip + ("" if user is None else f" {user}") + end for ip, user in table
        ).encode()
        read = from_pipe if piped else lambda *a, **k: from_file(tmp_path, *a, **k)
        known = lambda word: None if word in ("", "-", None) else word.encode()  # noqa: E731
        expected = [(known(user), known(ip)) for ip, user in table]
        assert read(data, USER, IP, kind="lines", pattern=PATTERN) == expected

    @PROPERTY
    @given(st.binary(max_size=60))
    def test_lines_of_any_bytes(self, data):
        data += b"\n"
        expected = [line.removesuffix(b"\r") for line in data.split(b"\n")[:-1]]
        assert _lines(data).to_pylist() == expected
        assert _lines(fenced(data)).to_pylist() == expected

    def test_numbers_and_addresses(self, tmp_path):
        data = b"1.2.3.4 ann n=-5\n1.2.3.5 \n1.2.3.6 - n=-\n"
        address = Column("ip", address=Prefixes(24))
        parsed = from_file(tmp_path, data, N, address, kind="lines", pattern=PATTERN)
        number = as_python_reads(b"1.2.3.0")
        assert parsed == [(-5, number), (None, number), (None, number)]
        error = refusal(from_file, tmp_path, data + b"a b n=c", N, kind="lines", pattern=PATTERN)
        assert error.row == 4
        assert error.reason == "column 'n' must hold whole numbers of at most 64 bits"

    def test_bytes_that_are_no_utf8(self, tmp_path):
        data = b"a x\n\xff\xfe x\n"
        error = refusal(from_file, tmp_path, data, IP, kind="lines", pattern=PATTERN)
        assert (error.row, error.reason) == (2, "column 'ip' holds a text that is not UTF-8")
        read = from_file(tmp_path, data, USER, kind="lines", pattern=PATTERN)
        assert read == [(b"x",), (b"x",)], "groups that nobody wants may be anything"

    @pytest.mark.parametrize("line", [b"", SECRET.encode() + b" a b c"])
    @pytest.mark.parametrize("size", [1, 9, 1 << 20])
    def test_refusals(self, blocks, tmp_path, line, size):
        blocks(size)
        data = b"a b\n" * 7 + line + b"\na b\n"
        error = refusal(from_file, tmp_path, data, IP, kind="lines", pattern=PATTERN)
        assert (error.row, error.reason) == (8, "this line does not match the pattern")

    def test_an_empty_line_may_match(self, tmp_path):
        data = b"\nx\n\n"
        expected = [(None,), (b"x",), (None,)]
        assert from_file(tmp_path, data, USER, kind="lines", pattern="^(?P<user>.*)$") == expected


class TestPattern:
    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("(?P<ip>a)(?P<x>b)", "(?P<ip>a)(?:b)"),
            ("(?<ip>a)(?<x>b)", "(?<ip>a)(?:b)"),
            (r"\(?P<x>(?P<ip>a)", r"\(?P<x>(?P<ip>a)"),
            (r"\\(?P<x>(?P<ip>a))", r"\\(?:(?P<ip>a))"),
            ("[(?P<x>](?P<ip>a)", "[(?P<x>](?P<ip>a)"),
            (r"[](?P<x>](?P<ip>a)[^](?P<x>]", r"[](?P<x>](?P<ip>a)[^](?P<x>]"),
            (r"[\](?P<x>[:alpha:](?P<x>](?P<ip>a)", r"[\](?P<x>[:alpha:](?P<x>](?P<ip>a)"),
            (r"\Q(?P<x>\E(?P<ip>a)(?P<x>b)", r"\Q(?P<x>\E(?P<ip>a)(?:b)"),
            (r"(?P<ip>a)\Q(?P<x>", r"(?P<ip>a)\Q(?P<x>"),
            ("(?i:(?P<ip>a))", "(?i:(?P<ip>a))"),
        ],
    )
    def test_only_what_is_wanted_is_captured(self, pattern, expected):
        assert only_wanted_groups(pattern, [IP]) == expected

    @pytest.mark.parametrize(
        ("pattern", "reason"),
        [
            ("(?P<ip>a", "the pattern is no regular expression of RE2: missing )"),
            ("[z-a]", "the pattern is no regular expression of RE2: invalid character class range"),
            ("\\8\n", "the pattern is no regular expression of RE2: invalid escape sequence"),
            ("(?=a)", "the pattern is no regular expression of RE2: invalid perl operator"),
            ("\ud800", "the pattern is no regular expression of RE2: invalid UTF-8"),
            (
                "(?P<ip>a)(b)",
                "the pattern has a group without a name; write (?:...) or (?P<name>...)",
            ),
            ("abc", r"the pattern has no named group, such as (?P<user>\S+), to be a column"),
            ("", r"the pattern has no named group, such as (?P<user>\S+), to be a column"),
            (
                "(?P<a>x)(?P<b>x)",
                "there is no column 'ip'; the named groups of the pattern are 'a', 'b'",
            ),
            ("(?P<ip>x)|(?P<ip>y)", "there are several columns 'ip': rename all but one"),
        ],
    )
    def test_refused_before_anything_is_read(self, pattern, reason):
        error = refusal(open_source, "no such file", columns=[IP], format="lines", pattern=pattern)
        assert (error.row, error.reason) == (None, reason)

    def test_belongs_to_lines(self):
        error = refusal(open_source, "a.csv", columns=[IP], pattern=PATTERN)
        assert str(error) == "a pattern is for the format lines, and the format is csv"
        error = refusal(open_source, "a.log", columns=[IP], format="lines")
        assert str(error) == r"the format lines needs a pattern, such as ^(?P<user>\S+)"


class TestSilentPipe:
    @pytest.mark.parametrize("address", [None, Prefixes()])
    @pytest.mark.parametrize(
        "options",
        [{"format": "combined"}, {"format": "lines", "pattern": r"^(?P<remote_addr>\S+)"}],
    )
    def test_nothing_raw_is_held(self, slow, options, address):
        path, write = slow
        line = NGINX.replace(b"203.0.113.7", b"::1" if address else SECRET.encode())
        write(line + b"\n" + line[:5])
        column = Column("remote_addr", address=address)
        with open_source(path, columns=[column], **options) as source:
            due = [None]
            stream = source.batches_or_ticks(lambda: due[0])
            assert next(stream).num_rows == 1
            due[0] = time.monotonic() + 0.1
            assert next(stream) is None
            held = [*locals_of_thread(source._thread), *stream.gi_frame.f_locals.values()]
        assert len(held) > 10
        for value in held:
            assert not isinstance(value, pa.RecordBatch | pa.Table | pa.Array | np.ndarray)
            assert SECRET not in repr(value)
            assert "Mozilla" not in repr(value)

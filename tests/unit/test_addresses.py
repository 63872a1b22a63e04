"""Equal addresses are one number, as Python's ipaddress reads them; anything else is refused."""

import ctypes
import ipaddress
import mmap
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panprivacy.errors import PlanError
from panprivacy.intake.sources import Column, Prefixes, open_source
from panprivacy.intake.sources.addresses import read_addresses
from panprivacy.tables.ids import read_ids
from tests.unit.reading import SECRET, batches, from_file, from_pipe, refusal

WHOLE = Prefixes()
REASON = "this is not an IP address"
PROPERTY = settings(max_examples=300)
KINDS = [
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view()),
]


AROUND = re.compile(rb"\[([^]]*)\](?::[0-9]+)?|([^:]*\.[^:]*):[0-9]+|(.*)", re.DOTALL)
"""An address in brackets, perhaps with a port; one with dots and a port; or anything."""


def as_python_reads(text, prefixes=WHOLE):
    """The 16 bytes of the first address, or None if it is none."""
    if text.startswith(b"unix:"):
        return bytes(16)
    found = AROUND.fullmatch(text.split(b",")[0].rstrip(b" "))
    address, percent, zone = found[found.lastindex].partition(b"%")
    try:
        address = ipaddress.ip_address(address.decode("latin1"))
    except ValueError:
        return None
    if percent and not zone:
        return None
    number = int(address) | (0xFFFF << 32 if address.version == 4 else 0)
    dropped = 32 - prefixes.ipv4 if number >> 32 == 0xFFFF else 128 - prefixes.ipv6
    return (number >> dropped << dropped).to_bytes(16, "big")


def read(*texts, kind=None, prefixes=WHOLE):
    return read_addresses(pa.array(texts, kind or pa.binary()), prefixes).to_pylist()


@st.composite
def spellings(draw):
    """An address, spelled in one of the ways that are allowed."""
    quad = ".".join(str(draw(st.integers(0, 255))) for _ in range(4))
    if draw(st.integers(0, 3)) == 0:
        return quad
    numbers = st.sampled_from([0, 0, 0, 1, 0xFFFF]) | st.integers(0, 0xFFFF)
    mapped = [0, 0, 0, 0, 0, 0xFFFF, *draw(st.tuples(numbers, numbers))]
    values = draw(st.just(mapped) | st.lists(numbers, min_size=8, max_size=8))
    groups = [f"{value:0{draw(st.integers(1, 4))}x}" for value in values]
    if draw(st.booleans()):
        groups[6:] = [quad]
    start = draw(st.integers(0, len(groups)))
    stop = start
    while stop < len(groups) and set(groups[stop]) == {"0"}:
        stop += 1
    if stop > start and draw(st.booleans()):
        text = ":".join(groups[:start]) + "::" + ":".join(groups[stop:])
    else:
        text = ":".join(groups)
    return text.upper() if draw(st.booleans()) else text


@st.composite
def damaged(draw):
    """A spelling with a few characters put in or taken away."""
    text = draw(spellings())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        new = draw(st.sampled_from(["", "", *"0:.fg%/ [],-1\0é", "::", "00", "256", "1.2.3.4"]))
        text = text[:at] + new + text[at + draw(st.integers(0, 2)) :]
    return text


PREFIXES = st.builds(Prefixes, st.integers(1, 32), st.integers(1, 128))


def fenced(data):
    """The bytes as an array that ends where memory that cannot be read begins."""
    pages = -(-len(data) // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    whole = np.frombuffer(memory, np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert protect(whole.ctypes.data + pages * mmap.PAGESIZE, mmap.PAGESIZE, 0) == 0
    text = whole[pages * mmap.PAGESIZE - len(data) : pages * mmap.PAGESIZE]
    text[:] = np.frombuffer(data, np.uint8)
    text.flags.writeable = False
    return text


class TestReading:
    @pytest.mark.long
    @PROPERTY
    @given(st.lists(spellings(), max_size=5), PREFIXES)
    def test_agrees_with_python(self, texts, prefixes):
        expected = [as_python_reads(text.encode(), prefixes) for text in texts]
        assert None not in expected
        assert read(*texts, kind=pa.string(), prefixes=prefixes) == expected

    @pytest.mark.long
    @settings(PROPERTY, max_examples=500)
    @given((damaged() | st.text(st.sampled_from("0123f:.%[], "))).map(str.encode) | st.binary())
    def test_refuses_what_python_refuses(self, text):
        """Neither the kernel's answer nor its reads depend on what lies behind the text."""
        expected = as_python_reads(text)
        memory = fenced(text)
        column = pa.Array.from_buffers(
            pa.binary(),
            1,
            [None, pa.py_buffer(np.array([0, len(text)], np.int32)), pa.py_buffer(memory)],
        )
        if expected is not None:
            assert read_addresses(column, WHOLE).to_pylist() == [expected]
            return
        error = refusal(read_addresses, column, WHOLE)
        assert (error.row, error.reason) == (1, REASON)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("::1", "0:0:0:0:0:0:0:1"),
            ("::FFFF:1.2.3.4", "1.2.3.4"),
            ("::ffff:102:304", "1.2.3.4"),
            ("2001:DB8::", "2001:0db8:0:0::0:0"),
            ("::", "0::0"),
            ("203.0.113.9, 10.1.2.3", "203.0.113.9"),
            ("203.0.113.9,10.1.2.3,x", "203.0.113.9"),
            ("203.0.113.9 , 10.1.2.3", "203.0.113.9"),
            ("203.0.113.9:4711", "203.0.113.9"),
            ("[2001:db8::7]", "2001:db8::7"),
            ("[2001:db8::7]:443, 10.1.2.3", "2001:db8::7"),
            ("fe80::1%eth0", "fe80::1"),
            ("[fe80::1%25eth0]:80", "fe80::1"),
            ("unix:", "unix:/run/nginx.sock"),
        ],
    )
    def test_spellings_of_one_address(self, one, other):
        assert len(set(read(one, other))) == 1

    @pytest.mark.parametrize(
        "text",
        [
            *("", "-", "1.2.3", "1.2.3.4.5", "1.2.3.256", "010.1.1.1", "1.2.3.00", "1..2.3"),
            *("1.2.3.4:", "[::1", "[::1]:", "[::1]x", "::1]", "fe80::1%", "::1/64", " ::1", ",::1"),
            *("[]", "[]:80", "unix", "unknown, 1.2.3.4", "1.2.3.4:80:90", "1.2.3.4:8x", "[::1%]"),
            *(":", ":::", "::1::", "1::2::3", ":1::", "1::2:", "1:2:3:4:5:6:7", "12345::"),
            *("1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1.2.3.4::", "g::"),
            *("1:2:3:4:5:6:7:1.2.3.4", "::1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "host"),
            "1:2:3:4:5:6:7:8" + ":1" * 50 + ":1.2.3.4",
        ],
    )
    def test_refused(self, text):
        assert as_python_reads(text.encode()) is None
        error = refusal(read, "::1", text, "1.2.3.4")
        assert (error.row, error.reason) == (2, REASON)

    @pytest.mark.parametrize("kind", KINDS)
    def test_types_nulls_and_slices(self, kind):
        texts = ["x", "::1", None, "1.2.3.4", None, "2001:db8:1:2:3:4:5:6", "y"]
        column = pa.array(texts, kind)[1:6]
        parsed = read_addresses(column, WHOLE)
        assert parsed.type == pa.binary(16)
        parsed.validate(full=True)
        expected = [text and as_python_reads(text.encode()) for text in texts[1:6]]
        assert parsed.to_pylist() == expected
        assert parsed.null_count == 2
        assert read_addresses(column[:0], WHOLE).to_pylist() == []

    def test_no_type_yet(self):
        assert read_addresses(pa.nulls(2), WHOLE).equals(pa.nulls(2, pa.binary(16)))

    @pytest.mark.parametrize("kind", [pa.int64(), pa.binary(9), pa.float64()])
    def test_other_types(self, kind):
        column = pa.nulls(1, kind)
        error = refusal(read_addresses, column, WHOLE)
        assert str(error) == "IP addresses must be texts such as 192.0.2.1 or 2001:db8::1"

    def test_prefixes(self):
        texts = ["203.0.113.77", "::ffff:203.0.113.77", "2001:db8:1:2:3:4:5:6", "::203.0.113.77"]
        parsed = read(*texts, prefixes=Prefixes(24, 64))
        kept = ["::ffff:203.0.113.0", "::ffff:203.0.113.0", "2001:db8:1:2::", "::"]
        assert list(map(ipaddress.IPv6Address, parsed)) == list(map(ipaddress.IPv6Address, kept))

    @pytest.mark.parametrize(
        ("lengths", "message"),
        [
            ({"ipv4": 0}, "ipv4 must be a whole number of at least 1"),
            ({"ipv4": 33}, "ipv4 must be at most 32"),
            ({"ipv6": True}, "ipv6 must be a whole number of at least 1"),
            ({"ipv6": 129}, "ipv6 must be at most 128"),
        ],
    )
    def test_prefixes_out_of_range(self, lengths, message):
        with pytest.raises(PlanError, match=f"^{re.escape(message)}$"):
            Prefixes(**lengths)

    def test_are_ids(self):
        (ids,) = read_ids(read_addresses(pa.array(["::1", "1.2.3.4"]), WHOLE))
        assert len(ids) == 2


ADDRESS = Column("user", address=Prefixes(24))
FIRST, OTHER = (as_python_reads(text) for text in (b"::1", b"::ffff:1.2.3.0"))


def written(kind, users):
    """A file of that format with a column of users."""
    if kind == "csv":
        return "\n".join(["x,user", *(f"1,{user}" for user in users)]).encode()
    if kind == "ndjson":
        return "".join(f'{{"user":"{user}"}}\n' for user in users).encode()
    sink, data = pa.BufferOutputStream(), pa.table({"x": [1] * len(users), "user": users})
    if kind == "parquet":
        pa.parquet.write_table(data, sink)
    else:
        with pa.ipc.new_stream(sink, data.schema) as writer:
            writer.write_table(data, max_chunksize=3)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet", "arrow"])
class TestEveryFormat:
    @pytest.fixture(autouse=True)
    def _small_blocks(self, monkeypatch):
        monkeypatch.setattr("panprivacy.intake.sources.text.BLOCK_BYTES", 50)

    def test_addresses(self, tmp_path, kind):
        data = written(kind, ["::1", "1.2.3.4", "::FFFF:1.2.3.77"] * 9)
        assert from_file(tmp_path, data, ADDRESS, kind=kind) == [(FIRST,), (OTHER,), (OTHER,)] * 9

    def test_refusal(self, tmp_path, kind):
        data = written(kind, ["::1"] * 20 + [SECRET] + ["::1"] * 20)
        error = refusal(from_file, tmp_path, data, ADDRESS, kind=kind)
        assert (error.row, error.reason) == (21, REASON)

    def test_a_pipe_counts_the_rows_of_a_block(self, kind):
        if kind == "parquet":
            pytest.skip("no pipe")
        data = written(kind, ["::1"] * 20 + [SECRET])
        error = refusal(from_pipe, data, ADDRESS, kind=kind)
        assert error.row < 21


class TestColumns:
    def test_other_columns_pass(self, tmp_path):
        data = b"delta,user\n3,::1\n4,1.2.3.4\n"
        parsed = from_file(tmp_path, data, ADDRESS, Column("delta", integers=True))
        assert parsed == [(FIRST, 3), (OTHER, 4)]

    def test_nulls(self, tmp_path):
        path = tmp_path / "a.ndjson"
        path.write_bytes(b'{"user":null}\n{}\n')
        (batch,) = batches(path, ADDRESS, kind=None)
        assert batch.schema == pa.schema({"user": pa.binary(16)})
        assert from_file(tmp_path, b"user,x\n,1\n::1,1\n", ADDRESS) == [(None,), (FIRST,)]

    def test_numbers_are_no_addresses(self, tmp_path):
        error = refusal(from_file, tmp_path, b'{"user":8412345}\n', ADDRESS, kind="ndjson")
        assert (error.row, error.reason) == (1, REASON)
        path = tmp_path / "numbers.parquet"
        pa.parquet.write_table(pa.table({"user": [8412345]}), path)
        error = refusal(batches, path, ADDRESS, kind=None)
        assert "must be texts" in str(error)

    def test_both_numbers_and_addresses(self):
        both = Column("user", integers=True, address=Prefixes())
        error = refusal(open_source, "a.csv", columns=[both])
        assert str(error) == "column 'user' cannot hold both whole numbers and IP addresses"

"""No id is left in memory, in children or in files once its batch is counted.

100,000 ids of high entropy go through every format. The program is then held still: a file's
reader has to write its answer into a full pipe, a pipe's reader waits for more. All its memory, the
registers of its threads, and the files that it wrote or holds open are searched for every 8-byte
piece of every id. The same program started without its launcher shows that the search finds what is
there.

An id has 16 letters of 6 bits, so that one of 900,000 pieces occurs by chance in 4e8 bytes of
unrelated letters with probability 2e-6. Texts are searched for as wide letters of 2 bytes too, in
pieces of 8 letters; numbers as 8 bytes in both orders, as a float, as Python's digits of 30 bits,
and as 16 decimal digits; addresses as 16 letters (8 occur in messages and settings by chance) and
as two halves of 8 bytes in both orders.
"""

from __future__ import annotations

import bz2
import contextlib
import fcntl
import gzip
import io
import itertools
import lzma
import os
import shutil
import string
import subprocess
import sys
import termios
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from panprivacy import SystemCoins

from .memory import (
    Needles,
    needs_administrator,
    pieces,
    processes_below,
    search_files,
    search_open_files,
    search_process,
    search_registers,
)

IDS = 100_000
LETTERS = np.frombuffer((string.ascii_letters + string.digits + "-_").encode(), np.uint8)
HARDENED = ["-m", "panprivacy"]
PLAIN = ["-c", "from panprivacy.cli import main; main()"]
"""The same command line without its launcher."""

PIPE_BYTES = 4_096
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
PATIENCE = 120
NOTHING = (0, 0, 0)
STAT = ["--stat", "distinct", "--epsilon", "1"]
MOVING = ["--user", "id", *STAT, "--every", "1", "--releases", "3", "--moves", "60_000"]
EVENTS = ["--stat", "running-count,horizon=1_000_000", "--epsilon", "1", "--every", "1"]
"""Without users: the ids are in the column that comes first."""
VALUES = [
    *("--value", "id", "--stat", "histogram,low=1,high=1e19,bins=50,scale=log,horizon=1_000_000"),
    *("--epsilon", "1", "--every", "1"),
]
"""The ids are the values of events."""
NET = [
    *("--stat", "incidence,exactly=1:3,bound=4,expected=100000"),
    *("--delta", "delta", "--epsilon", "3"),
]


pytestmark = needs_administrator


@dataclass(frozen=True)
class Canaries:
    """Ids, and what is searched for.

    Args:
        column: the ids.
        needles: pieces of them.
    """

    column: pa.Array
    needles: Needles

    def table(self):
        """With a delta of 1 each."""
        deltas = np.ones(len(self.column), np.int64)
        return pa.table({"id": self.column, "delta": deltas})


def texts():
    drawn = np.frombuffer(SystemCoins().key(16 * IDS), np.uint8)
    data = LETTERS[drawn % 64].tobytes()
    rows = [data[i : i + 16] for i in range(0, len(data), 16)]
    wide = [row[start : start + 8].decode().encode("utf-16-le") for row in rows for start in (0, 8)]
    return Canaries(pa.array(rows).cast(pa.string()), Needles.of(pieces(rows), pieces(wide, 16)))


def numbers():
    drawn = np.frombuffer(SystemCoins().key(8 * IDS), np.uint64) % 10**18 + 10**18
    digits = [str(value).encode() for value in drawn]
    python = (drawn & (2**30 - 1)) | (drawn >> np.uint64(30) & (2**30 - 1)) << np.uint64(32)
    words = [drawn, drawn.byteswap(), drawn.astype(float).view(np.uint64), python]
    return Canaries(
        pa.array(drawn.astype(np.int64)),
        Needles.of(bytes_of(*words), pieces(digits, 16)),
    )


def addresses():
    """Of IPv6, in lines of a web server's log."""
    drawn = np.frombuffer(SystemCoins().key(16 * IDS), ">u8")
    digits = drawn.tobytes().hex(":", 2).encode()
    rows = [digits[i : i + 39] for i in range(0, len(digits), 40)]
    packed = drawn.astype(np.uint64)
    halves = bytes_of(packed, packed.byteswap())
    return Canaries(pa.array(rows).cast(pa.string()), Needles.of(pieces(rows, 16), halves))


def bytes_of(*words):
    """Arrays of 64-bit words, as 8 bytes each."""
    return np.concatenate(words).astype("<u8").view(np.uint8).reshape(-1, 8)


KINDS = {"texts": texts, "numbers": numbers}


def csv_lines(table):
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return "".join(["id,delta\n", *(f"{user},{delta}\n" for user, delta in rows)]).encode()


def ndjson_lines(table):
    quote = '"' if pa.types.is_string(table["id"].type) else ""
    ids = table["id"].to_pylist()
    return "".join(f'{{"id": {quote}{user}{quote}, "delta": 1}}\n' for user in ids).encode()


def arrow_bytes(table):
    """A stream without the mark of its end: a reader of a pipe waits for more."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=10_000)
    return sink.getvalue().to_pybytes().removesuffix(END_OF_STREAM)


def parquet_bytes(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def log_lines(table):
    rest = '- - [01/Oct/2025:13:55:36 +0200] "GET / HTTP/1.1" 200 12 "-" "-"'
    return "".join(f"{user} {rest}\n" for user in table["id"].to_pylist()).encode()


FORMATS = {
    "csv": csv_lines,
    "ndjson": ndjson_lines,
    "arrow": arrow_bytes,
    "parquet": parquet_bytes,
}
LOG = "combined"
WRITERS = {**FORMATS, LOG: log_lines}


def zipped(data):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("visits.csv", data)
    return sink.getvalue()


def without_need(data):
    """Objects that are read value by value, for what another field holds."""
    return data.replace(b"}\n", b', "x": {"y": "\\ud800"}}\n')


PACKED = {
    "gzip": gzip.compress,
    "zstd": lambda data: pa.compress(data, "zstd", asbytes=True),
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zip": zipped,
}
COLUMNS = {LOG: "remote_addr"}
"""Where ids are, if not in the column `id`."""


@contextlib.contextmanager
def started(program, words, folder, **streams):
    """The command line, writing whatever it writes below a folder of its own."""
    places = {name: str(folder) for name in ("HOME", "TMPDIR", "NUMBA_CACHE_DIR", "MPLCONFIGDIR")}
    process = subprocess.Popen(
        [sys.executable, *program, "run", *words],
        cwd=folder,
        env={**os.environ, **places},
        bufsize=0,
        **streams,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def full_pipe():
    """A pipe that takes nothing more."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    os.write(writing, b"\n" * PIPE_BYTES)
    return reading, writing


def wait_until(ready):
    end = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < end, "the program did not come so far"
        time.sleep(0.05)


def is_answering(process):
    """Whether its main thread waits in a write to standard output."""
    call = Path(f"/proc/{process.pid}/task/{process.pid}/syscall").read_text().split()
    return call[:2] == ["1", "0x1"]


def busy_time(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13]))


def is_waiting(process, pipe):
    """Whether it has read all that is there and does nothing more."""
    unread = fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4)
    before = busy_time(process)
    time.sleep(0.5)
    idle = busy_time(process) == before and not has_work(process)
    return unread == b"\0" * 4 and idle


def has_work(process):
    """Whether one of its threads would run, though other programs may have the processors."""
    threads = Path(f"/proc/{process.pid}/task").glob("*/stat")
    try:
        return any(one.read_text().rpartition(")")[2].split()[0] in "RD" for one in threads)
    except OSError:  # one has just ended
        return True


def found(process, canaries, folder, read=Path(os.devnull)):
    """How many pieces of ids are left in memory, in registers, and in files but the one read."""
    family, needles = processes_below(process.pid), canaries.needles
    in_memory = sum(search_process(one, needles) for one in family)
    in_registers = sum(search_registers(one, needles) for one in family)
    in_files = sum(search_open_files(one, needles, read) for one in family)
    return in_memory, in_registers, in_files + search_files(folder, needles)


def left_by_file(program, canaries, kind, folder, options=STAT, pack=bytes):
    """What is left when a file has been counted."""
    path = folder.parent / f"{folder.name}.{kind}"
    path.write_bytes(pack(WRITERS[kind](canaries.table())))
    reading, writing = full_pipe()
    words = [str(path), "--format", kind, "--user", COLUMNS.get(kind, "id"), *options]
    try:
        with started(program, words, folder, stdout=writing) as process:
            wait_until(lambda: is_answering(process))
            return found(process, canaries, folder, path)
    finally:
        os.close(reading)
        os.close(writing)


def write_all(pipe, data):
    """An unbuffered pipe may take less at a time."""
    view = memoryview(data)
    while view:
        view = view[pipe.write(view) :]


def left_by_pipe(program, canaries, kind, folder, parts=1, options=None):
    """What is left when a pipe has fallen silent; a part is written when the last one is read."""
    counted = ["--user", COLUMNS.get(kind, "id"), *STAT] if options is None else options
    words = ["-", "--format", kind, *counted]
    data = WRITERS[kind](canaries.table())
    cuts = np.linspace(0, len(data), parts + 1).astype(int)
    with started(
        program, words, folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        for start, end in itertools.pairwise(cuts):
            write_all(process.stdin, data[start:end])
            time.sleep(0 if parts == 1 else 0.005)
        wait_until(lambda: is_waiting(process, process.stdin))
        return found(process, canaries, folder)


@pytest.fixture
def folder(tmp_path, compiled):
    """Where a program writes what it writes, with a copy of its own of what it has compiled."""
    return Path(shutil.copytree(compiled, tmp_path / "written"))


def cases(fast):
    """Every format with every kind of id, most of them slow."""
    return [
        pytest.param(
            kind, ids, marks=[] if (kind, ids) in fast else [pytest.mark.slow], id=f"{kind}, {ids}"
        )
        for kind in FORMATS
        for ids in KINDS
    ]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "ids"), cases({("parquet", "numbers")}))
def test_nothing_is_left_of_a_file(kind, ids, folder):
    assert left_by_file(HARDENED, KINDS[ids](), kind, folder) == NOTHING


@pytest.mark.long
@pytest.mark.parametrize(
    "how", [one if one == "gzip" else pytest.param(one, marks=pytest.mark.slow) for one in PACKED]
)
def test_nothing_is_left_of_a_compressed_file(how, folder):
    assert left_by_file(HARDENED, texts(), "csv", folder, pack=PACKED[how]) == NOTHING


@pytest.mark.slow
@pytest.mark.parametrize("ids", KINDS)
def test_nothing_is_left_of_what_is_read_value_by_value(ids, folder):
    assert left_by_file(HARDENED, KINDS[ids](), "ndjson", folder, pack=without_need) == NOTHING


@pytest.mark.parametrize("ids", KINDS)
@pytest.mark.slow
def test_nothing_is_left_of_deltas_and_deletions(ids, folder):
    assert left_by_file(HARDENED, KINDS[ids](), "parquet", folder, NET) == NOTHING


PIPES = [kind for kind in FORMATS if kind != "parquet"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "ids", "parts"),
    [
        pytest.param("csv", "texts", 1),
        *(
            pytest.param(kind, ids, parts, marks=pytest.mark.slow)
            for kind in PIPES
            for ids in KINDS
            for parts in (1, 200)
            if (kind, ids, parts) != ("csv", "texts", 1)
        ),
    ],
)
def test_nothing_is_left_while_a_pipe_is_silent(kind, ids, parts, folder):
    assert left_by_pipe(HARDENED, KINDS[ids](), kind, folder, parts) == NOTHING


@pytest.mark.long
@pytest.mark.parametrize("hardened", [True, False])
def test_nothing_is_left_of_events_that_are_counted_without_users(hardened, folder):
    """While their running count is released every second."""
    program = HARDENED if hardened else PLAIN
    left = left_by_pipe(program, texts(), "csv", folder, 20, EVENTS)
    assert left == NOTHING if hardened else left[0] > 100


@pytest.mark.long
@pytest.mark.parametrize("hardened", [True, False])
def test_nothing_is_left_of_users_whose_table_is_published(hardened, folder):
    """Nor in the sketch of a window that has ended, which is in the folder."""
    options = [
        *("--user", "id", "--stat", "overlap,expected=100_000", "--epsilon", "4"),
        *("--sketch", str(folder / "windows"), "--key", str(folder / "series.key")),
        *("--window", "1s"),
    ]
    program = HARDENED if hardened else PLAIN
    left = left_by_pipe(program, texts(), "csv", folder, 200, options)
    assert left == NOTHING if hardened else left[0] > 100


@pytest.mark.long
@pytest.mark.parametrize("kind", ["csv", "ndjson"])
@pytest.mark.parametrize("hardened", [True, False])
def test_nothing_is_left_of_values_that_are_counted(hardened, kind, folder):
    """While the histogram is released every second."""
    program = HARDENED if hardened else PLAIN
    left = left_by_pipe(program, numbers(), kind, folder, 20, VALUES)
    assert left == NOTHING if hardened else sum(left) > 100


@pytest.mark.slow
def test_nothing_is_left_of_users_who_are_compared(folder):
    """While it is looked again and again whether their number has moved."""
    assert left_by_pipe(HARDENED, texts(), "csv", folder, 4, MOVING) == NOTHING


@pytest.mark.long
@pytest.mark.parametrize(("kind", "ids"), cases({("csv", "texts")}))
def test_without_hardening_the_same_search_finds_ids(kind, ids, folder):
    """The control: it sees what is there."""
    in_memory, *_ = left_by_file(PLAIN, KINDS[ids](), kind, folder)
    assert in_memory > 100


@pytest.mark.slow
@pytest.mark.parametrize(("left", "options"), [(left_by_file, {}), (left_by_pipe, {"parts": 200})])
def test_nothing_is_left_of_addresses_in_log_lines(left, options, folder):
    assert left(HARDENED, addresses(), LOG, folder, **options) == NOTHING


@pytest.mark.slow
def test_without_hardening_addresses_of_log_lines_are_found(folder):
    in_memory, *_ = left_by_file(PLAIN, addresses(), LOG, folder)
    assert in_memory > 100


@pytest.mark.long
def test_the_search_of_files_finds_ids(folder):
    canaries = texts()
    (folder / "leak.csv").write_bytes(csv_lines(canaries.table()))
    assert search_files(folder, canaries.needles) >= IDS

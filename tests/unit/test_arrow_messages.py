"""The messages of an Arrow stream."""

from __future__ import annotations

import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from panprivacy.errors import InputError
from panprivacy.intake.sources import BodyReader, Column, arrow_messages
from tests.unit.test_bodies import TOO_LARGE, arrow_bytes, file_bytes, views

DAMAGED = "this cannot be read as Arrow IPC: it is truncated, damaged or something else"


REPEATED = "a long text or a dictionary is repeated too often; send plain columns, or in parts"


def compressed_bomb(write, codec, claim):
    """A compressed buffer that claims to be long."""
    body = write(pa.table({"user": np.zeros(100_003, np.int64)}), compression=codec)
    told = struct.pack("<q", 8 * 3_000)
    assert told in body
    return body.replace(told, struct.pack("<q", claim))


HOLLOW = "this has compressed buffers that hold next to nothing; send it uncompressed"
FRAME = b"\x28\xb5\x2f\xfd\xa0"
"""Start of a frame of zstd, before the four bytes of its size."""


def block(kind, size, content, *, is_last=False):
    """A block of zstd: 0 as it is, 1 of one byte that is repeated."""
    return struct.pack("<I", size << 3 | kind << 1 | is_last)[:3] + content


def hollow(size, claim, blocks):
    """A buffer of zstd of so many bytes and blocks that holds zeros."""
    frame = FRAME + struct.pack("<I", claim) + block(0, 0, b"") * blocks
    ends = block(1, claim, b"\0", is_last=True)
    filled = size - len(frame) - len(ends) - 8
    return frame + ends + struct.pack("<II", 0x184D2A50, filled) + bytes(filled)


def with_buffer(write, rows, made):
    """Arrow IPC with one column of int64, whose buffer of zstd is made from its size."""
    drawn = np.random.default_rng(1).integers(0, 1 << 40, rows)
    body = write(pa.table({"user": drawn}), compression="zstd")
    packed = pa.Codec("zstd").compress(drawn.tobytes(), asbytes=True)
    assert body.count(packed) == 1
    return body.replace(packed, made(len(packed)))


@pytest.mark.parametrize("write", [arrow_bytes, file_bytes])
def test_a_hollow_buffer_is_refused_before_it_is_decompressed(write):
    rows, reader = 3_000, BodyReader([Column("user")])
    most = 64 + 8 * rows // 1_024
    fits = with_buffer(write, rows, lambda size: hollow(size, 8 * rows, most - 4))
    assert sum(batch.num_rows for batch in reader.read("arrow", fits)) == rows
    for blocks in (most - 1, 1_000, 4_000):
        body = with_buffer(write, rows, lambda size, blocks=blocks: hollow(size, 8 * rows, blocks))
        with pytest.raises(InputError) as error:
            list(reader.read("arrow", body))
        assert error.value.reason == HOLLOW
    empty = FRAME[:4] + b"\x20\0" + block(0, 0, b"", is_last=True)  # whole frames of nothing
    for part in (empty, struct.pack("<II", 0x184D2A50, 0)):
        body = with_buffer(write, rows, lambda size, part=part: (part * size)[:size])
        with pytest.raises(InputError) as error:
            list(reader.read("arrow", body))
        assert error.value.reason == HOLLOW


@pytest.mark.parametrize("level", [1, 3, 12, 19, 22])
@pytest.mark.parametrize("rows", [0, 1, 10, 3_000, pytest.param(200_000, marks=pytest.mark.long)])
def test_what_is_compressed_at_any_level_is_read(level, rows):
    draw = np.random.default_rng(level + rows)
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=level))
    columns = {
        "zeros": np.zeros(rows, np.int64),
        "few": draw.integers(0, 9, rows),
        "many": draw.integers(0, 1 << 40, rows),
        "turns": np.where(np.arange(rows) // 500 % 2, draw.integers(0, 1 << 60, rows), 7),
    }
    reader = BodyReader([Column("user")])
    for name, column in columns.items():
        sink = pa.BufferOutputStream()
        table = pa.table({"user": column})
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        body = sink.getvalue().to_pybytes()
        found = sum(batch.num_rows for batch in reader.read("arrow", body))
        assert found == rows, name


def dictionary_bomb(write, claim):
    """A compressed dictionary that claims to be long."""
    users = pa.array([f"{i:09}" for i in range(777)]).dictionary_encode()
    body = write(pa.table({"user": users}), compression="zstd")
    told = struct.pack("<q", 9 * 777)
    assert body.count(told) == 1
    return body.replace(told, struct.pack("<q", claim))


def coded_bomb(values, count=1 << 20):
    codes = pa.array(np.zeros(count, np.int8))
    return arrow_bytes(pa.table({"user": pa.DictionaryArray.from_arrays(codes, values)}))


def many_batches():
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"user": [1]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(arrow_messages.MOST_MESSAGES + 2):
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def bombs():
    """Name, format, body, expected reason, or None where it is read."""
    text = "x" * (4 << 20)
    fixed = pa.array([text.encode()], pa.binary(len(text)))
    dense = pa.table({"user": pa.nulls(123_456_789)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, dense.schema) as writer:
        writer.write_table(dense)
    nulls = sink.getvalue().to_pybytes()
    count = struct.pack("<q", 123_456_789)
    for codec in ("zstd", "lz4"):
        for write in (arrow_bytes, file_bytes):
            for claim in (1 << 33, 1 << 62):
                name = f"{codec}-{write.__name__}-{claim}"
                yield name, "arrow", compressed_bomb(write, codec, claim), TOO_LARGE
    for write in (arrow_bytes, file_bytes):
        yield f"dictionary-{write.__name__}", "arrow", dictionary_bomb(write, 1 << 33), TOO_LARGE
    yield "codes", "arrow", coded_bomb(pa.array([text])), TOO_LARGE
    unused = views([1 << 20] * 100, b"x" * (1 << 20))
    yield "unused views", "arrow", coded_bomb(unused, 1), TOO_LARGE
    yield "fixed codes", "arrow", coded_bomb(fixed), TOO_LARGE
    yield "view codes", "arrow", coded_bomb(views([1 << 20] * 100, b"x" * (1 << 20))), TOO_LARGE
    long = arrow_bytes(pa.table({"user": views([1 << 20] * 1_000, b"x" * (1 << 20))}))
    yield "views", "arrow", long, TOO_LARGE
    longer = arrow_bytes(pa.table({"user": views([1 << 20] * 2_000, b"x" * (1 << 20))}))
    yield "more views", "arrow", longer, REPEATED
    yield "nulls", "arrow", nulls, TOO_LARGE
    yield "more nulls", "arrow", nulls.replace(count, struct.pack("<q", 1 << 40)), REPEATED
    yield "no rows", "arrow", nulls.replace(count, struct.pack("<q", -5)), DAMAGED
    many = (
        f"this has more than {arrow_messages.MOST_MESSAGES:,} Arrow messages; send larger batches"
    )
    yield "batches", "arrow", many_batches(), many
    names = "the header line names more than 65,536 columns"
    yield "names", "csv", b"user" + b",a" * (8 << 20) + b"\n", names
    yield "empty rows", "csv", b"user\n" + b"\n" * (16 << 20), None
    yield "empty objects", "ndjson", b'{"user":1}\n' + b"{}\n" * (5 << 20), None
    yield "short values", "json", b'{"user":[' + b"1," * (8 << 20) + b"1]}", None


MEASURE = """
import resource, sys
from pathlib import Path
from panprivacy.ground.kernels import compile_kernels
from panprivacy.errors import InputError
from panprivacy.intake.sources import Column, BodyReader

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

compile_kernels()
before = peak()
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + (768 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
for path in sorted(Path(sys.argv[1]).iterdir()):
    body = path.read_bytes()
    try:
        BodyReader([Column("user")]).read(path.suffix[1:], body)
        print(None)
    except InputError as error:
        print(error.reason)
print(peak() - before)
"""


@pytest.mark.long
def test_bombs_are_refused_or_stay_small(tmp_path):
    cases = list(bombs())
    for number, (_, kind, body, _) in enumerate(cases):
        assert len(body) <= 17 << 20
        (tmp_path / f"{number:03}.{kind}").write_bytes(body)
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    *reasons, grown = ran.stdout.splitlines()
    expected = {name: str(reason) for name, _, _, reason in cases}
    assert dict(zip(expected, reasons, strict=True)) == expected
    assert int(grown) < 600, f"{grown} MiB"

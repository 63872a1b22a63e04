"""Bodies of Arrow."""

from __future__ import annotations

import io
import math
import struct
from contextlib import suppress
from datetime import date

import polars as pl
import pyarrow as pa
import pytest

from panprivacy.errors import InputError
from panprivacy.intake.sources import (
    BodyReader,
    Column,
)
from panprivacy.tables.ids import read_ids
from tests.unit.test_arrow_messages import DAMAGED
from tests.unit.test_bodies import (
    ADDRESS,
    SECRET,
    USER,
    arrow_bytes,
    file_bytes,
    refusal,
    rows,
    table,
    views,
)


class TestArrow:
    @pytest.mark.parametrize("write", [arrow_bytes, file_bytes])
    def test_truncated(self, write):
        body = write(table())
        for share in (0.0, 0.001, 0.01, 0.3, 0.6, 0.9, 0.98):
            assert refusal("arrow", body[: int(share * len(body))]).reason == DAMAGED

    def test_something_else(self):
        assert refusal("arrow", f"user\n{SECRET}\n".encode() * 9).reason == DAMAGED

    def test_wrong_types(self):
        nested = pa.table({"user": [[SECRET]]})
        expected = "column 'user' must hold whole numbers, byte strings or texts"
        assert refusal("arrow", arrow_bytes(nested)).reason == expected
        coded = pa.DictionaryArray.from_arrays([0], nested["user"].chunk(0))
        assert refusal("arrow", arrow_bytes(pa.table({"user": coded}))).reason == expected
        for values in ([math.nan], [True], [pa.MonthDayNano([1, 2, 3])], [date(2026, 11, 21)]):
            body = arrow_bytes(pa.table({"user": values}))
            assert refusal("arrow", body).reason == expected
            assert refusal("arrow", body, ADDRESS).reason == expected

    def test_types_that_python_does_not_know(self):
        body = arrow_bytes(pa.table({"user": [pa.MonthDayNano([1, 2, 3])]}))
        for at in range(len(body)):  # one of these is the unit of the interval
            if body[at] == 2:
                with suppress(InputError):
                    BodyReader([USER]).read("arrow", body[:at] + b"\0" + body[at + 1 :])

    @pytest.mark.parametrize(
        "column",
        [
            pa.array([5, None], pa.uint8()),
            pa.array([5, None]).dictionary_encode(),
            pa.array([b"a", None], pa.large_binary()),
            pa.array([b"ab", None], pa.binary(2)).dictionary_encode(),
            pa.array([b"a", None], pa.binary_view()),
            pa.nulls(2),
        ],
    )
    def test_other_types_of_ids(self, column):
        body = arrow_bytes(pa.table({"user": column}))
        assert rows("arrow", body) == [(value,) for value in column.to_pylist()]

    def test_uuids(self):
        numbers = pa.array([bytes(16), b"x" * 16], pa.binary(16))
        body = arrow_bytes(pa.table({"user": pa.ExtensionArray.from_storage(pa.uuid(), numbers)}))
        batch, = BodyReader([USER]).read("arrow", body)  # fmt: skip
        assert len(read_ids(batch["user"])[0]) == 2

    def test_invalid_utf8(self):
        column = pa.array([b"\xff8412345"]).view(pa.string())
        assert refusal("arrow", arrow_bytes(pa.table({"user": column}))).reason == DAMAGED

    def test_wrong_offsets(self):
        body = arrow_bytes(pa.table({"user": ["ann", "bob"]}))
        offsets = struct.pack("<3i", 0, 3, 6)
        assert body.count(offsets) == 1
        for wrong in [(0, 3, 1 << 30), (0, -9, 6), (-9, 3, 6)]:
            damaged = body.replace(offsets, struct.pack("<3i", *wrong))
            assert refusal("arrow", damaged).reason == DAMAGED

    @pytest.mark.parametrize("column", [USER, ADDRESS])
    def test_half_an_offset_at_the_end(self, column):
        body = arrow_bytes(pa.table({"user": ["::1", "::2"]}))
        length = struct.pack("<q", 12)
        assert body.count(length) == 1
        error = refusal("arrow", body.replace(length, struct.pack("<q", 15)), column)
        assert error.reason == DAMAGED

    def test_misaligned(self):
        body = arrow_bytes(pa.table({"user": [1, 2, 3], "x": [4, 5, 6]}))
        place = struct.pack("<4q", 0, 0, 0, 24)
        assert body.count(place) == 1
        for start in (1, 4):
            damaged = body.replace(place, struct.pack("<4q", 0, 0, start, 24))
            assert refusal("arrow", damaged).reason == DAMAGED
        moved = body.replace(place, struct.pack("<4q", 0, 0, 8, 24))
        assert rows("arrow", moved) == [(2,), (3,), (4,)]

    def test_compressed_as_before_arrow_1(self):
        sink = pa.BufferOutputStream()
        batch = pa.record_batch({"user": [1]})
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            told = {"ARROW:experimental_compression": "zstd"}
            writer.write_batch(batch, custom_metadata=told)
        expected = "this is compressed as before Arrow 1.0; send it uncompressed"
        assert refusal("arrow", sink.getvalue()).reason == expected

    def test_wrong_codes(self):
        codes = struct.pack("<3i", 0, 1, 0)
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), ["ann", "bob"])
        body = arrow_bytes(pa.table({"user": column}))
        assert body.count(codes) == 1
        for wrong in (2, -1, 1 << 30):
            damaged = body.replace(codes, struct.pack("<3i", 0, wrong, 0))
            assert refusal("arrow", damaged).reason == DAMAGED

    def test_what_nulls_have_is_not_counted(self):
        column = views([20] + [1 << 20] * 99, b"x" * (1 << 20))
        known = pa.py_buffer(b"\x01" + bytes(12))
        column = pa.Array.from_buffers(column.type, 100, [known, *column.buffers()[1:]])
        expected = [("x" * 20,)] + [(None,)] * 99
        assert rows("arrow", arrow_bytes(pa.table({"user": column}))) == expected

    @pytest.mark.parametrize("compression", ["uncompressed", "zstd", "lz4"])
    @pytest.mark.parametrize("write", ["write_ipc", "write_ipc_stream"])
    def test_polars(self, compression, write):
        users = ["ada", "b" * 30, None] * 500
        frame = pl.DataFrame({"x": users, "user": users}).with_columns(
            pl.col("user").cast(pl.Categorical)
        )
        for wanted in (USER, Column("x")):
            body = io.BytesIO()
            getattr(frame, write)(body, compression=compression)
            assert rows("arrow", body.getvalue(), wanted) == [(user,) for user in users]

    def test_a_footer_that_contradicts_a_message(self):
        body = file_bytes(pa.table({"user": [1, 2]}), compression="zstd")
        length = body.index(b"\xff\xff\xff\xff", body.index(b"\xff\xff\xff\xff") + 4)
        block = body.index(struct.pack("<q", length), length + 4)
        metadata = struct.unpack_from("<i", body, block + 8)[0]
        assert struct.unpack_from("<i", body, length + 4)[0] == metadata - 8
        for wrong in (metadata - 8, metadata + 8, 0, -1):
            damaged = bytearray(body)
            struct.pack_into("<i", damaged, block + 8, wrong)
            assert refusal("arrow", damaged).reason == DAMAGED

"""Parquet and Arrow give the same ids from files and pipes, and are refused if damaged."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from panprivacy.errors import InputError
from panprivacy.intake.sources import Column
from tests.unit.reading import (
    DELTA,
    SECRET,
    USER,
    WRITERS,
    batches,
    from_file,
    from_pipe,
    refusal,
    rows,
    stream_bytes,
    table,
)


@pytest.mark.parametrize("writer", WRITERS)
class TestColumnar:
    def kind(self, writer):
        return "parquet" if writer == "parquet" else "arrow"

    def test_columns_in_the_order_asked(self, tmp_path, writer):
        path = tmp_path / "input"
        path.write_bytes(WRITERS[writer](table()))
        wanted = (DELTA, Column("kind"), USER)
        parsed = pa.Table.from_batches(batches(path, *wanted, kind=self.kind(writer)))
        expected = table().select(["delta", "kind", "user"])
        expected = expected.set_column(1, "kind", table()["user"])
        assert parsed.combine_chunks().equals(expected.combine_chunks())

    def test_no_rows(self, tmp_path, writer):
        data = WRITERS[writer](table(0))
        assert from_file(tmp_path, data, USER, kind=self.kind(writer)) == []

    def test_unknown_and_double_columns(self, tmp_path, writer):
        data = WRITERS[writer](table(5))
        error = refusal(from_file, tmp_path, data, Column("usr"), kind=self.kind(writer))
        expected = "there is no column 'usr'; the columns are 'x', 'user', 'kind', 'delta'"
        assert str(error) == expected
        double = pa.table([[1], [2]], names=["user", "user"])
        data = WRITERS[writer](double)
        error = refusal(from_file, tmp_path, data, USER, kind=self.kind(writer))
        assert str(error) == "there are several columns 'user': rename all but one"

    def test_truncated(self, tmp_path, writer):
        data = WRITERS[writer](table())
        name = "Parquet" if writer == "parquet" else "Arrow IPC"
        expected = f"this cannot be read as {name}: it is truncated, damaged or something else"
        for share in (0.0, 0.001, 0.01, 0.3, 0.6, 0.9, 0.98):
            cut = data[: int(share * len(data))]
            error = refusal(from_file, tmp_path, cut, USER, kind=self.kind(writer))
            assert str(error) == expected

    def test_something_else(self, tmp_path, writer):
        data = f"user\n{SECRET}\n".encode() * 9
        error = refusal(from_file, tmp_path, data, USER, kind=self.kind(writer))
        assert "damaged or something else" in str(error)

    @pytest.mark.long
    def test_a_flipped_stretch_is_read_or_refused(self, tmp_path, writer):
        data = bytearray(WRITERS[writer](table(2_000)))
        for start in range(0, len(data), max(1, len(data) // 40)):
            damaged = bytes(data[:start] + b"\xff" * 16 + data[start + 16 :])
            try:
                from_file(tmp_path, damaged, DELTA, kind=self.kind(writer))
            except InputError as error:
                assert re.search("damaged|no column", error.reason)  # noqa: PT017 - may not raise

    def test_through_a_pipe(self, writer):
        data = WRITERS[writer](table(5_000))
        if writer == "stream":
            assert len(from_pipe(data, USER, kind="arrow")) == 5_000
            return
        expected = {
            "parquet": "Parquet cannot be read from a pipe, as its index comes last: "
            "save it to a file, or send Arrow IPC (format arrow)",
            "file": "this is an Arrow file; through a pipe send the Arrow stream format",
        }
        error = refusal(from_pipe, data, USER, kind=self.kind(writer))
        assert str(error) == expected[writer]


def test_a_large_arrow_batch_is_handed_out_in_parts(tmp_path):
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"user": np.arange(600_000)})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    path = tmp_path / "a.arrows"
    path.write_bytes(sink.getvalue())
    parts = batches(path, USER, kind=None)
    assert [part.num_rows for part in parts] == [1 << 18, 1 << 18, 600_000 - (1 << 19)]
    assert pa.Table.from_batches(parts)["user"].to_numpy().tolist() == list(range(600_000))


def test_runs_are_decoded_in_parts_and_show_their_nulls(tmp_path):
    for values in (pa.array(["ada", None]), pa.array(["ada", None]).dictionary_encode()):
        users = pa.RunEndEncodedArray.from_arrays([300_000, 600_000], values)
        path = tmp_path / "runs.arrows"
        batch = pa.record_batch({"user": users})
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        parts = batches(path, USER, kind=None)
        assert [part.num_rows for part in parts] == [1 << 18, 1 << 18, 600_000 - (1 << 19)]
        assert [part.column(0).null_count for part in parts] == [0, 224_288, 75_712]
        assert {part.column(0).type for part in parts} == {pa.string()}


def test_runs_of_a_dictionary_are_refused_on_a_pipe():
    users = pa.RunEndEncodedArray.from_arrays([2], pa.array(["ada"]).dictionary_encode())
    error = refusal(from_pipe, stream_bytes(pa.table({"user": users})), USER, kind="arrow")
    assert "is dictionary-encoded" in str(error)


def test_a_dictionary_would_stay_in_memory_while_a_pipe_is_open(tmp_path):
    dictionary = pa.record_batch({"user": pa.array(["8412345", "8412345"]).dictionary_encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, dictionary.schema) as writer:
        writer.write_batch(dictionary)
    data = sink.getvalue().to_pybytes()
    assert len(from_file(tmp_path, data, USER, kind="arrow")) == 2
    error = refusal(from_pipe, data, USER, kind="arrow")
    assert "send it decoded" in str(error)
    assert "8412345" not in str(error)


def test_fields_of_records_are_columns(tmp_path):
    records = [{"ip": "a", "of": {"id": 7}}, None, {"ip": None, "of": {"id": 8}}]
    table = pa.table({"request": records, "x": [1, 2, 3], "x.y": [4, 5, 6]})
    wanted = [Column(name) for name in ("request.of.id", "x", "request.ip", "x.y")]
    expected = [(7, 1, "a", 4), (None, 2, None, 5), (8, 3, None, 6)]
    path = tmp_path / "visits.parquet"
    pa.parquet.write_table(table, path)
    assert rows(path, *wanted, kind=None) == expected
    for name, new in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        path = tmp_path / f"{name}.arrow"
        with new(str(path), table.schema) as writer:
            writer.write_table(table)
        assert rows(path, *wanted, kind=None) == expected
        error = refusal(rows, path, Column("request.id"), kind=None)
        assert "there is no column 'request.id'" in str(error)

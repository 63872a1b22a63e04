"""Sources are opened by name, read ahead, hold nothing raw while they wait, and are left."""

import io
import os
import sys
import threading
import time
import traceback
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from panprivacy.intake.sources import FORMATS, Column, open_source
from tests.unit.reading import (
    SECRET,
    USER,
    arrow_bytes,
    from_pipe,
    locals_of_thread,
    parquet_bytes,
    pipe,
    refusal,
    rows,
    stream_bytes,
    table,
)


class TestOpen:
    @pytest.mark.parametrize("name", ["a.csv", "A.CSV", "b.jsonl", "b.ndjson"])
    def test_extension_tells_the_format(self, tmp_path, name):
        path = tmp_path / name
        path.write_text('{"user":"ann"}\n' if "b." in name else "user\nann\n")
        assert rows(path, USER, kind=None) == [(b"ann",)]

    @pytest.mark.parametrize("extension", ["arrow", "ipc", "feather", "arrows", "parquet"])
    def test_extension_of_columnar_files(self, tmp_path, extension):
        path = tmp_path / f"a.{extension}"
        write = parquet_bytes if extension == "parquet" else arrow_bytes
        path.write_bytes(write(table(10)))
        assert len(rows(path, USER, kind=None)) == 10

    def test_what_cannot_be_opened(self, tmp_path, monkeypatch):
        formats = "csv, tsv, ndjson, parquet, arrow, combined, lines"
        known = f"name it with format=, of: {formats}"
        folder = ". is a directory, which can be of Parquet"
        (tmp_path / "x.csv").touch()
        (tmp_path / "x.gz").touch()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115, PTH123
        cases = [
            (("y.csv", None), "cannot read y.csv: No such file or directory"),
            ((".", "csv"), f"{folder}: name its files, as './*.csv'"),
            (("a\0b", "csv"), "cannot read a\0b: it is closed, or no file"),
            (("x.csv", "xml"), f"there is no format 'xml'; the formats are {formats}"),
            (("x.gz", None), f"x.gz: the extension does not tell the format; {known}"),
            (("-", None), f"standard input has no extension; {known}"),
        ]  # fmt: skip
        for (path, kind), expected in cases:
            error = refusal(open_source, path, columns=[USER], format=kind)
            assert str(error) == expected
        sys.stdin.close()

    def test_denied(self, tmp_path, monkeypatch):
        def deny(path):
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr(io, "FileIO", deny)
        error = refusal(open_source, "a.csv", columns=[USER])
        assert str(error) == "cannot read a.csv: Permission denied"

    def test_columns_asked_for(self, tmp_path):
        error = refusal(open_source, "a.csv", columns=[USER, USER])
        assert str(error) == "column 'user' is asked for twice"

    @pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "lines"])
    def test_size_and_position(self, tmp_path, kind):
        data = {
            "csv": b"user\nann\n",
            "tsv": b"user\nann\n",
            "ndjson": b'{"user":1}\n',
            "parquet": parquet_bytes(table()),
            "arrow": arrow_bytes(table()),
            "combined": b'user - - [21/Nov/2026:08:00:00 +0000] "GET / HTTP/1.1" 200 5\n',
        }[kind]
        path = tmp_path / "input"
        path.write_bytes(data)
        column = Column("remote_addr") if kind == "combined" else USER
        with open_source(str(path), columns=[column], format=kind) as source:
            assert source.size == len(data)
            assert source.position == 0
            list(source.batches())
            assert source.position == len(data)
            assert list(source.batches()) == []

    def test_standard_input(self, monkeypatch, tmp_path):
        path = tmp_path / "input"
        path.write_bytes(parquet_bytes(table(50)))
        with path.open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert len(rows("-", USER, kind="parquet")) == 50
        with pipe(b"user\nann\n") as path, Path(path).open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert rows("-", USER) == [(b"ann",)]
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"user\nann\n")))
        assert rows("-", USER) == [(b"ann",)]


class TestReadingAhead:
    @pytest.mark.parametrize(
        ("kind", "head", "row"),
        [("csv", b"user\n", b"ann\n"), ("ndjson", b"", b'{"user":"ann"}\n')],
    )
    def test_rows_are_handed_out_before_the_pipe_closes(self, slow, kind, head, row):
        path, write = slow
        with open_source(path, columns=[USER], format=kind) as source:
            assert source.size is None
            stream = source.batches()
            write(head)
            for _ in range(3):
                write(row + row[:2])
                assert next(stream).to_pydict() == {"user": [b"ann"]}
                write(row[2:])
                assert next(stream).to_pydict() == {"user": [b"ann"]}
            assert source.position == 0  # a count of bytes would be state

    def test_arrow_stream_is_handed_out_before_the_pipe_closes(self, slow):
        path, write = slow
        data = stream_bytes(pa.table({"user": [1, 2]}))
        with open_source(path, columns=[USER], format="arrow") as source:
            stream = source.batches()
            write(data[:-8])
            assert next(stream).to_pydict() == {"user": [1, 2]}

    @pytest.mark.parametrize(
        ("kind", "data"),
        [
            ("csv", b"user\n" + SECRET.encode() + b"\n"),
            ("ndjson", b'{"user":"' + SECRET.encode() + b'"}\n'),
            ("arrow", stream_bytes(pa.table({"user": [SECRET]}))[:-8]),
        ],
    )
    def test_nothing_raw_is_held_while_the_pipe_is_silent(self, slow, kind, data):
        path, write = slow
        write(data)
        with open_source(path, columns=[USER], format=kind) as source:
            due = [None]
            stream = source.batches_or_ticks(lambda: due[0])
            assert SECRET in str(next(stream).to_pylist())
            due[0] = time.monotonic() + 0.1
            assert next(stream) is None
            held = [*locals_of_thread(source._thread), *stream.gi_frame.f_locals.values()]
        assert len(held) > 10
        for value in held:
            assert not isinstance(value, pa.RecordBatch | pa.Table)
            assert SECRET not in repr(value)

    def test_ticks_while_the_pipe_is_silent(self, slow):
        path, write = slow
        write(b"user\nann\n")
        due = [None]
        with open_source(path, columns=[USER], format="csv") as source:
            stream = source.batches_or_ticks(lambda: due[0])
            assert next(stream).num_rows == 1
            due[0] = time.monotonic() + 0.05
            for _ in range(3):
                assert next(stream) is None
                assert time.monotonic() >= due[0]
                due[0] += 0.05
            due[0] = None
            write(b"bob\n")
            assert next(stream).to_pydict() == {"user": [b"bob"]}

    def test_a_deadline_ticks_once_even_if_it_stays(self, slow):
        path, write = slow
        write(b"user\nann\n")
        with open_source(path, columns=[USER], format="csv") as source:
            stream = source.batches_or_ticks(lambda: 1.0)
            assert next(stream) is None
            assert next(stream).num_rows == 1

    @pytest.mark.parametrize("kind", ["csv", "ndjson", "arrow"])
    def test_leaving_while_the_pipe_is_silent(self, slow, kind):
        path, _ = slow
        before = threading.active_count()
        with open_source(path, columns=[USER], format=kind) as source:
            assert next(source.batches_or_ticks(time.monotonic)) is None
        assert threading.active_count() == before
        assert list(source.batches()) == []

    def test_leaving_while_batches_wait(self, blocks, tmp_path):
        blocks(10)
        path = tmp_path / "a.csv"
        path.write_bytes(b"user\n" + b"ann\n" * 1_000)
        before = threading.active_count()
        with open_source(str(path), columns=[USER]) as source:
            next(source.batches())
        source.close()
        assert threading.active_count() == before

    def test_leaving_without_reading(self, tmp_path):
        path = tmp_path / "a.csv"
        path.touch()
        with open_source(str(path), columns=[USER]):
            pass

    def test_rows_before_a_bad_one_are_handed_out(self, blocks, tmp_path):
        blocks(16)
        path = tmp_path / "a.csv"
        path.write_bytes(b"user,x\n" + b"ann,1\n" * 50 + SECRET.encode())
        with open_source(str(path), columns=[USER]) as source:
            stream = source.batches()
            handed_out = [next(stream).num_rows for _ in range(10)]
            error = refusal(list, stream)
        assert sum(handed_out) <= 50
        assert error.row == 51

    @pytest.mark.parametrize(
        ("kind", "head", "row"), [("csv", "user,x\n", "ann,1\n"), ("ndjson", "", '{"user":1}\n')]
    )
    def test_the_rows_of_a_pipe_are_counted_within_a_block(self, blocks, kind, head, row):
        """A running count of rows would be state."""
        blocks(16)
        error = refusal(from_pipe, f"{head}{row * 50}{SECRET}\n".encode(), USER, kind=kind)
        assert 1 <= error.row <= 4

    def test_unforeseen_failure_shows_its_type_only(self, monkeypatch, tmp_path):
        def fail(*_, **__):
            raise LookupError(SECRET)

        path = tmp_path / "a.ndjson"
        path.write_bytes(b"{}\n")
        monkeypatch.setattr(pa.json, "read_json", fail)
        with pytest.raises(RuntimeError) as raised:
            rows(path, USER, kind=None)
        assert str(raised.value) == "reading failed with LookupError; please report it"
        assert SECRET not in "".join(traceback.format_exception(raised.value))

"""Sources hand out the same ids however the bytes arrive, and never quote one."""

import csv
import io
import json
import os
import re
import sys
import threading
import time
import traceback
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panprivacy.errors import InputError
from panprivacy.sources import FORMATS, Column, open_source, text

USER = Column("user")
DELTA = Column("delta", integers=True)
SECRET = "8412345"
UNCLOSED = 'a quoted field is still open at the end of the input: a closing " is missing'
LONE_CR = "lines must end in a newline (LF or CRLF), not in a lone carriage return"
NOT_WHOLE = "column 'delta' must hold whole numbers of at most 64 bits"
ONE_TYPE = "here; ids must all be strings, or all be whole numbers of at most 64 bits"
FRACTION = f"column 'user' holds a fraction, or a number beyond 64 bits {ONE_TYPE}"
PROPERTY = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def blocks(monkeypatch):
    """Set the size of a raw block, in bytes."""

    def set_size(size):
        monkeypatch.setattr(text, "BLOCK_BYTES", size)

    return set_size


@contextmanager
def pipe(data=b""):
    """A pipe into which a thread writes; yields its path."""
    reading, writing = os.pipe()
    writer = threading.Thread(target=_write_and_close, args=(writing, data))
    writer.start()
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)
        writer.join()


def _write_and_close(descriptor, data):
    try:
        with os.fdopen(descriptor, "wb") as sink:
            sink.write(data)
    except BrokenPipeError:
        pass


def batches(path, *columns, kind):
    with open_source(str(path), columns=columns, format=kind) as source:
        return list(source.batches())


def rows(path, *columns, kind="csv"):
    """All rows, as tuples of the wanted columns."""
    return [
        tuple(row.values())
        for batch in batches(path, *columns, kind=kind)
        for row in batch.to_pylist()
    ]


def from_file(tmp_path, data, *columns, kind="csv"):
    path = tmp_path / "input"
    path.write_bytes(data)
    return rows(path, *columns, kind=kind)


def from_pipe(data, *columns, kind="csv"):
    with pipe(data) as path:
        return rows(path, *columns, kind=kind)


def refusal(read, *arguments, **keywords):
    """The InputError that reading raises; one line, which holds no id, as does its traceback."""
    with pytest.raises(InputError) as raised:
        read(*arguments, **keywords)
    error = raised.value
    shown = "".join(traceback.format_exception(error)) + repr((vars(error), error.__context__))
    assert SECRET not in shown
    assert "\n" not in str(error)
    assert error.__cause__ is None
    return error


def whole_csv(data):
    """The rows as pyarrow reads them in one piece, or its complaint."""
    try:
        parsed = pa.csv.read_csv(
            pa.BufferReader(data),
            read_options=pa.csv.ReadOptions(use_threads=False),
            parse_options=pa.csv.ParseOptions(
                newlines_in_values=True, ignore_empty_lines=b"page" in data.split(b"\n")[0]
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types={"user": pa.binary(), "page": pa.binary()},
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as error:
        return str(error)
    return [tuple(row.values()) for row in parsed.to_pylist()]


class TestCsv:
    # no carriage return: the writer leaves a lone one unquoted
    cells = st.text(st.sampled_from('ab",\n é;7'), max_size=6)
    tables = st.lists(st.tuples(cells, cells, st.integers(-(2**63), 2**63 - 1)), max_size=8)

    @PROPERTY
    @given(tables, st.integers(1, 40), st.booleans(), st.sampled_from(["\n", "\r\n"]))
    def test_any_cut_gives_the_same_ids(self, blocks, tmp_path, table, size, piped, end):
        blocks(size)
        out = io.StringIO()
        writer = csv.writer(out, lineterminator=end, quoting=csv.QUOTE_MINIMAL)
        writer.writerows([("page", "user", "delta"), *table])
        data = out.getvalue().encode()
        read = from_pipe if piped else lambda *a: from_file(tmp_path, *a)
        expected = [(delta, user.encode() or None) for _, user, delta in table]
        assert read(data, DELTA, USER) == expected

    @PROPERTY
    @given(st.text(st.sampled_from('a",\n\r'), max_size=30), st.integers(1, 20), st.booleans())
    def test_sloppy_quotes_mean_what_they_mean_to_pyarrow(self, blocks, tmp_path, body, size, wide):
        blocks(size)
        names = ["user", "page"][: 1 + wide]
        data = f"{','.join(names)}\n{body if wide else body.replace(',', '')}\n".encode()
        whole = whole_csv(data)
        if isinstance(whole, str):
            error = refusal(from_file, tmp_path, data, USER)
            assert f"Row #{error.row + 1}:" in whole or "still open" in error.reason
            return
        try:
            parsed = from_file(tmp_path, data, *map(Column, names))
        except InputError as error:
            assert "still open" in error.reason  # noqa: PT017 - pyarrow closes it at the end
        else:
            assert parsed == whole

    @pytest.mark.parametrize(
        ("data", "expected"),
        [
            (b"user,x\n", []),
            (b"user,x", []),
            (b"\n\r\nuser,x\n\nann,1\n\n", [b"ann"]),
            (b"user,x\nann,1", [b"ann"]),
            (b"user,x\r\nann,1\r\n", [b"ann"]),
            (b'\xef\xbb\xbf"user",x\nann,1\n', [b"ann"]),
            (b'\xef\xbb\xbf"x\ny",user\n1,ann\n', [b"ann"]),
            (b"x,user,x\n1,ann,2\n", [b"ann"]),
            (b"user,x\n\xff\xfe,1\n", [b"\xff\xfe"]),
            (b'user,x\n007,1\nNA,1\nnull,1\n"",1\n', [b"007", b"NA", b"null", None]),
            (b'user,x\n19" rack,1\n"a\nb",1\n', [b'19" rack', b"a\nb"]),
        ],
    )
    @pytest.mark.parametrize("size", [1, 7, 1 << 20])
    def test_variants(self, blocks, data, expected, size):
        blocks(size)
        assert from_pipe(data, USER) == [(user,) for user in expected]

    def test_tabs(self, tmp_path):
        assert from_file(tmp_path, b"x\tuser\n1,2\tann\n", USER, kind="tsv") == [(b"ann",)]

    def test_types_are_fixed(self, blocks, tmp_path):
        blocks(8)
        path = tmp_path / "a.csv"
        path.write_bytes(b"user,delta\n" + b"12,3\n" * 9 + b"x,\n" * 9)
        schemas = {batch.schema for batch in batches(path, USER, DELTA, kind=None)}
        assert schemas == {pa.schema({"user": pa.binary(), "delta": pa.int64()})}

    @pytest.mark.parametrize(
        ("data", "row", "reason"),
        [
            ("", None, "there is no header line: the input is empty"),
            (
                "x,delta\n8412345\n",
                None,
                "there is no column 'user'; the first line of the input must name the columns",
            ),
            ("user,user,delta\n", None, "there are several columns 'user': rename all but one"),
            ("user,delta\n\n8412345\n", 1, "the header has 2 fields, and this row 1"),
            ("user,delta\na,1\n8412345,1,2\n", 2, "the header has 2 fields, and this row 3"),
            ('user,delta\n"a\n\nb",1\n"8412345', 2, UNCLOSED),
            ('user,"delta\n', None, f"the header line: {UNCLOSED}"),
            ("user,delta\na,1\nb,8412345x\n", 2, NOT_WHOLE),
            ("user,delta\na,84123450000000000000\n", 1, NOT_WHOLE),
            ("user,delta\ra,8412345\r", None, LONE_CR),
            ('{"user":8412345}\n', None, "this looks like NDJSON, not CSV; name the format ndjson"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("size", [1, 9, 1 << 20])
    def test_refusals(self, blocks, tmp_path, data, row, reason, size):
        blocks(size)
        error = refusal(from_file, tmp_path, data.encode(), USER, DELTA)
        assert (error.row, error.reason) == (row, reason)

    def test_header_must_be_utf8(self, tmp_path):
        error = refusal(from_file, tmp_path, "üser\n8412345\n".encode("latin1"), USER)
        assert str(error) == "the header line cannot be read; it must be UTF-8"

    def test_a_first_line_that_names_no_columns_is_not_shown(self, tmp_path):
        error = refusal(from_file, tmp_path, b"8412345,ann\n8412346,bob\n", USER)
        assert "8412345" not in str(error)
        assert "ann" not in str(error)


class TestNdjson:
    strings = st.lists(st.none() | st.text(max_size=5), min_size=1, max_size=8)
    integers = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8)

    @PROPERTY
    @given(strings | integers, st.integers(1, 60), st.booleans(), st.booleans())
    def test_any_cut_gives_the_same_ids(self, blocks, tmp_path, users, size, piped, escaped):
        blocks(size)
        objects = ({"x": [1, {"y": "{"}], "user": user} for user in users)
        lines = [json.dumps(each, ensure_ascii=escaped) for each in objects]
        read = from_pipe if piped else lambda *a, **k: from_file(tmp_path, *a, **k)
        parsed = read("\n".join(lines).encode(errors="ignore"), USER, kind="ndjson")
        expected = [u.encode(errors="ignore") if isinstance(u, str) else u for u in users]
        assert parsed == [(user,) for user in expected]

    @pytest.mark.parametrize(
        ("data", "expected"),
        [
            ("", []),
            ("\n \r\n", []),
            ('\ufeff{"user":"ann"}\r\n{"user":"bob"}', [b"ann", b"bob"]),
            ('{"user":"2020-01-01"}\n{"user":"x"}\n', [b"2020-01-01", b"x"]),
            ('{"user":null}\n{"x":1}\n{"user":5}\n', [None, None, 5]),
            ('{"user":5,"x":1}\n{"user":6,"x":"a"}\n{}\n', [5, 6, None]),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("size", [1, 30, 1 << 20])
    def test_variants(self, blocks, data, expected, size):
        blocks(size)
        parsed = from_pipe(data.encode(), USER, kind="ndjson")
        assert parsed == [(user,) for user in expected]

    def test_type_is_that_of_the_first_value(self, blocks, tmp_path):
        blocks(1)
        path = tmp_path / "a.jsonl"
        path.write_text('{"user":null}\n{"user":7}\n{"user":null}\n')
        kinds = [b.schema.field("user").type for b in batches(path, USER, kind=None)]
        assert kinds == [pa.null(), pa.int64(), pa.int64()]

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ('{"user":8412345', "this is not one JSON object on one line"),
            ("8412345", "this is not one JSON object on one line"),
            ('["8412345"]', "this is not one JSON object on one line"),
            ('{"user":"8412345}', "this is not one JSON object on one line"),
            ('{"user":8412345,"user":2}', "the field 'user' occurs twice"),
            ('{"user":"8412345"}', f"column 'user' holds a string {ONE_TYPE}"),
            ('{"user":true}', f"column 'user' holds true or false {ONE_TYPE}"),
            ('{"user":[8412345]}', f"column 'user' holds a list {ONE_TYPE}"),
            ('{"user":{"8412345":1}}', f"column 'user' holds an object {ONE_TYPE}"),
            ('{"user":8412345.5}', FRACTION),
            ('{"user":84123450000000000000}', FRACTION),
            ('{"user":1,"delta":8412345.5}', NOT_WHOLE),
            ('{"user":1,"delta":"8412345"}', NOT_WHOLE),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("size", [1, 40, 1 << 20])
    def test_refusals(self, blocks, tmp_path, line, reason, size):
        blocks(size)
        good = '{"user":1,"delta":1}\n'
        data = f"{good * 3}\n{line}\n{good}".encode()
        error = refusal(from_file, tmp_path, data, USER, DELTA, kind="ndjson")
        assert (error.row, error.reason) == (4, reason)

    @pytest.mark.parametrize("value", ["true", "[8412345]", "8412345.5"])
    def test_first_value_must_be_an_id(self, tmp_path, value):
        data = f'{{"user":null}}\n{{"user":{value}}}\n'.encode()
        error = refusal(from_file, tmp_path, data, USER, kind="ndjson")
        assert error.row == 2
        assert "ids must all be strings" in str(error)

    def test_strings_turn_into_numbers(self, tmp_path):
        data = b'{"user":"a"}\n{"user":8412345}\n'
        error = refusal(from_file, tmp_path, data, USER, kind="ndjson")
        assert (error.row, error.reason) == (2, f"column 'user' holds a number {ONE_TYPE}")

    def test_field_that_never_occurs(self, tmp_path):
        data = b'\n{"id":8412345,"t":"user"}\n'
        error = refusal(from_file, tmp_path, data, USER, kind="ndjson")
        expected = "there is no field 'user' in the first rows"
        assert str(error) == expected

    def test_deep_nesting_cannot_crash(self, tmp_path):
        deep = b'{"x":' * 100_000 + b"8412345" + b"}" * 100_000
        assert "no field" in str(refusal(from_file, tmp_path, deep, USER, kind="ndjson"))


class TestText:
    @pytest.mark.parametrize("kind", ["csv", "ndjson"])
    def test_refuses_compressed_and_binary_input(self, tmp_path, kind):
        gzip = refusal(from_file, tmp_path, b"\x1f\x8b\x08", USER, kind=kind)
        assert str(gzip) == (
            "this is gzip; decompress it on the way: gzip -dc FILE | panprivacy run - ..."
        )
        parquet = refusal(from_file, tmp_path, b"PAR1\0\0\0", USER, kind=kind)
        assert str(parquet) == "this is Parquet, not text; name the format parquet"

    @pytest.mark.parametrize("start", ["PAR1", "ARROW1"])
    def test_reads_text_that_begins_like_a_binary_file(self, tmp_path, start):
        data = f"{start}_user,b\nada,1\n".encode()
        assert from_file(tmp_path, data, Column(f"{start}_user")) == [(b"ada",)]
        for data in (start.encode(), f"{start}\0\0".encode()):
            assert "not text" in str(refusal(from_file, tmp_path, data, USER))

    def test_refuses_a_record_without_end(self, blocks, monkeypatch, tmp_path):
        blocks(1 << 10)
        monkeypatch.setattr(text, "RECORD_BYTES", 1 << 20)
        data = b'user\na\n"' + f"{SECRET}\n".encode() * (1 << 18)
        error = refusal(from_file, tmp_path, data, USER)
        expected = 'this record is longer than 1 MiB: a closing " may be missing'
        assert (error.row, error.reason) == (2, expected)
        long = b'{"user":"' + SECRET.encode() * (1 << 18)
        error = refusal(from_file, tmp_path, long, USER, kind="ndjson")
        assert (error.row, error.reason) == (1, "this record is longer than 1 MiB")

    def test_long_records_below_the_limit(self, blocks, tmp_path):
        blocks(1 << 10)
        user = b"x\n" * (1 << 16)
        assert from_file(tmp_path, b'user\n"' + user + b'"\n', USER) == [(user,)]


def table(rows=10_000):
    users = pa.array([f"user{i % 977}-{SECRET}" if i % 10 else None for i in range(rows)])
    return pa.table(
        {
            "x": np.arange(rows),
            "user": users,
            "kind": users.dictionary_encode(),
            "delta": np.arange(rows) % 5,
        }
    )


def parquet_bytes(data):
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(data, sink, row_group_size=3_000)
    return sink.getvalue().to_pybytes()


def arrow_bytes(data, new=pa.ipc.new_file, **options):
    sink = pa.BufferOutputStream()
    with new(sink, data.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(data, max_chunksize=3_000)
    return sink.getvalue().to_pybytes()


def stream_bytes(data, **options):
    return arrow_bytes(data, pa.ipc.new_stream, **options)


WRITERS = {"parquet": parquet_bytes, "file": arrow_bytes, "stream": stream_bytes}


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
        known = "csv, tsv, ndjson, parquet, arrow, combined, lines"
        (tmp_path / "x.csv").touch()
        (tmp_path / "x.gz").touch()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115, PTH123
        cases = [
            (("y.csv", None), "cannot read y.csv: No such file or directory"),
            ((".", "csv"), "cannot read .: Is a directory"),
            (("a\0b", "csv"), "cannot read a\0b: it is closed, or no file"),
            (("x.csv", "xml"), f"there is no format 'xml'; the formats are {known}"),
            (("x.gz", None), f"x.gz: the extension does not tell the format; name it: {known}"),
            (("-", None), f"standard input has no extension; name its format: {known}"),
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
        error = refusal(open_source, "a.csv", columns=[])
        assert str(error) == "name at least one column"
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


def locals_of_thread(thread):
    """Every local variable of a thread that waits."""
    frame = sys._current_frames()[thread.ident]
    while frame:
        yield from frame.f_locals.values()
        frame = frame.f_back


class TestReadingAhead:
    @pytest.fixture
    def slow(self):
        """A pipe to write to by hand: its path, and a function that writes."""
        reading, writing = os.pipe()
        yield f"/dev/fd/{reading}", lambda data: os.write(writing, data)
        os.close(writing)
        os.close(reading)

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
        due = [time.monotonic() + 0.05]
        with open_source(path, columns=[USER], format="csv") as source:
            stream = source.batches_or_ticks(lambda: due[0])
            assert next(stream).num_rows == 1
            for _ in range(3):
                assert next(stream) is None
                assert time.monotonic() >= due[0]
                due[0] += 0.05
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


@pytest.mark.parametrize(
    ("text", "row"),
    [("null\n", 1), (' null\n{"id": 1}\n', 1), ('{"id": 1}\n\tnull\n{"id": 2}\n', 2)],
)
def test_a_row_that_is_null_is_refused(tmp_path, text, row):
    path = tmp_path / "rows.ndjson"
    path.write_text(text)
    assert refusal(rows, path, Column("id"), kind="ndjson").row == row

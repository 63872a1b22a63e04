"""Bodies in memory give the ids that files give, or one InputError, in bounded memory."""

import io
import json
import struct
import traceback
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panprivacy.errors import InputError
from panprivacy.intake.sources import (
    MEDIA_TYPES,
    BodyReader,
    Column,
    Prefixes,
    bodies,
    open_source,
)
from panprivacy.tables.ids import read_ids

USER = Column("user")
DELTA = Column("delta", integers=True)
ADDRESS = Column("user", address=Prefixes())
SECRET = "8412345"
NOT_JSON = 'this is not JSON such as {"user": ["ada", "grace"]} or [{"user": "ada"}]'
ONE_JSON = "this must be one JSON value; NDJSON has the media type application/x-ndjson"
UNTOLD = "the fields do not tell how many events this is: send a list of objects, or NDJSON"
NO_OBJECT = "each event of a list must be an object; it may be empty"
TOO_LARGE = "this would unpack to more than 64 MiB; send it in parts"
PROPERTY = settings(
    max_examples=75,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def tuples(batches):
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def rows(kind, body, *columns):
    """All rows of a body, as tuples of the wanted columns."""
    return tuples(BodyReader(columns or [USER]).read(kind, body))


def refusal(kind, body, *columns):
    """The InputError of a body; one line that holds no id, as do its traceback and context."""
    with pytest.raises(InputError) as raised:
        BodyReader(columns or [USER]).read(kind, body)
    error = raised.value
    shown = "".join(traceback.format_exception(error)) + repr((vars(error), error.__context__))
    assert SECRET not in shown
    assert "\n" not in str(error)
    assert error.__cause__ is None
    return error


def refusal_of_events(kind, body):
    with pytest.raises(InputError) as raised:
        BodyReader([]).read(kind, body)
    assert SECRET not in "".join(traceback.format_exception(raised.value))
    return raised.value


def arrow_bytes(data, new=pa.ipc.new_stream, batch_rows=3_000, **options):
    sink = pa.BufferOutputStream()
    with new(sink, data.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(data, max_chunksize=batch_rows)
    return sink.getvalue().to_pybytes()


def file_bytes(data, **options):
    return arrow_bytes(data, pa.ipc.new_file, **options)


def table(count=7_000):
    users = pa.array([f"user{i % 977}-{SECRET}" if i % 10 else None for i in range(count)])
    return pa.table({"x": range(count), "user": users, "kind": users.dictionary_encode()})


def views(lengths, data):
    """A column of views of the first bytes of some data."""
    start = int.from_bytes(data[:4], "little")
    fields = np.array([[length, start, 0, 0] for length in lengths], np.uint32)
    buffers = [None, pa.py_buffer(fields), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string_view(), len(lengths), buffers)


VALID = {
    "int64": np.arange(5).tobytes(),
    "csv": b'user,delta\n"a\nb",1\nc,-2\n',
    "tsv": b"user\tdelta\nann\t1\nbob\t-2\n",
    "ndjson": b'{"user":"ann","delta":1}\n{"user":"b\\u00e9","delta":-2}\n',
    "json": b'{"user": ["ann", "bob"], "delta": [1, -2], "x": {"y": [null]}}',
    "rows": b'[{"user": "ann", "delta": 1}, {"x": "]", "user": null}]',
    "stream": arrow_bytes(pa.table({"user": ["ann", "bob"], "delta": [1, -2]})),
    "dictionary": arrow_bytes(table(50).select(["kind"]).rename_columns(["user"])),
    "views": arrow_bytes(pa.table({"user": views([5, 20], b"x" * 30)})),
    "file": file_bytes(table(20)),
    "zstd": file_bytes(table(400), compression="zstd"),
    "lz4": arrow_bytes(table(400), compression="lz4"),
}
KINDS = dict.fromkeys(VALID, "arrow") | {
    kind: kind for kind in ("int64", "csv", "tsv", "ndjson", "json")
} | {"rows": "json"}  # fmt: skip


def events(kind, body):
    """How many events a body has, of which nothing else is handed out."""
    batches = BodyReader([]).read(kind, body)
    assert all(one.column(0).null_count == one.num_rows for one in batches)
    assert all(one.num_columns == 1 and one.nbytes == 0 for one in batches)
    return sum(one.num_rows for one in batches)


class TestEvents:
    """Where no column is wanted, each row counts, whatever it holds."""

    @pytest.mark.parametrize("name", VALID)
    def test_a_body_has_as_many_events_as_rows(self, name):
        wanted = "kind" if name == "zstd" else "user"
        if name == "json":
            refused = refusal_of_events("json", VALID[name])
            assert str(refused) == UNTOLD
        else:
            assert events(KINDS[name], VALID[name]) == len(
                rows(KINDS[name], VALID[name], Column(wanted))
            )

    @pytest.mark.parametrize(
        ("kind", "body", "count"),
        [
            ("ndjson", b"{}\n{}\n", 2),
            ("ndjson", b"", 0),
            ("csv", b"a,b\n1,2\n,\n3,\n", 3),
            ("json", b"{}", 1),
            ("json", b"[{}, {}]", 2),
            ("json", b"[]", 0),
            ("json", b'{"user": ["a", "b"], "x": [1, 2]}', 2),
            ("json", b'{"user": "a", "x": null}', 1),
            ("int64", bytes(24), 3),
            ("arrow", arrow_bytes(pa.table({"who": ["a"] * 7_000})), 7_000),
        ],
    )
    def test_rows_may_hold_anything_or_nothing(self, kind, body, count):
        assert events(kind, body) == count

    @pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"x":', b"}")])
    def test_json_may_be_nested_as_deep_as_no_stack_ends(self, opening, closing):
        def nested(depth):
            return b'{"user": ' + opening * depth + b"1" + closing * depth + b"}"

        assert events("json", nested(99)) == 1
        refused = refusal_of_events("json", nested(100))
        assert str(refused) == "this JSON is nested more than 100 deep"
        assert events("json", b"[" + nested(100_000) + b"]") == 1  # nothing is looked for in it

    def test_brackets_within_a_text_are_not_nested(self):
        body = b'{"[": "' + rb"\"[" * 200 + rb'\\", "x": "]"}'
        assert events("json", body) == 1

    def test_arrow_rows_without_a_column_count(self):
        batch = pa.record_batch({"who": [1, 2, 3]}).select([])
        with io.BytesIO() as sink:
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            assert events("arrow", sink.getvalue()) == 3

    def test_rows_that_take_no_bytes_are_bounded(self):
        nulls = pa.Array.from_buffers(pa.null(), 1 << 40, [None])
        batch = pa.RecordBatch.from_arrays([nulls], names=["who"]).select([])
        with io.BytesIO() as sink:
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            assert str(refusal_of_events("arrow", sink.getvalue())) == TOO_LARGE

    @pytest.mark.parametrize(
        ("kind", "body", "reason"),
        [
            ("json", f'{{"user": ["{SECRET}", "b"], "x": 1}}'.encode(), UNTOLD),
            ("json", f'{{"user": ["{SECRET}", 1], "x": [1]}}'.encode(), UNTOLD),
            ("json", f"[{SECRET}]".encode(), NO_OBJECT),
            ("json", f'[{{"x": {SECRET}}}, null]'.encode(), NO_OBJECT),
            ("json", f'{{"x": {SECRET}'.encode(), NOT_JSON),
            ("json", b"{}{}", ONE_JSON),
        ],
    )
    def test_what_does_not_tell_how_many_events_it_is_is_refused(self, kind, body, reason):
        assert refusal_of_events(kind, body).reason == reason


class TestInterface:
    def test_media_types(self):
        assert MEDIA_TYPES == {
            "application/vnd.apache.arrow.stream": "arrow",
            "application/vnd.apache.arrow.file": "arrow",
            "application/octet-stream": "int64",
            "application/x-ndjson": "ndjson",
            "application/jsonl": "ndjson",
            "application/json": "json",
            "text/csv": "csv",
            "text/tab-separated-values": "tsv",
        }

    @pytest.mark.parametrize("name", VALID)
    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_any_buffer_at_any_address(self, name, kind):
        expected = rows(KINDS[name], VALID[name])
        assert len(expected) >= 2
        for start in range(8):
            body = memoryview(kind(b"." * start + VALID[name]))[start:]
            assert rows(KINDS[name], body) == expected

    def test_what_is_no_format(self):
        error = refusal("parquet", b"")
        assert str(error).startswith("a body cannot be read as 'parquet'; the formats are csv, tsv")

    def test_too_long(self, monkeypatch):
        monkeypatch.setattr(bodies, "_MOST_BYTES", 1 << 20)
        body = bytes((1 << 20) + 8)
        assert refusal("int64", body).reason == "this is longer than 1 MiB; send it in parts"
        assert len(rows("int64", body[8:])) == 1 << 17

    def test_columns_asked_for(self):
        error = refusal("csv", b"user\n", USER, USER)
        assert str(error) == "column 'user' is asked for twice"

    @pytest.mark.parametrize("name", [name for name in VALID if name != "int64"])
    def test_a_missing_column_is_named(self, name):
        error = refusal(KINDS[name], VALID[name], Column("usr"))
        assert "there is no" in str(error)
        assert "'usr'" in str(error)

    def test_parts_of_bounded_length(self):
        numbers = np.arange(600_000)
        each = {
            "int64": numbers.tobytes(),
            "json": json.dumps({"user": numbers.tolist()}).encode(),
            "arrow": arrow_bytes(pa.table({"user": numbers})),
            "csv": b"user\n" + b"1\n" * 600_000,
        }
        for kind, body in each.items():
            parts = BodyReader([USER]).read(kind, body)
            assert max(part.num_rows for part in parts) <= 1 << 18
            assert sum(part.num_rows for part in parts) == 600_000

    def test_unforeseen_failure_shows_its_type_only(self, monkeypatch):
        def fail(*_, **__):
            raise LookupError(SECRET)

        monkeypatch.setattr(pa.json, "read_json", fail)
        with pytest.raises(RuntimeError) as raised:
            BodyReader([USER]).read("ndjson", b"{}\n")
        assert SECRET not in "".join(traceback.format_exception(raised.value))
        assert raised.value.__context__ is None


def outcome(read):
    """The rows and types, or what is wrong."""
    try:
        batches = list(read())
    except InputError as error:
        return error.reason, error.row
    return tuples(batches), {str(batch.schema) for batch in batches}


def from_file(path, kind, body, columns):
    path.write_bytes(body)
    with open_source(str(path), columns=columns, format=kind) as source:
        yield from source.batches()


class TestSameAsFiles:
    lines = st.lists(
        st.sampled_from(
            [
                b"user,delta", b"user\tdelta", b"ann,1", b"bob\t2", b'"a,b",3', b"192.0.2.1,4", b"",
                b'"', b"\xff\xfe,5", b"x,1.5", b"::1\t9223372036854775808", b'{"user":"ann"}',
                b'{"user":5,"delta":1}', b'{"delta":"x"}', b'{"user":"192.0.2.1","x":[{}]}',
                b'{"user":null}', b'{"user":1.5}', b"{}", b"[1]", b'{"user":"\xff"}',
                b"\xef\xbb\xbf",
            ]
        ),
        max_size=8,
    )  # fmt: skip

    @pytest.mark.long
    @PROPERTY
    @given(lines, st.sampled_from([b"\n", b"\r\n"]), st.sampled_from(["csv", "tsv", "ndjson"]),
           st.sampled_from([[USER], [DELTA, USER], [ADDRESS]]))  # fmt: skip
    def test_text(self, tmp_path, lines, end, kind, columns):
        body = end.join(lines)
        expected = outcome(lambda: from_file(tmp_path / "a", kind, body, columns))
        assert outcome(lambda: BodyReader(columns).read(kind, body)) == expected

    users = st.lists(st.none() | st.text(max_size=20), max_size=9)

    @pytest.mark.long
    @PROPERTY
    @given(users, st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]),
           st.booleans(), st.sampled_from([arrow_bytes, file_bytes]),
           st.sampled_from([None, "zstd", "lz4"]))  # fmt: skip
    def test_arrow(self, tmp_path, users, kind, coded, write, compression):
        column = pa.array(users, pa.string())
        column = column.dictionary_encode() if coded else column.cast(kind)
        data = pa.table({"x": column, "user": column})
        body = write(data, compression=compression)
        expected = outcome(lambda: from_file(tmp_path / "a", "arrow", body, [USER]))
        assert outcome(lambda: BodyReader([USER]).read("arrow", body)) == expected
        assert expected[0] == [(user,) for user in users]

    def test_rows_are_counted_over_the_whole_body(self):
        line = b'{"user":"192.0.2.1"}\n'
        count = (5 << 20) // len(line)
        error = refusal("ndjson", line * count + b'{"user":"x8412345"}', ADDRESS)
        assert (error.reason, error.row) == ("this is not an IP address", count + 1)
        error = refusal("ndjson", line * count + b'{"user":8412345.5}')
        assert error.row == count + 1

    def test_a_type_is_that_of_the_first_value_however_late(self):
        late = b'{"x":1}\n' * 5_000
        assert rows("ndjson", late + b'{"user":"7"}\n')[-1] == (b"7",)
        error = refusal("ndjson", late + b'{"user":"7"}\n{"user":true}\n')
        assert (error.row, "holds true or false here" in error.reason) == (5_002, True)


class TestInt64:
    @PROPERTY
    @given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9))
    def test_numbers(self, numbers):
        body = struct.pack(f"<{len(numbers)}q", *numbers)
        assert rows("int64", body) == [(number,) for number in numbers]

    def test_in_place_unless_misaligned(self):
        body = np.arange(1_000).tobytes()
        batch = BodyReader([USER]).read("int64", body)[0]
        assert batch["user"].buffers()[1].address == pa.py_buffer(body).address
        moved = memoryview(b"." + body)[1:]
        batch = BodyReader([USER]).read("int64", moved)[0]
        assert batch["user"].buffers()[1].address % 8 == 0
        assert batch["user"].to_pylist() == list(range(1_000))

    def test_refusals(self):
        error = refusal("int64", bytes(16), USER, DELTA)
        assert "one column" in str(error)
        assert "no multiple of 8" in str(refusal("int64", SECRET.encode()))
        assert "IP addresses must be texts" in str(refusal("int64", bytes(8), ADDRESS))


class TestText:
    @pytest.mark.long
    def test_many_columns(self):
        body = b"user" + b",a" * (1 << 16) + b"\n"
        assert refusal("csv", body).reason == "the header line names more than 65,536 columns"
        body = b"user" + b",a" * 60_000 + b"\nann" + b"," * 60_000 + b"\n"
        assert rows("csv", body) == [(b"ann",)]


def test_what_is_just_below_the_bounds_is_read():
    zeros = pa.table({"user": np.zeros(8_000_000, np.int64)})
    body = arrow_bytes(zeros, batch_rows=1 << 20, compression="zstd")
    assert len(body) < 1 << 20
    assert sum(batch.num_rows for batch in BodyReader([USER]).read("arrow", body)) == 8_000_000
    coded = pa.DictionaryArray.from_arrays(np.zeros(1_000_000, np.int8), ["x" * 60])
    body = arrow_bytes(pa.table({"user": coded}))
    assert sum(batch.num_rows for batch in BodyReader([USER]).read("arrow", body)) == 1_000_000


edits = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 12),
        st.binary(max_size=9) | st.sampled_from([b'"', b"{", b"[", b",", b"\xff" * 8, b"\0" * 8]),
    ),
    min_size=1,
    max_size=4,
)


def edited(body, changes):
    """A body with some stretches replaced."""
    for share, length, new in changes:
        at = int(share * len(body))
        body = body[:at] + new + body[at + length :]
    return body


@pytest.mark.long
@pytest.mark.parametrize("name", VALID)
@PROPERTY
@given(edits, st.sampled_from([[USER], [ADDRESS], [USER, DELTA]]))
def test_damaged_bodies_are_read_or_refused(name, changes, columns):
    body = edited(VALID[name], changes)
    try:
        batches = BodyReader(columns).read(KINDS[name], body)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - may not raise
        return
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.names == [column.name for column in columns]
        for column in batch.columns:
            with suppress(InputError):
                read_ids(column)

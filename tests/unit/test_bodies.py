"""Bodies in memory give the ids that files give, or one InputError, in bounded memory."""

import io
import json
import math
import struct
import subprocess
import sys
import traceback
from contextlib import suppress
from datetime import date

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panprivacy.errors import InputError
from panprivacy.ids import read_ids
from panprivacy.sources import (
    MEDIA_TYPES,
    Column,
    Prefixes,
    arrow_messages,
    bodies,
    open_source,
    read_body,
)

USER = Column("user")
DELTA = Column("delta", integers=True)
ADDRESS = Column("user", address=Prefixes())
SECRET = "8412345"
DAMAGED = "this cannot be read as Arrow IPC: it is truncated, damaged or something else"
NOT_JSON = 'this is not JSON such as {"user": ["ada", "grace"]} or [{"user": "ada"}]'
ONE_JSON = "this must be one JSON value; NDJSON has the media type application/x-ndjson"
NOT_IDS = (
    "column 'user' must hold ids, or one id: all strings, or all whole numbers of at most 64 bits"
)
UNTOLD = "the fields do not tell how many events this is: send a list of objects, or NDJSON"
NO_OBJECT = "each event of a list must be an object; it may be empty"
NOT_WHOLE = "column 'delta' must hold whole numbers of at most 64 bits"
RAGGED = "there must be one value in each column for each user: 'user' has 2, and 'delta' 1"
TOO_LARGE = "this would unpack to more than 64 MiB; send it in parts"
REPEATED = "a long text or a dictionary is repeated too often; send plain columns, or in parts"
PROPERTY = settings(
    max_examples=75,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def tuples(batches):
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def rows(kind, body, *columns):
    """All rows of a body, as tuples of the wanted columns."""
    return tuples(read_body(kind, body, columns or [USER]))


def refusal(kind, body, *columns):
    """The InputError of a body; one line that holds no id, as do its traceback and context."""
    with pytest.raises(InputError) as raised:
        read_body(kind, body, columns or [USER])
    error = raised.value
    shown = "".join(traceback.format_exception(error)) + repr((vars(error), error.__context__))
    assert SECRET not in shown
    assert "\n" not in str(error)
    assert error.__cause__ is None
    return error


def refusal_of_events(kind, body):
    with pytest.raises(InputError) as raised:
        read_body(kind, body, [])
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
    batches = read_body(kind, body, [])
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
            ("json", f'{{"user": ["{SECRET}", 1]}}'.encode(), UNTOLD),
            ("json", f"[{SECRET}]".encode(), NO_OBJECT),
            ("json", f'[{{"x": {SECRET}}}, null]'.encode(), NO_OBJECT),
            ("json", f'{{"x": {SECRET}'.encode(), NOT_JSON),
            ("json", b"{}{}", ONE_JSON),
        ],
    )
    def test_what_does_not_tell_how_many_events_it_is_is_refused(self, kind, body, reason):
        assert str(refusal_of_events(kind, body)) == reason


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
            parts = read_body(kind, body, [USER])
            assert max(part.num_rows for part in parts) <= 1 << 18
            assert sum(part.num_rows for part in parts) == 600_000

    def test_unforeseen_failure_shows_its_type_only(self, monkeypatch):
        def fail(*_, **__):
            raise LookupError(SECRET)

        monkeypatch.setattr(pa.json, "read_json", fail)
        with pytest.raises(RuntimeError) as raised:
            read_body("ndjson", b"{}\n", [USER])
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

    @PROPERTY
    @given(lines, st.sampled_from([b"\n", b"\r\n"]), st.sampled_from(["csv", "tsv", "ndjson"]),
           st.sampled_from([[USER], [DELTA, USER], [ADDRESS]]))  # fmt: skip
    def test_text(self, tmp_path, lines, end, kind, columns):
        body = end.join(lines)
        expected = outcome(lambda: from_file(tmp_path / "a", kind, body, columns))
        assert outcome(lambda: read_body(kind, body, columns)) == expected

    users = st.lists(st.none() | st.text(max_size=20), max_size=9)

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
        assert outcome(lambda: read_body("arrow", body, [USER])) == expected
        assert expected[0] == [(user,) for user in users]

    def test_rows_are_counted_over_the_whole_body(self):
        line = b'{"user":"192.0.2.1"}\n'
        count = (5 << 20) // len(line)
        error = refusal("ndjson", line * count + b'{"user":"x8412345"}', ADDRESS)
        assert (error.reason, error.row) == ("this is not an IP address", count + 1)
        error = refusal("ndjson", line * count + b'{"user":8412345}')
        assert error.row == count + 1

    def test_a_type_is_that_of_the_first_value_however_late(self):
        late = b'{"x":1}\n' * 5_000
        assert rows("ndjson", late + b'{"user":"7"}\n')[-1] == (b"7",)
        error = refusal("ndjson", late + b'{"user":"7"}\n{"user":8412345}\n')
        assert (error.row, "holds a number here" in error.reason) == (5_002, True)


class TestInt64:
    @PROPERTY
    @given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9))
    def test_numbers(self, numbers):
        body = struct.pack(f"<{len(numbers)}q", *numbers)
        assert rows("int64", body) == [(number,) for number in numbers]

    def test_in_place_unless_misaligned(self):
        body = np.arange(1_000).tobytes()
        batch = read_body("int64", body, [USER])[0]
        assert batch["user"].buffers()[1].address == pa.py_buffer(body).address
        moved = memoryview(b"." + body)[1:]
        batch = read_body("int64", moved, [USER])[0]
        assert batch["user"].buffers()[1].address % 8 == 0
        assert batch["user"].to_pylist() == list(range(1_000))

    def test_refusals(self):
        error = refusal("int64", bytes(16), USER, DELTA)
        assert "one column" in str(error)
        assert "no multiple of 8" in str(refusal("int64", SECRET.encode()))
        assert "IP addresses must be texts" in str(refusal("int64", bytes(8), ADDRESS))


class TestJson:
    columns = st.lists(st.text(max_size=5), max_size=6) | st.lists(
        st.integers(-(2**63), 2**63 - 1), max_size=6
    )

    @PROPERTY
    @given(columns, st.booleans(), st.sampled_from([None, 2]), st.booleans())
    def test_any_layout_gives_the_same_ids(self, users, escaped, indent, as_rows):
        noise = {"x": [1, {"user": "{"}], "": None}
        value = [{**noise, "user": u} for u in users] if as_rows else {**noise, "user": users}
        text = json.dumps(value, ensure_ascii=escaped, indent=indent)
        expected = [u.encode(errors="ignore") if isinstance(u, str) else u for u in users]
        assert rows("json", text.encode(errors="ignore")) == [(user,) for user in expected]

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ('{"user": "ada"}', [(b"ada", None)]),
            ('{"user": 7, "delta": -1}', [(7, -1)]),
            ('\ufeff{"delta": [1, 2], "user": ["2020-01-01", "é"]}\r\n',
             [(b"2020-01-01", 1), ("é".encode(), 2)]),
            ('{"user": [null, 5], "delta": [null, 2]}', [(None, None), (5, 2)]),
            ('{"user": null, "delta": 3}', [(None, 3)]),
            ('{"user": [], "delta": []}', []),
            ("[]", []),
            (' [{"user": "a"}, null, {"delta": 2}, {}] ',
             [(b"a", None), (None, None), (None, 2), (None, None)]),
        ],
    )  # fmt: skip
    def test_variants(self, body, expected):
        wanted = [USER, DELTA] if '"delta"' in body or body == "[]" else [USER]
        expected = [row[: len(wanted)] for row in expected]
        assert rows("json", body.encode(), *wanted) == expected

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ("", NOT_JSON),
            (" \n", NOT_JSON),
            ("8412345", NOT_JSON),
            ('"8412345"', NOT_JSON),
            ('[["8412345"]]', NOT_IDS),
            ('{"user": ["8412345"', NOT_JSON),
            ('{"user": ["8412345"]]', NOT_JSON),
            ('{"user": "8412345"} x', NOT_JSON),
            ("{'user': '8412345'}", NOT_JSON),
            ('{"user": "8412345"}\n{"user": "b"}', ONE_JSON),
            ('[{"user": "8412345"}] [{"user": "b"}]', NOT_JSON),
            ('[{"user": "8412345"}], "x": [1]', NOT_JSON),
            ('[{"user": "8412345"}]], "x": [[1]', NOT_JSON),
            ('[{"user": "8412345"}, {"user": 5}]', NOT_IDS),
            ('{"user": ["8412345", 5]}', NOT_IDS),
            ('{"user": [8412345, "a"]}', NOT_IDS),
            ('{"user": 8412345.5}', NOT_IDS),
            ('{"user": [8412345e0]}', NOT_IDS),
            ('{"user": [84123450000000000000]}', NOT_IDS),
            ('{"user": NaN}', NOT_IDS),
            ('{"user": [1, Infinity]}', NOT_IDS),
            ('{"user": true}', NOT_IDS),
            ('{"user": {"8412345": 1}}', NOT_IDS),
            ('{"user": [["8412345"]]}', NOT_IDS),
            ('{"user": "8412345", "user": "b"}', "the field 'user' occurs twice"),
            ('[{"user": 8412345, "user": 2}]', "the field 'user' occurs twice"),
            ('{"usr": "8412345"}', "there is no field 'user'"),
            ('[{"usr": "8412345"}]', "there is no field 'user'"),
            ('{"user": "\\ud800 8412345"}', NOT_JSON),
        ],
    )  # fmt: skip
    def test_refusals(self, body, reason):
        error = refusal("json", body.encode())
        assert error.reason == reason

    @pytest.mark.parametrize(
        ("delta", "reason"),
        [
            ("[1.5, 1]", NOT_WHOLE),
            ('["8412345", "1"]', NOT_WHOLE),
            ("[1]", RAGGED),
            ("1", RAGGED),
        ],
    )  # fmt: skip
    def test_refused_deltas(self, delta, reason):
        body = f'{{"user": ["8412345", "b"], "delta": {delta}}}'
        assert refusal("json", body.encode(), USER, DELTA).reason == reason

    @pytest.mark.parametrize("body", [b'["8412345"]', b"[8412345, 2]", b'["8412345", null]'])
    def test_values_without_a_field_are_told_where_to_put_them(self, body):
        error = refusal("json", body)
        assert error.reason == 'these are values without a field: send {"user": ["..."]}'

    def test_nothing_but_nulls_has_the_null_type_as_in_ndjson(self):
        for kind, body in (("json", b'{"user": [null], "delta": 1}'),
                           ("ndjson", b'{"user": null, "delta": 1}\n')):  # fmt: skip
            batch = read_body(kind, body, [USER, DELTA])[0]
            assert batch.schema.types == [pa.null(), pa.int64()]

    @pytest.mark.parametrize("bad", [0, 1, 5, 6])
    def test_invalid_utf8_is_refused_and_its_row_named(self, bad):
        users = [b"\xc3\xa9" if row != bad else b"\xc3" for row in range(7)]
        lines = b"".join(b'{"user": "%s"}\n' % user for user in users)
        listed = b'{"user": [%s]}' % b", ".join(b'"%s"' % user for user in users)
        table = b"user\n" + b"".join(b"%s\n" % user for user in users)
        for kind, body in {"ndjson": lines, "json": listed, "csv": table}.items():
            error = refusal(kind, body)
            assert (error.row, error.reason) == (
                bad + 1,
                "column 'user' holds a text that is not UTF-8",
            )

    @pytest.mark.parametrize("close", [True, False])
    def test_nesting_however_deep(self, close):
        deep = b"[" * 1_000_000 + b"]" * 1_000_000 * close
        for kind in ("json", "ndjson"):
            body = b'{"user": 5, "x": ' + deep + b"}"
            if close:
                assert rows(kind, body) == [(5,)]
            else:
                refusal(kind, body)
        refusal("json", deep)

    def test_too_long(self):
        body = b'{"user": "' + b"x" * (64 << 20) + b'"}'
        assert "longer than 64 MiB" in refusal("json", body).reason


class TestText:
    def test_many_columns(self):
        body = b"user" + b",a" * (1 << 16) + b"\n"
        assert refusal("csv", body).reason == "the header line names more than 65,536 columns"
        body = b"user" + b",a" * 60_000 + b"\nann" + b"," * 60_000 + b"\n"
        assert rows("csv", body) == [(b"ann",)]


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
                    read_body("arrow", body[:at] + b"\0" + body[at + 1 :], [USER])

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
        batch, = read_body("arrow", body, [USER])  # fmt: skip
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


def compressed_bomb(write, codec, claim):
    """A compressed buffer that claims to be long."""
    body = write(pa.table({"user": np.zeros(100_003, np.int64)}), compression=codec)
    told = struct.pack("<q", 8 * 3_000)
    assert told in body
    return body.replace(told, struct.pack("<q", claim))


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
from panprivacy._kernels import compile_kernels
from panprivacy.errors import InputError
from panprivacy.sources import Column, read_body

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
        read_body(path.suffix[1:], body, [Column("user")])
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


def test_what_is_just_below_the_bounds_is_read():
    zeros = pa.table({"user": np.zeros(8_000_000, np.int64)})
    body = arrow_bytes(zeros, batch_rows=1 << 20, compression="zstd")
    assert len(body) < 1 << 20
    assert sum(batch.num_rows for batch in read_body("arrow", body, [USER])) == 8_000_000
    coded = pa.DictionaryArray.from_arrays(np.zeros(1_000_000, np.int8), ["x" * 60])
    body = arrow_bytes(pa.table({"user": coded}))
    assert sum(batch.num_rows for batch in read_body("arrow", body, [USER])) == 1_000_000


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


@pytest.mark.parametrize("name", VALID)
@PROPERTY
@given(edits, st.sampled_from([[USER], [ADDRESS], [USER, DELTA]]))
def test_damaged_bodies_are_read_or_refused(name, changes, columns):
    body = edited(VALID[name], changes)
    try:
        batches = read_body(KINDS[name], body, columns)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - may not raise
        return
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.names == [column.name for column in columns]
        for column in batch.columns:
            with suppress(InputError):
                read_ids(column)

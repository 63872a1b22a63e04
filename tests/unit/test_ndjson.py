"""NDJSON gives the same ids however its bytes arrive, and errors never quote one."""

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.intake.sources import Column
from tests.unit.reading import (
    DELTA,
    FRACTION,
    NOT_WHOLE,
    ONE_TYPE,
    PROPERTY,
    USER,
    batches,
    from_file,
    from_pipe,
    refusal,
    rows,
)

BEHIND = "this is not one JSON object on one line: there is more text behind it"
COMMA = "this is not one JSON object on one line: there is a comma behind the last value"
LIST = (
    "this is not one JSON object on one line: NDJSON is no list; "
    "jq -c '.[]' makes lines of a list of objects"
)


class TestNdjson:
    strings = st.lists(st.none() | st.text(max_size=5), min_size=1, max_size=8)
    integers = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8)

    @pytest.mark.long
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

    def test_the_type_of_a_block_is_that_of_its_values(self, blocks, tmp_path):
        blocks(1)
        path = tmp_path / "a.jsonl"
        path.write_text('{"user":null}\n{"user":7}\n{"user":"7"}\n')
        kinds = [b.schema.field("user").type for b in batches(path, USER, kind=None)]
        assert kinds == [pa.null(), pa.int64(), pa.binary()]

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ('{"user":8412345', "this is not one JSON object on one line"),
            ('{"user":8412345},', BEHIND),
            ('{"user":8412345}]', BEHIND),
            ('{"user":8412345,}', COMMA),
            ('{"user":8412345,"x":[1,]}', COMMA),
            ("8412345", "this is not one JSON object on one line"),
            ('["8412345"]', LIST),
            ('{"user":"8412345}', "this is not one JSON object on one line"),
            ('{"user":8412345,"user":2}', "the field 'user' occurs twice"),
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
        assert "ids must be strings" in str(error)

    @pytest.mark.parametrize(("size", "count"), [(1, 2), (1 << 20, 2), (1 << 20, 150)])
    @pytest.mark.parametrize("more", ["", ',"x":{}', ',"x":"\\ud800"'])
    def test_numbers_beside_strings_are_the_same_users(self, blocks, tmp_path, size, more, count):
        """7 and "7" are one user, in plain lines, for pyarrow, and value by value."""
        blocks(size)
        lines = [f'{{"user":"7"{more}}}', f'{{"user":7{more}}}', f'{{"user":-0{more}}}']
        found = from_file(tmp_path, "\n".join(lines * count).encode(), USER, kind="ndjson")
        assert {str(user).strip("b'") for (user,) in found} == {"7", "0"}
        assert len(found) == 3 * count

    @pytest.mark.parametrize("more", ["", ',"x":{}', ',"x":"\\ud800"'])
    def test_ids_of_64_bits_without_a_sign(self, tmp_path, more):
        """They are read as NumPy, pandas and Parquet have them: by their bits."""
        numbers = [2**63 - 1, 2**63, 10**19 - 1, 10**19, 2**64 - 1, -(2**63)]
        lines = "".join(f'{{"user":{number}{more}}}\n' for number in numbers).encode()
        found = from_file(tmp_path, lines, USER, kind="ndjson")
        assert [user % 2**64 for (user,) in found] == [number % 2**64 for number in numbers]
        for number in (2**64, 2 * 10**19, 10**20, -(2**63) - 1):
            line = f'{{"user":{number}{more}}}\n'.encode()
            error = refusal(from_file, tmp_path, line, USER, kind="ndjson")
            assert (error.row, error.reason) == (1, FRACTION)
        line = f'{{"delta":{2**63}{more}}}\n'.encode()
        error = refusal(from_file, tmp_path, line, DELTA, kind="ndjson")
        assert (error.row, error.reason) == (1, NOT_WHOLE)

    @pytest.mark.parametrize(
        "other",
        [
            r'"x\ud800y"', "1e999", "-1E-999", "1" * 400, "NaN", '"\x01"', r'"\"{"', '[{"user":1}]',
            '{"user":"bob","user":3}', '"\t"',
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("also", ["", '{"user":null}\n', '{"user":"\\u0061"}\n'])
    def test_fields_that_nobody_wants_are_not_looked_at(self, tmp_path, other, also):
        text = f'{{"user":"a"}}\n{{"o":{other},"user":"a","p":{other}}}\n{also}'
        found = from_file(tmp_path, text.encode(), USER, kind="ndjson")
        assert found[:2] == [(b"a",), (b"a",)]
        assert len(found) == text.count("\n")

    def test_a_field_of_a_field(self, tmp_path):
        text = (
            '{"user":{"id":7,"of":{"x":"a"}},"t":"user.id"}\n{"user":{"id":"8"}}\n{"user":null}\n'
        )
        wanted = Column("user.id"), Column("user.of.x")
        found = from_file(tmp_path, text.encode(), *wanted, kind="ndjson")
        assert found == [(b"7", b"a"), (b"8", None), (None, None)]
        plain = b'{"user.id":"a"}\n{"user.id":"b","user":{"id":"c"}}\n'
        assert from_file(tmp_path, plain, wanted[0], kind="ndjson") == [(b"a",), (b"b",)]
        error = refusal(from_file, tmp_path, b'{"user":{"di":1}}\n', wanted[0], kind="ndjson")
        assert str(error) == "there is no field 'user.id' in the first rows"

    def test_field_that_never_occurs(self, tmp_path):
        data = b'\n{"id":8412345,"t":"user"}\n'
        error = refusal(from_file, tmp_path, data, USER, kind="ndjson")
        expected = "there is no field 'user' in the first rows"
        assert str(error) == expected

    def test_deep_nesting_cannot_crash(self, tmp_path):
        deep = b'{"x":' * 100_000 + b"8412345" + b"}" * 100_000
        assert "no field" in str(refusal(from_file, tmp_path, deep, USER, kind="ndjson"))


@pytest.mark.parametrize(
    ("text", "row"),
    [("null\n", 1), (' null\n{"id": 1}\n', 1), ('{"id": 1}\n\tnull\n{"id": 2}\n', 2)],
)
def test_a_row_that_is_null_is_refused(tmp_path, text, row):
    path = tmp_path / "rows.ndjson"
    path.write_text(text)
    assert refusal(rows, path, Column("id"), kind="ndjson").row == row

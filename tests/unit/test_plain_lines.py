"""NDJSON that is read in one pass, beside what pyarrow reads."""

import json
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panprivacy.intake.sources import BodyReader, Column
from panprivacy.intake.sources.columns import Prefixes
from panprivacy.intake.sources.json_values import read_values
from panprivacy.intake.sources.plain_lines import read_plain_lines

PIECES = ["{", "}", '"', ":", ",", "\n", " ", "\t", "\r", "\\", "\0", "-", "0", "01", "7", ".5",
          "e1", "[", "]", "null", "true", "false", '"user"', '"u"', '"n"', '"é"', '"\\u0061"',
          "999999999999999999", "9999999999999999999", '{"user":1}\n', "\x1f", "\x7f",
          "E+1", "1" * 19, "1" * 20, "e9", "\\\\"]  # fmt: skip
INTEGERS, TEXTS = {"user": pa.int64()}, {"user": pa.binary()}
VALUES = st.one_of(
    st.integers(-(10**19), 10**19),
    st.text(max_size=4),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.integers(), max_size=2),
)
ROWS = st.lists(
    st.dictionaries(st.sampled_from(["user", "u", "n", "users"]), VALUES, max_size=4), max_size=4
)


def rows_of(table):
    return table.to_pydict()


@st.composite
def blocks(draw):
    """Lines, some of them spoilt."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in draw(ROWS))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines)))
        lines = lines[:at] + draw(st.sampled_from(PIECES)) + lines[at + draw(st.integers(0, 2)) :]
    return lines.encode() + b"\n"


WANTED = {
    "integers": (INTEGERS, [Column("user", integers=True)]),
    "mixed": (TEXTS, [Column("user", address=Prefixes())]),
    "ids": ({"user": pa.null()}, [Column("user")]),
    "two": ({**INTEGERS, "n": pa.null()}, [Column("user", integers=True), Column("n")]),
}


@pytest.mark.long
@settings(max_examples=1_000)
@given(blocks(), st.sampled_from([*WANTED]))
def test_what_it_reads_is_what_each_value_is(block, wanted):
    types, columns = WANTED[wanted]
    table = read_plain_lines(block, types)
    if table is not None:  # then escapes are in fields that nobody wants, where anything may be
        clean = re.sub(rb"\\.", b"__", block)
        assert rows_of(table) == rows_of(read_values(clean, columns))


@pytest.mark.parametrize(
    ("block", "types", "expected"),
    [
        (b'{"user": 7}\n\n {"user" : -0 , "x": null}\r\n', INTEGERS, {"user": [7, 0]}),
        (b'{"user":-999999999999999999}\n', INTEGERS, {"user": [-(10**18) + 1]}),
        (b'{"user":9223372036854775807}\n', INTEGERS, {"user": [2**63 - 1]}),
        (b'{"user":-9223372036854775808}\n', INTEGERS, {"user": [-(2**63)]}),
        (b'{"user":18446744073709551615}\n', {"user": pa.null()}, {"user": [-1]}),
        (b'{"user":7}\n{"user":"7"}\n{"user":-0}\n', TEXTS, {"user": [b"7", b"7", b"0"]}),
        (b'{"u":"\\"\\ud800\t","user":7,"v":-1E+999}\n', INTEGERS, {"user": [7]}),
        (
            '{"ts":1.5,"user":"é"}\n{"user":"","ok":true}\n'.encode(),
            TEXTS,
            {"user": ["é".encode(), b""]},
        ),
        (b'{"user":"7"}\n', {"user": pa.null()}, {"user": [b"7"]}),
        (b'{"user":7}\n', {"user": pa.null()}, {"user": [7]}),
        (
            b'{"d":-1,"user":"a"}\n{"user":"bc","d":2}\n',
            {**TEXTS, "d": pa.int64()},
            {"user": [b"a", b"bc"], "d": [-1, 2]},
        ),
    ],
)
def test_plain_lines_are_read(block, types, expected):
    assert rows_of(read_plain_lines(block, types)) == expected


@pytest.mark.parametrize(
    "block",
    [
        b"\n",
        b"",
        b"null\n",
        b"[]\n",
        b"{}\n",
        b'{"user":null}\n',
        b'{"user":1.0}\n',
        b'{"user":1e1}\n',
        b'{"user":01}\n',
        b'{"user":-}\n',
        b'{"user":1,}\n',
        b'{"user":1,"user":1}\n',
        b'{"user":"1"}\n',
        b'{"user":1}{"user":2}\n',
        b'{"user":\n1}\n',
        b'{"user":1} x\n',
        b'{"x":[1],"user":1}\n',
        b'{"users":1}\n',
        b'{"user":1\n',
        b'{"user":1}\n{"user":"a"}\n',
        b'{"\\u0075ser":1,"user":2}\n',
        b'{"user":9223372036854775808}\n',
        b'{"user":-9223372036854775809}\n',
        b'{"user":9999999999999999999}\n',
        b'{"user":1,"x":"\\\n',
        b'{"user":1,"x":1e}\n',
        b'{"user":-9999999999999999999}\n',
        b'{"user":123456789012345678901234567890}\n',
        b'\xef\xbb\xbf{"user":1}\n',
        b'{"user":1}\n{"x":"\n',
    ],
)
def test_of_all_else_nothing_is_said(block):
    assert read_plain_lines(block, INTEGERS) is None


def test_bodies_are_read_as_one_after_another():
    column = [Column("user")]
    bodies = [b'{"user": "ada"}', b'{"user": "grace"}\n{"user": "ada"}\n']
    _, (batch,) = BodyReader(column).read_together("ndjson", bodies)
    assert batch.to_pydict() == {"user": [b"ada", b"grace", b"ada"]}
    _, (batch,) = BodyReader(column).read_together("int64", [bytes(8), b"\1" * 16])
    assert batch.num_rows == 3


@pytest.mark.parametrize(
    ("kind", "bodies"),
    [
        ("ndjson", [b'{"user":', b"1}"]),
        ("ndjson", [b'{"user":1, "x": "', b'"}\n{"user":1}']),
        ("ndjson", [b'{"user":1}', b'{"user":"a"}']),
        ("ndjson", [b'{"user":"\xff"}', b'{"user":"a"}']),
        ("int64", [b"\1" * 4, b"\1" * 4]),
        ("csv", [b"user\n1\n", b"user\n1\n"]),
    ],
)
def test_where_it_is_not_the_same_each_is_looked_at_by_itself(kind, bodies):
    assert BodyReader([Column("user")]).read_together(kind, bodies) is None

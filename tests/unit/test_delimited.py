"""CSV gives the same ids however its bytes arrive, and errors never quote one."""

import csv
import io

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.errors import InputError
from panprivacy.intake.sources import Column, open_source
from tests.unit.reading import (
    DELTA,
    LONE_CR,
    NOT_WHOLE,
    PROPERTY,
    UNCLOSED,
    USER,
    batches,
    from_file,
    from_pipe,
    refusal,
)


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
    cells = st.text(st.sampled_from('ab",\n é;7\ufeff'), max_size=6)
    tables = st.lists(st.tuples(cells, cells, st.integers(-(2**63), 2**63 - 1)), max_size=8)

    @pytest.mark.long
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

    @pytest.mark.long
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
            (b"user,x\n\xef\xbb\xbfann,1\nann,1\n", [b"\xef\xbb\xbfann", b"ann"]),
            (b"user\nann\n\xef\xbb\xbf\n", [b"ann", b"\xef\xbb\xbf"]),
            (b"x,user,x\n1,ann,2\n", [b"ann"]),
            (b"user,x\nann,\xff\xfe\n", [b"ann"]),
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
                "there is no column 'user'; the columns are 'x', 'delta'",
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


class TestDelimiters:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_the_header_line_tells_the_delimiter(self, blocks, tmp_path, delimiter, end):
        blocks(5)
        table = [["x", "user"], ["1", "ada"], ['"a,;|\tb"', '"gr;ace,\n"'], ["", ""]]
        data = "".join(delimiter.join(row) + end for row in table).encode()
        expected = [(b"ada",), (b"gr;ace,\n",), (None,)]
        assert from_file(tmp_path, data, USER) == from_pipe(data, USER) == expected

    def test_a_name_may_hold_another_delimiter(self, tmp_path):
        assert from_file(tmp_path, b"a;b,user\n1;2,ada\n", USER) == [(b"ada",)]
        assert from_file(tmp_path, b"user;b,c\nx,y\n", Column("user;b")) == [(b"x",)]

    def test_where_rows_are_counted_most_columns_tell(self, tmp_path):
        assert len(from_file(tmp_path, b"a;b;c\n1,5;2;3\n4;5;6\n")) == 2

    @pytest.mark.parametrize("given", ["", ";;", '"', "\n", "é", "\0"])
    def test_what_can_be_no_delimiter(self, given):
        with pytest.raises(InputError, match="one character of ASCII"):
            open_source("a.csv", columns=[USER], delimiter=given)

    def test_one_may_be_given(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_bytes(b"user:x\nada:1\n")
        with open_source(str(path), columns=[USER], delimiter=":") as source:
            assert [batch.to_pylist() for batch in source.batches()] == [[{"user": b"ada"}]]
        with pytest.raises(InputError, match="a delimiter is for the format csv"):
            open_source(str(path), columns=[USER], format="tsv", delimiter=":")


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be", "utf-16-le"])
@pytest.mark.parametrize("size", [1, 3, 64])
def test_utf_16_is_read_by_its_mark(blocks, tmp_path, codec, size):
    blocks(size)
    text = "user,x\nädä,1\n\U0001f600,2\n"
    data = text.encode(codec) if codec == "utf-16" else ("\ufeff" + text).encode(codec)
    expected = [("ädä".encode(),), ("\U0001f600".encode(),)]
    assert from_file(tmp_path, data, USER) == from_pipe(data, USER) == expected
    error = refusal(from_file, tmp_path, data[:-1], USER)
    assert str(error) == "this begins as UTF-16 and does not go on so"

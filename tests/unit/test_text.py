"""Text that is none, or that has no end, is refused."""

import pyarrow as pa
import pytest

from panprivacy.errors import InputError
from panprivacy.intake.sources import Column, text
from panprivacy.intake.sources.columns import StartError
from tests.unit.reading import (
    SECRET,
    USER,
    from_file,
    from_pipe,
    refusal,
)


class TestText:
    @pytest.mark.parametrize("kind", ["csv", "ndjson"])
    def test_refuses_compressed_and_binary_input(self, tmp_path, kind):
        gzip = refusal(from_pipe, b"\x1f\x8b\x08", USER, kind=kind)
        assert str(gzip) == (
            "this is gzip; decompress it on the way: gzip -dc FILE | panprivacy run - ...; "
            "of a body, Content-Encoding: gzip says so"
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


class Pieces:
    """A feed of these pieces, one a read; it keeps what is pushed back."""

    size = skips = None

    def __init__(self, *pieces):
        self._left, self.back = list(pieces), b""

    @property
    def left(self):
        return len(self._left)

    def read_some(self, size):
        assert size > 0
        if self.back:
            taken, self.back = self.back, b""
            return taken
        return self._left.pop(0) if self._left else b""

    def push_back(self, ahead):
        self.back = ahead


@pytest.mark.parametrize(
    ("pieces", "read"),
    [
        ([b"a"] * 9, 7),  # as much as tells a signature, and that no text goes on behind it
        ([b"abcdefgh", b"i"], 1),
        ([b"abcdefg", b"h"], 1),
        ([b"a", b"\n", b"b"], 2),
        ([b"a", b"b"], 2),
        ([], 0),
    ],
)
def test_no_more_is_waited_for_than_tells_what_it_is(pieces, read):
    feed = Pieces(*pieces)
    text.check_start(feed)
    assert (feed.left, feed.back) == (len(pieces) - read, b"".join(pieces[:read]))


@pytest.mark.parametrize(
    ("start", "said"),
    [(b"\x1f\x8b", "gzip"), (b"PAR1", "Parquet"), (b"ARROW1", "Arrow IPC")],
)
def test_a_signature_is_one_however_it_comes_unless_text_goes_on(start, said):
    for after in (b"", b"\0", b"\x1f", b"\n"):
        data = start + after
        with pytest.raises(StartError, match=said):
            text.check_start(Pieces(*(data[at : at + 1] for at in range(len(data)))))
    for after in (b" ", b"a", b"\xff"):
        feed = Pieces(start + after)
        text.check_start(feed)
        assert feed.back == start + after


def test_a_byte_order_mark_is_dropped():
    feed = Pieces(b"\xef\xbb", b"\xbfu\n")
    text.check_start(feed)
    assert feed.back == b"u\n"


def test_a_record_may_have_64_mib_and_no_more():
    block, count = b"x" * (2 << 20), 32
    (record,) = text.complete_records(Pieces(*[block] * count), text.Lines())
    assert len(record) == (64 << 20) + 1
    with pytest.raises(InputError, match=r"longer than 64 MiB$") as refused:
        list(text.complete_records(Pieces(*[block] * count, b"x"), text.Lines()))
    assert refused.value.row == 1


def test_a_record_is_as_long_as_what_follows_the_last_newline(monkeypatch):
    monkeypatch.setattr(text, "RECORD_BYTES", 4)
    pieces = [b"ab", b"cd\nefgh", b"\nij", b"kl"]
    found = list(text.complete_records(Pieces(*pieces), text.Lines()))
    assert found == [b"abcd\n", b"efgh\n", b"ijkl\n"]
    with pytest.raises(InputError, match="longer than"):
        list(text.complete_records(Pieces(b"a\nbcdef"), text.Lines()))


def test_plain_lines_have_no_quotes():
    assert text.Lines().open_quote is False


def chunked(rows, kind):
    return pa.chunked_array([rows[:2], rows[2:]], kind)


@pytest.mark.parametrize("make", [pa.array, chunked])
@pytest.mark.parametrize("rows", range(1, 8))
def test_the_first_text_that_is_not_utf_8_is_named_by_its_row(rows, make):
    for first in range(rows):
        users = [b"ann"] * rows
        users[first] = b"\xff"
        for second in range(first + 1, rows):
            users[second] = b"\xc3"
        columns = [pa.chunked_array([pa.array(range(rows))]), make(users, pa.binary())]
        table = pa.table(columns, names=["delta", "user"])
        with pytest.raises(InputError) as refused:
            text.check_utf8(table)
        assert refused.value.row == first + 1
        assert refused.value.reason == "column 'user' holds a text that is not UTF-8"


def test_what_is_utf_8_or_no_text_is_as_it_was():
    names = pa.array(["é".encode(), None, b""], pa.binary())
    table = pa.table({"user": names, "delta": [1, 2, 3]})
    assert text.check_utf8(table) is table
    batch = pa.record_batch({"user": names})
    assert text.check_utf8(batch) is batch


def test_rows_of_a_file_are_counted_from_block_to_block_and_of_a_pipe_are_not():
    def parse(block):
        if b"bad" in block:
            raise InputError("no", row=1 + block.split(b"\n").index(b"bad"))
        return pa.table({"user": block.splitlines()})

    blocks = [b"a\n" * 5, b"b\n" * 5, b"c\nbad\n"]
    for size, row in ((None, 2), (1, 12)):
        feed = Pieces()
        feed.size = size
        with pytest.raises(InputError, match="no") as refused:
            list(text.parsed(feed, iter(blocks), parse, text.Lines()))
        assert refused.value.row == row

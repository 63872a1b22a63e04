"""Text that is none, or that has no end, is refused."""

import pytest

from panprivacy.sources import Column, text
from tests.unit.reading import (
    SECRET,
    USER,
    from_file,
    refusal,
)


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

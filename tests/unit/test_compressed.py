"""Compressed files are read as what is in them, or refused as what they are."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from panprivacy.intake.sources import Column
from panprivacy.intake.sources.compressed import packing_of
from tests.unit.reading import USER, from_pipe, refusal, rows, stream_bytes

CSV = b"user,x\n" + b"".join(b"u%d,1\n" % n for n in range(5_000))
USERS = [(b"u%d" % n,) for n in range(5_000)]


def zipped(**members):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return sink.getvalue()


def zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


PACKED = {
    "gzip": (gzip.compress, ".csv.gz"),
    "zstd": (zstd, ".csv.zst"),
    "xz": (lzma.compress, ".csv.xz"),
    "bzip2": (bz2.compress, ".csv.bz2"),
    "zip": (lambda data: zipped(visits=data), ".csv.zip"),
}


@pytest.mark.parametrize("name", PACKED)
def test_a_compressed_file_is_read(name, tmp_path):
    pack, extension = PACKED[name]
    path = tmp_path / f"visits{extension}"
    path.write_bytes(pack(CSV))
    assert rows(path, USER, kind=None) == USERS
    assert packing_of(path.read_bytes()).name == name


@pytest.mark.parametrize("name", ["gzip", "xz", "bzip2", "zstd"])
def test_several_parts_are_read_one_after_another(name, tmp_path):
    pack, _ = PACKED[name]
    path = tmp_path / "visits"
    path.write_bytes(pack(CSV[:9_000]) + pack(CSV[9_000:]))
    assert rows(path, USER) == USERS


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_file_is_refused(name, damage, tmp_path):
    packed = bytearray(PACKED[name][0](CSV))
    if damage == "cut":
        del packed[len(packed) // 2 :]
    else:
        middle = len(packed) // 2
        packed[middle : middle + 40] = bytes(40)
    path = tmp_path / "visits"
    path.write_bytes(packed)
    assert str(refusal(rows, path, USER)) == f"this {name} file is truncated, damaged or encrypted"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        *(("gzip", "gzip -dc"), ("zstd", "zstd -dc"), ("xz", "xz -dc")),
        *(("bzip2", "bzip2 -dc"), ("zip", "unzip -p")),
    ],
)
def test_through_a_pipe_the_command_is_named(name, command):
    """A decompressor would hold ids while the pipe is silent."""
    said = str(refusal(from_pipe, PACKED[name][0](CSV), USER))
    expected = f"this is {name}; decompress it on the way: {command} FILE | panprivacy run - ..."
    if name in {"gzip", "zstd"}:
        expected += f"; of a body, Content-Encoding: {name} says so"
    assert said == expected


@pytest.mark.parametrize("kind", ["csv", None])
def test_a_zip_of_several_files_is_refused(kind, tmp_path):
    path = tmp_path / "visits.zip"
    path.write_bytes(zipped(a=CSV, b=CSV))
    assert "holds 2 files" in str(refusal(rows, path, USER, kind=kind))


@pytest.mark.parametrize("name", ["c.zip", "visits.2026.zip", "C.ZIP"])
def test_the_file_within_a_zip_tells_the_format(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(zipped(**{"folder/visits.csv": CSV}))
    assert rows(path, USER, kind=None) == USERS


@pytest.mark.parametrize("content", [b"PK\x03\x04", zipped(visits=CSV), None])
def test_a_zip_that_does_not_tell_the_format_is_refused(content, tmp_path):
    path = tmp_path / "visits.zip"
    if content:
        path.write_bytes(content)
    assert "the extension does not tell the format" in str(refusal(rows, path, USER, kind=None))


OTHERS = {
    "lz4": (b"\x04\x22\x4d\x18\x60\x40\x82", ".lz4", "lz4 -dc"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0", ".7z", "7z x -so"),
    "compress": (b"\x1f\x9d\x90u\xe6\x94", ".Z", "uncompress -c"),
    "lzip": (b"LZIP\x01\x0c\0", ".lz", "lzip -dc"),
    "lzma": (lzma.compress(CSV, lzma.FORMAT_ALONE), ".lzma", "xz --format=lzma -dc"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_compressed_file_is_refused_as_what_it_is(name, tmp_path):
    data, extension, command = OTHERS[name]
    path = tmp_path / f"visits.csv{extension}"
    path.write_bytes(data)
    expected = f"this is {name}; decompress it on the way: {command} FILE | panprivacy run - ..."
    assert str(refusal(rows, path, USER, kind=None)) == expected
    assert str(refusal(from_pipe, data, USER)) == expected


def test_other_formats_within_a_compressed_file(tmp_path):
    table = pa.table({"user": ["ada", "grace"]})
    path = tmp_path / "visits.arrow.gz"
    path.write_bytes(gzip.compress(stream_bytes(table)))
    assert rows(path, USER, kind=None) == [("ada",), ("grace",)]
    path.write_bytes(gzip.compress(b'{"user":"ada"}\n'))
    assert rows(path, USER, kind="ndjson") == [(b"ada",)]
    sink = io.BytesIO()
    pq.write_table(table, sink)
    path.write_bytes(gzip.compress(sink.getvalue()))
    assert "this is gzip, in which Parquet cannot be read" in str(
        refusal(rows, path, USER, kind="parquet")
    )


@pytest.mark.parametrize("text", [b"BZh9user,x\n", b"PKuser\n", b"7zXZ\n", b"BZh91\n", b""])
def test_text_that_begins_alike_is_text(text, tmp_path):
    assert packing_of(text) is None
    path = tmp_path / "visits.csv"
    path.write_bytes(text + b"a,1\n")
    if b"x" in text:
        assert rows(path, Column("BZh9user")) == [(b"a",)]

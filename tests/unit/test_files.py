"""Files that are whole or not there."""

from __future__ import annotations

import os
import stat
import threading

import pytest

from panprivacy.errors import InputError
from panprivacy.ground import files


class Disk:
    """What is told to the disk, in order."""

    def __init__(self, monkeypatch):
        self.done = []
        fsync, replace = os.fsync, files.Path.replace

        def synced(number):
            kind = "folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file"
            self.done.append((kind, os.fstat(number).st_size if kind == "file" else None))
            fsync(number)

        def replaced(path, target):
            self.done.append(("renamed", path.stat().st_size))
            return replace(path, target)

        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(files.Path, "replace", replaced)


def test_a_file_is_on_the_disk_before_its_name_and_the_name_before_the_return(
    tmp_path, monkeypatch
):
    disk = Disk(monkeypatch)
    files.replace_file(tmp_path / "state", b"x" * 1_000)
    assert disk.done == [("file", 1_000), ("renamed", 1_000), ("folder", None)]


def test_what_is_not_a_folder_has_no_names(tmp_path):
    """A descriptor of a file would have its content written, and not its name."""
    file = tmp_path / "state"
    file.touch()
    with pytest.raises(NotADirectoryError):
        files.sync_names(file)


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_a_file_is_read_up_to_a_limit(tmp_path, size):
    file = tmp_path / "state"
    file.write_bytes(bytes(size))
    assert files.read_at_most(file, size) == bytes(size)
    assert files.read_at_most(file, 1 << 40) == bytes(size)
    if size:
        with pytest.raises(InputError, match=f"state is too long: it may have {size - 1:,} bytes"):
            files.read_at_most(file, size - 1)


def test_a_sparse_file_of_a_terabyte_is_refused(tmp_path):
    file = tmp_path / "state"
    with file.open("wb") as opened:
        opened.truncate(1 << 40)
    with pytest.raises(InputError, match="it may have 1,000 bytes"):
        files.read_at_most(file, 1_000)


@pytest.mark.parametrize(("size", "fits"), [(200_000, True), (200_001, False)])
def test_a_pipe_is_read_up_to_a_limit(tmp_path, size, fits):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write():
        try:
            pipe.write_bytes(bytes(size))
        except BrokenPipeError:
            assert not fits

    thread = threading.Thread(target=write)
    thread.start()
    try:
        if fits:
            assert files.read_at_most(pipe, 200_000) == bytes(size)
        else:
            with pytest.raises(InputError):
                files.read_at_most(pipe, 200_000)
    finally:
        thread.join()

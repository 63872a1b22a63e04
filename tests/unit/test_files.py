"""Files that are whole or not there."""

from __future__ import annotations

import os
import stat

import pytest

from panprivacy import files


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

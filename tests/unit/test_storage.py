"""Where a device keeps its state: in one file, of one program."""

from __future__ import annotations

import os

import pytest

from panprivacy.devices.federated import storage as module
from panprivacy.devices.federated.storage import FileStorage
from panprivacy.errors import PlanError
from panprivacy.ground.files import unfinished


@pytest.fixture
def path(tmp_path):
    return tmp_path / "device"


def test_what_was_written_last_is_read(path):
    with FileStorage(path) as storage:
        assert storage.read() is None
        storage.write(b"one")
        storage.write(b"other")
        assert storage.read() == b"other"
    with FileStorage(str(path)) as again:
        assert again.read() == b"other"


def test_a_second_program_is_refused_until_the_first_closes(path):
    first = FileStorage(path)
    with pytest.raises(PlanError, match=r"another program has opened .*: a device is one program"):
        FileStorage(path)
    first.close()
    first.close()
    FileStorage(path).close()


def test_a_closed_storage_takes_nothing(path):
    with FileStorage(path) as storage:
        storage.write(b"one")
    with pytest.raises(PlanError, match="the storage is closed: open it again"):
        storage.write(b"other")
    assert path.read_bytes() == b"one"


@pytest.mark.parametrize("replaced", [False, True])
def test_a_lock_that_was_removed_is_noticed(path, replaced):
    with FileStorage(path) as storage:
        beside = path.with_name("device.lock")
        beside.unlink()
        if replaced:
            beside.touch()
        with pytest.raises(PlanError, match="was removed, so that another program may be"):
            storage.write(b"one")
    assert not path.exists()


def test_what_a_crash_left_half_written_is_removed(path):
    left = unfinished(path)
    left.write_bytes(b"half")
    with FileStorage(path):
        assert not left.exists()


def test_a_lock_is_its_owners_and_no_link(path):
    with FileStorage(path):
        assert path.with_name("device.lock").stat().st_mode & 0o777 == 0o600
    path.with_name("device.lock").unlink()
    path.with_name("device.lock").symlink_to(path.with_name("elsewhere"))
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        FileStorage(path)
    assert not path.with_name("elsewhere").exists()


@pytest.mark.parametrize("there", [False, True])
def test_a_storage_that_may_have_written_is_closed(path, monkeypatch, there):
    """The state is in its place, and its name may be lost in a crash: nothing follows it."""

    def failing(path, state):
        if there:
            path.write_bytes(state)
        raise OSError(28, "full")

    with FileStorage(path) as storage:
        monkeypatch.setattr(module, "replace_file", failing)
        with pytest.raises(OSError, match="full"):
            storage.write(b"one")
        monkeypatch.undo()
        if there:
            with pytest.raises(PlanError, match="the storage is closed"):
                storage.write(b"other")
        else:
            storage.write(b"other")
    assert path.read_bytes() == (b"one" if there else b"other")
    assert os.path.lexists(path.with_name("device.lock"))

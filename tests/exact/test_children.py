"""Children in which programs are tried: what they find comes back, and nothing else does."""

from __future__ import annotations

import ctypes
import os
import signal
import tempfile
from pathlib import Path

import pytest

from panprivacy.audit.exact import children
from panprivacy.audit.exact.children import (
    ChildError,
    RaisedError,
    end_with_parent,
    in_a_child,
)

PR_GET_PDEATHSIG = 2


def where():
    Path("left").write_text("behind")
    return [
        os.getpid(),
        str(Path.cwd()),
        [one.name for one in Path().iterdir()],
        tempfile.gettempdir(),
    ]


def test_what_is_found_in_a_child_comes_back_from_a_folder_that_is_gone():
    before = tempfile.tempdir
    process, folder, found, scratch = in_a_child(where)
    assert process != os.getpid()
    assert found == ["left"]
    assert scratch == "."
    assert not Path(folder).exists()
    assert Path.cwd() != Path(folder)
    assert tempfile.tempdir == before


def test_a_child_changes_nothing_here():
    kept = [1]
    assert in_a_child(kept.append, 2) is None
    assert kept == [1]


def leaving():
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("run", "last"),
    [(leaving, "SystemExit: 3"), (lambda: 1 // 0, "division by zero"), (object, "serializable")],
)
def test_what_fails_in_a_child_is_raised_with_its_traceback(run, last):
    with pytest.raises(RaisedError, match=r"(?s)Traceback.*" + last):
        in_a_child(run)


def without_memory():
    raise MemoryError


@pytest.mark.parametrize(
    "run", [lambda: os._exit(0), lambda: os.kill(os.getpid(), 9), without_memory]
)
def test_a_child_that_ends_without_a_word_has_found_nothing(run):
    with pytest.raises(ChildError, match="ended, or took too long") as error:
        in_a_child(run)
    assert not isinstance(error.value, RaisedError)


def test_a_child_of_another_parent_ends_at_once():
    with pytest.raises(ChildError, match="ended, or took too long"):
        in_a_child(end_with_parent, os.getppid())


def signal_of_death():
    """What the system sends this process once its parent has ended."""
    found = ctypes.c_int()
    ctypes.CDLL(None).prctl(PR_GET_PDEATHSIG, ctypes.byref(found), 0, 0, 0)
    return found.value


def test_a_child_ends_with_its_parent():
    assert in_a_child(signal_of_death) == signal.SIGKILL


def open_files():
    return set(Path("/proc/self/fd").iterdir())


def test_a_child_leaves_no_open_file():
    before = open_files()
    in_a_child(int)
    with pytest.raises(RaisedError):
        in_a_child(leaving)
    assert open_files() <= before


def test_what_has_not_all_been_written_in_time_is_nothing(monkeypatch):
    monkeypatch.setattr(children, "_LONGEST", 0.01)
    reader, writer = os.pipe()
    try:
        os.write(writer, b"[1, nu")
        assert children._read_all(reader) == b""
    finally:
        os.close(reader)
        os.close(writer)


def test_a_child_writes_numbers_of_any_length():
    assert in_a_child(lambda: len(str(10**6_000))) == 6_001


def test_a_child_that_hangs_is_not_waited_for_any_longer(monkeypatch):
    monkeypatch.setattr(children, "_LONGEST", 0.05)
    fork, forked = os.fork, []
    monkeypatch.setattr(os, "fork", lambda: forked.append(fork()) or forked[-1])
    reads = os.pipe()
    try:
        with pytest.raises(ChildError, match="took too long"):
            in_a_child(os.read, reads[0], 1)
    finally:
        for one in reads:
            os.close(one)
    with pytest.raises(ChildProcessError):
        os.waitpid(forked[0], os.WNOHANG)  # it was killed and waited for

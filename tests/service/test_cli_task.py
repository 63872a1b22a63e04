"""The command `panprivacy task`."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.service.test_collector import made


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kind", "median"], "--kind must be one of"),
        (["--kind", "mean"], "needs --most"),
        (["--kind", "mean", "--most", "3"], "delta above 0"),
        (["--kind", "count-nonzero", "--most", "3"], "takes no --most"),
        (["--kind", "histogram", "--most", "0"], "most must be"),
        (["--kind", "count-nonzero", "--epsilon", "101"], "epsilon"),
    ],
)
def test_a_task_that_cannot_be_is_refused_in_one_line(tmp_path, options, message):
    words = ["--horizon", "1", "--epsilon", "1", "--signer", tmp_path / "signer"]
    result = run_command("task", tmp_path / "task.json", *words, *options)
    assert result.code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr
    assert not (tmp_path / "task.json").exists()


WORDS = ["--kind", "count-nonzero", "--horizon", "1", "--epsilon", "1"]


@pytest.mark.parametrize("failing", ["task.json", "task.secret", "signer", "stdout"])
def test_a_task_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch, failing):
    """The disk is full: a file is there then, with nothing in it."""
    real = os.open

    def opened(path, flags, mode=0o777, **given):
        if Path(path).name == f"{failing}.new" and flags & os.O_CREAT:
            os.close(real(path, flags, mode, **given))
            return real(path, os.O_RDONLY)  # so that it cannot be written to
        return real(path, flags, mode, **given)

    class Full(io.StringIO):
        def flush(self):
            raise OSError(28, "No space left on device")

    (tmp_path / "another").write_text("stays")
    with monkeypatch.context() as patched:
        if failing == "stdout":
            patched.setattr(io, "StringIO", Full)
        else:
            patched.setattr(os, "open", opened)
        with contextlib.suppress(OSError):
            words = [*WORDS, "--signer", tmp_path / "signer"]
            assert run_command("task", tmp_path / "task.json", *words).code != 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another"]


def test_secrets_are_their_owners_from_the_moment_they_are_there(tmp_path, monkeypatch):
    modes, real = {}, os.open

    def opened(path, flags, mode=0o777, **given):
        file = real(path, flags, mode, **given)
        modes[Path(path).name.removesuffix(".new")] = os.fstat(file).st_mode & 0o777
        return file

    before = os.umask(0)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", opened)
            made(tmp_path)
    finally:
        os.umask(before)
    assert (modes["task.secret"], modes["signer"]) == (0o600, 0o600)
    after = [(tmp_path / name).stat().st_mode & 0o777 for name in ("task.secret", "signer")]
    assert after == [0o600, 0o600]
    assert (tmp_path / "task.json").stat().st_mode & 0o777 == 0o644


def test_no_file_is_overwritten(tmp_path):
    made(tmp_path)
    before = (tmp_path / "task.secret").read_bytes()
    words = ["--horizon", "1", "--epsilon", "1", "--signer", tmp_path / "signer"]
    again = run_command("task", tmp_path / "task.json", "--kind", "count-nonzero", *words)
    assert again.code == 2
    assert "there already" in again.stderr
    assert (tmp_path / "task.secret").read_bytes() == before

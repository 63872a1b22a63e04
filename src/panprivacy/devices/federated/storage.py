"""Storage of a device's state: one file, replaced as a whole."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self

from panprivacy.errors import PlanError
from panprivacy.ground.files import read_at_most, replace_file, sync_names, unfinished

_MOST_BYTES = 1 << 30


class Storage(Protocol):
    """Keeps one state."""

    def read(self) -> bytes | None:
        """Return the state that was written last; None if there is none."""

    def write(self, state: bytes) -> None:
        """Put a state in place of the one before; it is on the disk when this returns."""


class FileStorage:
    """A file in a folder that its owner alone can read.

    When `write` returns, the new state is on the disk; until then the old one is, whatever happens.
    A file that a crash left unfinished is removed when the storage is opened. While it is open no
    other program can open it: two would report twice.

    Args:
        path: of the file. Beside it are `PATH.lock`, which stays and is empty, and, while it is
            written, `PATH.new`.

    Raises:
        PlanError: another program has opened it.
        OSError: the folder cannot be written to.
    """

    __slots__ = ("_beside", "_lock", "_path")

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._beside = self._path.with_name(f"{self._path.name}.lock")
        flags = os.O_CREAT | os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        self._lock = -1
        self._lock = os.open(self._beside, flags, 0o600)
        try:
            self._take()
        except BaseException:
            self.close()
            raise

    def _take(self) -> None:
        """Take the lock, and sync the file to disk: it may be the result of a failed write."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another program has opened {self._path}: a device is one program"
            raise PlanError(message) from None
        self._check()
        unfinished(self._path).unlink(missing_ok=True)
        sync_names(self._path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Let another program open it."""
        if self._lock >= 0:
            with suppress(OSError):
                os.close(self._lock)
            self._lock = -1

    def read(self) -> bytes | None:
        """Return the state that was written last; None if there is none."""
        with suppress(FileNotFoundError):
            return read_at_most(self._path, _MOST_BYTES)
        return None

    def write(self, state: bytes) -> None:
        """Put a state in place of the one before; it is on the disk when this returns.

        Raises:
            PlanError: the storage is closed, or its lock was removed.
            OSError: it cannot be written, as when the disk is full. The file is as it was; or it is
                not known whether it is, and then the storage is closed.
        """
        self._check()
        try:
            replace_file(self._path, state)
        except OSError:
            if self.read() == state:  # but a power cut may bring the old one back
                self.close()
            raise

    def _check(self) -> None:
        """Raise unless this is the one program that may write."""
        if self._lock < 0:
            message = "the storage is closed: open it again"
            raise PlanError(message)
        try:
            removed = not os.path.samestat(self._beside.lstat(), os.fstat(self._lock))
        except FileNotFoundError:
            removed = True
        if removed:
            message = f"{self._beside} was removed, so that another program may be this device: "
            message += "leave it where it is, and open the storage again"
            raise PlanError(message)

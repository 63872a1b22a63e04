"""The vault: one folder, on the coordinator's node, with the last sealed state of each shard.

A shard that restarts begins here, wherever it runs. Each start has its own number, the
incarnation, and only the last one may store states: so of two processes that both consider
themselves the shard, for example after a network partition, one can continue. A process without
an answer of the vault for the time of a lease ends itself, and no other node continues before
that: there are never two.

The vault opens nothing. Beside the sealed states it has in memory the reports of their shards, all
of them public: the state of each report is on the disk.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypedDict

from panprivacy.cluster.queues import Position
from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.ground.files import read_at_most, replace_file, sync_names, unfinished
from panprivacy.ground.sealing import MOST_SEALED
from panprivacy.service.kept.pulse import since_boot
from panprivacy.service.outgoing.records import StoreError
from panprivacy.tables.slices import Slice

LEASE: Final = 10.0
"""Seconds that a process continues as a shard without an answer of the vault."""
_PATIENCE: Final = 30.0
"""Seconds within which the vault of a coordinator that has just died releases the folder."""
_PAUSE: Final = 0.1


class ShardReport(TypedDict):
    """Public report about a stream's state in one shard.

    Args:
        window: start of the window that is counted, in seconds since 1970.
        released: number of contributions made of it.
        announced: number of intrusions announced to it.
        pending: window and number of the contributions that are stored until they are settled.
        position: queue position through which all messages are counted.
        public: the key to which messages are sealed.
        whole: whether no message of the window is known to be lost.
    """

    window: float
    released: int
    announced: int
    pending: list[tuple[float, int]]
    position: Position
    public: bytes
    whole: bool


class SilentError(StoreError):
    """The vault does not answer."""


class GoneError(SilentError):
    """The vault will never answer again: Ray has ended on its node."""


class LeasedError(StoreError):
    """A process on another node may still consider itself the shard: call again."""


class FencedError(PanPrivacyError):
    """Another process continues as this shard, or none does any more: end."""


@dataclass(slots=True)
class _Shard:
    """State of a shard in the vault, besides its file.

    Args:
        answered: time of the last answer to its process; for an earlier process, the vault's start.
        node: the node of the process; None if it is not known.
    """

    answered: float
    node: str | None = None
    incarnation: int = 0
    number: int = 0
    report: Mapping[str, ShardReport] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Vault:
    """Store of the sealed states of shards; thread-safe.

    Args:
        path: path of the checkpoint in the configuration: file names add the shard to it.
        clock: seconds on a clock that cannot be set.

    Raises:
        PlanError: the folder cannot be used, or another vault has it.
    """

    def __init__(self, path: Path | str, clock: Callable[[], float] = since_boot) -> None:
        self._path, self._clock, self._born = Path(path), clock, clock()
        self._lock = threading.Lock()
        self._shards: dict[Slice, _Shard] = {}
        self._latest = 0
        self._folder = self._locked()

    def begin(self, part: Slice, node: str = "") -> tuple[int, bytes | None]:
        """Start an incarnation of a shard: earlier ones can store nothing from now on.

        Args:
            part: the slice of the shard.
            node: the node of the process. A node starts none before its last one has ended.

        Returns:
            The incarnation, and the sealed states to resume from; None if there are none.

        Raises:
            StoreError: the file cannot be read now.
            LeasedError: a process on another node may still consider itself the shard.
        """
        shard = self._shard(part)
        with shard.lock:
            with self._lock:  # a vault that restarts reuses no earlier number
                self._latest = max(self._latest + 1, time.time_ns())
                shard.incarnation, shard.number = self._latest, 0
            try:
                sealed = read_at_most(self._file(part), MOST_SEALED)
            except FileNotFoundError:
                sealed = None
            except OSError as error:
                raise _failed(error, "read") from None
            left = shard.answered + LEASE - self._clock()
            if node != shard.node and sealed is not None and left > 0:
                message = f"another process may be shard {part} for {left:.1f} seconds more"
                raise LeasedError(message)
            shard.node, shard.answered = node, self._clock()
            return shard.incarnation, sealed

    def keep(
        self,
        part: Slice,
        incarnation: int,
        number: int,
        sealed: bytes,
        report: Mapping[str, ShardReport],
    ) -> None:
        """Store the states of a shard on the disk, in place of the earlier ones, before it returns.

        Calls may overtake each other, such as calls that timed out: the later states stay.

        Args:
            part: the slice of the shard.
            incarnation: the incarnation that `begin` returned to the caller.
            number: number of these states within this incarnation; it increases.
            sealed: the sealed states.
            report: the public reports about them, by stream.

        Raises:
            FencedError: another process has begun as this shard. The file is as it was.
            StoreError: they cannot be written now, or later ones were. The file is as it was.
        """
        shard = self._shard(part)
        with shard.lock:
            if shard.incarnation != incarnation:
                message = f"another process goes on as shard {part}; this one ends"
                raise FencedError(message)
            shard.answered = self._clock()
            if number <= shard.number:
                message = f"a later state of shard {part} was to be kept already"
                raise StoreError(message)
            shard.number = number
            try:
                replace_file(self._file(part), sealed)
            except OSError as error:
                raise _failed(error, "written") from None
            shard.report = report

    def report(self) -> dict[Slice, tuple[int, Mapping[str, ShardReport]]]:
        """Return the incarnation and the last report of each shard that has stored a state."""
        with self._lock:
            known = dict(self._shards)
        return {
            part: (shard.incarnation, report)
            for part, shard in known.items()
            if (report := shard.report) is not None
        }

    def found(self) -> list[tuple[int, int]]:
        """Return the shards with states, as pairs: number from 0, and number of shards."""
        name = re.escape(self._path.stem), re.escape(self._path.suffix)
        pattern = re.compile(r"{}-(\d+)-of-(\d+){}".format(*name))
        matches = [pattern.fullmatch(one.name) for one in self._path.parent.iterdir()]
        return sorted((int(one[1]) - 1, int(one[2])) for one in matches if one is not None)

    def remove(self, shard: int, shards: int) -> None:
        """Remove the states of a shard that is no longer used; may be repeated.

        Raises:
            StoreError: the file cannot be removed now.
        """
        with self._lock:
            known = {part: one for part, one in self._shards.items() if _is(part, shard, shards)}
            for part in known:
                del self._shards[part]
        for one in known.values():
            with one.lock:
                one.incarnation, one.report = 0, None
        file = self._named(shard, shards)
        try:
            for path in (unfinished(file), file):
                path.unlink(missing_ok=True)
            sync_names(file.parent)
        except OSError as error:
            raise _failed(error, "removed") from None

    def close(self) -> None:
        """Release the folder to another vault."""
        os.close(self._folder)

    def _shard(self, part: Slice) -> _Shard:
        with self._lock:
            return self._shards.setdefault(part, _Shard(self._born))

    def _file(self, part: Slice) -> Path:
        return self._named(part.shard, part.shards)

    def _named(self, shard: int, shards: int) -> Path:
        path = self._path
        return path.with_name(f"{path.stem}-{shard + 1}-of-{shards}{path.suffix}")

    def _locked(self) -> int:
        """Lock a file that one vault can hold; the system releases it when the process ends.

        Raises:
            PlanError: another vault holds it, or it cannot be created.
        """
        path, until = self._path.with_name(f"{self._path.name}.lock"), time.monotonic() + _PATIENCE
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            reason = _failed(error, "kept")
            message = f"{self._path.parent} cannot be used: {reason}"
            raise PlanError(message) from None
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            if time.monotonic() > until:
                os.close(lock)
                message = f"another cluster keeps its states in {self._path.parent}: stop it first"
                raise PlanError(message)
            time.sleep(_PAUSE)


def _is(part: Slice, shard: int, shards: int) -> bool:
    return (part.shard, part.shards) == (shard, shards)


def _failed(error: OSError, what: str) -> StoreError:
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    message = f"a sealed state cannot be {what}: {reason}"
    return StoreError(message)

"""A shard at work: it reads its queues, counts, and seals its states.

A thread for each stream reads messages in order and counts them. Each second another one seals
positions and slices together, and has the vault store them; messages in a stored state are removed
from the queues. So a crash at any point loses nothing that was in a queue, and counts nothing
twice.

The caller may be in another process: arguments and results are public or sealed, and errors are
messages of this package, without the frames that raised them.
"""

from __future__ import annotations

import functools
import math
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, ParamSpec, Protocol, TypeVar

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.marks import Message, WindowRelease, before_mark
from panprivacy.cluster.queues import Position, Queue
from panprivacy.cluster.shard import ShardStream
from panprivacy.cluster.vault import LEASE, FencedError, LeasedError, ShardReport, SilentError
from panprivacy.errors import InputError, PanPrivacyError, without_frames
from panprivacy.ground.hygiene.doctor import findings
from panprivacy.ground.hygiene.wiping import wipe_traces
from panprivacy.ground.kernels import wipe_stack
from panprivacy.ground.sealing import check_recipient, has_identity, seal, unseal_with
from panprivacy.service.config.config import ClusterConfig
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.kept.pulse import since_boot
from panprivacy.service.kept.troubles import Troubles
from panprivacy.service.outgoing.records import StoreError
from panprivacy.statistics.containers import parted, resume_all
from panprivacy.tables.slices import Slice

_MOST: Final = 64
"""Maximum number of messages that are fetched at once."""
_PULL_SECONDS: Final = 0.25
_GATHER_SECONDS: Final = 0.1
"""Seconds for which messages gather before they are fetched together, which is cheaper."""
_PAUSE: Final = 1.0
"""Seconds until a failed task is tried again."""
_WATCH_SECONDS: Final = 0.5
PATIENCE: Final = 10.0
"""Seconds that a call waits for messages to be counted or for the vault before it fails."""
_IDENTITY_SECONDS: Final = 30.0

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """Configuration of a worker; all of it is public, as Ray stores it.

    Args:
        part: its slice.
        streams: the configuration of each stream, by name.
        begins: start of the first window of each stream, used if the stream has no state.
        cluster: the configuration of the broker and the identity.
        recipient: public key of age to which states are sealed.
        every: seconds from one sealed state to the next.
        names: results of `Worker.names` for each stream, from before the number of shards changed.
        key_seconds: minimum time for which messages are sealed to one key, from when it is in a
            stored state; it opens for the same time again.
    """

    part: Slice
    streams: Mapping[str, StreamConfig]
    begins: Mapping[str, float]
    cluster: ClusterConfig
    recipient: str
    every: float = 1.0
    names: Mapping[str, bytes] = field(default_factory=dict)
    key_seconds: float = 3_600.0

    def opened(self, sealed: bytes) -> bytes:
        """Return the unsealed data; private keys are in memory only for the time that takes.

        The key of the recipient has to be there too: what is sealed from now on has to open.

        Raises:
            InputError: a private key is missing or wrong.
        """
        keys = self._identities()
        if not has_identity(keys, self.recipient):
            message = "no private key here is that of recipient in [checkpoint]: give that one, "
            message += "and after a change of recipient the one of before as well"
            raise InputError(message)
        try:
            return unseal_with(sealed, keys)
        except InputError as error:
            message = f"{error}: after a change of recipient, give the private key of before too"
        raise InputError(message)

    def _identities(self) -> str:
        """Return the private keys, one a line."""
        if self.cluster.identity_command is None:
            keys = os.environ.get(self.cluster.identity, "")
            if not keys:
                message = f"this node has no variable {self.cluster.identity} with the private key"
                raise InputError(message)
            return "\n".join(keys.split())
        try:
            done = subprocess.run(  # noqa: S603 - the operator's own command
                self.cluster.identity_command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_IDENTITY_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            message = "identity_command did not print the private key"
            raise InputError(message) from None
        return done.stdout.decode(errors="replace")


class AnyVault(Protocol):
    """The vault, in this process or another one."""

    def begin(self, part: Slice) -> tuple[int, bytes | None]:
        """Start an incarnation; see `Vault.begin`."""

    def keep(
        self,
        part: Slice,
        incarnation: int,
        number: int,
        sealed: bytes,
        report: Mapping[str, ShardReport],
    ) -> None:
        """Store sealed states; see `Vault.keep`."""


def _plainly(method: Callable[P, T]) -> Callable[P, T]:
    """Raise errors without frames, and without messages that could show a state."""

    @functools.wraps(method)
    def called(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return method(*arguments, **named)
        except PanPrivacyError as error:
            raise without_frames(error) from None
        except Exception as error:  # noqa: BLE001 - of whatever kind
            message = f"failed with {type(error).__name__}"
        raise PanPrivacyError(message)

    return called


class Worker:
    """Counter of the queues of one shard; thread-safe.

    Guarantee: that of its slices. A message that the broker has is counted once, whenever the
    process dies; a contribution that was returned is in a state that the vault has.
    [docs/guarantees/cluster.md, tests/cluster/test_worker.py]

    Args:
        config: its configuration.
        vault: stores its states.
        fenced: called when another process continues as this shard, or soon may.
    """

    def __init__(
        self, config: WorkerConfig, vault: AnyVault, fenced: Callable[[], None] = lambda: None
    ) -> None:
        self._config, self._vault, self._fenced = config, vault, fenced
        part, cluster = config.part, config.cluster
        self._streams = {
            name: ShardStream(
                Queue(cluster.name, name, part.shards, part.shard), one, part, config.begins[name]
            )
            for name, one in config.streams.items()
        }
        self._broker = Broker(
            cluster.nats, credentials=cluster.credentials, most_bytes=cluster.queue_bytes
        )
        self._troubles = Troubles()
        self._incarnation, self._answered = 0, math.inf
        self._told: Mapping[str, ShardReport] = {}
        self._limits: dict[tuple[str, float, int], Position] = {}
        self._removed: dict[str, Position] = {}
        self._keys: dict[str, tuple[bytes, float]] = {}  # public, and when a state had it first
        self._writing = self._written = 0
        self._changed = threading.Condition()
        self._hurry, self._stopping = threading.Event(), threading.Event()
        self._readers = [
            threading.Thread(target=self._read, args=(one,), name=f"panprivacy-{name}", daemon=True)
            for name, one in self._streams.items()
        ]
        self._keeper = threading.Thread(target=self._run, name="panprivacy-keeper", daemon=True)
        self._keeper.start()
        threading.Thread(target=self._watch, name="panprivacy-lease", daemon=True).start()

    @_plainly
    def troubles(self) -> dict[str, str]:
        """Return the current troubles and missing protections, by name."""
        exposed = {one.name: f"{one.says}; {one.fix}" for one in findings() if not one.ok}
        return {**exposed, **self._troubles.known}

    @_plainly
    def contribute(
        self,
        stream: str,
        window: float,
        number: int,
        through: Position,
        last: bool,  # noqa: FBT001 - of a call that has no names
        next_start: float,
        recipient: str,
        announced: int = 0,
    ) -> bytes:
        """Return a contribution, once the vault has the state that contains it; may be repeated.

        Args:
            stream: the name of the stream.
            window: start of the window.
            number: number of the release, from 1.
            through: the position of its cut in the queue.
            last: whether the window ends with it.
            next_start: start of the next window, if `last`.
            recipient: public key of age to which the contribution is sealed.
            announced: number of intrusions announced to the window before.

        Raises:
            StoreError: it is not ready yet, as the messages or the vault are not. Call again.
            PlanError: it is not the next one.
        """
        check_recipient(recipient)
        one = self._streams[stream]
        if (window, number) not in one.report()["pending"]:
            self._limits[stream, window, number] = through
            self._wait(lambda: one.position >= through, "the messages through the cut")
            try:
                one.contribute(
                    window,
                    number,
                    through=through,
                    last=last,
                    next_start=next_start,
                    announced=announced,
                )
            finally:
                self._limits.pop((stream, window, number), None)
        self._wait_until_sealed()
        return seal(one.contribution(window, number), recipient)

    @_plainly
    def announce(self, stream: str, window: float, total: int) -> None:
        """Announce `total` intrusions in all to a window; the vault has that when this returns.

        Raises:
            StoreError: the vault does not have it yet. Call again.
            BudgetError: that number was not planned.
        """
        self._streams[stream].announce(window, total)
        self._wait_until_sealed()

    @_plainly
    def settled(self, stream: str, window: float, number: int) -> None:
        """Forget a contribution: its release is published."""
        self._streams[stream].settle(window, number)

    @_plainly
    def names(self, stream: str) -> bytes:
        """Return the names of the last parts, sealed like states, for another number of shards.

        Every part is sent to every shard, so all shards have the same names.
        """
        return seal(self._streams[stream].names(), self._config.recipient)

    @_plainly
    def stop(self) -> None:
        """Stop counting, and seal the states."""
        self._stopping.set()
        self._hurry.set()
        self._keeper.join(PATIENCE)
        self._broker.close()

    # Sealing

    def _run(self) -> None:
        while self._troubles.attempt("beginning", self._begin) is not None:
            if self._stopping.wait(_PAUSE):
                return
        for reader in self._readers:
            reader.start()
        while not self._stopping.is_set():
            self._hurry.clear()
            self._write()
            self._troubles.attempt("wiping", wipe_traces)
            self._hurry.wait(self._config.every)
        for reader in self._readers:
            reader.join(PATIENCE)
        self._write()

    def _begin(self) -> None:
        """Resume from the state of the vault."""
        streams = list(self._streams.values())
        incarnation, sealed = self._leased()
        if sealed is not None:
            resume_all(streams, parted(self._config.opened(sealed), streams))
        else:  # a missing or wrong private key is reported now, not after a crash
            self._config.opened(seal(b"", self._config.recipient))
            for name, names in self._config.names.items():
                self._streams[name].know(self._config.opened(names))
        for one in streams:
            self._broker.open(one.queue)
        self._incarnation = incarnation

    def _leased(self) -> tuple[int, bytes | None]:
        """Start an incarnation, once no other process can be this shard."""
        while True:
            asked = since_boot()
            try:
                begun = self._vault.begin(self._config.part)
            except LeasedError:
                if self._stopping.wait(_PAUSE):
                    raise
            else:
                self._answered = asked
                return begun

    def _write(self) -> None:
        with self._changed:  # requests from here on wait for the next state
            self._writing += 1
        if self._troubles.attempt("sealed state", self._keep) is None:
            with self._changed:
                self._written = self._writing
                self._changed.notify_all()

    def _keep(self) -> None:
        taken = {name: one.snapshot() for name, one in self._streams.items()}
        sealed = seal(b"".join(state for state, _ in taken.values()), self._config.recipient)
        report = {name: report for name, (_, report) in taken.items()}
        del taken
        asked = since_boot()
        try:
            self._vault.keep(self._config.part, self._incarnation, self._writing, sealed, report)
        except FencedError:
            self._end_for_another()
            raise
        except SilentError:
            raise
        except StoreError:
            self._answered = asked
            raise
        self._answered, self._told = asked, report
        now = time.monotonic()
        for name, one in report.items():
            public, since = self._keys.get(name, (b"", now))
            self._keys[name] = one["public"], since if public == one["public"] else now

    def _watch(self) -> None:
        """End before another node continues as this shard: two states of an epoch add a look.

        The lease began when the vault was called, which is before it answered.
        """
        while not self._stopping.wait(_WATCH_SECONDS):
            if since_boot() - self._answered > LEASE:
                self._end_for_another()

    def _end_for_another(self) -> None:
        self._stopping.set()
        JOURNAL.error(Event.fenced, shard=str(self._config.part))
        self._fenced()

    # Reading

    def _read(self, stream: ShardStream) -> None:
        what = f"queue of stream {stream.name}"
        while not self._stopping.is_set():
            if self._troubles.attempt(what, partial(self._read_some, stream)) is not None:
                self._stopping.wait(_PAUSE)

    def _read_some(self, stream: ShardStream) -> None:
        """Remove messages that the vault has in a state, and count new ones."""
        name, queue = stream.name, stream.queue
        if (report := self._told.get(name)) and report["position"] != self._removed.get(name):
            self._broker.remove(queue, report["position"])
            self._removed[name] = report["position"]
        due = stream.due
        limit = self._limits.get((name, *due))
        if limit is not None and stream.position >= limit:
            self._stopping.wait(_PULL_SECONDS / 10)
            return
        found = self._broker.pull(queue, stream.position, _MOST, _PULL_SECONDS)
        limit, within = self._within(name, due, found)
        stream.take(within)
        if limit is not None and len(within) < len(found):
            stream.go_on_at(limit)  # the queue was empty at the cut
        wipe_stack()  # the stack of this thread; the keeper wipes the rest
        if not found:
            stream.go_on_at(self._broker.last(queue))
        if len(found) < _MOST and self._is_old(stream):
            stream.rotate()  # all messages sealed to the key before the last one are counted
        with self._changed:
            self._changed.notify_all()
        if len(found) < _MOST and limit is None:
            self._stopping.wait(_GATHER_SECONDS)

    def _is_old(self, stream: ShardStream) -> bool:
        """Return whether senders have had the current key for long, and none has the one before.

        They get a key from a stored state. While none can be stored, they go on with the older one.
        """
        public, since = self._keys.get(stream.name, (b"", math.inf))
        return time.monotonic() - since >= self._config.key_seconds and (
            public == stream.report()["public"]
        )

    def _within(
        self, name: str, due: WindowRelease, found: Sequence[Message]
    ) -> tuple[Position | None, list[Message]]:
        """Return the cut of the next contribution, if it is known, and the messages before it.

        The cut is known from the mark in the queue, or from a request for the contribution.
        """
        before, marked = before_mark(found, due)
        if marked:
            position, _ = found[len(before)]
            cut = Position(position.born, position.sequence - 1)
            self._limits.setdefault((name, *due), cut)
        limit = self._limits.get((name, *due))
        return limit, [one for one in found if limit is None or one[0] <= limit]

    # Waiting

    def _wait_until_sealed(self) -> None:
        with self._changed:
            wanted = self._writing + 1
        self._hurry.set()
        self._wait(lambda: self._written >= wanted, "a sealed state")

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: ready() or self._stopping.is_set(), PATIENCE)
        if ready():
            return
        troubles = "; ".join(self._troubles.known.values())
        message = f"shard {self._config.part} still waits for {what}"
        raise StoreError(f"{message}: {troubles}" if troubles else message)

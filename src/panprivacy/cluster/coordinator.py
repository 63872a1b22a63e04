"""Coordinator of a cluster: runs what is due, like `Keeper` in a single process.

One thread reads the reports of the shards, has each stream make the releases that are due, and
notifies the waiting senders once their rows are in sealed states.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from panprivacy.cluster.gateway import Gateway
from panprivacy.cluster.queues import Position
from panprivacy.cluster.releaser import Releaser
from panprivacy.cluster.shards import Shards
from panprivacy.cluster.vault import GoneError, ShardReport
from panprivacy.ground.hygiene.wiping import wipe_traces
from panprivacy.service.kept.troubles import Troubles
from panprivacy.service.served import Tell

_QUICK: Final = 0.05
"""Seconds to the next check while a sender waits."""
_SLOW: Final = 1.0
_DIRECTORY_SECONDS: Final = 5.0
_OLD_SECONDS: Final = 15.0
"""Seconds after which a shard without reports is shown as a trouble."""
_ENDED: Final = "the cluster has stopped"
_LOST: Final = "the broker was started anew, and may have lost it"

_Place = tuple[str, int]
"""A stream, and the number of one of its shards."""


class Coordinator:
    """Coordinator that has the streams release, and knows which messages are in sealed states.

    Args:
        shards: the shards.
        releasers: one for each stream.
        gateway: sends rows to the shards.
        looks: checks to run every second, by name; a check raises if something is wrong.

    Attributes:
        gone: why the coordinator has stopped the process; None while it can continue.
    """

    durable = True
    gone: GoneError | None = None

    def __init__(
        self,
        shards: Shards,
        releasers: Sequence[Releaser],
        gateway: Gateway,
        looks: Mapping[str, Callable[[], None]],
    ) -> None:
        self._shards, self._releasers, self._gateway = shards, releasers, gateway
        self._looks = looks
        self._troubles = Troubles()
        self._told: Mapping[int, Mapping[str, ShardReport]] = {}
        self._positions: dict[_Place, Position] = {}
        self._moved: dict[int, float] = {}
        self._written: float | None = None
        self._waiting: list[tuple[Tell, dict[_Place, Position]]] = []
        self._lock = threading.Lock()
        self._stopping, self._ended = threading.Event(), False
        self._thread = threading.Thread(
            target=self._run, name="panprivacy-coordinator", daemon=True
        )

    @property
    def written(self) -> float | None:
        """Time at which every shard had reported a sealed state, in seconds since 1970."""
        return self._written

    @property
    def troubles(self) -> dict[str, str]:
        """The current troubles, by name."""
        return {**self._troubles.known, **self._gateway.troubles, **self._missing()}

    def attempt(self, what: str, work: Callable[[], None]) -> str | None:
        """Run a task and store the reason if it fails: the cluster continues."""
        return self._troubles.attempt(what, work)

    def look(self) -> bool:
        """Read the reports of the shards from the vault; return whether all shards have reported.

        Raises:
            GoneError: the vault does not answer, and never will.
            StoreError: it does not answer now.
        """
        self._told = self._shards.report()
        now = time.time()
        for shard, report in self._told.items():
            for stream, one in report.items():
                place, position = (stream, shard), one["position"]
                if self._positions.get(place) != position:
                    self._positions[place], self._moved[shard] = position, now
                self._gateway.know(stream, shard, one["public"])
        everyone = len(self._told) == self._gateway.shards
        if everyone:
            self._written = min(self._moved.values())
        self._tell_those_who_wait()
        return everyone

    def start(self) -> None:
        """Start the releasers, the gateway and the thread."""
        for releaser in self._releasers:
            releaser.begin()
        self._gateway.start()
        self._thread.start()

    def stop(self) -> None:
        """Send the rows taken in so far, have the shards seal them, and end."""
        if self._thread.ident is None:
            return
        self._gateway.stop()
        self._stopping.set()
        self._thread.join()
        self.attempt("shards", self._shards.stop)
        self._tell_the_end()

    def hurry(self) -> None:
        """Do nothing: the shards seal on their own clock."""

    def after_next(self, tell: Tell, since: float) -> None:
        """Call `tell` once, when everything sent by now is in sealed states.

        A queue that was created again since `since` does not show what went into the earlier one.
        """
        with self._lock:
            ended, wanted = self._ended, self._gateway.last_positions()
            lost = self._gateway.reborn >= since
            if not ended and not lost:
                self._waiting.append((tell, wanted))
                return
        tell(_ENDED if ended else _LOST)

    def advance(self) -> None:
        """Read the reports of the shards once, and do what is due."""
        self.attempt("vault", self._look)
        for one in self._releasers:
            report = {shard: of[one.name] for shard, of in self._told.items() if one.name in of}
            self.attempt(f"stream {one.name}", lambda one=one, report=report: one.advance(report))  # type: ignore[misc]

    def _look(self) -> None:
        try:
            self.look()
        except GoneError as error:
            self.gone = error
            raise

    def _run(self) -> None:
        looked = put_up = -math.inf
        while True:
            self.advance()
            if self.gone is not None:  # nobody would count the rows taken in
                self._tell_the_end()
                os.kill(os.getpid(), signal.SIGTERM)
                return
            if time.monotonic() >= put_up + _DIRECTORY_SECONDS:
                put_up = time.monotonic()
                self.attempt("directory", self._gateway.put_directory_up)
            if time.monotonic() >= looked + _SLOW:
                looked = time.monotonic()
                self.attempt("wiping", wipe_traces)
                for what, look in self._looks.items():
                    self.attempt(what, look)
            if self._stopping.wait(self._pause()):
                return

    def _pause(self) -> float:
        """Return the seconds until something is due."""
        if self._waiting or any(one.busy for one in self._releasers):
            return _QUICK
        due = [one.deadline() - time.time() for one in self._releasers]
        return max(0.0, min(*due, _SLOW))

    def _tell_those_who_wait(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for tell, wanted in waiting:
            found = [(self._positions.get(place), position) for place, position in wanted.items()]
            if any(have is not None and have.born > want.born for have, want in found):
                self.attempt("acknowledging", lambda tell=tell: tell(_LOST))  # type: ignore[misc]
            elif all(have is not None and have >= want for have, want in found):
                self.attempt("acknowledging", lambda tell=tell: tell(None))  # type: ignore[misc]
            else:
                with self._lock:
                    self._waiting.append((tell, wanted))

    def _tell_the_end(self) -> None:
        """Notify all current and future waiters that no sealed state will come."""
        with self._lock:
            self._ended, waiting, self._waiting = True, self._waiting, []
        for tell, _ in waiting:
            tell(_ENDED)

    def _missing(self) -> dict[str, str]:
        """Return the shards that report nothing, or for which a release waits."""
        now = time.time()
        silent = {
            shard
            for shard in range(self._gateway.shards)
            if now - self._moved.get(shard, 0.0) > _OLD_SECONDS
        }
        waited = frozenset[int]().union(*(one.missing for one in self._releasers))
        found = {}
        for shard in sorted(silent | waited):
            says = "tells of no sealed state" if shard in silent else "has not contributed"
            wait = "; a release waits for it" if shard in waited else ""
            found[f"shard {shard + 1} of {self._gateway.shards}"] = f"{says}{wait}"
        return found

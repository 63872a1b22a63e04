"""Keeps the appointments of a cluster, as `Keeper` does those of one process.

One thread looks what the shards have told, has each stream make the releases that are due, and
tells those who wait for it that what they sent is in sealed states.
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
from panprivacy.cluster.vault import GoneError, Told
from panprivacy.hygiene.wiping import wipe_traces
from panprivacy.service.kept.troubles import Troubles
from panprivacy.service.served import Tell

_QUICK: Final = 0.05
"""Seconds to the next look while somebody waits."""
_SLOW: Final = 1.0
_DIRECTORY_SECONDS: Final = 5.0
_OLD_SECONDS: Final = 15.0
"""After which it is told that a shard tells nothing."""
_ENDED: Final = "the cluster has stopped"
_LOST: Final = "the broker was started anew, and may have lost it"

_Place = tuple[str, int]
"""A stream, and a shard of it."""


class Coordinator:
    """Has the streams release, and knows what is in sealed states.

    Args:
        shards: count.
        releasers: one of each stream.
        gateway: sends to the shards.
        looks: what is looked at every second, by what it is; it raises if something is wrong.

    Attributes:
        gone: why this cannot go on, and has told the process to stop; None while it can.
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
        self._told: Mapping[int, Mapping[str, Told]] = {}
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
        """When all shards had told of a sealed state, in seconds since 1970."""
        return self._written

    @property
    def troubles(self) -> dict[str, str]:
        """What does not work at the moment, by what it is."""
        return {**self._troubles.known, **self._gateway.troubles, **self._missing()}

    def attempt(self, what: str, work: Callable[[], None]) -> str | None:
        """Do something, and keep the reason if it fails: the cluster goes on."""
        return self._troubles.attempt(what, work)

    def look(self) -> bool:
        """Ask the vault what the shards have told; whether all of them have.

        Raises:
            GoneError: the vault does not answer, and will not any more.
            StoreError: it does not answer now.
        """
        self._told = self._shards.told()
        now = time.time()
        for shard, told in self._told.items():
            for stream, one in told.items():
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
        """Begin."""
        for releaser in self._releasers:
            releaser.begin()
        self._gateway.start()
        self._thread.start()

    def stop(self) -> None:
        """Send what has come, have the shards seal it, and end."""
        if self._thread.ident is None:
            return
        self._gateway.stop()
        self._stopping.set()
        self._thread.join()
        self.attempt("shards", self._shards.stop)
        self._tell_the_end()

    def hurry(self) -> None:
        """Nothing to do: the shards seal on a clock of their own."""

    def after_next(self, tell: Tell, since: float) -> None:
        """Be told, once, when all that was sent by now is in sealed states.

        Where queues are now tells nothing of what went into those that were there before.
        """
        with self._lock:
            ended, wanted = self._ended, self._gateway.sent()
            lost = self._gateway.reborn >= since
            if not ended and not lost:
                self._waiting.append((tell, wanted))
                return
        tell(_ENDED if ended else _LOST)

    def advance(self) -> None:
        """Look at the shards once, and do what is due."""
        self.attempt("vault", self._look)
        for one in self._releasers:
            told = {shard: of[one.name] for shard, of in self._told.items() if one.name in of}
            self.attempt(f"stream {one.name}", lambda one=one, told=told: one.advance(told))  # type: ignore[misc]

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
            if self.gone is not None:  # nobody would ever count what is taken in
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
        """Seconds until something is due."""
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
        """What waits for a sealed state, or will, waits in vain."""
        with self._lock:
            self._ended, waiting, self._waiting = True, self._waiting, []
        for tell, _ in waiting:
            tell(_ENDED)

    def _missing(self) -> dict[str, str]:
        """The shards that tell nothing, or for which a release waits."""
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

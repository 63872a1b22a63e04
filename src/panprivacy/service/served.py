"""What takes in, the web and metrics ask of a stream and its keeper, wherever they count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from panprivacy.guarantee import Guarantee
from panprivacy.programs.counting import Counting
from panprivacy.programs.intake import Columns
from panprivacy.service.batches import Outcome, Sent
from panprivacy.service.config.stream import StreamConfig

Later = Future[bool]
"""Is told when what was sent is counted, or will be whatever crashes; or why it is not."""

Tell = Callable[[str | None], None]
"""Is told that what was counted is on disk, or why it is not."""


@dataclass(frozen=True, slots=True)
class Announced:
    """What is known of an announced intrusion.

    Args:
        window_began: when the window that it counts for began to be counted.
        number: k for the k-th of that window.
        left: how many may still be announced to the current window.
    """

    window_began: datetime
    number: int
    left: int


@dataclass(frozen=True, slots=True)
class Shown:
    """What anybody may know of the current window.

    Args:
        began: when it began to be counted.
        ends: when it ends.
        releases: how many were made.
        announced: how many intrusions were announced.
        state_bytes: the size of the whole state.
    """

    began: datetime
    ends: datetime
    releases: int
    announced: int
    state_bytes: int


def described(
    name: str,
    config: StreamConfig,
    counting: Counting,
    shown: Shown,
    guarantee: Guarantee,
    missing: tuple[datetime, datetime] | None = None,
) -> dict[str, object]:
    """What is counted and promised, for people and programs.

    Args:
        name: of the stream.
        config: what is counted.
        counting: its statistics, or their like.
        shown: what anybody may know of the current window.
        guarantee: to the users of a window.
        missing: from when to when what came may be missing.
    """
    windows, year = guarantee.year(config.window_seconds)
    since, until = (one.isoformat() for one in missing or (shown.began, shown.began))
    return {
        "name": name,
        "statistics": list(counting.statistics),
        "questions": {label: one.plan.question for label, one in counting.statistics.items()},
        "guarantee": str(guarantee),
        **guarantee.document(),
        "year": {"windows": windows, **year.document()},
        "window_seconds": config.window_seconds,
        "zone": config.zone,
        "window_began": shown.began.isoformat(),
        "window_ends": shown.ends.isoformat(),
        "releases_made": shown.releases,
        "releases_planned": counting.planned,
        "intrusions_announced": shown.announced,
        "intrusions_planned": guarantee.intrusions,
        "intrusions_left": guarantee.intrusions - shown.announced,
        "state_bytes": shown.state_bytes,
        "missing_from": None if since == until else since,
        "missing_to": None if since == until else until,
    }


class Served(Protocol):
    """A stream, as those see it who send to it and ask it; safe for several threads."""

    @property
    def name(self) -> str:
        """Of the stream."""

    @property
    def config(self) -> StreamConfig:
        """What is counted."""

    @property
    def columns(self) -> Columns:
        """What is read of each row."""

    @property
    def ends(self) -> datetime:
        """When the current window ends."""

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to the users of a window."""

    @property
    def looks_left(self) -> int:
        """How many intrusions may still be announced to the current window."""

    def begin(self) -> None:
        """Know that what comes is taken in from now on."""

    def mark_incomplete(self) -> None:
        """Mark the current window incomplete: something that came in it was not counted."""

    def begun(self) -> int:
        """How many windows that end with the current one the ledger has, without it."""

    def described(self) -> dict[str, object]:
        """What is counted and promised, for people and programs; it waits for no other thread."""

    def new_batch_id(self) -> bytes | None:
        """For what is taken again until it works; None where what failed has left nothing."""

    def take(self, batches: Sequence[pa.RecordBatch], batch_id: bytes | None = None) -> bool:
        """Count all rows of one `Sent`, or none."""

    def take_together(
        self, several: Sequence[Sent], *, wait: bool = True
    ) -> Sequence[Outcome | Later]:
        """Count what came at the same time in one pass, of each all rows or none."""

    def release(self) -> None:
        """Make one release now."""

    def announce(self, key: bytes) -> Announced:
        """Announce to the current window that somebody has seen its state."""


class Keeping(Protocol):
    """What does by the clock what is due, as those see it who wait for it."""

    @property
    def durable(self) -> bool:
        """Whether what was counted comes onto a disk."""

    @property
    def written(self) -> float | None:
        """When that happened last, in seconds since 1970."""

    @property
    def troubles(self) -> dict[str, str]:
        """What does not work at the moment, by what it is."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """Do what is left to do, and end."""

    def hurry(self) -> None:
        """Write within a second: the service stops, and requests wait for it."""

    def after_next(self, tell: Tell, since: float) -> None:
        """Be told, once, when all that has been counted by now is on disk.

        Args:
            tell: is called with None, or why it is not.
            since: a moment before it came, by `time.monotonic`.
        """

    def attempt(self, what: str, work: Callable[[], None]) -> str | None:
        """Do something, and keep the reason if it fails."""

"""What takes in, the web and metrics ask of a stream and its keeper, wherever they count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from panprivacy.programs.intake import Columns
from panprivacy.service.batches import Outcome, Sent
from panprivacy.service.config.stream import StreamConfig

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
    def looks_left(self) -> int:
        """How many intrusions may still be announced to the current window."""

    def begin(self) -> None:
        """Know that what comes is taken in from now on."""

    def begun(self) -> int:
        """How many windows that end with the current one the ledger has, without it."""

    def described(self) -> dict[str, object]:
        """What is counted and promised, for people and programs; it waits for no other thread."""

    def take(
        self, batches: Sequence[pa.RecordBatch], batch_id: bytes | None = None, *, wait: bool = True
    ) -> bool:
        """Count all rows of one `Sent`, or none."""

    def take_together(self, several: Sequence[Sent], *, wait: bool = True) -> list[Outcome]:
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

    def after_next(self, tell: Tell) -> None:
        """Be told, once, when all that has been counted by now is on disk."""

    def attempt(self, what: str, work: Callable[[], None]) -> str | None:
        """Do something, and keep the reason if it fails."""

"""Interfaces of a stream and its keeper, for intake, web and metrics, wherever counting runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from panprivacy.intake.programs.counting import Counting
from panprivacy.intake.programs.intake import Columns
from panprivacy.privacy.guarantee import Guarantee
from panprivacy.service.batches import Outcome, Submission
from panprivacy.service.config.stream import StreamConfig

Later = Future[bool]
"""Result of a request: set once its rows are counted or sure to be, or to the error."""

Tell = Callable[[str | None], None]
"""Callback: called with None once counted rows are on disk, or with the reason if not."""


@dataclass(frozen=True, slots=True)
class Announced:
    """An announced intrusion.

    Args:
        window_began: the start of the window that it is charged to.
        number: k for the k-th intrusion of that window.
        left: the number of intrusions that may still be announced to the current window.
    """

    window_began: datetime
    number: int
    left: int


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """Public facts about the current window.

    Args:
        began: the start of the window.
        ends: the end of the window.
        releases: the number of releases made.
        announced: the number of announced intrusions.
        state_bytes: the size of the complete state.
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
    shown: WindowFacts,
    guarantee: Guarantee,
    missing: tuple[datetime, datetime] | None = None,
) -> dict[str, object]:
    """Return a description of a stream and its guarantee, for people and programs.

    Args:
        name: of the stream.
        config: the configuration of the stream.
        counting: its statistics, or equal ones.
        shown: the public facts about the current window.
        guarantee: the guarantee to the users of a window.
        missing: the interval in which events may be missing.
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
        "releases_planned": counting.internals.releasing.planned,
        "intrusions_announced": shown.announced,
        "intrusions_planned": guarantee.intrusions,
        "intrusions_left": guarantee.intrusions - shown.announced,
        "state_bytes": shown.state_bytes,
        "missing_from": None if since == until else since,
        "missing_to": None if since == until else until,
    }


class Served(Protocol):
    """A stream, as senders and readers see it; safe for several threads."""

    @property
    def name(self) -> str:
        """Name of the stream."""

    @property
    def config(self) -> StreamConfig:
        """Configuration of the stream."""

    @property
    def columns(self) -> Columns:
        """Columns that are read from each row."""

    @property
    def ends(self) -> datetime:
        """End of the current window."""

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee to the users of a window."""

    @property
    def looks_left(self) -> int:
        """Number of intrusions that may still be announced to the current window."""

    def begin(self) -> None:
        """Start the intake: events before now may be missing from the current window."""

    def mark_incomplete(self) -> None:
        """Mark the current window incomplete: some of its events were not counted."""

    def begun(self) -> int:
        """Return the number of other windows in the ledger that end with the current one."""

    def described(self) -> dict[str, object]:
        """Return a description for people and programs; it waits for no other thread."""

    def new_batch_id(self) -> bytes | None:
        """Return a batch id for retries; None if a failed batch leaves nothing behind."""

    def take(self, batches: Sequence[pa.RecordBatch], batch_id: bytes | None = None) -> bool:
        """Count all rows of one `Submission`, or none."""

    def take_together(
        self, several: Sequence[Submission], *, wait: bool = True
    ) -> Sequence[Outcome | Later]:
        """Count simultaneous requests in one pass; of each request all rows or none."""

    def release(self) -> None:
        """Make one release now."""

    def announce(self, key: bytes) -> Announced:
        """Announce to the current window that somebody has seen its state."""


class Keeping(Protocol):
    """A keeper, as its callers see it: it writes checkpoints and makes releases on a clock."""

    @property
    def durable(self) -> bool:
        """Whether counted rows are written to a disk."""

    @property
    def written(self) -> float | None:
        """Time of the last write, in seconds since 1970; None before the first."""

    @property
    def troubles(self) -> dict[str, str]:
        """Current failures: the reason, by the name of the part that fails."""

    def start(self) -> None:
        """Start the keeper."""

    def stop(self) -> None:
        """Finish the work that is due, and stop."""

    def hurry(self) -> None:
        """Write within a second: the service stops, and requests wait for it."""

    def after_next(self, tell: Tell, since: float) -> None:
        """Call `tell` once, when all that has been counted by now is on disk.

        Args:
            tell: called with None, or with the reason why it is not on disk.
            since: a time before the rows arrived, by `time.monotonic`.
        """

    def attempt(self, what: str, work: Callable[[], None]) -> str | None:
        """Call `work`, and record the reason under `what` if it fails."""

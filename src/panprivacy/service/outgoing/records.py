"""What the release store keeps: lines of the ledger, and answers. All of it is public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

import pyarrow as pa

from panprivacy.errors import PanPrivacyError
from panprivacy.guarantee import Guarantee
from panprivacy.statistics.frames import COLUMNS

MOMENT = pa.timestamp("us", tz="UTC")

FIELDS: Mapping[str, tuple[pa.DataType, str]] = {
    "stream": (pa.string(), "name of the stream"),
    "start": (MOMENT, "when the count of the window began, in UTC"),
    "end": (MOMENT, "when the counting that is released ended; null if no clock cuts the stream"),
    "complete": (pa.bool_(), "whether a whole window was counted, by one process"),
    "number": (pa.int64(), "of the release within its window, from 1"),
    **COLUMNS,
    "released": (MOMENT, "when it was published, in UTC"),
}
"""Of every row that leaves the service, with their meaning; the fields of `Published`."""

NULLABLE = {
    *("end", "argument", "group", "value", "low", "high"),
    *("estimate", "standard_error", "bias", "note"),
}


class StoreError(PanPrivacyError):
    """The database cannot be used now, as when its disk is full or its server is gone.

    The store works again when the database does. Where this comes out of `spend`, the entries may
    be in the ledger or not; nothing of theirs may be published.
    """


class DatabaseError(StoreError):
    """The database itself says so: its words are for the operator, and for no client."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger: a state or a release that was paid for.

    Args:
        stream: name of the stream.
        start: when the count of the window began, in UTC.
        end: when the window ends; None if the stream is not cut by a clock.
        number: 0 for the state itself, k for the k-th release of the window.
        epsilon: what this line costs, in nats.
        payer: a random text by which whoever wrote the line knows it again.
    """

    stream: str
    start: datetime
    end: datetime | None
    number: int
    epsilon: Fraction
    payer: str = ""


@dataclass(frozen=True, slots=True)
class Promised:
    """What was promised to the users of a window when it was paid for.

    Args:
        stream: name of the stream.
        start: when the count of the window began, in UTC.
        epsilon: the loss if somebody sees its state.
        delta: of that loss, and of the loss if nobody does.
        unseen: epsilon if nobody sees its state.
    """

    stream: str
    start: datetime
    epsilon: Fraction
    delta: Fraction
    unseen: Fraction

    @classmethod
    def of(cls, stream: str, start: datetime, guarantee: Guarantee) -> Promised:
        """What a guarantee promises of one window."""
        unseen = guarantee.unseen_loss.epsilon
        return cls(stream, start, guarantee.epsilon, guarantee.delta, unseen)


@dataclass(frozen=True, slots=True)
class Begun:
    """Windows that are in the ledger, and were promised the same.

    Args:
        windows: how many there are.
        seen: of how many of them a look at the state was announced.
        promise: to the users of each of them.
    """

    windows: int
    seen: int
    promise: Guarantee


@dataclass(frozen=True, slots=True)
class Announcement:
    """One announced intrusion into the state of a window.

    Args:
        stream: name of the stream.
        start: when the count of the window began, in UTC.
        number: k for the k-th of the window; of what goes on from window to window, of its life.
        key: SHA-256 of the name that its sender gave it, in hexadecimal digits.
        announced: when, in UTC.
    """

    stream: str
    start: datetime
    number: int
    key: str
    announced: datetime


@dataclass(frozen=True, slots=True)
class Moment:
    """Which release of which window it is; `FIELDS` says what each field means."""

    stream: str
    start: datetime
    end: datetime | None
    number: int
    complete: bool
    released: datetime


@dataclass(frozen=True, slots=True)
class Published:
    """One answer of a release, as everyone may read it; `FIELDS` says what each field means."""

    stream: str
    start: datetime
    end: datetime | None
    complete: bool
    number: int
    statistic: str
    question: str
    argument: int | None
    arguments: str
    group: str | None
    value: float | None
    low: float | None
    high: float | None
    estimate: float | None
    standard_error: float | None
    bias: float | None
    confidence: float
    epsilon: float
    note: str | None
    released: datetime

"""Records of the release store: lines of the ledger, and answers. All of them are public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

import pyarrow as pa

from panprivacy.errors import PanPrivacyError
from panprivacy.privacy.guarantee import Guarantee
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
"""Meaning of each field of a published row; the fields of `Published`."""

NULLABLE = {
    *("end", "argument", "group", "value", "low", "high"),
    *("estimate", "standard_error", "bias", "note"),
}


class StoreError(PanPrivacyError):
    """The database cannot be used now, for example because its disk is full or its server is gone.

    The store works again when the database does. If `spend` raises this, the entries may be in the
    ledger or not; none of their releases may be published.
    """


class DatabaseError(StoreError):
    """An error by the database itself: its message is for the operator, and for no client."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger: a state or a release that was paid for.

    Args:
        stream: name of the stream.
        start: start of the counting of the window, in UTC.
        end: end of the window; None if the stream is not cut by a clock.
        number: 0 for the state itself, k for the k-th release of the window.
        epsilon: privacy loss of this line, in nats.
        payer: a random text by which the writer of the line recognises it.
    """

    stream: str
    start: datetime
    end: datetime | None
    number: int
    epsilon: Fraction
    payer: str = ""


@dataclass(frozen=True, slots=True)
class Promised:
    """Promise to the users of a window, when it was paid for.

    Args:
        stream: name of the stream.
        start: start of the counting of the window, in UTC.
        epsilon: the loss if an intruder sees its state.
        delta: delta of that loss, and of the loss if no intruder does.
        unseen: epsilon if no intruder sees its state.
    """

    stream: str
    start: datetime
    epsilon: Fraction
    delta: Fraction
    unseen: Fraction

    @classmethod
    def of(cls, stream: str, start: datetime, guarantee: Guarantee) -> Promised:
        """Return the promise of a guarantee about one window."""
        unseen = guarantee.unseen_loss.epsilon
        return cls(stream, start, guarantee.epsilon, guarantee.delta, unseen)


@dataclass(frozen=True, slots=True)
class Begun:
    """Windows in the ledger with equal promises.

    Args:
        windows: number of windows.
        seen: number of them with an announced look at the state.
        promise: the guarantee for the users of each of them.
    """

    windows: int
    seen: int
    promise: Guarantee


@dataclass(frozen=True, slots=True)
class Announcement:
    """One announced intrusion into the state of a window.

    Args:
        stream: name of the stream.
        start: start of the counting of the window, in UTC.
        number: k for the k-th of the window; for a lasting state, of its life.
        key: SHA-256 of the idempotency key of its sender, in hexadecimal digits.
        announced: time of the announcement, in UTC.
    """

    stream: str
    start: datetime
    number: int
    key: str
    announced: datetime


@dataclass(frozen=True, slots=True)
class SketchFacts:
    """What the store knows of one published table.

    Args:
        stream: name of the stream.
        start: start of the counting of the window, in UTC.
        end: end of the counting.
        complete: whether a whole window was counted, by one process.
        number: of the release within its window, from 1.
        statistic: name of the statistic.
        group: the group of users; None if they are not counted by group.
        released: when it was published, in UTC.
        size: number of its bytes.
    """

    stream: str
    start: datetime
    end: datetime
    complete: bool
    number: int
    statistic: str
    group: str | None
    released: datetime
    size: int


@dataclass(frozen=True, slots=True)
class SketchRow(SketchFacts):
    """One published table.

    Args:
        sketch: its bytes, which `Sketch.read` takes.
    """

    sketch: bytes


@dataclass(frozen=True, slots=True)
class ListedSketch(SketchFacts):
    """One published table without its bytes.

    Args:
        id: its number in the store, from 1.
    """

    id: int


@dataclass(frozen=True, slots=True)
class Moment:
    """Release of a window; `FIELDS` describes each field."""

    stream: str
    start: datetime
    end: datetime | None
    number: int
    complete: bool
    released: datetime


@dataclass(frozen=True, slots=True)
class Published:
    """One published answer of a release; `FIELDS` describes each field."""

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


class Page(NamedTuple):
    """A part of many published answers.

    Args:
        answers: the answers of this part, oldest first.
        is_last: whether no other part follows.
    """

    answers: Sequence[Published]
    is_last: bool

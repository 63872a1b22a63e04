"""What the release store keeps: lines of the ledger, and answers. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from panprivacy.errors import PanPrivacyError


class StoreError(PanPrivacyError):
    """The database cannot be used now, as when its disk is full or its server is gone.

    The store works again when the database does. Where this comes out of `spend`, the entries may
    be in the ledger or not; nothing of theirs may be published.
    """


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
class Published:
    """One answer of a release, as everyone may read it.

    Args:
        stream: name of the stream.
        start: when the count of the window began, in UTC.
        end: when the counting that is released ended; None if no clock cuts the stream.
        complete: whether a whole window was counted.
        number: of the release within its window, from 1.
        statistic: name of the statistic.
        group: of which users; None for all.
        kind: what is asked of the statistic, as "exactly" of an incidence count; None if it can
            be asked one thing only.
        state: the number that belongs to the kind.
        value: the answer; None if it is lost, and then so are both ends.
        low: lower end of the interval.
        high: upper end of the interval; it may be infinite.
        confidence: of the interval.
        epsilon: the loss of a user, in nats.
        released: when it was published, in UTC.
    """

    stream: str
    start: datetime
    end: datetime | None
    complete: bool
    number: int
    statistic: str
    group: str | None
    kind: str | None
    state: int | None
    value: float | None
    low: float | None
    high: float | None
    confidence: float
    epsilon: float
    released: datetime

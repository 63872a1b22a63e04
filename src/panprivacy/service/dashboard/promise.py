"""Guarantee of a stream to its users, and the budget that is spent."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Final

from panprivacy.privacy.guarantee import Guarantee, PrivacyLoss
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.outgoing.reader import ReleaseReader
from panprivacy.service.outgoing.records import Begun
from panprivacy.statistics.composites.windowed import Windowed
from panprivacy.statistics.explain.description import Description, Progress
from panprivacy.statistics.explain.reading import StateRun, states_in
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.private import charged

YEAR: Final = timedelta(days=365)
_EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CONTAINERS: Final = ("Stream",)
"""Containers that a service puts around the states described here."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Privacy loss so far in the current window, or in the life of a lasting state.

    Args:
        ends: end of the window.
        begun: number of starts, as after a crash without a checkpoint; each starts from nothing.
        loss: privacy loss of its state and its releases so far, since the last start.
        releases: number of releases made, and planned.
        announced: number of looks announced, and planned.
    """

    ends: datetime
    begun: int
    loss: PrivacyLoss
    releases: Progress
    announced: Progress


@dataclass(frozen=True, slots=True)
class Year:
    """Privacy loss of a user who was in every window of the last 365 days.

    Args:
        windows: number of windows in the ledger, including the current one.
        announced: number of windows with an announced look at the state.
        loss: loss in all of them, if the state of one more is seen.
        all_windows: number of windows in 365 days.
        whole_loss: loss in that many windows, as currently planned, if the state of one is seen.
    """

    windows: int
    announced: int
    loss: PrivacyLoss
    all_windows: int
    whole_loss: PrivacyLoss


class StreamPromise:
    """Promise that follows from the configuration of a stream; nothing is counted here.

    Args:
        name: name of the stream.
        config: the configuration of the stream.
    """

    def __init__(self, name: str, config: StreamConfig) -> None:
        self.name, self.config = name, config
        self._windowed: Windowed[Any] = Windowed(
            config.make_counting, every=timedelta(seconds=config.window_seconds), zone=config.zone
        )
        self._states = [
            replace(alike, within=(*_CONTAINERS, *alike.within))
            for alike in states_in(io.BytesIO(self._windowed.state()))
        ]

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one window, or of the life of a lasting state."""
        return self.config.promised(self._windowed.current.guarantee)

    @property
    def plans(self) -> Mapping[str, Plan]:
        """Plan of each statistic; for groups, the plan in one of them."""
        return {label: one.plan for label, one in self._windowed.current.statistics.items()}

    @property
    def pictured(self) -> Mapping[str, Plan]:
        """Plans of the statistics whose state is a table that can be pictured; none with steps."""
        statistics = self._windowed.current.statistics
        return {
            label: one.plan
            for label, one in statistics.items()
            if not one.internals.windows.lasting
        }

    @property
    def lasting(self) -> bool:
        """Whether the state continues from window to window, and protects one event."""
        return bool(self._windowed.current.internals.windows.lasting)

    def spent(self, reader: ReleaseReader, now: datetime, newest: int) -> Spent:
        """Return the spending of the current window, from the ledger.

        Args:
            reader: reads the release store.
            now: the current time.
            newest: number of the newest release, which keeps counting if the stream is `lasting`.

        Raises:
            StoreError: the store cannot be read now.
        """
        current = self._windowed.current
        start, end = self._around(now)
        lines = reader.ledger(self.name, since=start)
        begun = sorted({line.start for line in lines})
        made = newest
        if not self.lasting:
            made = max((line.number for line in lines if line.start == begun[-1]), default=0)
        planned = current.internals.releasing.planned
        made = min(made, planned)
        # for a lasting state, all announcements: the start of its life is not known here
        announced = reader.announced_since(self.name, _EVER if self.lasting else start)
        return Spent(
            ends=end,
            begun=max(len(begun), 1),
            # the state is charged when created, and enters the ledger with the first release
            loss=charged(current, made),
            releases=Progress(made, planned),
            announced=Progress(announced, current.guarantee.intrusions),
        )

    def year(self, reader: ReleaseReader, now: datetime) -> Year:
        """Return the privacy loss of a user over the windows of a year, if any one state is seen.

        The states with an announced look count as seen, too. The windows are those in the ledger,
        each with its own promise, and the current one.

        Raises:
            StoreError: the store cannot be read now.
        """
        length = timedelta(seconds=self.config.window_seconds)
        start, _ = self._around(now)
        since = min(start, start - YEAR + length)
        begun, seen = reader.begun(self.name, since), reader.seen_since(self.name, since)
        silent = [  # windows that ended without an answer, and are not in the ledger
            one for one in seen if one < start and reader.payer(self.name, one, 0) is None
        ]
        # nobody knows yet whether the current window will be seen
        open_ones = [] if reader.ledger(self.name, since=start) else [Begun(1, 0, self.guarantee)]
        if silent:
            open_ones.append(Begun(len(silent), len(silent), self.guarantee))
        windows, whole = self.guarantee.year(self.config.window_seconds)
        return Year(
            windows=sum(one.windows for one in [*begun, *open_ones]),
            announced=len(seen),
            loss=self.guarantee.loss if self.lasting else over_windows([*begun, *open_ones]),
            all_windows=windows,
            whole_loss=whole,
        )

    def _around(self, now: datetime) -> tuple[datetime, datetime]:
        """Return start and end of the window of a moment, on the grid."""
        start, end = self._windowed.grid.around(now.timestamp())
        return datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC)

    def states(self, spent: Spent | None) -> Sequence[StateRun]:
        """Return the descriptions of a state of the current window, with its releases so far."""
        if spent is None:
            return self._states
        return [
            replace(alike, description=_made(alike.description, spent)) for alike in self._states
        ]


def over_windows(begun: Sequence[Begun]) -> PrivacyLoss:
    """Return the loss over windows plus one look: at the window where it is largest."""
    lost = PrivacyLoss.total(one.promise.over(one.windows, seen=one.seen) for one in begun)
    more = [one.promise.unannounced for one in begun if one.seen < one.windows]
    return lost + PrivacyLoss(max(more, default=Fraction(0)))


def _made(described: Description, spent: Spent) -> Description:
    """Return the description after the releases made so far."""
    releases, looks = described.releases, described.intrusions
    return replace(
        described,
        releases=replace(releases, made=min(spent.releases.made, releases.planned)),
        intrusions=replace(looks, made=min(spent.announced.made, looks.planned)),
    )

"""What a stream promises to its users, and how much of that is spent."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Final

from panprivacy.explain.description import Description, Progress
from panprivacy.explain.reading import Alike, states_in
from panprivacy.guarantee import Guarantee, PrivacyLoss
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.outgoing.reader import ReleaseReader
from panprivacy.service.outgoing.records import Begun
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.private import charged
from panprivacy.statistics.windowed import Windowed

YEAR: Final = timedelta(days=365)
_EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CONTAINERS: Final = ("Stream",)
"""What a service puts around the states that are described here."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What the current window, or the life of what goes on from window to window, has spent.

    Args:
        ends: when the window ends.
        begun: how often it was begun, as after a crash without a checkpoint; each begins anew.
        loss: by its state and its releases so far, since it was begun last.
        releases: how many answers left, of how many that are planned.
        announced: how many looks were announced, of how many that are planned.
    """

    ends: datetime
    begun: int
    loss: PrivacyLoss
    releases: Progress
    announced: Progress


@dataclass(frozen=True, slots=True)
class Year:
    """What a user loses who was in every window of the last 365 days.

    Args:
        windows: how many there were that are in the ledger, with the one that is open.
        announced: of how many of them a look at the state was announced.
        loss: in all of them, if the state of one more is seen.
        all_windows: how many there are in 365 days.
        whole_loss: in so many, planned as they are now, if the state of one is seen.
    """

    windows: int
    announced: int
    loss: PrivacyLoss
    all_windows: int
    whole_loss: PrivacyLoss


class StreamPromise:
    """What follows from the configuration of a stream; nothing is ever counted here.

    Args:
        name: of the stream.
        config: of the stream.
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
        """Of one window, or of the life of what goes on from window to window."""
        return self.config.promised(self._windowed.current.guarantee)

    @property
    def plans(self) -> Mapping[str, Plan]:
        """Of each statistic; of groups, in one of them."""
        return {label: one.plan for label, one in self._windowed.current.statistics.items()}

    @property
    def pictured(self) -> Mapping[str, Plan]:
        """The same of those whose state is a table that a picture shows; not what has steps."""
        statistics = self._windowed.current.statistics
        return {label: one.plan for label, one in statistics.items() if not one.sizes.steps}

    @property
    def lasting(self) -> bool:
        """Whether it goes on from window to window, and hides one event."""
        return bool(self._windowed.current.lasting)

    def spent(self, reader: ReleaseReader, now: datetime, newest: int) -> Spent:
        """What the ledger has of the current window.

        Args:
            reader: of the release store.
            now: the current time.
            newest: number of the newest release, which counts on where the stream is `lasting`.

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
        made = min(made, current.planned)
        # of what goes on, all that were ever announced: when its life began is not known here
        announced = reader.announced_since(self.name, _EVER if self.lasting else start)
        return Spent(
            ends=end,
            begun=max(len(begun), 1),
            # the state is paid at birth, and comes into the ledger with the first release
            loss=charged(current, made),
            releases=Progress(made, current.planned),
            announced=Progress(announced, current.guarantee.intrusions),
        )

    def year(self, reader: ReleaseReader, now: datetime) -> Year:
        """What a user lost over the windows of a year, whoever saw the state of one of them.

        So were the states of those to which a look was announced. The windows are those that the
        ledger has, each with what was promised to it, and the one that is open.

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
        # of the window that is open nobody knows yet whether it will be seen
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
        """Start and end of the window of a moment, on the grid."""
        start, end = self._windowed.grid.around(now.timestamp())
        return datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC)

    def states(self, spent: Spent | None) -> Sequence[Alike]:
        """What a state of the current window says about itself, with what was made of it so far."""
        if spent is None:
            return self._states
        return [
            replace(alike, description=_made(alike.description, spent)) for alike in self._states
        ]


def over_windows(begun: Sequence[Begun]) -> PrivacyLoss:
    """Return the loss over windows, and by one look more: at the window where it costs most."""
    lost = PrivacyLoss.total(one.promise.over(one.windows, seen=one.seen) for one in begun)
    more = [one.promise.unannounced for one in begun if one.seen < one.windows]
    return lost + PrivacyLoss(max(more, default=Fraction(0)))


def _made(described: Description, spent: Spent) -> Description:
    """The same after what was made of it."""
    releases, looks = described.releases, described.intrusions
    return replace(
        described,
        releases=replace(releases, made=min(spent.releases.made, releases.planned)),
        intrusions=replace(looks, made=min(spent.announced.made, looks.planned)),
    )

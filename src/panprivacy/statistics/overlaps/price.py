"""What published tables cost a user who is in all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from panprivacy.privacy.guarantee import Guarantee, PrivacyLoss, loss_over
from panprivacy.statistics.overlaps.sketch import Sketch

WindowEnds = tuple[datetime, datetime] | None
"""Start and end of a window; None where no clock cuts the stream."""


@dataclass(frozen=True, slots=True)
class SketchPrice:
    """The privacy loss of a user who is in all windows of some sketches.

    Args:
        windows: the guarantee of each window.
        together: places of windows that one look may see, a set for each moment that matters.
    """

    windows: tuple[Guarantee, ...]
    together: tuple[frozenset[int], ...]

    @classmethod
    def of(cls, sketches: Sequence[Sketch]) -> Self:
        """Return the price of sketches.

        One look sees all that is counted at its moment: the sketches of all streams, groups and
        statistics of one window, and those of windows that overlap it in time. Of those without a
        window, a state may have had one of each stream, group and statistic: it is taken to have
        had those that a look makes dearest.
        """
        states: dict[tuple[WindowEnds, int], list[Guarantee]] = {}
        known: Counter[tuple[str | None, str, object]] = Counter()
        for one in sorted(sketches, key=lambda one: one.guarantee.unannounced, reverse=True):
            front, number = one.front, 0
            window: WindowEnds = None
            if front.start is not None and front.end is not None:
                window = front.start, front.end
            else:
                name = front.stream, front.statistic, front.group
                number = known[name]
                known[name] += 1
            states.setdefault((window, number), []).append(one.guarantee)
        return cls(tuple(map(Guarantee.of_all, states.values())), _seen_together(list(states)))

    @property
    def looks(self) -> bool:
        """Whether a look at the state of one of the windows is covered."""
        return all(one.looks for one in self.windows)

    @property
    def loss(self) -> PrivacyLoss:
        """The loss, with the look that costs most where one is covered."""
        return loss_over(self.windows, self.together)

    def document(self) -> dict[str, object]:
        """Return the loss as values of JSON, rounded up."""
        seen = int(self.looks) and max(map(len, self.together))
        return {"windows": len(self.windows), "seen": seen, **self.loss.document()}

    def __str__(self) -> str:
        windows, most = len(self.windows), max(map(len, self.together))
        counted = f"all {windows:,} windows" if windows > 1 else "the window"
        seen = "one of them seen" if windows > 1 else "seen once"
        if most > 1:
            seen = (
                f"{most:,} of them seen by one look" if windows > most else "all seen by one look"
            )
        looks = seen if self.looks else "where nobody sees the state"
        return f"a user of {counted}, {looks}, loses {self.loss}"


def _seen_together(states: Sequence[tuple[WindowEnds, int]]) -> tuple[frozenset[int], ...]:
    """Return which states one look may see: those open when one of them begins, or a single one.

    Windows hold their start, and not their end. Those without a window were counted at any time:
    the first ones may have been open beside any window.

    Args:
        states: the window of each, and its number among those without a window.
    """
    undated = {
        place for place, (window, number) in enumerate(states) if (window, number) == (None, 0)
    }
    begun = {window[0] for window, _ in states if window is not None}
    found = [
        frozenset(
            place
            for place, (window, _) in enumerate(states)
            if window is not None and (window[0] == moment or window[0] <= moment < window[1])
        )
        | undated
        for moment in begun
    ]
    return (*found, *(frozenset([place]) for place in range(len(states))))

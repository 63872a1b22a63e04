"""What published tables cost a user who is in all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from panprivacy.privacy.guarantee import Guarantee, PrivacyLoss, loss_over
from panprivacy.statistics.overlaps.sketch import Sketch


@dataclass(frozen=True, slots=True)
class SketchPrice:
    """The privacy loss of a user who is in all windows of some sketches.

    Args:
        windows: the guarantee of each window.
    """

    windows: tuple[Guarantee, ...]

    @classmethod
    def of(cls, sketches: Sequence[Sketch]) -> Self:
        """Return the price of sketches.

        Sketches of several groups or statistics of one window were in one state, which one look
        sees. Of those without a window, a state may have had one of each group and statistic: it
        is taken to have had those that a look makes dearest.
        """
        states: dict[object, list[Guarantee]] = {}
        known: Counter[tuple[str, object]] = Counter()
        for one in sorted(sketches, key=lambda one: one.guarantee.unannounced, reverse=True):
            front = one.front
            window: object = front.stream, front.start, front.end
            if front.start is None:
                window = known[front.statistic, front.group]
                known[front.statistic, front.group] += 1
            states.setdefault(window, []).append(one.guarantee)
        return cls(tuple(map(Guarantee.of_all, states.values())))

    @property
    def looks(self) -> bool:
        """Whether a look at the state of one of the windows is covered."""
        return all(one.looks for one in self.windows)

    @property
    def loss(self) -> PrivacyLoss:
        """The loss, with the look that costs most where one is covered."""
        return loss_over(self.windows)

    def document(self) -> dict[str, object]:
        """Return the loss as values of JSON, rounded up."""
        return {"windows": len(self.windows), "seen": int(self.looks), **self.loss.document()}

    def __str__(self) -> str:
        windows = len(self.windows)
        counted = f"all {windows:,} windows" if windows > 1 else "the window"
        seen = "one of them seen" if windows > 1 else "seen once"
        looks = seen if self.looks else "where nobody sees the state"
        return f"a user of {counted}, {looks}, loses {self.loss}"

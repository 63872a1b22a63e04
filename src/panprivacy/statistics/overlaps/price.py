"""What published tables cost a user who is in all of them."""

from __future__ import annotations

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
        sees. So were those of groups without a window, as far as is known.
        """
        states: dict[object, list[Guarantee]] = {}
        for place, one in enumerate(sketches):
            front = one.front
            alone = front.start is None and front.group is None
            window = place if alone else (front.stream, front.start, front.end)
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

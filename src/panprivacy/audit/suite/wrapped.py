"""Programs around the shipping classes, which the audit drives like one of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.statistics.density.statistic import Density
from panprivacy.statistics.grouped import Grouped


class Unseen:
    """A statistic whose state nobody ever sees."""

    def __init__(self, statistic: Density) -> None:
        self._statistic = statistic
        self.update, self.release = statistic.update, statistic.release

    def state(self) -> bytes:
        """Nothing."""
        return b""


class Groups:
    """A table for each of two groups; the delta of a row is its group."""

    def __init__(self, coins: EnumeratedCoins, epsilon: Fraction) -> None:
        self._grouped = Grouped(
            lambda share: Density(universe=2, epsilon=share, coins=coins),
            [7, 8],
            epsilon=epsilon,
            per_user=2,
        )
        self.state, self.release = self._grouped.state, self._grouped.release

    def update(self, users: Sequence[int], groups: Sequence[int] = ()) -> None:
        """Count each user in his group."""
        self._grouped.update(users, groups)

"""Programs around the shipping classes, which the audit drives like one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.guarantee import Ledger
from panprivacy.statistics.density.statistic import Density
from panprivacy.statistics.grouped import Grouped
from panprivacy.statistics.incidence.statistic import Incidence


class Asking:
    """A statistic whose releases name what they ask for."""

    def __init__(self, statistic: Incidence, **asked: object) -> None:
        self._statistic, self._asked = statistic, asked
        self.update, self.state = statistic.update, statistic.state

    def release(self) -> object:
        """The named statistics."""
        return self._statistic.release(**self._asked)  # type: ignore[arg-type]


class Unseen:
    """A statistic whose state nobody ever sees."""

    def __init__(self, statistic: Density) -> None:
        self._statistic = statistic
        self.update, self.release = statistic.update, statistic.release

    def state(self) -> bytes:
        """Nothing."""
        return b""


@dataclass(frozen=True, slots=True)
class Together:
    """Releases that leave at one moment.

    Args:
        releases: of each statistic.
    """

    releases: tuple[Any, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """The noised counts of all."""
        return tuple(count for release in self.releases for count in release.counts)


class Groups:
    """A table for each of two groups; the delta of a row is its group."""

    def __init__(self, coins: EnumeratedCoins, epsilon: Fraction) -> None:
        self._grouped = Grouped(
            lambda share: Density(universe=2, epsilon=share, coins=coins),
            [7, 8],
            epsilon=epsilon,
            per_user=2,
        )
        self.state = self._grouped.state

    def update(self, users: Sequence[int], groups: Sequence[int] = ()) -> None:
        """Count each user in his group."""
        self._grouped.update(users, groups)

    def release(self) -> Together:
        """The answers of all groups."""
        return Together(tuple(self._grouped.release().values()))


class Sharing:
    """Two statistics of the same stream with one ledger."""

    def __init__(self, coins: EnumeratedCoins, epsilon: Fraction) -> None:
        ledger = Ledger(epsilon)
        half: dict[str, Any] = {"epsilon": epsilon / 2, "ledger": ledger, "coins": coins}
        self._statistics = Density(universe=2, **half), Density(universe=2, **half)

    def update(self, users: Sequence[int], _deltas: object = None) -> None:
        """Count the users in both."""
        for statistic in self._statistics:
            statistic.update(users)

    def release(self) -> Together:
        """Both answers."""
        return Together(tuple(statistic.release() for statistic in self._statistics))

    def state(self) -> bytes:
        """Both states."""
        return b"".join(statistic.state() for statistic in self._statistics)

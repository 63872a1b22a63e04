"""What algorithms that run several tables over one stream have in common: one ledger, one state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn

from panprivacy.guarantee import Guarantee, Ledger
from panprivacy.statistics.containers import Container
from panprivacy.statistics.statistic import Statistic, instance


class Several(ABC):
    """Statistics of the same users, whose losses add up to one epsilon."""

    __slots__ = ("_epsilon", "_ledger")

    def __init__(self, epsilon: Fraction, ledger: Ledger | None) -> None:
        self._epsilon = epsilon
        self._ledger = instance(Ledger, ledger=ledger) or Ledger(epsilon)
        self._ledger.check(epsilon)

    @property
    @abstractmethod
    def _parts(self) -> Sequence[Statistic[Any]]:
        """The statistics, in order."""

    @property
    @abstractmethod
    def _own(self) -> bytes:
        """What is kept beside them."""

    @property
    def ledger(self) -> Ledger:
        """The budget; shared if it was given one."""
        return self._ledger

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to each user of the stream."""
        return Guarantee(self._epsilon)

    @property
    def releases(self) -> int:
        """How many releases have been made."""
        return self._parts[0].releases

    def check_release(self, **asked: Any) -> None:
        """Raise what `release` would refuse, without spending anything."""
        for part in self._parts:
            part.check_release(**asked)

    def forget(self) -> None:
        """Wipe all tables. May be repeated."""
        for part in self._parts:
            part.forget()

    def state(self) -> bytes:
        """Exactly what an intruder would get: all tables, and the keys."""
        public = {"epsilon": self._epsilon, "ledger": self._ledger.total}
        return Container(type(self).__name__, public, len(self._own), self._parts).packed(self._own)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} epsilon={float(self._epsilon):g}>"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        message = (
            f"a {type(self).__name__} cannot be pickled or copied: a plain copy is a second "
            "intrusion"
        )
        raise TypeError(message)

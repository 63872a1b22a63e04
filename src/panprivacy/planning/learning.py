"""What windows plan the next one around: what earlier ones released is public."""

from __future__ import annotations

import math
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from panprivacy._parse import parse_users
from panprivacy._validate import expected_range
from panprivacy.errors import PlanError

WORD = "learn"

_WIDE = 1_000, 1_000_000_000
_EITHER_WAY = 4
"""The next window may have so many times more users, or fewer."""
_FAR = 64
_MOST = 1 << 60

_WIDE_BOUND = 1, 1_000
MOST_LEARNED = 10_000
"""To read how far states reach beyond that takes seconds at the end of each window."""
_FURTHER = 10
"""States of the next window may be so many times as large: more than users, since what exceeds a
bound is taken for another state, and no interval tells."""


Reach = tuple[int, int]
"""How far from 0 states reach: at least, and at most but for few users."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the answers of a window say that the next one is planned around.

    Args:
        users: ends of the interval of their number; None if the answer is lost.
        states: how far from 0 some users clearly are, and how far nearly all clearly are at most;
            None if no answer says.
    """

    users: tuple[float, float] | None
    states: Reach | None


class Learned(tuple[int, int]):
    """A lowest and a highest number for the current window, which windows learn."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str, name: str) -> Self:
        """Read `learn`, or `learn:LOW:HIGH` for the first window.

        Args:
            text: what was given.
            name: of the field that it was given for.

        Raises:
            PlanError: it is neither.
        """
        _, colon, first = text.partition(":")
        if not colon:
            return cls(cls.widest())
        with suppress(PlanError):
            given = parse_users(first)
            if isinstance(given, tuple):
                return cls(expected_range(given, name))
        message = f"{name}=learn may begin with a range: learn:LOW:HIGH, from low to high"
        raise PlanError(message)

    @classmethod
    @abstractmethod
    def widest(cls) -> tuple[int, int]:
        """What the first window is planned for, where nobody says."""

    @abstractmethod
    def after(self, seen: Evidence) -> Self:
        """What the next window is planned for; as this one where nothing was seen."""

    @abstractmethod
    def within(self, first: Learned) -> Self:
        """The same, as far as the first window leaves room for it.

        Args:
            first: that of the first window.
        """

    def together(self, other: Learned) -> Self:
        """What holds both."""
        return type(self)((min(self[0], other[0]), max(self[1], other[1])))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({tuple(self)})"


class LearnedUsers(Learned):
    """The lowest and highest number of users of the current window.

    >>> LearnedUsers((1_000, 1_000_000)).after(Evidence((490_000, 510_000), None))
    LearnedUsers((122500, 2040000))
    """

    __slots__ = ()

    @classmethod
    def widest(cls) -> tuple[int, int]:
        """From a thousand to a billion."""
        return _WIDE

    def after(self, seen: Evidence) -> Self:
        """Four times more or fewer users than there were.

        If they were beyond this range, what was expected before is expected besides. An upper end
        may be infinite, see `within`.
        """
        if seen.users is None:
            return self
        low, high = (max(end, 1.0) for end in seen.users)
        around = math.floor(low / _EITHER_WAY), math.ceil(min(high * _EITHER_WAY, _MOST))
        then = type(self)((max(around[0], 1), max(around[1], 1)))
        return then if self[0] <= low <= high <= self[1] else self.together(then)

    def within(self, first: Learned) -> Self:
        """The same, with no more users than there is evidence for.

        An upper end that is above what the first window was planned for, and far above the lower
        one, tells how noisy an answer was; a plan for so many would make the next one noisier.
        """
        low, high = self
        return type(self)((low, max(low, min(high, max(first[1], _FAR * low)))))


class LearnedBound(Learned):
    """The smallest bound that a window may have, and the bound of the current one.

    >>> LearnedBound((5, 1_000)).after(Evidence(None, (7, 8)))
    LearnedBound((5, 80))
    """

    __slots__ = ()

    @classmethod
    def widest(cls) -> tuple[int, int]:
        """A thousand."""
        return _WIDE_BOUND

    def after(self, seen: Evidence) -> Self:
        """Ten times as far as nearly all users clearly reach at most.

        It is larger than this bound only if some users are clearly beyond a tenth of it: where
        noise hides how far states reach, it stays.
        """
        if seen.states is None:
            return self
        low, high = self
        some, nearly_all = (_FURTHER * far for far in seen.states)
        return type(self)((low, max(low, min(nearly_all, max(high, some)))))

    def within(self, first: Learned) -> Self:
        """The same, no smaller and no larger than the first window says, which holds for all.

        A state may be of a time at which it said another range.
        """
        return type(self)((first[0], max(first[0], min(self[1], first[1]))))


def highest(bound: int | LearnedBound, least: int = 1) -> int:
    """The bound that a window is planned for.

    Args:
        bound: as it was given, or as windows have learned it.
        least: the smallest that makes sense, where windows learn it.
    """
    return max(bound[1], least) if isinstance(bound, LearnedBound) else bound

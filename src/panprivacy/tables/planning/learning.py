"""Evidence for the plan of the next window: the releases of earlier windows are public."""

from __future__ import annotations

import math
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import parse_users
from panprivacy.ground.validation import expected_range

WORD = "learn"

_WIDE = 1_000, 1_000_000_000
_EITHER_WAY = 4
"""Largest factor by which the users of the next window may be more, or fewer."""
_FAR = 64
_MOST = 1 << 60

_WIDE_BOUND = 1, 1_000
MOST_LEARNED = 10_000
"""Maximum learned range: to decode larger states takes seconds at the end of each window."""
_FURTHER = 10
"""Largest factor by which the states of the next window may be larger. It exceeds that for users,
since a state above the bound is taken for another state, and no interval shows it."""


StateRange = tuple[int, int]
"""Range of states in absolute value: a lower bound, and an upper bound for all but few users."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence in the answers of a window for the plan of the next one.

    Args:
        users: ends of the interval of their number; None if the answer is lost.
        states: how far from 0 some users clearly are, and how far nearly all clearly are at most;
            None if no answer says.
    """

    users: tuple[float, float] | None
    states: StateRange | None


class LearnedRange(tuple[int, int]):
    """A lowest and a highest number for the current window, which windows learn."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str, name: str) -> Self:
        """Read `learn`, or `learn:LOW:HIGH` for the first window.

        Args:
            text: the text given.
            name: name of its field.

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
        """Return the range of the first window without an option."""

    @abstractmethod
    def after(self, seen: Evidence) -> Self:
        """Return the range of the next window; unchanged without evidence."""

    @abstractmethod
    def within(self, first: LearnedRange) -> Self:
        """Return the same, limited to the room that the first window leaves.

        Args:
            first: that of the first window.
        """

    def together(self, other: LearnedRange) -> Self:
        """Return a range that includes both."""
        return type(self)((min(self[0], other[0]), max(self[1], other[1])))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({tuple(self)})"


class LearnedUsers(LearnedRange):
    """The lowest and highest number of users of the current window.

    >>> LearnedUsers((1_000, 1_000_000)).after(Evidence((490_000, 510_000), None))
    LearnedUsers((122500, 2040000))
    """

    __slots__ = ()

    @classmethod
    def widest(cls) -> tuple[int, int]:
        """Return the range from a thousand to a billion."""
        return _WIDE

    def after(self, seen: Evidence) -> Self:
        """Return a range of four times fewer to four times more users than there were.

        If they were beyond this range, what was expected before is expected besides. An upper end
        may be infinite, see `within`.
        """
        if seen.users is None:
            return self
        low, high = (max(end, 1.0) for end in seen.users)
        around = math.floor(low / _EITHER_WAY), math.ceil(min(high * _EITHER_WAY, _MOST))
        then = type(self)((max(around[0], 1), max(around[1], 1)))
        return then if self[0] <= low <= high <= self[1] else self.together(then)

    def within(self, first: LearnedRange) -> Self:
        """Return the same, with no more users than there is evidence for.

        An upper end that is above what the first window was planned for, and far above the lower
        one, tells how noisy an answer was; a plan for so many would make the next one noisier.
        """
        low, high = self
        return type(self)((low, max(low, min(high, max(first[1], _FAR * low)))))


class LearnedBound(LearnedRange):
    """The smallest bound that a window may have, and the bound of the current one.

    >>> LearnedBound((5, 1_000)).after(Evidence(None, (7, 8)))
    LearnedBound((5, 80))
    """

    __slots__ = ()

    @classmethod
    def widest(cls) -> tuple[int, int]:
        """Return a thousand."""
        return _WIDE_BOUND

    def after(self, seen: Evidence) -> Self:
        """Return ten times the clear upper bound of nearly all users' states.

        It is larger than this bound only if some users are clearly beyond a tenth of it: where
        noise hides how far states reach, it stays.
        """
        if seen.states is None:
            return self
        low, high = self
        some, nearly_all = (_FURTHER * far for far in seen.states)
        return type(self)((low, max(low, min(nearly_all, max(high, some)))))

    def within(self, first: LearnedRange) -> Self:
        """Return the same, limited to the range of the first window, which holds for all.

        A state may be of a time at which it said another range.
        """
        return type(self)((first[0], max(first[0], min(self[1], first[1]))))


def highest(bound: int | LearnedBound, least: int = 1) -> int:
    """Return the bound that a window is planned for.

    Args:
        bound: as it was given, or as windows have learned it.
        least: the smallest that makes sense, where windows learn it.
    """
    return max(bound[1], least) if isinstance(bound, LearnedBound) else bound

"""How many users the next window is planned for: what earlier ones released is public."""

from __future__ import annotations

import math

from panprivacy._parse import parse_users
from panprivacy._validate import expected_range
from panprivacy.errors import PlanError

WORD = "learn"

_WIDE = 1_000, 1_000_000_000
_EITHER_WAY = 4
"""The next window may have so many times more users, or fewer."""
_FAR = 64
_MOST = 1 << 60


class Learned(tuple[int, int]):
    """The lowest and highest number of users of the current window, which windows learn.

    >>> Learned((1_000, 1_000_000)).after(490_000, 510_000)
    Learned((122500, 2040000))
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Learned:
        """Read `learn`, or `learn:LOW:HIGH` for the first window.

        Raises:
            PlanError: it is neither.
        """
        _, colon, first = text.partition(":")
        given = parse_users(first) if colon else _WIDE
        if not isinstance(given, tuple):
            message = "expected=learn may begin with a range: learn:LOW:HIGH"
            raise PlanError(message)
        return cls(expected_range(given))

    def after(self, low: float, high: float) -> Learned:
        """The range for the next window: four times more or fewer users than there were.

        If they were beyond this range, what was expected before is expected besides.

        Args:
            low: lower end of the interval that was released, in users.
            high: upper end; it may be infinite, see `within`.
        """
        low, high = max(low, 1.0), max(high, 1.0)
        around = math.floor(low / _EITHER_WAY), math.ceil(min(high * _EITHER_WAY, _MOST))
        ends = max(around[0], 1), max(around[1], 1)
        surprised = not self[0] <= low <= high <= self[1]
        return self.together(ends) if surprised else Learned(ends)

    def within(self, first: tuple[int, int]) -> Learned:
        """The same, with no more users than there is evidence for.

        An upper end that is above what the first window was planned for, and far above the lower
        one, tells how noisy an answer was; a plan for so many would make the next one noisier.

        Args:
            first: the range of the first window.
        """
        low, high = self
        return Learned((low, max(low, min(high, max(first[1], _FAR * low)))))

    def together(self, other: tuple[int, int]) -> Learned:
        """The range that holds both."""
        return Learned((min(self[0], other[0]), max(self[1], other[1])))

    def __repr__(self) -> str:
        return f"Learned({tuple(self)})"

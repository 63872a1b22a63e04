"""Plans for a range of numbers of users: the one of least regret, never far from the best."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.tables.addressing import MAX_LEVELS

_POINTS_PER_DECADE = 6
WORST_ERROR = 1e9
"""Relative errors are cut off here."""


class _Levelled(Protocol):
    """A design whose error depends on how many users come."""

    @classmethod
    def planning_errors(
        cls, designs: Sequence[Self], users: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the relative errors by which designs are compared; float64[designs, users].

        Args:
            designs: some with equally many levels.
            users: numbers of users.
        """


L = TypeVar("L", bound=_Levelled)

_NO_ERROR = 1e-12
"""Smaller relative errors, which come of an enormous epsilon, are as good as this one."""


class Designs(Generic[L]):
    """The designs of one problem, each made once, whatever the memory.

    A plan for twice the memory chooses from nearly the same designs. So a search over memories
    makes few more of them than one plan does.

    Args:
        make: makes designs from a number of levels, one for each number of cells of a level.
        expected: lowest and highest number of users.
    """

    def __init__(
        self, make: Callable[[int, Sequence[int]], Sequence[L]], expected: tuple[int, int]
    ) -> None:
        self._make, self._expected = make, expected
        self._users = grid(*expected)
        self._made: dict[tuple[int, int], tuple[L, NDArray[np.float64]]] = {}

    def best(self, cells: int) -> L:
        """Return the design of least regret, which is never far from the best one.

        For each number of users there is a best design; a design's regret there is by what factor
        its relative error exceeds that of the best. The plan's largest regret in the range is the
        smallest.

        Args:
            cells: how many there may be in all.
        """
        sizes = _sizes(self._expected, cells)
        self._make_all(one for one in sizes if one not in self._made)
        made = [self._made[one] for one in sizes]
        predicted = np.array([errors for _, errors in made])
        errors = np.clip(predicted, _NO_ERROR, WORST_ERROR)
        regret = (errors / errors.min(axis=0)).max(axis=1)
        return made[int(np.argmin(regret))][0]

    def _make_all(self, sizes: Iterable[tuple[int, int]]) -> None:
        """Make designs, and predict the errors of all with equally many levels at once."""
        for levels, group in itertools.groupby(sizes, key=lambda one: one[0]):
            alike = list(group)
            designs = self._make(levels, [cells for _, cells in alike])
            errors = type(designs[0]).planning_errors(designs, self._users)
            self._made.update(zip(alike, zip(designs, errors, strict=True), strict=True))


def _sizes(expected: tuple[int, int], cells: int) -> Sequence[tuple[int, int]]:
    """Return every number of levels, with all cells and with half octaves less."""
    most = min(MAX_LEVELS, expected[1].bit_length() + 1, cells)
    shrink = 2.0 ** (-np.arange(28) / 2)
    return [
        (levels, int(size))
        for levels in range(1, most + 1)
        for size in np.unique((cells * shrink / levels).astype(np.int64))
        if size >= 1
    ]


def grid(low: float, high: float) -> NDArray[np.float64]:
    """Return numbers of users over a range, evenly spread by their ratio."""
    points = int(np.ceil(_POINTS_PER_DECADE * np.log10(high / low))) + 1
    return np.geomspace(float(low), float(high), points)  # whole numbers may have over 64 bits

"""Plans for a range of numbers of users: the one of least regret, never far from the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.tables.addressing import MAX_LEVELS

_POINTS_PER_DECADE = 6
WORST_ERROR = 1e9
"""Relative errors are cut off here."""


class _Levelled(Protocol):
    """A design whose error depends on how many users come."""

    def planning_errors(self, users: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the relative errors by which designs are compared."""


L = TypeVar("L", bound=_Levelled)

_NO_ERROR = 1e-12
"""Smaller relative errors, which come of an enormous epsilon, are as good as this one."""


class Designs(Generic[L]):
    """The designs of one problem, each made once, whatever the memory.

    A plan for twice the memory chooses from nearly the same designs. So a search over memories
    makes few more of them than one plan does.

    Args:
        make: makes a design from the number of levels and the cells of each.
        expected: lowest and highest number of users.
    """

    def __init__(self, make: Callable[[int, int], L], expected: tuple[int, int]) -> None:
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
        made = [self._at(*sizes) for sizes in _sizes(self._expected, cells)]
        predicted = np.array([errors for _, errors in made])
        errors = np.clip(predicted, _NO_ERROR, WORST_ERROR)
        regret = (errors / errors.min(axis=0)).max(axis=1)
        return made[int(np.argmin(regret))][0]

    def _at(self, levels: int, cells_per_level: int) -> tuple[L, NDArray[np.float64]]:
        """Return a design and its errors over the range."""
        sizes = levels, cells_per_level
        found = self._made.get(sizes)
        if found is None:
            design = self._make(*sizes)
            found = self._made[sizes] = design, design.planning_errors(self._users)
        return found


def least_regret(design: Callable[[int, int], L], expected: tuple[int, int], cells: int) -> L:
    """Return the design of least regret of a problem that is planned once; see `Designs.best`."""
    return Designs(design, expected).best(cells)


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

"""Plans for a range of numbers of users: the one of least regret, never far from the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.addressing import MAX_LEVELS

_POINTS_PER_DECADE = 6
WORST_ERROR = 1e9
"""Relative errors are cut off here."""


class _Levelled(Protocol):
    """A design whose error depends on how many users come."""

    def planning_errors(self, users: NDArray[np.float64]) -> NDArray[np.float64]:
        """The relative errors by which designs are compared."""


L = TypeVar("L", bound=_Levelled)

_NO_ERROR = 1e-12
"""Smaller relative errors, which come of an enormous epsilon, are as good as this one."""


def least_regret(design: Callable[[int, int], L], expected: tuple[int, int], cells: int) -> L:
    """The design of least regret, which is never far from the best one.

    For each number of users there is a best design; a design's regret there is by what factor its
    relative error exceeds that of the best. The plan's largest regret in the range is the smallest.

    Args:
        design: makes one from the number of levels and the cells of each.
        expected: lowest and highest number of users.
        cells: how many there may be in all.
    """
    designs = [design(*sizes) for sizes in _sizes(expected, cells)]
    users = grid(*expected)
    predicted = np.array([design.planning_errors(users) for design in designs])
    errors = np.clip(predicted, _NO_ERROR, WORST_ERROR)
    regret = (errors / errors.min(axis=0)).max(axis=1)
    return designs[int(np.argmin(regret))]


def _sizes(expected: tuple[int, int], cells: int) -> Sequence[tuple[int, int]]:
    """Every number of levels, with all cells and with half octaves less."""
    most = min(MAX_LEVELS, expected[1].bit_length() + 1, cells)
    shrink = 2.0 ** (-np.arange(28) / 2)
    return [
        (levels, int(size))
        for levels in range(1, most + 1)
        for size in np.unique((cells * shrink / levels).astype(np.int64))
        if size >= 1
    ]


def grid(low: float, high: float) -> NDArray[np.float64]:
    """Numbers of users over a range, evenly spread by their ratio."""
    points = int(np.ceil(_POINTS_PER_DECADE * np.log10(high / low))) + 1
    return np.geomspace(float(low), float(high), points)  # whole numbers may have over 64 bits

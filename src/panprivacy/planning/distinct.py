"""The sizes of a `DistinctCount`: how many levels, and how many cells in each."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.addressing import MAX_LEVELS, Addressing, Levelled
from panprivacy.cells import BitCells
from panprivacy.decoders import LevelModel, noise_quantile
from panprivacy.hashing import KEY_BYTES
from panprivacy.planning.request import Request, Split, best_split

_POINTS_PER_DECADE = 6
_WORST_ERROR = 1e9


@dataclass(frozen=True, slots=True)
class LevelledPlan(ABC):
    """What all counts of different users share.

    Args:
        expected: lowest and highest number of users the plan is good for.
        levels: number of levels.
        cells_per_level: cells of each.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    expected: tuple[int, int]
    levels: int
    cells_per_level: int
    request: Request
    split: Split

    @abstractmethod
    def model(self, epoch: int) -> LevelModel:
        """What counts that are released after `epoch` announced intrusions say."""

    @property
    def cells(self) -> int:
        """Cells of all levels."""
        return self.levels * self.cells_per_level

    @property
    def groups(self) -> int:
        """A release publishes one count a level; a user moves one of them."""
        return self.levels

    @property
    def key_bytes(self) -> int:
        """Bytes of addressing key."""
        return KEY_BYTES

    def error(self, users: float) -> float:
        """The predicted standard deviation of the answer, relative to the number of users."""
        return float(self.relative_errors(np.array([float(users)]))[0])

    def relative_errors(self, users: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same for many numbers of users at once, cut off at 1e9."""
        deviation = self.model(self.request.intrusions).deviation(users)
        errors = np.minimum(deviation / users, _WORST_ERROR)
        return np.nan_to_num(errors, nan=_WORST_ERROR)

    def planning_errors(self, users: NDArray[np.float64]) -> NDArray[np.float64]:
        """The errors by which designs are compared."""
        return self.relative_errors(users)

    def margin(self, confidence: float) -> float:
        """How far, relative to the truth, an answer strays at most with this probability.

        It holds at the worst number of users of the expected range.
        """
        users = _grid(*self.expected)
        errors = self.relative_errors(users)
        worst = int(np.argmax(errors))
        share = self.model(self.request.intrusions).output_share(users[worst])
        return noise_quantile(confidence, share) * float(errors[worst])

    def best_error(self) -> float:
        """The smallest predicted relative error over the expected range."""
        return float(self.relative_errors(_grid(*self.expected)).min())


@dataclass(frozen=True, slots=True)
class DistinctPlan(LevelledPlan):
    """The parameters of a `DistinctCount` of users that appeared: presence bits."""

    @property
    def table(self) -> BitCells:
        """The table's cells."""
        return BitCells(self.cells, self.split.budget.state, self.request.intrusions)

    def address(self, key: bytes) -> Addressing:
        """Which cell a user maps to."""
        return Levelled(self.levels, self.cells_per_level, key)

    def model(self, epoch: int) -> LevelModel:
        """What counts that are released after `epoch` announced intrusions say."""
        contrast = float(self.table.contrast(epoch))
        return LevelModel(
            self.levels,
            self.cells_per_level,
            contrast=contrast,
            full=(1 + contrast) / 2,
            decay=1,
            noise_variance=self.split.noise_variance,
        )


@functools.lru_cache(maxsize=256)
def plan_distinct(expected: tuple[int, int], memory: int, request: Request) -> DistinctPlan:
    """Plan a `DistinctCount` within `memory` bytes of table."""

    def design(levels: int, cells_per_level: int) -> DistinctPlan:
        split = best_split(request, cells_per_level)
        return DistinctPlan(expected, levels, cells_per_level, request, split)

    return least_regret(design, expected, 8 * memory)


class _Levelled(Protocol):
    """A design whose error depends on how many users come."""

    def planning_errors(self, users: NDArray[np.float64]) -> NDArray[np.float64]:
        """The relative errors by which designs are compared."""


L = TypeVar("L", bound=_Levelled)

_NO_ERROR = 1e-12
"""Smaller relative errors, which come of an enormous epsilon, are as good as this one."""


def least_regret(design: Callable[[int, int], L], expected: tuple[int, int], cells: int) -> L:
    """The design that is never far from the best one.

    For each number of users there is a best design; a design's regret is by what factor its error
    exceeds that best one. The plan has the smallest regret at the worst point of the range.

    Args:
        design: makes one from the number of levels and the cells of each.
        expected: lowest and highest number of users.
        cells: how many there may be in all.
    """
    designs = [design(*sizes) for sizes in _sizes(expected, cells)]
    users = _grid(*expected)
    predicted = np.array([design.planning_errors(users) for design in designs])
    errors = np.clip(predicted, _NO_ERROR, _WORST_ERROR)
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


def _grid(low: int, high: int) -> NDArray[np.float64]:
    points = int(np.ceil(_POINTS_PER_DECADE * np.log10(high / low))) + 1
    return np.geomspace(low, high, points)

"""What plans of running sketches share: noisy sums of users' deltas, and one noisy sum of these."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Guarantee
from panprivacy.statistics.count_plan import CountPlan
from panprivacy.statistics.plan import guarantee_of
from panprivacy.statistics.running.stepwise.counted import CountedSums
from panprivacy.statistics.running.stepwise.event_plan import SumsPlan
from panprivacy.statistics.running.stepwise.nodes import Nodes
from panprivacy.tables.cells.cropped import CroppedCells
from panprivacy.tables.counters.running import Sum
from panprivacy.tables.counters.shapes import largest_deviation, mixed_radix
from panprivacy.tables.counters.tree import Tree
from panprivacy.tables.decoders.intervals import Floats, Measured, Model
from panprivacy.tables.planning.request import Request
from panprivacy.tables.planning.universe import MOST_BYTES_UNLESS_TOLD

MOST_CORNER = 1 << 51
_CELL_BYTES = 8
_SHARES = 64
_FINEST = 16
_MOST_BITS = 52
"""Of all that cells count for: so that it has 64 bits to stray in."""


class EpsilonSplit(NamedTuple):
    """The division of epsilon.

    Args:
        cells: for one event, at a look at the cells.
        sums: for all that one event changes in the sums.
    """

    cells: Fraction
    sums: Fraction


@dataclass(frozen=True, slots=True)
class Scaled:
    """The estimate model of counts in units.

    Args:
        model: of counts in which a cell that is full counts for 1.
        full: what it counts for in units.
    """

    model: Model
    full: int

    def estimate(self, ones: ArrayLike) -> float:
        """The estimate, from the noised number of units."""
        return self.model.estimate(np.sum(ones) / self.full)

    def answer(self, ones: ArrayLike, confidence: float) -> tuple[float, float, float]:
        """The estimate, and both ends of its confidence interval."""
        return self.model.answer(np.sum(ones) / self.full, confidence)

    def measured(self, ones: ArrayLike) -> Measured:
        """The estimate before it is cut, its standard error and its bias."""
        return self.model.measured(np.sum(ones) / self.full)

    def deviation(self, truth: ArrayLike) -> Floats:
        """The standard deviation of the estimate, for each true value."""
        return self.model.deviation(truth)

    def output_share(self, truth: float) -> float:
        """The part of the variance that noise causes."""
        return self.model.output_share(truth)


class SketchPlan(SumsPlan, CountPlan):
    """The description of plans of running sketches.

    A subclass has the fields `horizon`, `bound`, `cells` and `spent`.
    """

    __slots__ = ()

    horizon: int
    bound: int
    cells: int
    spent: EpsilonSplit

    @property
    @abstractmethod
    def corners(self) -> tuple[int, ...]:
        """The corners of the score: from the first on it is constant, up to the second it is 0."""

    @abstractmethod
    def model_of(self, noise_variance: float) -> Model:
        """Return the model of the sum over `full`, for this noise variance beside the cells'."""

    @property
    def full(self) -> int:
        """The largest count of a cell: from corner to corner, or from 0."""
        return self.corners[0] - sum(self.corners[1:])

    @property
    def inner(self) -> CroppedCells:
        """The cells of the users."""
        unit = 1 << _digits(self.cells, self.corners[0])
        return CroppedCells(self.cells, self.bound / self.spent.cells, self.corners, unit)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee for each event.

        A crash costs the sums of the other branch: they meet a cell that holds as much more.
        """
        return guarantee_of(self, crash=self.spent.sums)

    @property
    def tree(self) -> Tree:
        """The tree of steps; the state may be seen within a step."""
        reach = self.inner.reach(self.bound)
        return mixed_radix(self.horizon, self.spent.sums, reach, open_steps=True)

    @property
    def table(self) -> CountedSums:  # type: ignore[override]
        """The layout of the stored table."""
        return CountedSums(self.inner, Nodes(self.tree))

    def model(self, epoch: int) -> Scaled:  # noqa: ARG002 - no intrusion can be announced
        """Return the estimate model of the sum at the worst step."""
        return Scaled(self.model_of(self.split.noise_variance), self.inner.unit * self.full)

    def estimate(
        self,
        sums: Sequence[Sum],
        epoch: int,  # noqa: ARG002
        confidence: float,
    ) -> tuple[float, float, float, Measured]:
        """The answer, both ends of its interval, and the estimate before it is cut."""
        (last,) = sums
        full = self.inner.unit * self.full
        found = Scaled(self.model_of(last.variance / full**2), full)
        return *found.answer(last.value, confidence), found.measured(last.value)


def ways_to_spend(request: Request, what: str) -> list[EpsilonSplit]:
    """The ways to share epsilon.

    Args:
        request: epsilon and what it covers.
        what: is counted, in words.

    Raises:
        PlanError: an intrusion that is announced.
    """
    if request.intrusions:
        message = f"no intrusion can be announced to {what}: make a fresh one after it"
        raise PlanError(message)
    shares = [request.epsilon * share / _SHARES for share in range(1, _SHARES)]
    return [EpsilonSplit(cells, request.epsilon - cells) for cells in shares]


P = TypeVar("P", bound=SketchPlan)


def best_sketch(plans: Iterable[P]) -> P:
    """The plan whose largest error is the smallest, with the noise of its sum.

    Raises:
        PlanError: what cells count for, or its noise, does not fit into 64 bits.
    """
    fitting = map(_with_noise, filter(_fits, plans))
    best = min(fitting, key=lambda plan: plan.absolute_error(), default=None)
    if best is None:
        message = "what cells count for, and its noise, must fit into 64 bits: ask for fewer "
        message += "users, a smaller bound or total, or for more epsilon"
        raise PlanError(message)
    return best


def _fits(plan: SketchPlan) -> bool:
    """Whether sums and their noise have 64 bits to stray in."""
    cells, most = plan.inner, 1 << _MOST_BITS
    noise = cells.reach(plan.bound) / plan.spent.sums
    return cells.cells * plan.corners[0] * cells.unit <= most >= noise


def _with_noise(plan: P) -> P:
    """The plan with the variance of its sum at the worst step, over what is full."""
    cells = plan.inner
    worst = largest_deviation(mixed_radix(plan.horizon, Fraction(1), open_steps=True))
    deviation = worst * cells.reach(plan.bound) / (float(plan.spent.sums) * cells.unit * plan.full)
    split = replace(plan.split, noise_variance=deviation**2)
    found: P = replace(plan, split=split)  # type: ignore[type-var]
    return found


def cells_of(memory: int | None) -> int:
    """Return the number of cells that fit into a number of bytes; None for 64 MiB."""
    return (memory or MOST_BYTES_UNLESS_TOLD) // _CELL_BYTES


def _digits(cells: int, corner: int) -> int:
    """Binary digits after the point, of what cells count for."""
    return min(max(_MOST_BITS - (cells * corner - 1).bit_length(), 0), _FINEST)

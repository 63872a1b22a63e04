"""The norm of all states, from a sketch with noise calibrated to map and norm.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", section 3.1, "A general noise-calibrating technique for sketches".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.errors import PlanError
from panprivacy.papers.published.mir_columns import Repeated, SketchColumns, UserCount
from panprivacy.papers.published.mir_lattice import (
    MOST_POINTS,
    Floats,
    Integers,
    Lattice,
    SketchMap,
    lattice_of,
    law_of_lengths,
    sensitivity_of,
)
from panprivacy.papers.published.mir_lattice_cells import LatticeCells, LatticePlan
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.cases import RELEASE, Short, Trial, Walk
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Sizes, integer
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.tables.decoders.intervals import EstimateModel, discrete_laplace_variance
from panprivacy.tables.planning.request import Request, Split, budgets, noise_variance


@dataclass(frozen=True, slots=True, eq=False)
class LengthModel(EstimateModel):
    """The distribution of a noisy length, given the norm of all states.

    Args:
        errors: by how much noise in the sketch may change its length, in steps; ascending.
        chances: probability of each.
        scale: scale of the discrete Laplace noise on the length.
        unit: steps to the unit.
        limit: the largest norm.
        exact: whether the length of a sketch without noise is the norm; else it is no more.
    """

    errors: Integers
    chances: Floats
    scale: float
    unit: int
    limit: float
    exact: bool

    def estimate(self, sums: ArrayLike) -> float:
        """Return the noisy length, cut to what norms can be."""
        return min(max(self.unbiased(sums), 0.0), self.limit)

    def unbiased(self, ones: ArrayLike) -> float:
        """Return the noisy length."""
        return float(np.sum(ones)) / self.unit

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return a bound on the root-mean-square distance from the length without noise."""
        square = self.chances @ self.errors.astype(float) ** 2 + self._output
        return np.full(np.shape(truth), math.sqrt(square) / self.unit)

    def bias(self, truth: ArrayLike) -> Floats:
        """Return infinity: the bias is unknown, as noise may make a sketch longer or shorter."""
        return np.full(np.shape(truth), math.inf)

    @property
    def _output(self) -> float:
        return discrete_laplace_variance(self.scale)

    def output_share(self, truth: float) -> float:
        """Return the part of the variance that output noise causes."""
        total = (float(self.deviation(truth)) * self.unit) ** 2
        return self._output / total if total else 0.0

    def reach(self, beyond: float) -> int:
        """Return the fewest steps that errors exceed with no more than this probability."""
        ratio = math.exp(-1 / self.scale)

        def exceeds(reach: int) -> float:
            least = (reach + 1 - self.errors).astype(float)
            above = ratio ** np.maximum(least, 0) / (1 + ratio)
            below = 1 - ratio ** np.maximum(1 - least, 0) / (1 + ratio)
            return float(self.chances @ np.where(least > 0, above, below))

        low, high = -1, int(self.errors[-1]) + 1
        while exceeds(high) > beyond:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if exceeds(middle) > beyond else (low, middle)
        return high

    def strays(self, confidence: float) -> float:
        """Return the bound on the error, in standard deviations, with probability `confidence`."""
        return self.reach((1 - confidence) / 2) / self.unit / float(self.deviation(0.0))

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """Return the norms compatible with a length; up to `limit` if lengths may be too short."""
        reach = self.reach((1 - confidence) / (2 if self.exact else 1)) / self.unit
        high = min(estimate + reach, self.limit) if self.exact else self.limit
        return max(estimate - reach, 0.0), high


@dataclass(frozen=True, slots=True)
class NormPlan(LatticePlan):
    """The parameters of a `CalibratedNorm`.

    Args:
        columns: columns of the map.
        modulus: M.
        norm: 0, 1 or 2.
        universe: number of users.
        request: epsilon and what it covers.
        split: the split of epsilon.
    """

    columns: tuple[tuple[int, ...], ...]
    modulus: int
    norm: int
    universe: int
    request: Request
    split: Split

    measure = "the largest norm"
    question = "what is the norm of all states, as far as a sketch tells it?"

    @property
    def unit(self) -> str:
        """The unit of the answers."""
        return ("users", "sum of states", "root of a sum of squares")[self.norm]

    @property
    def table(self) -> LatticeCells:
        """The cell."""
        sketch = SketchMap(self.columns, self.modulus)
        return LatticeCells(sketch, self.norm, self.split.budget.state)

    def address(self, key: bytes) -> Repeated:  # noqa: ARG002
        """Return the column of each user."""
        return Repeated(self.universe, len(self.columns))

    @property
    def name(self) -> Name:
        """The name of the answer."""
        return Name("", "norm", (("power", self.norm),))

    @property
    def largest(self) -> float:
        """The norm of the largest states."""
        most = self.modulus // 2
        largest = float(self.universe), float(self.universe * most), self.universe**0.5 * most
        return largest[self.norm]

    def model(self, epoch: int) -> LengthModel:
        """Return the model of a noisy length."""
        lattice = self.table.lattice
        return LengthModel(
            errors=np.arange(lattice.longest + 1),
            chances=law_of_lengths(lattice, self.noise(epoch)),
            scale=float(self.sensitivity(epoch) / self.split.budget.release),
            unit=lattice.unit,
            limit=self.largest,
            exact=lattice.faithful and self.universe == len(self.columns),
        )

    def reach(self, confidence: float, truth: float | None) -> float:  # noqa: ARG002
        """Return the bound on the error, in standard deviations, with probability `confidence`."""
        return self.model(self.request.intrusions).strays(confidence)

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """Return the norm of the states, modulo M."""
        places = states % self.modulus
        sizes = np.minimum(places, self.modulus - places).astype(float)
        if self.norm == 0:
            return float((sizes > 0).sum())
        return float(sizes.sum()) if self.norm == 1 else math.sqrt(float(sizes @ sizes))

    def synthetic_users(self, answer: float) -> tuple[float, int]:
        """Return users of 1 with that norm."""
        return answer**2 if self.norm == 2 else answer, 1


def _split(lattice: Lattice, sensitivity: int, request: Request) -> Split:
    """Return the split with the smallest error; that of the request if it has one."""
    counts = law_of_lengths(lattice, np.ones(len(lattice.lengths)))
    lengths = np.arange(lattice.longest + 1)

    def error(budget: Budget) -> float:
        law = counts * np.exp(-float(min(budget.state / sensitivity, Fraction(700))) * lengths)
        noise = float(law @ lengths.astype(float) ** 2 / law.sum())
        return request.looks * noise + noise_variance(sensitivity, budget)

    best = min(budgets(request), key=error)
    return Split(best, 1.0, noise_variance(sensitivity, best))


class NormSizes(Sizes, frozen=True, tag="calibrated-norm"):
    """The norm of all states, estimated from a linear sketch of your own."""

    columns: SketchColumns
    modulus: Annotated[int, integer("states and sketches are modulo this", MOST_POINTS, 2)]
    norm: Annotated[
        int,
        integer("0 for users whose state is not 0, 1 for the sum of |state|, 2 for L2", 2, 0),
    ] = 0
    universe: UserCount = None

    def plan(self, request: Request) -> NormPlan:
        """Return noise on the sketch that fits the norm."""
        users = len(self.columns) if self.universe is None else self.universe
        if users < len(self.columns) or (self.norm == 2 and users > len(self.columns)):
            message = "there must be a user for each column; with norm=2 no more"
            raise PlanError(message)
        sketch = SketchMap(self.columns, self.modulus)
        try:
            lattice = lattice_of(sketch, self.norm)
        except PlanError as error:
            if self.norm != 1:
                raise
            message = f"{error}; or LaplaceNorm, which enumerates nothing and wants a bound"
            raise PlanError(message) from None
        split = _split(lattice, sensitivity_of(sketch, self.norm), request)
        return NormPlan(self.columns, self.modulus, self.norm, users, request, split)


_PLANE = [[0, 1], *([1, entry] for entry in range(6))]
_SMALL: dict[str, Any] = {"columns": [[1, 0], [0, 1], [1, 1]], "modulus": 3}
_MOVES = [[(0, 1)], [(0, 2)], [(1, 1)]]
_AROUND = [[(0, 1)], RELEASE, [(0, 2), (2, 1)]]

NORM_TRIALS = tuple(
    Trial(
        f"norm of power {norm}",
        {"columns": _PLANE, "modulus": 101, "norm": norm, "universe": 50_021},
        {"columns": [[1], [1], [2]], "modulus": 3, "universe": 3},
        deltas=(1, 2, -1, 3),
    )
    for norm in (0, 1)
)

NORM_WALKS = (
    Walk(
        "norm-0",
        "a sketch of two numbers modulo 3, born with noise for the number of users",
        {**_SMALL, "norm": 0},
        [Short(_MOVES, 1), _AROUND],
        evenly=True,
    ),
    Walk(
        "norm-1",
        "a number modulo 5, born with noise for the sum of states",
        {"columns": [[1], [2]], "modulus": 5, "norm": 1},
        [Short(_MOVES, 2), _AROUND[:2]],
        evenly=True,
    ),
    Walk(
        "norm-2",
        "a number modulo 5, born with noise for the root of the sum of squares",
        {"columns": [[1], [2]], "modulus": 5, "norm": 2},
        [Short(_MOVES[:2], 1)],
        evenly=True,
        tail=24,
    ),
    Walk(
        "norm-announced",
        "two looks at a number modulo 4",
        {"columns": [[1], [2]], "modulus": 4, "norm": 1},
        [Short(_MOVES[:2], 2, releases=0)],
        intrusions=1,
        evenly=True,
    ),
)


class CalibratedNorm(Statistic[NormPlan, Release]):
    """The norm of all states, estimated from a linear sketch modulo M.

    >>> from panprivacy.papers.published import CalibratedNorm
    >>> columns = [[1, 0], [0, 1], [1, 1], [1, 2]]  # any two are independent: two users are told
    >>> users = CalibratedNorm(columns=columns, modulus=5, norm=0, epsilon=40)
    >>> users.update([0, 3, 3], [2, 5, -1])
    >>> round(users.release())
    2

    The sketch is initialised with noise that is drawn from all its points, the likelier the fewer
    states lead there: the exponential mechanism. A release is the length of the sketch, with noise.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do, and of `e**(2 epsilon)` when one user is replaced by another (Definition 4 of the
    paper). It is pure, for all three norms. [tests/exact/test_calibration.py,
    docs/guarantees/published.md]

    Accuracy: the length of a sketch is at most the norm of the states; it is the norm where no
    smaller one leads to the same sketch. So the interval bounds the norm from below, and from above
    only if the map loses nothing. Noise in the sketch changes the length by no more than its own.
    [tests/statistical/test_calibration.py]

    Reference: section 3.1, "A general noise-calibrating technique for sketches". Different from
    print: no box, the sensitivity of the lattice, the length as its own estimator.
    """

    __slots__ = ()

    entry = CatalogueEntry(NormSizes, trials=NORM_TRIALS, walks=NORM_WALKS)

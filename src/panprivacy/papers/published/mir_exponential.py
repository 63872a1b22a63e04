"""Distinct users from a sketch of stable variables, with noise by the exponential mechanism.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", Algorithm 1. Repaired: the noise comes from all points that sketches reach modulo M
(printed: from rows of the matrix in a box, which updates leave), and the median is divided by its
factor (printed: multiplied). docs/published.md has each with its number.
"""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.errors import PlanError
from panprivacy.papers.published.mir_lattice import (
    MOST_POINTS,
    Floats,
    Integers,
    Lattice,
    lattice_of,
    law_of_lengths,
    probabilities,
)
from panprivacy.papers.published.mir_lattice_cells import LatticeCells, LatticePlan
from panprivacy.privacy.guarantee import Budget
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.cases import Short, Trial, Walk
from panprivacy.statistics.count_plan import CountReading
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.reading import Reading
from panprivacy.statistics.records import Sizes, integer
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.statistics.table.releasing import TableReleasing
from panprivacy.tables.addressing import Direct
from panprivacy.tables.cells.protocol import Table
from panprivacy.tables.decoders.intervals import EstimateModel
from panprivacy.tables.planning.request import Request, Split

_MOST_ROWS = 16
_MOST_ROOTS = 8
_MOST_DRAW = 1 << 32
_ANGLES = 256


@dataclass(frozen=True, slots=True)
class StableMap:
    """A matrix of p-stable variables on a grid, modulo M: it is public, as the paper has it.

    An entry is one of 65,536 equally likely ones, which SHAKE-256 of the parameters chooses.

    Args:
        universe: number of users.
        rows: r, the numbers of a sketch.
        modulus: M.
        roots: 1/p.
        grid: steps to the median of the absolute value.
        draw: which of all such matrices.
    """

    universe: int
    rows: int
    modulus: int
    roots: int
    grid: int
    draw: int

    def columns(self) -> Integers:
        """Return the column of each user."""
        numbers = self.universe, self.rows, self.modulus, self.roots, self.grid, self.draw
        name = ("panprivacy stable map", *map(str, numbers))
        stream = hashlib.shake_256(" ".join(name).encode()).digest(2 * self.universe * self.rows)
        words = np.frombuffer(stream, "<u2").reshape(self.universe, self.rows)
        return _entries(self.roots, self.grid, self.modulus)[words]

    @property
    def factor(self) -> float:
        """`sf(p)`, the median of `|X|**p` over all entries."""
        entries = _entries(self.roots, self.grid, self.modulus)
        return float(np.median(_sizes(entries, self.modulus))) ** (1 / self.roots)


@functools.lru_cache(maxsize=16)
def _entries(roots: int, grid: int, modulus: int) -> Integers:
    """Return the 65,536 entries: stable variables made of 256 angles and 256 exponential variables.

    Reference: J. Chambers, C. Mallows, B. Stuck, "A method for simulating stable random variables".
    """
    middles = (np.arange(_ANGLES) + 0.5) / _ANGLES
    angles, times = np.pi * (middles[:, np.newaxis] - 0.5), -np.log(middles)
    p = 1 / roots
    stable = np.sin(p * angles) / np.cos(angles) ** roots
    stable = stable * (np.cos((1 - p) * angles) / times) ** (roots - 1)
    on_grid = np.rint(stable / np.median(np.abs(stable)) * grid).ravel()
    return np.fmod(on_grid, modulus).astype(np.int64) % modulus


def _sizes(entries: Integers, modulus: int) -> Integers:
    """Return the distance of numbers modulo M from 0."""
    return np.minimum(entries, modulus - entries)


@dataclass(frozen=True, slots=True, eq=False)
class StableModel(EstimateModel):
    """The distribution of a noisy sketch, given the number of users.

    Args:
        lattice: lattice of the sketch.
        roots: 1/p.
        factor: what the median is divided by.
        errors: the root-mean-square error for each number of users of state 1, the first ones.
        lengths: probability of each length of the noise.
    """

    lattice: Lattice
    roots: int
    factor: float
    errors: Floats
    lengths: Floats

    def estimate(self, sums: ArrayLike) -> float:
        """Return the median of the p-th powers, over its factor."""
        return float(medians(self.lattice, np.asarray(sums), self.roots)[0]) / self.factor

    def answer(self, ones: ArrayLike, confidence: float) -> tuple[float, float, float]:
        """Return the estimate within its interval: the fewest users that may lead here, to all."""
        length = self.lattice.length(np.asarray(ones).tolist())
        tails = np.cumsum(self.lengths[::-1])[::-1]
        reach = int((tails > 1 - confidence).sum()) - 1
        low, high = max(float(length - reach), 0.0), float(len(self.errors) - 1)
        return min(max(self.estimate(ones), low), high), low, high

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:  # noqa: ARG002
        """Return the full range: without the sketch nothing is known."""
        return 0.0, float(len(self.errors) - 1)

    def deviation(self, truth: ArrayLike) -> Floats:
        """Return the root-mean-square error, bias included, for the first users in state 1."""
        return np.interp(np.asarray(truth, float), np.arange(len(self.errors)), self.errors)

    def bias(self, truth: ArrayLike) -> Floats:
        """Return infinity: the bias is unknown, since it depends on the states."""
        return np.full(np.shape(truth), math.inf)

    def output_share(self, truth: float) -> float:  # noqa: ARG002
        """Return 0: there is no noise on counts."""
        return 0.0


def medians(lattice: Lattice, points: Integers, roots: int) -> Floats:
    """Return the median over rows of `|entry|**p`, of each point."""
    entries = points.reshape(-1, lattice.rows) % lattice.modulus
    sizes: Floats = np.median(_sizes(entries, lattice.modulus) ** (1 / roots), axis=1)
    return sizes


@dataclass(frozen=True, slots=True)
class EntriesReading(CountReading):
    """A release of a whole sketch; `StableDistinctCount` draws its noise, a point."""

    def sums(self, cells: LatticeCells, table: Table) -> NDArray[np.int64]:
        """Return the numbers of the sketch."""
        return cells.entries(table)


@dataclass(frozen=True, slots=True)
class StablePlan(LatticePlan):
    """The parameters of a `StableDistinctCount`, and their split."""

    universe: int
    rows: int
    modulus: int
    roots: int
    grid: int
    draw: int
    request: Request
    split: Split

    question = "how many users are in a state other than 0, as a stable sketch tells it?"
    unit = "users"
    measure = "the universe"
    name = Name("", "distinct_count")

    @property
    def map(self) -> StableMap:
        """The public matrix."""
        numbers = self.universe, self.rows, self.modulus, self.roots, self.grid, self.draw
        return StableMap(*numbers)

    @property
    def table(self) -> LatticeCells:
        """The cell."""
        return LatticeCells(self.map, 0, self.split.budget.state)

    def address(self, key: bytes) -> Direct:  # noqa: ARG002
        """Return a column for each user."""
        return Direct(self.universe)

    @property
    def groups(self) -> int:
        """Number of values in a release."""
        return self.rows

    def reading(self, query: object, epoch: int) -> EntriesReading:  # noqa: ARG002
        """Return the reading of a release after `epoch` announced intrusions."""
        return EntriesReading(self, epoch)

    @property
    def release_weights(self) -> tuple[int, ...]:
        """Weights of all points as the noise of a release."""
        return self.table.weights(self.split.budget.release)

    @property
    def largest(self) -> float:
        """The largest answer: all users."""
        return float(self.universe)

    def model(self, epoch: int) -> StableModel:
        """Return the model of a noisy sketch."""
        return _model(self, epoch)

    def reach(self, confidence: float, truth: float | None) -> float:  # noqa: ARG002
        """Return Chebyshev's bound on the error, in standard deviations."""
        return 1 / math.sqrt(1 - confidence)

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """Return the number of states that are not 0."""
        return float((states != 0).sum())


@functools.lru_cache(maxsize=16)
def _model(plan: StablePlan, epoch: int) -> StableModel:
    lattice, factor = plan.table.lattice, plan.map.factor
    noise = lattice.convolved(plan.noise(epoch), probabilities(plan.release_weights))
    points = np.stack(np.unravel_index(np.arange(len(noise)), lattice.shape), axis=1)
    values = medians(lattice, points, plan.roots) / factor
    means, squares = (lattice.convolved(noise, each) for each in (values, values**2))
    sketches = np.vstack([np.zeros((1, plan.rows), np.int64), np.cumsum(lattice.columns, axis=0)])
    places, users = lattice.numbers(sketches), np.arange(plan.universe + 1)
    errors = squares[places] - 2 * users * means[places] + users**2
    lengths = law_of_lengths(lattice, noise)
    return StableModel(lattice, plan.roots, factor, np.sqrt(np.maximum(errors, 0)), lengths)


class StableSizes(Sizes, frozen=True, tag="stable-distinct-count"):
    """The number of users in a state other than 0, from a sketch of stable variables."""

    universe: Annotated[int, integer("how many users there could be: ids 0 to N-1", MOST_POINTS)]
    rows: Annotated[int, integer("numbers of a sketch, of which the median is taken", _MOST_ROWS)]
    modulus: Annotated[int, integer("sketches are modulo this", MOST_POINTS, 2)]
    roots: Annotated[int, integer("1/p, where p is the stability", _MOST_ROOTS)] = 2
    grid: Annotated[int, integer("steps to the median of an entry", MOST_POINTS)] = 2
    draw: Annotated[int, integer("which of all public matrices", _MOST_DRAW, 0)] = 0

    def plan(self, request: Request) -> StablePlan:
        """Return noise on the sketch, and the same once more on each release."""
        share = request.epsilon / (request.looks + request.releases)
        budget = Budget(share, share) if request.budget is None else request.check(request.budget)
        numbers = self.universe, self.rows, self.modulus, self.roots, self.grid, self.draw
        sketch = StableMap(*numbers)
        lattice_of(sketch, 0)  # what cannot be enumerated is refused here
        if not sketch.factor:
            message = "half of the entries are 0 modulo M: take a larger modulus or a finer grid"
            raise PlanError(message)
        return StablePlan(*numbers, request, Split(budget, 1.0, 0.0))


STABLE_TRIALS = (
    Trial(
        "stable distinct count",
        {"universe": 50_021, "rows": 2, "modulus": 101, "grid": 20},
        {"universe": 3, "rows": 1, "modulus": 3, "grid": 6},
        deltas=(1, 2, -1, 3),
    ),
)

_MOVES = [[(0, 1)], [(0, 2)], [(1, 1)]]

STABLE_WALKS = (
    Walk(
        "stable-distinct",
        "two numbers modulo 3, and the same noise once more in a release",
        {"universe": 2, "rows": 2, "modulus": 3, "grid": 5},
        [Short(_MOVES, 2)],
    ),
    Walk(
        "stable-announced",
        "a number modulo 5, two looks and a release",
        {"universe": 2, "rows": 1, "modulus": 5, "grid": 5},
        [Short(_MOVES, 2)],
        intrusions=1,
    ),
)


class StableReleasing(TableReleasing[StablePlan]):
    """The releases of a sketch: its point of the lattice plus another one."""

    __slots__ = ()

    def _add_noise(
        self,
        reading: Reading,  # noqa: ARG002
        sums: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Add a point of the lattice, modulo M: what the sum would be without it shows nothing."""
        plan = self.memory.plan
        drawn = self.memory.coins.categorical(plan.release_weights, 1)
        noise = plan.table.entries(drawn)
        counts = sums + noise
        counts %= plan.modulus
        wipe(drawn, noise)
        return counts


class StableDistinctCount(Statistic[StablePlan, Release]):
    """The number of users in a nonzero state, from a sketch of p-stable variables modulo M.

    >>> from panprivacy.papers.published import StableDistinctCount
    >>> from panprivacy.testing import allow_noise
    >>> with allow_noise():  # the answer of two rows is noise
    ...     users = StableDistinctCount(universe=30, rows=2, modulus=101, epsilon=60)
    >>> users.update([3, 4, 4], [5, 1, -1])
    >>> answer = users.release(confidence=1 - 1e-9)
    >>> answer.low <= 1 <= answer.high
    True

    The sketch is initialised with a point of the lattice `Z_M**rows`, the likelier the fewer users
    lead there, and a release adds another one: exactly the exponential mechanism. It enumerates the
    lattice, so `modulus**rows` is at most 65,536. The matrix is public and follows from the sizes.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do, and of `e**(2 epsilon)` when one user is replaced by another (Definition 4 of the
    paper). [tests/exact/test_calibration.py, docs/guarantees/published.md]

    Accuracy: none of use. So small a lattice has few points that are far from 0: unless epsilon is
    above the logarithm of `universe * modulus` its noise is nearly uniform. What the plan predicts
    is exact for users of state 1. The interval holds the truth at least as often as it says: it
    bounds the number from below, as any sketch may be that of all users.
    [tests/statistical/test_calibration.py, docs/published.md]

    Reference: Algorithm 1. Different from print: whole numbers modulo M in place of a box; the
    median over `sf(p)`, not times it; the noise of a release does not stay in the state; noise
    `exp(-epsilon d)` where `exp(-epsilon d/4)` is printed, which hides Definition 4 and a
    normaliser that does not change.
    """

    __slots__ = ()

    entry = CatalogueEntry(StableSizes, trials=STABLE_TRIALS, walks=STABLE_WALKS)

    _releasing = StableReleasing

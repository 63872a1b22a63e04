"""Sums and norms under L1 from sketches of any size, with discrete Laplace noise.

The noise that `mir_lattice_cells` fits to a map falls with the least norm of states that lead to a
point. Under L1, where each user has a single 1 in a separate number, that norm is the sum of what
stands in all numbers, so its weight is a product: each number has discrete Laplace noise apart, and
no point is enumerated. For other maps the same noise fits the sum of the entries of a column.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", section 3.1, "A general noise-calibrating technique for sketches" for L1. Different
from print: no box; the sensitivity is that of the columns and of the bound alone, and what comes
after a look has twice that. docs/guarantees/published.md proves the claims.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.papers.published.mir_calibrated_norm import LengthModel
from panprivacy.papers.published.mir_columns import OneColumn, Repeated, SketchColumns, UserCount
from panprivacy.papers.published.mir_lattice import Floats, Integers
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.additive_plans import AdditivePlan, Bound
from panprivacy.statistics.cases import ANNOUNCE, RELEASE, Trial, Walk
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.moment.plan import MomentPlan
from panprivacy.statistics.records import Sizes, flag, integer
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.tables.addressing import Slots
from panprivacy.tables.cells.additive import AdditiveCells
from panprivacy.tables.cells.protocol import Deltas, Table, with_deltas
from panprivacy.tables.planning.additive import AdditiveBudget, Reach
from panprivacy.tables.planning.request import Request, Split, budgets, noise_variance

_MOST_ROWS = 1 << 12
_MOST_ENTRIES = 1 << 20
_MOST_SCALE = 1 << 50
_MOST_TOTAL = 1 << 50
_MOST_STEPS = 1 << 14
"""Maximum number of steps of a law of lengths."""

_FARTHEST = 100


@dataclass(frozen=True, slots=True)
class SketchCells(AdditiveCells):
    """The numbers of a linear sketch, int64; a release publishes the sum of their sizes.

    Guarantee: as for `AdditiveCells`, where a user whose states lie `d` apart moves the numbers by
    `d` times the sum of the sizes of the user's column. [tests/exact/test_laplace.py]

    Args:
        columns: of the map, as many numbers each as there are cells; a slot is that of a column.
    """

    columns: tuple[tuple[int, ...], ...] = ()

    def update(
        self,
        table: Table,
        slots: Iterable[Slots],
        deltas: Deltas | None,
        epoch: int,  # noqa: ARG002 - later noise is the same whatever came before
        coins: Coins,  # noqa: ARG002 - adding needs no coins
    ) -> None:
        """Add the columns of the users, times their deltas."""
        columns = _matrix(self.columns)
        states = np.zeros(len(columns), np.int64)
        for piece, given in with_deltas(slots, deltas):
            np.add.at(states, piece, 1 if given is None else given)
        moved = states @ columns
        table += moved
        wipe(states, moved)

    def group_sums(self, table: Table, groups: int, epoch: int) -> Integers:  # noqa: ARG002
        """Return the length of the sketch under L1, as one number."""
        sizes = np.abs(table)
        length = np.array([sizes.sum()])
        wipe(sizes)
        return length


@functools.lru_cache(maxsize=16)
def _matrix(columns: tuple[tuple[int, ...], ...]) -> Integers:
    return np.array(columns, np.int64)


@functools.lru_cache(maxsize=64)
def _widest(columns: tuple[tuple[int, ...], ...]) -> int:
    """Return the most that the sizes of a column add up to."""
    return int(np.abs(_matrix(columns)).sum(axis=1).max())


@functools.lru_cache(maxsize=64)
def law_of_lengths(rows: int, scales: tuple[Fraction, ...]) -> tuple[Integers, Floats]:
    """Return the changes that noise may make to a length, and their probabilities.

    A length changes by no more than the sizes of all noise in all numbers. Each is rounded up to a
    step, which is more than 1 where scales are large: so what is found is too much, never too
    little.

    >>> changes, chances = law_of_lengths(2, (Fraction(3),))
    >>> changes[:3].tolist(), round(float(chances @ changes), 2)  # 2 * 2.95
    ([0, 1, 2], 5.89)

    Args:
        rows: number of rows of the sketch.
        scales: scales of the discrete Laplace noise on each row, one for each time noise is added.

    Returns:
        Changes, ascending, and their probabilities.
    """
    # The probability beyond `far` is below 1e-20, by Chernoff's bound.
    far = float(sum(scales)) * (1.5 * rows + _FARTHEST) + _FARTHEST
    step = math.ceil(far / _MOST_STEPS)
    places = np.arange(math.ceil(far / step))
    spectrum = np.ones(len(places) + 1, complex)
    for scale in scales:
        # One noise exceeds k with probability 2 r**(k+1)/(1+r), r = e**(-1/scale).
        beyond = 2 * np.exp(-(places * step + 1) / float(scale)) / (1 + math.exp(-1 / scale))
        once = -np.diff(beyond, prepend=1)
        spectrum = spectrum * np.fft.rfft(once, 2 * len(places)) ** rows
    law = np.fft.irfft(spectrum, 2 * len(places))[: len(places)]
    return places * step, np.maximum(law, 0)


@dataclass(frozen=True, slots=True)
class LaplaceNormPlan(AdditivePlan):
    """The parameters of a `LaplaceNorm`.

    Args:
        columns: columns of the map.
        bound: the largest state of a user.
        signed: whether states reach down to `-bound`.
        universe: number of users.
        request: epsilon and what it covers.
        split: the split of epsilon.
    """

    columns: tuple[tuple[int, ...], ...]
    bound: int
    signed: bool
    universe: int
    request: Request
    split: Split

    proofs = ("moments", "published")
    checks = ("exact/test_laplace", "statistical/test_laplace")
    measure = "the largest norm"
    question = "what do all states add up to, each without its sign, as far as a sketch tells it?"
    unit = "sum of states"
    name = Name("", "norm", (("power", 1),))
    key_bytes = 0
    clip = 0
    groups = 1

    @property
    def cells(self) -> int:  # type: ignore[override]
        """Numbers of the sketch."""
        return len(self.columns[0])

    @property
    def moves(self) -> Reach:
        """The bound on how one user can move all the numbers together."""
        return Reach(self.bound, self.signed, _widest(self.columns))

    @property
    def expected(self) -> tuple[int, int]:  # type: ignore[override]
        """The norms that it is planned for."""
        return 0, self.universe * self.bound

    @property
    def table(self) -> SketchCells:
        """The table's cells."""
        moves, budget = self.moves, self.split.budget
        scales = moves.initial(budget), moves.later(budget)
        return SketchCells(self.cells, *scales, columns=self.columns)

    def address(self, key: bytes) -> Repeated:  # type: ignore[override]  # noqa: ARG002
        """Return the column of each user."""
        return Repeated(self.universe, len(self.columns))

    @property
    def faithful(self) -> bool:
        """Whether the length of a sketch without noise is the norm: each user has its own number.

        The absolute value of that number must also be the same for all users.

        """
        columns = _matrix(self.columns)
        users, rows = np.nonzero(columns)
        alone = len(users) == len(columns) == self.universe == len({*users}) == len({*rows})
        return alone and len({*np.abs(columns[users, rows])}) == 1

    def model(self, epoch: int) -> LengthModel:
        """Return the model of a noisy length."""
        cells, budget = self.table, self.split.budget
        errors, chances = law_of_lengths(self.cells, (cells.scale, *[cells.later] * epoch))
        return LengthModel(
            errors=errors,
            chances=chances,
            scale=float(self.sensitivity(epoch) / budget.release),
            unit=self.moves.tables,
            limit=self.limit,
            exact=self.faithful,
        )

    def reach(self, confidence: float, truth: float | None) -> float:  # noqa: ARG002
        """Return the bound on the error, in standard deviations, with probability `confidence`."""
        return self.model(self.request.intrusions).strays(confidence)

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """Return the sum of the sizes of states."""
        return float(np.abs(states.astype(float)).sum())


def _split(request: Request, error: Callable[[AdditiveBudget], float]) -> Split:
    """Return the split of epsilon with the smallest error; that of the request if it has one."""
    every = [AdditiveBudget(one.state, one.release) for one in budgets(request)]
    return Split(min(every, key=error), 1.0, 0.0)


class LaplaceNormSizes(Sizes, frozen=True, tag="laplace-norm"):
    """The norm L1 of all states, from a linear sketch of your own of any size."""

    columns: SketchColumns
    bound: Bound
    signed: Annotated[bool, flag("states may be below 0, down to minus the bound")] = False
    universe: UserCount = None

    def plan(self, request: Request) -> LaplaceNormPlan:
        """Return noise on each number that fits the largest column."""
        users, rows = self.universe or len(self.columns), len(self.columns[0])
        if users < len(self.columns):
            message = "there must be a user for each column"
            raise PlanError(message)
        if rows > _MOST_ROWS or rows * len(self.columns) > _MOST_ENTRIES:
            message = (
                f"columns may have {_MOST_ROWS:,} numbers each and {_MOST_ENTRIES:,} in all: "
                "take fewer or shorter ones"
            )
            raise PlanError(message)
        if not any(map(any, self.columns)):
            message = "columns that are all 0 tell nothing: take others"
            raise PlanError(message)

        moves = Reach(self.bound, self.signed, _widest(self.columns))

        def error(budget: AdditiveBudget) -> float:
            noise = moves.noise(budget, request.intrusions, published=False).variance
            # The sizes of r numbers of Laplace noise have a mean square of r (r+1)/2 variances.
            return rows * (rows + 1) / 2 * noise + noise_variance(moves.sensitivity(0), budget)

        split = _split(request, error)
        plan = LaplaceNormPlan(self.columns, self.bound, self.signed, users, request, split)
        if plan.table.later >= _MOST_SCALE:
            message = "noise for these columns, bound and epsilon fits in no 64 bits: take smaller "
            message += "entries, a smaller bound or more epsilon"
            raise PlanError(message)
        return plan


_SEVEN = [[1, 0, 0], [0, -1, 0], [0, 2, 1], [1, 0, 1], [3, 0, 0], [0, 1, -1], [0, 0, 1]]

LAPLACE_NORM_TRIALS = (
    Trial(
        "laplace norm",
        {"columns": _SEVEN, "bound": 40, "universe": 50_021},
        None,
        deltas=(1, 5, -2),
        refused=(41, -41, 2**62),
    ),
)

_SMALL: dict[str, Any] = {"columns": [[1], [1]], "bound": 1}

LAPLACE_NORM_WALKS = (
    Walk(
        "laplace-norm",
        "a number with noise for states of 0 and 1, its size released",
        _SMALL,
        [[[0], [1], RELEASE], [[(0, 1)], [(0, -1), (0, 1), (0, -1)], RELEASE]],
        evenly=True,
        tail=12,
        state_tail=2,
    ),
    Walk(
        "laplace-norm-two",
        "two numbers, of which a user moves both, seen",
        {"columns": [[1, 1], [0, 1]], "bound": 1},
        [[[0], [1]]],
        evenly=True,
        tail=3,
    ),
    Walk(
        "laplace-norm-announced",
        "a number, two looks",
        _SMALL,
        [[[(0, 1)], ANNOUNCE, [(0, -1), (0, 1), (0, -1)]]],
        intrusions=1,
        evenly=True,
        tail=5,
    ),
)


class LaplaceNorm(Statistic[LaplaceNormPlan, Release]):
    """The norm L1 of all states, estimated from a linear sketch of whole numbers of any size.

    >>> import numpy as np
    >>> from panprivacy.papers.published import LaplaceNorm
    >>> columns = np.eye(64, dtype=int).tolist()  # users 0, 64, 128 ... share the first number
    >>> spent = LaplaceNorm(columns=columns, bound=5, universe=6_400, epsilon=8)
    >>> spent.update(np.arange(6_400), np.full(6_400, 4))
    >>> answer = spent.release(confidence=1 - 1e-9)
    >>> answer.low <= 25_600 <= answer.high
    True

    It is what `CalibratedNorm` is under L1, where noise need not be enumerated: each number of the
    sketch has discrete Laplace noise, for the column whose sizes add up to most. Where each column
    has a single 1 or -1, that is the exponential mechanism of the paper. A release is the sum of
    the sizes of all numbers, with noise.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, *while the
    states of that user stay within 0 .. bound*, or -bound .. bound if `signed`. Who goes c times
    as far loses c times as much. [tests/exact/test_laplace.py, docs/guarantees/published.md]

    Accuracy: the sum of the sizes of a sketch, over that of its largest column, is at most the
    norm of the states. So the interval bounds the norm from below; from above only where each user
    has a separate number. Noise in r numbers adds up to `r w bound/epsilon_state` to it, where w
    is what the sizes of the largest column add up to: with many numbers and few users the answer
    is mostly noise, and the interval says so. [tests/statistical/test_laplace.py]

    Reference: section 3.1, "A general noise-calibrating technique for sketches", for L1. Different
    from print: noise for the bound where twice that is printed, and twice as much on what comes
    after a look; no factor that the exponential mechanism does not need.
    """

    __slots__ = ()

    entry = CatalogueEntry(LaplaceNormSizes, trials=LAPLACE_NORM_TRIALS, walks=LAPLACE_NORM_WALKS)


@dataclass(frozen=True, slots=True)
class TotalPlan(MomentPlan):
    """The parameters of a `CalibratedTotal`: those of a `FrequencyMoment` of order 1."""

    proofs = ("moments", "published")
    checks = ("exact/test_laplace", "statistical/test_laplace")
    measure = "the largest sum"
    question = "how much have all users done?"
    unit = "sum of states"
    name = Name("", "total")

    @property
    def total(self) -> int:
        """The largest sum."""
        return self.expected[1]

    def address(self, key: bytes) -> OneColumn:  # type: ignore[override]  # noqa: ARG002
        """Return the addressing that adds up all users in one cell."""
        return OneColumn()

    key_bytes = 0


class TotalSizes(Sizes, frozen=True, tag="calibrated-total"):
    """The sum of what all users did, F1, from one counter."""

    total: Annotated[int, integer("the largest sum", _MOST_TOTAL)]
    bound: Bound

    def plan(self, request: Request) -> TotalPlan:
        """Return the plan of one number with the split of the smallest error."""
        if self.bound > self.total:
            message = f"the bound ({self.bound:,}) must be at most the total ({self.total:,})"
            raise PlanError(message)
        moves = Reach(self.bound, signed=False, tables=1)

        def error(budget: AdditiveBudget) -> float:
            return moves.noise(budget, request.intrusions, published=True).variance

        split = _split(request, error)
        return TotalPlan(
            order=1,
            bound=self.bound,
            signed=False,
            expected=(0, self.total),
            cells=1,
            clip=0,
            request=request,
            split=split,
        )


TOTAL_TRIALS = (
    Trial("total", {"total": 100_000, "bound": 10}, None, deltas=(1, 3, -1, 2), refused=(11, -11)),
)

TOTAL_WALKS = (
    Walk(
        "calibrated-total",
        "a sum of states of 0 and 1, seen at its largest and released where some of it is gone",
        {"total": 2, "bound": 1},
        [[[0], [1], RELEASE], [[(0, 1)], [(0, -1), (0, 1), (0, -1)], RELEASE]],
        evenly=True,
        tail=12,
        state_tail=2,
    ),
)


class CalibratedTotal(Statistic[TotalPlan, Release]):
    """The sum of all states, the first frequency moment, from one number with Laplace noise.

    >>> from panprivacy.papers.published import CalibratedTotal
    >>> spent = CalibratedTotal(total=1_000, bound=5, epsilon=10)
    >>> spent.update(["ada", "grace", "ada"], [3, 5, -1])
    >>> answer = spent.release(confidence=1 - 1e-9)
    >>> answer.low <= 7 <= answer.high
    True

    It is the general calibration of the map that adds all states up, for the norm L1: the least
    norm that leads to a number is its size, so the noise is discrete Laplace. That is what
    `FrequencyMoment(order=1)` keeps, under the name of the paper.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, while no state
    of a user leaves 0 .. bound. [tests/exact/test_laplace.py, docs/guarantees/published.md]

    Accuracy: unbiased. The deviation is near `6.4 bound/epsilon` for one release: it is linear in
    the bound, as the paper says it must be. [tests/statistical/test_laplace.py]

    Reference: section 3.1, the variant of Theorem 6 for L1. Different from print: noise for the
    states of one user, `bound` apart, where a box of twice that is printed; twice as much for what
    comes after a look; no factor that the exponential mechanism does not need.
    """

    __slots__ = ()

    entry = CatalogueEntry(TotalSizes, trials=TOTAL_TRIALS, walks=TOTAL_WALKS)

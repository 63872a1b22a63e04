"""Noise calibrated to a sketch map and a norm, and what is counted with it.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", section 3.1, "A general noise-calibrating technique for sketches". Repaired: no box
around the states, the sensitivity of the lattice in place of a bound on it, and the epsilon of
state and release together. `mir_lattice` enumerates; docs/published.md has each with its number.
"""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy._parse import parse_whole
from panprivacy._validate import whole_number
from panprivacy.addressing import Addressing, Direct, Slots
from panprivacy.cells.law import Law
from panprivacy.cells.modular import BlockCells, counter_type
from panprivacy.cells.protocol import Deltas, Table, with_deltas
from panprivacy.coins import Coins
from panprivacy.decoders.intervals import (
    Answering,
    confidence_interval,
    discrete_laplace_variance,
)
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget
from panprivacy.ids import ByteIds, IntegerIds
from panprivacy.noise import wipe
from panprivacy.planning.request import Request, Split, budgets, no_signal, noise_variance
from panprivacy.published.mir_lattice import (
    MOST_POINTS,
    Floats,
    Lattice,
    Sketch,
    SketchMap,
    Whole,
    lattice_of,
    law_of_lengths,
    probabilities,
    sensitivity_of,
    weights_of,
)
from panprivacy.statistics.cases import RELEASE, Short, Trial, Walk
from panprivacy.statistics.count_plan import CountPlan
from panprivacy.statistics.plan import UserStates
from panprivacy.statistics.records import Sizes, given_as, whole
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.statistic import Statistic

MOST_UNIVERSE = 1 << 24
_MOST_COLUMNS = 1 << 12


@dataclass(frozen=True, slots=True)
class LatticeCells:
    """One cell, which holds the number of a point of a lattice: a whole sketch.

    Guarantee: the law of the point seen at one unannounced and up to `k` announced looks changes by
    a factor of at most `e**((k+1) epsilon)` between streams that differ in all or some updates of
    one user. [tests/exact/test_calibration.py]

    Args:
        sketch: the map.
        norm: of the states, 0, 1 or 2.
        epsilon: of one look.
    """

    sketch: Sketch
    norm: int
    epsilon: Fraction

    cells = 1
    tells_presence = False

    @property
    def lattice(self) -> Lattice:
        """The points and their lengths."""
        return lattice_of(self.sketch, self.norm)

    @property
    def sensitivity(self) -> int:
        """By how many steps a user moves the length of any point at most."""
        return sensitivity_of(self.sketch, self.norm)

    def weights(self, epsilon: Fraction) -> tuple[int, ...]:
        """Of all points as noise of this epsilon."""
        return weights_of(self.sketch, self.norm, epsilon)

    @property
    def points(self) -> int:
        """How many points there are."""
        return self.sketch.modulus**self.sketch.rows

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the number of a point."""
        return counter_type(self.points)

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return self.dtype.itemsize

    @property
    def says(self) -> str:
        """What a cell is, in words."""
        return f"a noisy point of {self.sketch.modulus:,}**{self.sketch.rows}"

    def born(self, coins: Coins) -> Table:
        """A sketch of nobody, with noise."""
        drawn = coins.categorical(self.weights(self.epsilon), 1)
        table = drawn.astype(self.dtype)
        wipe(drawn)
        return table

    def is_table(self, table: Table) -> bool:
        """Whether a sketch can reach the point."""
        lengths = self.lattice.lengths
        return len(table) == 1 and int(table[0]) < len(lengths) and lengths[table[0]] >= 0

    def fresh_noise(self, coins: Coins) -> Table:
        """Noise of the same law."""
        return self.born(coins)

    def rerandomise(self, table: Table, noise: Table) -> None:
        """Add the noise."""
        self._move(table, self.entries(noise))

    def update(
        self,
        table: Table,
        slots: Iterable[Slots],
        deltas: Deltas | None,
        epoch: int,  # noqa: ARG002 - later noise is the same whatever came before
        coins: Coins,  # noqa: ARG002 - adding needs no coins
    ) -> None:
        """Add the columns of the users, times their deltas."""
        lattice = self.lattice
        for piece, given in with_deltas(slots, deltas):
            moved = lattice.columns[piece]
            if given is not None:
                reduced = given % lattice.modulus
                moved *= reduced[:, np.newaxis]
                wipe(reduced)
            self._move(table, moved.sum(axis=0))
            wipe(moved)

    def entries(self, table: Table) -> Whole:
        """The numbers of the sketch, int64[rows]."""
        return np.array(np.unravel_index(int(table[0]), self.lattice.shape), np.int64)

    def _move(self, table: Table, by: Whole) -> None:
        entries = self.entries(table)
        entries += by
        table[0] = self.lattice.numbers(entries)[0]
        wipe(entries, by)

    def group_sums(self, table: Table, groups: int, epoch: int) -> Whole:  # noqa: ARG002
        """The length of the sketch, in steps."""
        return self.lattice.lengths[table]

    def shown(self, table: Table) -> NDArray[np.int64]:
        """The number of the point."""
        return table.astype(np.int64)

    def without_noise(
        self, slots: Iterable[Slots], deltas: Deltas, coins: Coins
    ) -> NDArray[np.int64]:
        """The point of a table that begins at 0."""
        table = np.zeros(1, self.dtype)
        self.update(table, slots, deltas, 0, coins)
        return table.astype(np.int64)


class Repeated(Direct):
    """The column of each user of a universe: its number is the id modulo that of columns."""

    slots_are_ids = False

    def __init__(self, universe: int, columns: int) -> None:
        super().__init__(universe)
        self.cells = columns

    def _piece(self, ids: IntegerIds | ByteIds) -> Slots:
        return super()._piece(ids) % self.cells


class OneColumn(Addressing):
    """All users, whoever they are, have one column."""

    def __init__(self) -> None:
        super().__init__(1, b"")

    def check(self, batch: object) -> None:
        """Every id has a place."""

    def _piece(self, ids: IntegerIds | ByteIds) -> Slots:
        return np.zeros(len(ids), np.int64)


class LatticePlan(CountPlan):
    """The plan of a statistic that has one point of a lattice."""

    __slots__ = ()

    proofs = ("published",)
    checks = ("exact/test_calibration", "statistical/test_calibration")
    key_bytes = 0
    cells = 1

    @property
    @abstractmethod
    def table(self) -> LatticeCells:
        """The cell."""

    def sensitivity(self, epoch: int) -> int:  # noqa: ARG002
        """By how much a user may move the length."""
        return self.table.sensitivity

    @property
    def unseen(self) -> Fraction:
        """The loss if nobody ever sees the state.

        The lemma of docs/guarantees/windows.md wants releases that cost no more between any two
        points, and these cost that between two that one user lies apart. But one release is read
        off the state, which costs no more than a look.
        """
        asked, budget = self.request, self.split.budget
        loss = budget.of_releases(asked.releases)
        return min(loss, budget.state) if asked.releases == 1 else loss

    def noise(self, epoch: int) -> Floats:
        """The law of all noise in the point after so many announced intrusions; by number."""
        return _noise(self.table, epoch)

    @property
    def range_of_states(self) -> tuple[int, int] | None:
        """The states that modulo M are what they are."""
        reach = self.table.sketch.modulus - 1
        return -(reach // 2), reach // 2


@functools.lru_cache(maxsize=64)
def _noise(table: LatticeCells, epoch: int) -> Floats:
    once = probabilities(table.weights(table.epsilon))
    law = once
    for _ in range(epoch):
        law = table.lattice.convolved(law, once)
    return law


@dataclass(frozen=True, slots=True, eq=False)
class LengthModel(Answering):
    """What a noised length says of the norm of all states.

    Args:
        errors: by how much noise in the sketch may change its length, in steps; ascending.
        chances: how likely each is.
        scale: of the discrete Laplace noise on the length.
        unit: steps to the unit.
        limit: the largest norm.
        exact: whether the length of a sketch without noise is the norm; else it is no more.
    """

    errors: Whole
    chances: Floats
    scale: float
    unit: int
    limit: float
    exact: bool

    def estimate(self, sums: ArrayLike) -> float:
        """The noised length, cut to what norms can be."""
        return min(max(float(np.sum(sums)) / self.unit, 0.0), self.limit)

    def deviation(self, truth: ArrayLike) -> Floats:
        """The root-mean-square distance from the length of the sketch without noise, at most."""
        square = self.chances @ self.errors.astype(float) ** 2 + self._output
        return np.full(np.shape(truth), math.sqrt(square) / self.unit)

    @property
    def _output(self) -> float:
        return discrete_laplace_variance(self.scale)

    def output_share(self, truth: float) -> float:
        """The part of the variance that output noise causes."""
        total = (float(self.deviation(truth)) * self.unit) ** 2
        return self._output / total if total else 0.0

    def reach(self, beyond: float) -> int:
        """The fewest steps that errors exceed with no more than this probability."""
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
        """By how many deviations an answer strays at most with this probability."""
        return self.reach((1 - confidence) / 2) / self.unit / float(self.deviation(0.0))

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """All norms that may have led here; where lengths may fall short, up to the largest."""
        reach = self.reach((1 - confidence) / (2 if self.exact else 1)) / self.unit
        high = min(estimate + reach, self.limit) if self.exact else self.limit
        return max(estimate - reach, 0.0), high


@dataclass(frozen=True, slots=True)
class NormPlan(LatticePlan):
    """The parameters of a `CalibratedNorm`.

    Args:
        columns: of the map.
        modulus: M.
        norm: 0, 1 or 2.
        universe: number of users.
        request: epsilon and what it covers.
        split: how epsilon is spent.
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
        """What answers count."""
        return ("users", "sum of states", "root of a sum of squares")[self.norm]

    @property
    def table(self) -> LatticeCells:
        """The cell."""
        sketch = SketchMap(self.columns, self.modulus)
        return LatticeCells(sketch, self.norm, self.split.budget.state)

    def address(self, key: bytes) -> Repeated:  # noqa: ARG002
        """The column of each user."""
        return Repeated(self.universe, len(self.columns))

    @property
    def name(self) -> Name:
        """What the answer is called."""
        return Name("", "norm", (("power", self.norm),))

    @property
    def largest(self) -> float:
        """The norm of the largest states."""
        most = self.modulus // 2
        largest = float(self.universe), float(self.universe * most), self.universe**0.5 * most
        return largest[self.norm]

    def model(self, epoch: int) -> LengthModel:
        """What a noised length says."""
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
        """By how many deviations an answer strays at most with this probability."""
        return self.model(self.request.intrusions).strays(confidence)

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The norm of the states, modulo M."""
        places = states % self.modulus
        sizes = np.minimum(places, self.modulus - places).astype(float)
        if self.norm == 0:
            return float((sizes > 0).sum())
        return float(sizes.sum()) if self.norm == 1 else math.sqrt(float(sizes @ sizes))

    def alike(self, answer: float) -> tuple[float, int]:
        """Users of 1 with that norm."""
        return answer**2 if self.norm == 2 else answer, 1


def _split(lattice: Lattice, sensitivity: int, request: Request) -> Split:
    """The split with the smallest error; that of the request if it has one."""
    counts = law_of_lengths(lattice, np.ones(len(lattice.lengths)))
    lengths = np.arange(lattice.longest + 1)

    def error(budget: Budget) -> float:
        law = counts * np.exp(-float(min(budget.state / sensitivity, Fraction(700))) * lengths)
        noise = float(law @ lengths.astype(float) ** 2 / law.sum())
        return request.looks * noise + noise_variance(sensitivity, budget)

    best = min(budgets(request), key=error)
    return Split(best, 1.0, noise_variance(sensitivity, best))


def _columns(name: str, value: object) -> tuple[tuple[int, ...], ...]:
    """Columns as lists of whole numbers, or as a text such as "1,0;0,1"."""
    try:
        if isinstance(value, str):
            value = [list(map(parse_whole, one.split(","))) for one in value.split(";")]
        given: Any = value
        columns = tuple(
            tuple(whole_number(-MOST_POINTS, MOST_POINTS, **{name: entry}) for entry in column)
            for column in given
        )
    except (TypeError, ValueError):
        columns = ()
    if not 1 <= len(columns) <= _MOST_COLUMNS or len({*map(len, columns)}) > 1 or not columns[0]:
        message = f"{name} must be 1 to {_MOST_COLUMNS:,} lists of whole numbers, all of one length"
        raise PlanError(message)
    return columns


Columns = Annotated[
    tuple[tuple[int, ...], ...],
    given_as(_columns, "A,B;C,D", "the column of each user, a list of whole numbers", "1,0;0,1"),
]
"""Of a sketch map."""

Users = Annotated[
    int | None,
    whole(
        "how many users there are; those beyond the last column have them again from the first. "
        "One for each column unless told",
        MOST_UNIVERSE,
    ),
]
"""Of a sketch map."""


class NormSizes(Sizes, frozen=True, tag="calibrated-norm"):
    """The norm of all states, as far as a linear sketch of your own tells it."""

    columns: Columns
    modulus: Annotated[int, whole("states and sketches are modulo this", MOST_POINTS, 2)]
    norm: Annotated[
        int, whole("0 for users whose state is not 0, 1 for the sum of |state|, 2 for L2", 2, 0)
    ] = 0
    universe: Users = None

    def plan(self, request: Request) -> NormPlan:
        """Noise on the sketch that fits the norm."""
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


class CalibratedNorm(Statistic[NormPlan, Release], sizes=NormSizes):
    """The norm of all states, as far as a linear sketch modulo M tells it.

    >>> from panprivacy.published import CalibratedNorm
    >>> columns = [[1, 0], [0, 1], [1, 1], [1, 2]]  # any two are independent: two users are told
    >>> users = CalibratedNorm(columns=columns, modulus=5, norm=0, epsilon=40)
    >>> users.update([0, 3, 3], [2, 5, -1])
    >>> round(users.release())
    2

    The sketch is born with noise that is drawn from all its points, the likelier the fewer states
    lead there: the exponential mechanism. A release is the length of the sketch, with noise.

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

    trials = NORM_TRIALS
    walks = NORM_WALKS


@dataclass(frozen=True, slots=True)
class NonzeroModel(Answering):
    """What the noised number of counters that are not 0 says.

    Args:
        cells: number of counters, a user each.
        absent: how often a counter of state 0 is not 0.
        present: how often any other is not.
        noise_variance: of the output noise on their number.
    """

    cells: int
    absent: float
    present: float
    noise_variance: float

    def estimate(self, sums: ArrayLike) -> float:
        """The unbiased estimate, cut to 0 .. cells."""
        users = (float(np.sum(sums)) - self.cells * self.absent) / (self.present - self.absent)
        return min(max(users, 0.0), float(self.cells))

    def deviation(self, truth: ArrayLike) -> Floats:
        """Counters and output noise."""
        there = np.asarray(truth, float)
        counters = there * self.present * (1 - self.present)
        counters = counters + (self.cells - there) * self.absent * (1 - self.absent)
        return np.sqrt(counters + self.noise_variance) / (self.present - self.absent)

    def output_share(self, truth: float) -> float:
        """The part of the variance that output noise causes."""
        counted = float(self.deviation(truth)) * (self.present - self.absent)
        return self.noise_variance / counted**2

    def interval(self, estimate: float, confidence: float) -> tuple[float, float]:
        """A confidence interval within 0 .. cells; half a count covers that counts are whole."""
        limit = float(self.cells)
        slack = 0.5 / (self.present - self.absent)
        return confidence_interval(
            self, estimate, confidence, limit=limit, beyond=limit, slack=slack
        )


@dataclass(frozen=True, slots=True)
class DistinctPlan(CountPlan):
    """The parameters of a `CalibratedDistinctCount`.

    Args:
        universe: number of users, a counter each.
        modulus: M.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    universe: int
    modulus: int
    request: Request
    split: Split

    proofs = ("modular", "releases", "published")
    checks = ("exact/test_calibration", "statistical/test_calibration")
    question = "how many users are in a state other than 0?"
    unit = "users"
    measure = "the universe"
    name = Name("", "distinct_count")

    @property
    def cells(self) -> int:
        """Number of counters."""
        return self.universe

    @property
    def law(self) -> Law:
        """The noise of a counter: the least vector that leads to a point is the point itself."""
        return Law.spike(self.modulus, self.split.budget.state)

    @property
    def table(self) -> BlockCells:
        """The table's cells."""
        return BlockCells(self.universe, self.law)

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The states that are not 0 modulo M."""
        return 1 - self.modulus, self.modulus - 1

    @property
    def largest(self) -> float:
        """All users."""
        return float(self.universe)

    def model(self, epoch: int) -> NonzeroModel:
        """What a noised count says; noise that is drawn anew shrinks what a state does."""
        hit, others = self.law.hit(), self.modulus - 1
        stays = 1 / self.modulus + (1 - 1 / self.modulus) * (hit - (1 - hit) / others) ** (
            epoch + 1
        )
        variance = self.split.noise_variance
        return NonzeroModel(self.universe, 1 - stays, 1 - (1 - stays) / others, variance)

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """How many states are not 0."""
        return float((states != 0).sum())


class DistinctSizes(Sizes, frozen=True, tag="calibrated-distinct-count"):
    """The number of users in a state other than 0, from a counter for each."""

    universe: Annotated[int, whole("how many users there could be: ids 0 to N-1", MOST_UNIVERSE)]
    modulus: Annotated[int, whole("more than any state is away from 0", MOST_POINTS, 2)]

    def plan(self, request: Request) -> DistinctPlan:
        """The map that leaves all states as they are."""

        def planned(budget: Budget) -> DistinctPlan:
            split = Split(budget, 1.0, noise_variance(1, budget))
            return DistinctPlan(self.universe, self.modulus, request, split)

        plans = [plan for plan in map(planned, budgets(request)) if plan.law.ratio > 1]
        best = min(plans, key=lambda plan: plan.absolute_error(), default=None)
        if best is None or best.model(request.intrusions).present == best.model(0).absent:
            raise no_signal(request)
        return best


DISTINCT_TRIALS = (
    Trial(
        "calibrated distinct count",
        {"universe": 50_021, "modulus": 5},
        {"universe": 3, "modulus": 3},
        deltas=(1, 2, -1, 3),
    ),
)

DISTINCT_WALKS = (
    Walk(
        "calibrated-distinct",
        "two users, each with a counter modulo 3",
        {"universe": 2, "modulus": 3},
        [Short(_MOVES, 1), _AROUND[:2]],
        evenly=True,
    ),
)


class CalibratedDistinctCount(Statistic[DistinctPlan, Release], sizes=DistinctSizes):
    """How many users are in a state other than 0: the map that leaves all states as they are.

    >>> import numpy as np
    >>> from panprivacy.published import CalibratedDistinctCount
    >>> users = CalibratedDistinctCount(universe=20_000, modulus=7, epsilon=2)
    >>> users.update(np.arange(10_000), np.full(10_000, -3))
    >>> answer = users.release(confidence=1 - 1e-9)
    >>> answer.low < 10_000 < answer.high
    True

    The length of a sketch is how many of its numbers are not 0. So the exponential mechanism draws
    each of them apart, 0 with `e**epsilon` times the weight of any other: it need not be
    enumerated, and universes may be large.

    Guarantee: as for `CalibratedNorm`. [tests/exact/test_calibration.py]

    Accuracy: unbiased for users whose state is no multiple of M, but for what is cut off. With m
    users the deviation is about `sqrt((M-1) m e**epsilon)/(e**epsilon - 1)` where few came: that of
    randomised response at M = 2, and with the root of M it grows.
    [tests/statistical/test_calibration.py]

    Reference: section 3.1 with the sketch that is the states themselves.
    """

    __slots__ = ()

    trials = DISTINCT_TRIALS
    walks = DISTINCT_WALKS

"""The plan of a `ThresholdCount` that cuts hard: a law shaped to the threshold."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from panprivacy.cells.law import Law, on_shape
from panprivacy.cells.modular import ScoredCells
from panprivacy.cells.shapes import Shape
from panprivacy.decoders.circular import convolve, correlate, variances
from panprivacy.decoders.intervals import Floats
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget
from panprivacy.planning.request import Request, Split, budgets, no_signal, noise_variance
from panprivacy.statistics.incidence.linear_queries import Scores
from panprivacy.statistics.plan import CountPlan, UserStates
from panprivacy.statistics.release import Name
from panprivacy.statistics.threshold.decoder import ThresholdModel
from panprivacy.statistics.threshold.plan import soft_plan

MOST_HARD = 4_095
"""The largest bound: the search for a law of twice as many values takes four times as long."""

_ROOM = Fraction(9, 8)
"""So many times as many values as states let what a user counts fall slowly beyond the bound."""

_FEW = 32
"""Of so few values or residues several numbers are tried: one more makes a difference."""

_STATE_SHARE = Fraction(9, 10)
"""Of epsilon, while a set is looked for; the set then has the split that is best for it."""

_MOST_ROUNDING = Fraction(1, 64)
"""Of a deviation: by so much the rounding of scores may move an answer."""

_MOST_POWER = 28
_MOST_RANGE = 1 << _MOST_POWER
"""Of scores: sums of as many cells as there can be fit in 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """What a cell of each value counts for, and how that varies.

    Args:
        scores: int64[M].
        absent: their mean for a user that does not count.
        contrast: by how much more the mean is for a user that counts.
        below: their variance where the user does not count, at most.
        above: the same where the user counts.
        bias: by how much rounding moves the mean of a state within the bound, at most.
    """

    scores: Scores
    absent: float
    contrast: float
    below: float
    above: float
    bias: float

    @property
    def range(self) -> int:
        """By how much a user moves the sum of scores, at most."""
        return int(np.ptp(self.scores))

    @property
    def variance(self) -> float:
        """At most, wherever the user is."""
        return max(self.below, self.above)

    @classmethod
    def of(cls, law: Law, shape: Shape, cells: int) -> Votes:
        """Scores so coarse that their rounding just does not show among so many cells."""
        votes = convolve(shape.question(), law.kernel())
        best = cls._rounded(law, shape, votes, _MOST_RANGE)
        relative = best.range / max(math.sqrt(best.variance), 1e-9 * best.range)
        enough = math.ceil(math.log2(relative * math.sqrt(cells) / (2 * _MOST_ROUNDING)))
        for power in range(min(enough, _MOST_POWER), -1, -1):  # nothing is off by more than a half
            coarser = cls._rounded(law, shape, votes, 1 << power)
            if cells * coarser.bias > _MOST_ROUNDING * math.sqrt(cells * coarser.variance):
                break
            best = coarser
        return best

    @classmethod
    def _rounded(cls, law: Law, shape: Shape, votes: Floats, span: int) -> Votes:
        """Scores of 0 to `span`."""
        question, noise = shape.question(), law.probabilities()
        contrast = span / float(np.ptp(votes))
        absent = -contrast * float(votes.min())
        scores = np.rint(absent + contrast * votes).astype(np.int64)
        means = correlate(scores.astype(float), noise)
        states = slice(shape.bound + 1)
        moved = np.abs(means - absent - contrast * question)[states]
        spread = variances(scores.astype(float), noise, means)[states]
        below, above = spread[: shape.threshold].max(), spread[shape.threshold :].max()
        return cls(scores, absent, contrast, float(below), float(above), float(moved.max()))


@functools.lru_cache(maxsize=1024)
def votes_of(shape: Shape, epsilon: Fraction, cells: int) -> Votes:
    """What a cell counts for with the law on a shape."""
    return Votes.of(on_shape(shape, epsilon), shape, cells)


@dataclass(frozen=True, slots=True)
class HardPlan(CountPlan):
    """The parameters of a `ThresholdCount` that cuts hard.

    Args:
        threshold: the state from which on users count.
        bound: the largest state.
        universe: number of possible users.
        cells: number of counters: one for each user, or fewer for a sample.
        shape: the set on which the law of the counters is larger.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    threshold: int
    bound: int
    universe: int
    cells: int
    shape: Shape
    request: Request
    split: Split

    proofs = ("modular", "laws", "thresholds", "releases")
    checks = ("exact/test_threshold", "statistical/test_threshold")
    measure = "the universe"

    @property
    def question(self) -> str:
        """What it answers, in words."""
        return f"how many users are in a state of {self.threshold:,} or more?"

    @property
    def unit(self) -> str:
        """What answers count."""
        return f"users with {self.threshold:,} or more"

    @property
    def name(self) -> Name:
        """What the answer is called."""
        return Name("", "at_least", (("state", self.threshold),))

    @property
    def largest(self) -> float:
        """The universe."""
        return float(self.universe)

    @property
    def law(self) -> Law:
        """The noise of the counters."""
        return on_shape(self.shape, self.split.budget.state)

    @property
    def searched_law(self) -> str:
        """The recipe of the law, and a digest of its weights."""
        return f"{self.law} {hashlib.sha256(self.law.weights.tobytes()).hexdigest()[:16]}"

    @property
    def votes(self) -> Votes:
        """What a cell of each value counts for."""
        return votes_of(self.shape, self.split.budget.state, self.cells)

    @property
    def table(self) -> ScoredCells:
        """The table's cells."""
        return ScoredCells(self.cells, self.law, self.votes.scores)

    @property
    def growth(self) -> None:
        """Nothing: no intrusion can be announced."""
        return

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a soft threshold of as many counters would cost."""
        counters = self.universe, self.cells, None
        soft = soft_plan(self.threshold, self.bound, *counters, self.request)
        times = self.absolute_error() / soft.absolute_error()
        remark = f"it errs {times:.2g} times as much as without hard"
        return (f"{remark}, where users above {soft.low:,} count in part",)

    def sensitivity(self, epoch: int) -> int:  # noqa: ARG002 - there is no intrusion
        """By how much a user's cell may move the sum of scores."""
        return self.votes.range

    def model(self, epoch: int) -> ThresholdModel:  # noqa: ARG002 - there is no intrusion
        """What a sum of scores says."""
        votes = self.votes
        noise = noise_variance(votes.range, self.split.budget)
        read = votes.absent, votes.contrast, noise, votes.below, votes.above
        return ThresholdModel(self.universe, self.cells, 1, *read)

    def joint_model(self, epoch: int, tables: int) -> ThresholdModel:
        """What the counts of several tables of other users say, added up."""
        return replace(self.model(epoch), tables=tables)

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The users in such a state, beyond the bound too."""
        return float((states >= self.threshold).sum())

    def alike(self, answer: float) -> tuple[float, int]:
        """Users at the threshold."""
        return answer, self.threshold


def hard_plan(
    threshold: int, bound: int, universe: int, counters: Callable[[int], int], request: Request
) -> HardPlan:
    """The plan of the smallest largest error.

    Args:
        threshold: the state from which on users count.
        bound: the largest state.
        universe: number of possible users.
        counters: how many there may be, by how many values they have.
        request: epsilon and what it covers.

    Raises:
        PlanError: the bound is too large, an intrusion may be announced, or no signal is left.
    """
    _check(bound, request)

    def made(shape: Shape, budget: Budget) -> Iterator[HardPlan]:
        cells = counters(shape.modulus)
        if not cells or not math.isfinite(noise_variance(_MOST_RANGE, budget)):
            return
        try:
            votes = votes_of(shape, budget.state, cells)
        except PlanError:  # no law on this set can be read
            return
        split = Split(budget, votes.contrast / votes.range, noise_variance(1, budget))
        yield HardPlan(threshold, bound, universe, cells, shape, request, split)

    def best(plans: Iterable[HardPlan]) -> HardPlan:
        found = min(plans, key=HardPlan.absolute_error, default=None)
        if found is None:
            raise no_signal(request)
        return found

    spendings = budgets(request)
    wanted = _STATE_SHARE * request.epsilon
    likely = min(spendings, key=lambda one: abs(one.state - wanted))
    shapes = _shapes(threshold, bound, float(likely.state))
    found = best(plan for shape in shapes for plan in made(shape, likely))
    return best(plan for budget in spendings for plan in made(found.shape, budget))


def _check(bound: int, request: Request) -> None:
    """Refuse what a hard threshold cannot do, and say what can."""
    if request.intrusions:
        message = (
            "a hard threshold cannot be read after an announced intrusion; make a fresh count "
            "after each, or leave out hard= for a soft one"
        )
        raise PlanError(message)
    if bound > MOST_HARD:
        message = (
            f"the bound ({bound:,}) of a hard threshold may be at most {MOST_HARD:,}; lower it, or "
            "leave out hard= for a soft threshold, which has no such limit"
        )
        raise PlanError(message)


def _shapes(threshold: int, bound: int, epsilon: float) -> Iterator[Shape]:
    """The sets to choose from."""
    for modulus in _moduli(threshold, bound):
        for size in _set_sizes(modulus, epsilon):
            yield Shape(threshold, bound, modulus, size)


def _moduli(threshold: int, bound: int) -> list[int]:
    """How many values a counter may have: each number is tried where few matter."""
    least, most = max(bound + 1, 3), max(math.ceil(_ROOM * (bound + 1)), 4)
    if most <= _FEW:
        return list(range(least, most + 1))
    two = Shape(threshold, bound, least, 1), Shape(threshold, bound, most, 1)
    return [min(two, key=lambda one: one.least_price(1)).modulus]


def _set_sizes(modulus: int, epsilon: float) -> list[int]:
    """How large the set may be: the share that leaves its law the largest spectrum, or near it."""
    size = max(round(modulus / (math.exp(min(epsilon, 700)) + 1)), 1)
    near = range(max(size * 3 // 4, 1), size * 3 // 2 + 2) if size < _FEW else [size]
    return [one for one in near[:: max(size // 8, 1)] if one < modulus]

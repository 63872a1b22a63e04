"""Plans of one weighted count of counters: each value has a score, after each announced intrusion.

The mean of a score is what the user counts, whatever law the counter was born with and however
often its noise was added again. docs/guarantees/thresholds.md proves it.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.count_plan import CountPlan
from panprivacy.statistics.incidence.linear_queries import Scores
from panprivacy.tables.cells.difference_sets import DifferenceSet
from panprivacy.tables.cells.law import Law, on_blocks
from panprivacy.tables.cells.modular import ScoredCells
from panprivacy.tables.decoders.blocks import ScoredModel
from panprivacy.tables.decoders.circular import Pattern, moments, variances
from panprivacy.tables.decoders.intervals import Floats
from panprivacy.tables.planning.request import Request, Split, budgets, no_signal, noise_variance
from panprivacy.tables.planning.room import sets_of

_MOST_ROUNDING = Fraction(1, 64)
"""Of a deviation: by so much the rounding of scores may move an answer."""

_MOST_POWER = 28
MOST_RANGE = 1 << _MOST_POWER
"""Of scores: sums of as many cells as there can be fit in 64 bits."""

_MOST_VALUES = 1 << 14
"""Of a counter: of more, an answer after two announced intrusions is noise, and slow to plan."""

_FEWEST_SETS = 4
"""So many sets of blocks are tried, the smallest: each value more makes an answer worse."""

_STEP = 8
"""Every eighth budget is tried while the law is looked for, and all of them with that law."""

_ROUNDED = 1.05
"""By less than such a factor rounding changes which budget is best."""

_NOTHING, _RELATIVE = 1e-9, 1e-7


class Recipe(Hashable, Protocol):
    """The recipe of counters: their law, and the scores of their users."""

    @property
    def between(self) -> bool:
        """Whether there are states between two that follow each other, where all is on a line."""

    def law(self, epsilon: Fraction) -> Law:
        """The noise of the counters, for a look of this loss."""

    def question(self) -> Floats:
        """Return the score of a user in each state, 0 to 1; float64[M]."""

    def countable_states(self) -> NDArray[np.bool_]:
        """Return the mask of states that users can be in; bool[M]."""


@dataclass(frozen=True, slots=True)
class Tents:
    """A law on blocks, and users that count nothing within some tents, side by side.

    One tent leaves `min(|state|, width)/width`, and two a soft threshold that begins at the width;
    those below 0 leave room for states there.

    Args:
        chosen: the set of blocks.
        block: their length.
        width: of half a tent, from its middle to its end.
        count: how many there are.
        first: at which multiple of the width: 0, or below it.
    """

    chosen: DifferenceSet
    block: int
    width: int
    count: int
    first: int = 0

    between = False

    @property
    def modulus(self) -> int:
        """The number of values of a counter."""
        return self.block * self.chosen.modulus

    def law(self, epsilon: Fraction) -> Law:
        """Larger on the chosen blocks."""
        return on_blocks(self.chosen, self.block, epsilon)

    def question(self) -> Floats:
        """1 outside of the tents, and less within."""
        values = np.arange(self.modulus)
        counted = np.ones(self.modulus)
        for tent in range(self.first, self.first + self.count):
            away = (values - tent * self.width) % self.modulus
            counted -= np.clip(1 - np.minimum(away, self.modulus - away) / self.width, 0, None)
        return counted

    def countable_states(self) -> NDArray[np.bool_]:
        """All of them."""
        return np.ones(self.modulus, bool)


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """The score of a cell of each value, and its variance.

    Args:
        scores: int64[M].
        absent: their mean for a user that does not count.
        contrast: by how much more the mean is for a user that counts in full.
        below: their variance where the user does not count, at most.
        above: the same where the user counts; where some count in part, of all that are told.
        in_part: whether some do.
        bias: by how much rounding moves the mean of a state that is told, at most.
    """

    scores: Scores
    absent: float
    contrast: float
    below: float
    above: float
    in_part: bool
    bias: float

    @property
    def range(self) -> int:
        """The sensitivity of the sum of scores to one user."""
        return int(np.ptp(self.scores))

    @property
    def variance(self) -> float:
        """At most, wherever the user is."""
        return max(self.below, self.above)

    @classmethod
    def of(cls, recipe: Recipe, epsilon: Fraction, cells: int, epoch: int) -> Votes:
        """Scores so coarse that their rounding just does not show among so many cells.

        Raises:
            PlanError: the noise hides what is asked.
        """
        unrounded = _Unrounded.of(recipe, epsilon, epoch)
        noise = Pattern.backwards(unrounded.noise)
        best = cls._rounded(unrounded, noise, recipe, MOST_RANGE)
        relative = best.range / max(math.sqrt(best.variance), 1e-9 * best.range)
        enough = math.ceil(math.log2(relative * math.sqrt(cells) / (2 * _MOST_ROUNDING)))
        told, deviation = recipe.countable_states(), math.sqrt(best.variance) / best.range
        coarsest = MOST_RANGE
        for power in range(min(enough, _MOST_POWER), -1, -1):  # nothing is off by more than a half
            span = 1 << power
            shown = math.sqrt(cells) / _MOST_ROUNDING * unrounded.bias(span, noise, told)
            hidden = span * deviation
            if abs(shown - hidden) < 1:  # so much rounding may change deviations
                hidden = math.sqrt(cls._rounded(unrounded, noise, recipe, span).variance)
            if shown > hidden:
                break
            coarsest = span
        return best if coarsest == MOST_RANGE else cls._rounded(unrounded, noise, recipe, coarsest)

    @classmethod
    def _rounded(cls, unrounded: _Unrounded, noise: Pattern, recipe: Recipe, span: int) -> Votes:
        """Scores of 0 to `span`."""
        question, told = unrounded.question, recipe.countable_states()
        scores, absent, contrast = unrounded.scores(span)
        means, spread = moments(scores.astype(float), noise)
        moved = np.abs(means - absent - contrast * question)[told]
        absentees, present = told & (question == 0), told & (question == 1)
        in_part = recipe.between or bool((told & ~absentees & ~present).any())
        # Between two states means and mean squares are on lines, and so the variance bulges.
        bulge = (means - np.roll(means, -1)) ** 2 / 4 if recipe.between else 0.0
        inner = np.maximum(spread, np.roll(spread, -1)) + bulge

        def most(states: NDArray[np.bool_]) -> float:
            pairs = states & np.roll(states, -1)
            return float(max(spread[states].max(), inner[pairs].max(initial=0.0)))

        below, above = most(absentees), most(told if in_part else present)
        bias = float(moved.max())
        return cls(scores, absent, contrast, below, above, in_part, bias)


@dataclass(frozen=True, slots=True, eq=False)
class _Unrounded:
    """The votes of cells that make a mean exact.

    Args:
        votes: float64[M], of a cell of each value.
        question: float64[M], their means by state.
        noise: float64[M], probabilities of what is added to a state.
    """

    votes: Floats
    question: Floats
    noise: Floats

    @classmethod
    def of(cls, recipe: Recipe, epsilon: Fraction, epoch: int) -> _Unrounded:
        """Votes whose transform is that of the question over that of all noise.

        Raises:
            PlanError: a frequency is asked for that the noise has not.
        """
        question, law = recipe.question(), recipe.law(epsilon)
        asked, spectrum = np.fft.fft(question), law.spectrum()
        noise, missing = spectrum ** (epoch + 1), np.abs(spectrum) < _NOTHING
        if (np.abs(asked[missing]) > _RELATIVE * np.abs(asked).max()).any():
            message = "the noise of these counters hides what is asked"
            raise PlanError(message)
        votes = np.divide(asked, noise.conj(), out=np.zeros_like(asked), where=~missing)
        return cls(np.fft.ifft(votes).real, question, np.fft.ifft(noise).real)

    def scores(self, span: int) -> tuple[Scores, float, float]:
        """Return whole scores of 0 to `span`, where they begin, and how far they are stretched."""
        contrast = span / float(np.ptp(self.votes))
        absent = -contrast * float(self.votes.min())
        return np.rint(absent + contrast * self.votes).astype(np.int64), absent, contrast

    def bias(self, span: int, noise: Pattern, told: NDArray[np.bool_]) -> float:
        """By how much rounding to such scores moves the mean of a state that is told, at most."""
        scores, absent, contrast = self.scores(span)
        means = noise.convolve(scores.astype(float))
        return float(np.abs(means - absent - contrast * self.question)[told].max())

    def error(self, cells: int, budget: Budget, recipe: Recipe) -> float:
        """The largest deviation of an answer, as a share of all users, before votes are rounded."""
        told = recipe.countable_states()
        spread = float(variances(self.votes, self.noise, self.question)[told].max())
        output = noise_variance(float(np.ptp(self.votes)), budget)
        return math.sqrt(cells * spread + output) / cells


@functools.lru_cache(maxsize=1024)
def votes_of(recipe: Recipe, epsilon: Fraction, cells: int, epoch: int) -> Votes:
    """Return the score of a cell, after a number of announced intrusions."""
    return Votes.of(recipe, epsilon, cells, epoch)


class VotedPlan(CountPlan):
    """The plan of one weighted count of counters."""

    __slots__ = ()

    cells: int

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """The law, and what users count."""

    @property
    def searched_law(self) -> str:
        """The recipe of the law, where it has one, and a digest of its weights."""
        law = self.recipe.law(self.split.budget.state)
        digest = hashlib.sha256(law.weights.tobytes()).hexdigest()[:16]
        return f"{law if law.made_of else law.name} {digest}"

    def votes(self, epoch: int) -> Votes:
        """Return the score of a cell of each value."""
        return votes_of(self.recipe, self.split.budget.state, self.cells, epoch)

    def sensitivity(self, epoch: int) -> int:
        """Return the sensitivity of the sum of scores to a user's cell."""
        return self.votes(epoch).range

    def read_votes(self, universe: int, epoch: int) -> ScoredModel:
        """Return the estimate model of a sum of scores: users with own cells, or a sample."""
        votes = self.votes(epoch)
        noise = noise_variance(votes.range, self.split.budget)
        below = votes.above if votes.in_part else votes.below
        read = votes.absent, votes.contrast, noise, below, votes.above
        return ScoredModel(universe, self.cells, self.full, *read)

    @property
    def full(self) -> int:
        """The score of a user who counts in full."""
        return 1


class ScoredPlan(VotedPlan):
    """The same of one user a cell, however many intrusions are announced."""

    __slots__ = ()

    universe: int

    proofs = ("modular", "laws", "thresholds", "intrusions", "releases")

    @property
    def law(self) -> Law:
        """The noise of the counters."""
        return self.recipe.law(self.split.budget.state)

    @property
    def table(self) -> ScoredCells:
        """The table's cells."""
        looks = range(self.request.looks)
        scores = np.array([self.votes(epoch).scores for epoch in looks])
        return ScoredCells(self.cells, self.law, scores)

    def model(self, epoch: int) -> ScoredModel:
        """Return the estimate model of a sum of scores."""
        return self.read_votes(self.universe, epoch)

    def joint_model(self, epoch: int, tables: int) -> ScoredModel:
        """Return the estimate model of added counts of several tables of disjoint users."""
        return replace(self.model(epoch), tables=tables)


@dataclass(frozen=True, slots=True)
class Rise:
    """The scores of users, before there is a law.

    Args:
        width: of half a tent.
        tents: how many there are.
        reach: the largest state.
        first: at which multiple of the width the first tent is.
    """

    width: int
    tents: int
    reach: int
    first: int = 0

    @property
    def values(self) -> int:
        """The number of values of a counter: above the range the score falls over one width."""
        return self.reach + self.width * (1 - self.first)


P = TypeVar("P", bound=ScoredPlan)


def scored_split(recipe: Recipe, budget: Budget, cells: int, epoch: int) -> Split | None:
    """Return the split of a budget for counters of a recipe; None if nothing can be read."""
    if not math.isfinite(noise_variance(MOST_RANGE, budget)):
        return None
    try:
        votes = votes_of(recipe, budget.state, cells, epoch)
    except PlanError:  # no law on this set can be read
        return None
    return Split(budget, votes.contrast / votes.range, noise_variance(1, budget))


def promising(recipe: Recipe, spendings: Sequence[Budget], cells: int, epoch: int) -> list[Budget]:
    """Return the budgets of which one is best: before votes are rounded, they err hardly more.

    Votes are rounded so that an error changes by at most a 64th, which takes several times as long.
    """
    errors = [_error(recipe, one, cells, epoch) for one in spendings]
    most = _ROUNDED * min(errors)
    return [one for one, error in zip(spendings, errors, strict=True) if error <= most]


def _error(recipe: Recipe, budget: Budget, cells: int, epoch: int) -> float:
    """Return the largest deviation before votes are rounded; infinite where none is readable."""
    if not cells or not math.isfinite(noise_variance(MOST_RANGE, budget)):
        return math.inf
    try:
        return _Unrounded.of(recipe, budget.state, epoch).error(cells, budget, recipe)
    except PlanError:
        return math.inf


def best_tents(
    make: Callable[[int, Tents, Split], P],
    request: Request,
    asked: Rise,
    counters: Callable[[int], int],
) -> P:
    """The plan of the smallest largest error, of laws on blocks and on single values.

    Args:
        make: makes a plan from the number of counters, the recipe, and a split of epsilon.
        request: epsilon and what it covers.
        asked: what users count.
        counters: how many there may be, by how many values they have.

    Raises:
        PlanError: the counters do not fit, have too many values, or no signal would be left.
    """
    epoch = request.intrusions
    recipes = [
        Tents(chosen, block, asked.width, asked.tents, asked.first)
        for block in sorted({1, asked.width})
        for chosen in sets_of(-(-asked.values // block), block)[:_FEWEST_SETS]
    ]
    fitting = [one for one in recipes if one.modulus <= _MOST_VALUES]
    if not fitting:
        message = (
            f"counters of {min(one.modulus for one in recipes):,} values cannot be read after "
            f"{epoch} announced intrusions: lower the bound, or make a fresh one after each"
        )
        raise PlanError(message)

    def error(recipe: Tents, budget: Budget) -> float:
        return _error(recipe, budget, counters(recipe.modulus), epoch)

    spendings = budgets(request)
    some = itertools.product(fitting, spendings[::_STEP])
    recipe, _ = min(some, key=lambda option: error(*option))
    budget = min(spendings, key=lambda spent: error(recipe, spent))
    cells = counters(recipe.modulus)
    readable = math.isfinite(error(recipe, budget))
    split = scored_split(recipe, budget, cells, epoch) if readable else None
    if split is None:
        raise no_signal(request)
    return make(cells, recipe, split)

"""The sizes of an `Incidence`: which law, how many cells, how epsilon is split."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from panprivacy.addressing import Addressing, Direct, Hashed, Sampled
from panprivacy.cells import Law, ModularCells
from panprivacy.cells.difference_sets import DifferenceSet, of_at_least, point
from panprivacy.cells.law import MOST_MODULUS, on_set
from panprivacy.cells.modular import counter_type
from panprivacy.decoders import SharedModel, StateModel, States, noise_quantile
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget
from panprivacy.hashing import KEY_BYTES
from panprivacy.planning.net import probabilities
from panprivacy.planning.request import Request, Split, budgets, noise_variance

MAX_DIRECT_BYTES = 1 << 26
"""A universe whose counters fit in so many bytes gets one each; larger ones a sample."""

MOST_BOUND = MOST_MODULUS // 4
"""Difference sets up to 4 times the bound have a law."""

_TYPICAL_QUESTIONS = 8
"""A split of epsilon is for so many named counts, or the whole histogram if that is better."""

_LEAST_SPECTRUM = 1e-9

_CELLS_PER_USER = 2
"""Of hashed cells: with more the noise of empty cells grows, with fewer that of collisions."""


@dataclass(frozen=True, slots=True)
class IncidencePlan:
    """The parameters of an `Incidence`.

    Args:
        bound: the largest distance of a state from 0.
        signed: whether states below 0 occur.
        universe: number of possible users; None if nobody knows who might come.
        cells: number of counters.
        expected: the most users that hashed counters are planned for; None if not said.
        law: the noise of the counters.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    bound: int
    signed: bool
    universe: int | None
    cells: int
    expected: int | None
    law: Law
    request: Request
    split: Split

    @property
    def table(self) -> ModularCells:
        """The table's cells."""
        return ModularCells(self.cells, self.law)

    @property
    def key_bytes(self) -> int:
        """Bytes of addressing key; a full table needs none."""
        return 0 if self.cells == self.universe else KEY_BYTES

    def address(self, key: bytes) -> Addressing:
        """Which cell a user maps to."""
        if self.universe is None:
            return Hashed(self.cells, key)
        if self.cells == self.universe:
            return Direct(self.universe)
        return Sampled(self.universe, self.cells, key)

    @property
    def states(self) -> States:
        """The states that users can be in."""
        return States(self.law.modulus, self.bound, self.signed)

    def names_are_cheap(self, epoch: int) -> bool:
        """Whether a named statistic can be one count of cells."""
        return self.universe is not None and self.law.members is not None and epoch == 0

    def model(self, epoch: int) -> StateModel | SharedModel:
        """What counts that are released after `epoch` announced intrusions say."""
        if self.universe is None:
            return SharedModel(self.law, epoch, self.cells)
        return StateModel(self.law, epoch, self.cells, self.universe, self.states.possible())

    def error(self, questions: float = 1) -> float:
        """The predicted standard deviation, in users, of an entry that holds few users.

        Args:
            questions: how many are released at once; the whole histogram where that is better.
        """
        share = (self.universe or self.cells) / self.cells
        intrusions = self.request.intrusions
        load = 0.0 if self.universe else (self.expected or 0) / self.cells
        shown = _Entry(self.law.modulus, self.law.entry_deviation() ** 2, self.split.contrast)
        asked = questions if self.names_are_cheap(intrusions) else math.inf
        # As many users as can be in one state make the most of collisions.
        collisions = math.exp(2 * load) * float(np.i0(2 * load))
        variance = shown.variance(self.cells, self.split.budget, asked, intrusions)
        return share * math.sqrt(variance * collisions)

    def margin(self, confidence: float) -> float:
        """How far an entry that holds few users strays at most with this probability, in users."""
        return noise_quantile(confidence, 0.0) * self.error(_TYPICAL_QUESTIONS)


@dataclass(frozen=True, slots=True)
class _Entry:
    """How an entry is read.

    Args:
        modulus: number of values of a counter.
        flatness: what each cell adds to the variance, on average over all states.
        contrast: how much more often a user in the state shows a member; 0 if there is no set.
    """

    modulus: int
    flatness: float
    contrast: float

    @classmethod
    def of(cls, chosen: DifferenceSet, epsilon: Fraction) -> _Entry:
        """Of a law on a difference set."""
        hit, miss = probabilities(chosen, epsilon, 0)
        size, modulus = chosen.size, chosen.modulus
        if not hit > miss:
            return cls(modulus, math.inf, 0.0)
        squares = size * (1 - miss) ** 2 + (modulus - size) * miss**2
        return cls(modulus, (squares / (hit - miss) ** 2 - 1) / modulus, hit - miss)

    def variance(self, cells: int, budget: Budget, questions: float, intrusions: int) -> float:
        """The variance of the cells and of the output, which each intrusion multiplies.

        The output is that of so many named counts, or of the histogram if that is less.
        """
        spread = self.modulus * self.flatness + 1 - 1 / self.modulus
        output = noise_variance(2, budget) * spread
        if math.isfinite(questions) and self.contrast:
            output = min(output, noise_variance(questions, budget) / self.contrast**2)
        return (cells * self.flatness + output) * math.exp(
            min(intrusions * math.log(max(spread, 1.0)), 600)
        )


@functools.lru_cache(maxsize=64)
def plan_incidence(
    bound: int,
    universe: int | None,
    cells: int | None,
    expected: int | None,
    law: Law | None,
    request: Request,
    *,
    signed: bool,
) -> IncidencePlan:
    """Plan an `Incidence`; see there for the arguments."""
    states = 2 * bound + 1 if signed else bound + 1
    sets = [*of_at_least(max(states, 3)), point(max(states, 2))]
    size = cells or _default_cells(universe, expected, max(chosen.modulus for chosen in sets))
    if universe is not None and size > universe:
        message = f"cells ({size:,}) exceed the universe ({universe:,}); leave cells out"
        raise PlanError(message)
    if law is None:
        budget, chosen = _best(request, size, tuple(sets), shared=universe is None)
        law = on_set(chosen, budget.state)
    else:
        budget = _budget_for(law, states, request)
    if law.ratio == 1:
        message = f"epsilon {float(request.epsilon):g} is too small to leave any signal"
        raise PlanError(message)
    contrast = 0.0 if law.members is None else law.hit() - law.miss()
    split = Split(budget, contrast, noise_variance(1, budget))
    plan = IncidencePlan(bound, signed, universe, size, expected, law, request, split)
    _check_load(plan)
    return plan


def _default_cells(universe: int | None, expected: int | None, modulus: int) -> int:
    if universe is not None:
        return min(universe, MAX_DIRECT_BYTES // counter_type(modulus).itemsize)
    if expected is None:
        message = (
            "say universe= (how many users there could be), or for open-ended ids expected= "
            "(the most that may come) or cells="
        )
        raise PlanError(message)
    return _CELLS_PER_USER * expected


def _best(
    request: Request, cells: int, sets: tuple[DifferenceSet, ...], *, shared: bool
) -> tuple[Budget, DifferenceSet]:
    """The budget and the set of the smallest predicted error."""
    options = [(budget, chosen) for budget in budgets(request) for chosen in sets]
    times = request.intrusions
    errors = [_error(*option, cells, times, shared=shared) for option in options]
    best = int(np.argmin(errors))
    if not math.isfinite(errors[best]):
        message = f"epsilon {float(request.epsilon):g} is too small to leave any signal"
        raise PlanError(message)
    return options[best]


def _error(
    budget: Budget, chosen: DifferenceSet, cells: int, intrusions: int, *, shared: bool
) -> float:
    """The predicted variance of an entry."""
    questions = math.inf if shared or intrusions else _TYPICAL_QUESTIONS
    return _Entry.of(chosen, budget.state).variance(cells, budget, questions, intrusions)


def _budget_for(law: Law, states: int, request: Request) -> Budget:
    """The budget that a law of the user's leaves."""
    if law.modulus < states:
        message = f"the law has {law.modulus:,} values, and the states need {states:,}"
        raise PlanError(message)
    if float(np.abs(law.spectrum()).min()) < _LEAST_SPECTRUM:
        message = "the law's noise cannot be undone: its spectrum has a zero"
        raise PlanError(message)
    state = request.budget.state if request.budget else Fraction(math.ceil(law.loss * 1e6), 10**6)
    left = (request.epsilon - request.looks * state) / request.releases
    if not law.within(state) or left <= 0:
        message = f"the law's loss of {law.loss:.6g} a look exceeds what epsilon leaves the state"
        raise PlanError(message)
    return request.budget or Budget(state, left)


def _check_load(plan: IncidencePlan) -> None:
    """Refuse hashed counters that could not be read."""
    if plan.universe is not None:
        return
    load = (plan.expected or 0) / plan.cells
    model = SharedModel(plan.law, plan.request.intrusions, plan.cells)
    strain = model.strain(load, noise_variance(2, plan.split.budget))
    if strain <= model.most_strain:
        return
    users = f" and {plan.expected:,} users" if plan.expected else ""
    message = (
        f"{plan.cells:,} hashed counters cannot be read at bound {plan.bound:,}{users}: "
        f"the noise is {strain / model.most_strain:.2g} times too large; take more cells, a larger "
        "epsilon or a smaller bound"
    )
    raise PlanError(message)

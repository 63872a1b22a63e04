"""The sizes of an `Incidence`: which law, how many cells, how epsilon is split."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from panprivacy.addressing import Addressing, Direct, Hashed, Sampled
from panprivacy.cells import Law, ModularCells
from panprivacy.cells.difference_sets import DifferenceSet, of_at_least
from panprivacy.cells.law import MOST_MODULUS, on_set
from panprivacy.cells.modular import counter_type
from panprivacy.decoders import MOST_STRAIN, SharedModel, StateModel, States, noise_quantile
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
        intrusions, law = self.request.intrusions, self.law
        asked = questions if self.names_are_cheap(intrusions) else math.inf
        load = 0.0 if self.universe else (self.expected or 0) / self.cells
        noise = _output(self.split.budget, law.modulus, asked)
        flatness = law.entry_deviation() ** 2
        return share * math.sqrt(
            _variance(self.cells * math.exp(2 * load) + noise, flatness, law.modulus, intrusions)
        )

    def margin(self, confidence: float) -> float:
        """How far an entry that holds few users strays at most with this probability, in users."""
        return noise_quantile(confidence, 0.0) * self.error(_TYPICAL_QUESTIONS)


def _variance(noise: float, flatness: float, modulus: int, intrusions: int) -> float:
    """The variance of an entry, on average over all states.

    Args:
        noise: variance of the cells and of the output, in units of one cell.
        flatness: variance of an entry for each cell, before any announced intrusion.
        modulus: of the law.
        intrusions: how many times noise is added again.
    """
    return noise * flatness * (modulus * flatness) ** intrusions


def _output(budget: Budget, modulus: int, questions: float) -> float:
    """The variance of output noise in units of the variance of one cell of a flat law."""
    named = 4 * noise_variance(questions, budget) if math.isfinite(questions) else math.inf
    return min(modulus * noise_variance(2, budget), named)


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
    sets = of_at_least(max(states, 3))
    size = cells or _default_cells(universe, expected, sets[0].modulus)
    if universe is not None and size > universe:
        message = f"cells ({size:,}) exceed the universe ({universe:,}); leave cells out"
        raise PlanError(message)
    if law is None:
        budget, chosen = _best(request, size, tuple(sets), shared=universe is None)
        law = on_set(chosen, budget.state)
    else:
        budget = _budget_for(law, states, request)
    split = Split(budget, law.entry_deviation() ** -1, noise_variance(1, budget))
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
    hit, miss = probabilities(chosen, budget.state, 0)
    if not hit > miss:
        return math.inf
    size, modulus = chosen.size, chosen.modulus
    squares = size * (1 - miss) ** 2 + (modulus - size) * miss**2
    flat = (squares / (hit - miss) ** 2 - 1) / modulus
    questions = math.inf if shared or intrusions else _TYPICAL_QUESTIONS
    noise = cells + _output(budget, modulus, questions)
    return _variance(noise, flat, modulus, intrusions)


def _budget_for(law: Law, states: int, request: Request) -> Budget:
    """The budget that a law of the user's leaves."""
    if law.modulus < states:
        message = f"the law has {law.modulus:,} values, and the states need {states:,}"
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
    strain = plan.model(plan.request.intrusions).strain(load, noise_variance(2, plan.split.budget))  # type: ignore[union-attr]
    if strain <= MOST_STRAIN:
        return
    users = f" and {plan.expected:,} users" if plan.expected else ""
    message = (
        f"{plan.cells:,} hashed counters cannot be read at bound {plan.bound:,}{users}: the noise "
        f"is {strain / MOST_STRAIN:.2g} times too large; take more cells, a larger epsilon or a "
        "smaller bound"
    )
    raise PlanError(message)

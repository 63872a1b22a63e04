"""The plan of an `Incidence`: which law, how many cells, how epsilon is split."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.addressing import Addressing, Hashed
from panprivacy.cells.difference_sets import DifferenceSet, of_at_least, point
from panprivacy.cells.law import MOST_MODULUS, Law, hit_and_miss, on_set
from panprivacy.cells.modular import ModularCells
from panprivacy.decoders.intervals import noise_quantile
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget
from panprivacy.planning.request import Request, Split, budgets, no_signal, noise_variance
from panprivacy.planning.universe import (
    address_in,
    cells_within,
    check_cells,
    check_memory,
)
from panprivacy.statistics.incidence.decoder import SharedModel, StateModel
from panprivacy.statistics.incidence.linear_queries import LinearQuery, States
from panprivacy.statistics.incidence.named_counts import NamedCounts
from panprivacy.statistics.incidence.picture import made_up_states
from panprivacy.statistics.incidence.query import IncidenceQuery
from panprivacy.statistics.incidence.reading import (
    HistogramReading,
    IncidenceReading,
    NamedReading,
)
from panprivacy.statistics.incidence.release import Population, check_askable
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.release import Name, Release

MOST_BOUND = MOST_MODULUS // 8 - 1
"""Signed states are twice as many, and a difference set may be 4 times larger."""

_TYPICAL_QUESTIONS = 8
"""A split of epsilon is for so many named counts, or the whole histogram if that is better."""

_CELLS_PER_USER = 2
"""Of hashed cells: with more the noise of empty cells grows, with fewer that of collisions."""


@dataclass(frozen=True, slots=True)
class IncidencePlan(Plan):
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

    proofs = ("modular", "named", "histogram")
    checks = ("exact/test_counters", "statistical/test_incidence")
    limits = 0.5, 0.25
    question = "how many users appeared exactly t times, for every t?"
    unit = "users by how often they came"
    measure = "the users"

    @property
    def table(self) -> ModularCells:
        """The table's cells."""
        return ModularCells(self.cells, self.law)

    def address(self, key: bytes) -> Addressing:
        """Which cell a user maps to."""
        if self.universe is None:
            return Hashed(self.cells, key)
        return address_in(self.universe, self.cells, key)

    @property
    def states(self) -> States:
        """The states that users can be in."""
        return States(self.law.modulus, self.bound, self.signed)

    def can_name(self, epoch: int) -> bool:
        """Whether a named statistic can be released as one count of cells."""
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
        scale = (self.universe or self.cells) / self.cells
        intrusions = self.request.intrusions
        load = 0.0 if self.universe else (self.expected or 0) / self.cells
        shown = _Entry(self.law.modulus, self.law.entry_deviation() ** 2, self.split.contrast)
        asked = questions if self.can_name(intrusions) else math.inf
        # As many users as can be in one state make the most of collisions.
        collisions = math.exp(2 * load) * float(np.i0(2 * load))
        variance = shown.variance(self.cells, self.split.budget, asked, intrusions)
        return scale * math.sqrt(variance * collisions)

    def linear(self, query: IncidenceQuery) -> list[LinearQuery]:
        """The linear queries that a release is asked, each once.

        Raises:
            PlanError: one cannot be answered.
        """
        asked = {one.name: one for one in query.linear(self.states)}
        check_askable(asked.values(), self.universe)
        return list(asked.values())

    def reading(self, query: IncidenceQuery, epoch: int) -> IncidenceReading:
        """How a release is made: by named counts where they are better, or by the histogram."""
        asked, model = self.linear(query), self.model(epoch)
        population = Population(self.states, self.universe, self.cells)
        epsilon = self.split.budget.release
        few = 0 < len(asked) ** 2 <= self.law.modulus
        if isinstance(model, StateModel) and few and self.can_name(epoch):
            named = NamedCounts.of(model, asked, epsilon)
            if named.is_better():
                return NamedReading(population, named)
        return HistogramReading(population, model, asked, epsilon)

    def names(self, query: IncidenceQuery) -> tuple[Name, ...]:
        """What is asked; a whole histogram has an answer for each state in its place."""
        return tuple(one.name for one in self.linear(query)) or (Name("", "histogram"),)

    @property
    def largest(self) -> float:
        """The most users that are planned for."""
        return float(self.universe or self.expected or self.cells)

    def margin(self, confidence: float) -> float:
        """How far the number of users in a state strays at most with this probability."""
        return noise_quantile(confidence, 0.0) * self.error()

    def truth(self, name: Name, states: NDArray[np.int64], last: NDArray[np.int64]) -> float:  # noqa: ARG002
        """The exact answer, beyond the bound too."""
        unseen = (self.universe or len(states)) - len(states)
        numbers = [number for _, number in name.arguments]
        if name.question == "exactly":
            return float((states == numbers[0]).sum() + (0 if numbers[0] else unseen))
        if name.question == "at_least":
            return float((states >= numbers[0]).sum())
        if name.question == "distinct":
            return float(np.count_nonzero(states))
        tau, power = (*numbers, 1)[:2]
        return float((np.clip(states, 0, tau) ** power).sum())

    def shown(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """The state that each residue stands for."""
        return self.states.values()[cells]

    def made_up(self, answers: Mapping[Name, Release | None]) -> NDArray[np.int64]:
        """Users in each state other than 0 of which the answers clearly say that there are some."""
        return made_up_states(answers, self.bound, self.universe)


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
        hit, miss = hit_and_miss(chosen, epsilon, 0)
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
    memory: int | None = None,
    *,
    signed: bool,
) -> IncidencePlan:
    """Plan an `Incidence`.

    Args:
        bound: the largest distance of a state from 0.
        universe: number of possible users.
        cells: number of counters.
        expected: the most users of hashed counters.
        law: of the noise.
        request: epsilon and what it covers.
        memory: bytes of the counters, at most; None for 64 MiB.
        signed: whether states below 0 occur.

    Raises:
        PlanError: they do not go together, or the counters could not be read.
    """
    _check_sizes(universe, cells, expected)
    check_memory(cells, memory)
    planned = _planned(bound, universe, cells, expected, law, request, memory, signed=signed)
    if _is_readable(planned):
        return planned
    refused = f"{planned.cells:,} hashed counters cannot be read at bound {bound:,}"
    if cells is not None or law is not None or memory is not None:
        message = f"{refused}; take more cells, a larger epsilon or a smaller bound"
        raise PlanError(message)
    enough = _enough(planned)
    ways = f"plan for {enough:,} expected users, " if enough else ""
    message = f"{refused} and {expected:,} users; {ways}a larger epsilon or a smaller bound"
    raise PlanError(message)


def _enough(refused: IncidencePlan) -> int | None:
    """For how many users the plan can be read, because they get more counters."""
    bound, request, signed = refused.bound, refused.request, refused.signed
    for doublings in range(1, 30):
        expected = (refused.expected or 1) << doublings
        planned = _planned(bound, None, None, expected, None, request, None, signed=signed)
        if _is_readable(planned):
            return expected
    return None


def _planned(
    bound: int,
    universe: int | None,
    cells: int | None,
    expected: int | None,
    law: Law | None,
    request: Request,
    memory: int | None,
    *,
    signed: bool,
) -> IncidencePlan:
    """The plan, whether it can be read or not."""
    states = 2 * bound + 1 if signed else bound + 1
    if law is None:
        budget, chosen = _best(request, states, universe, cells, expected, memory)
        law = on_set(chosen, budget.state)
    else:
        budget = _budget_for(law, states, request)
    if law.ratio == 1 or not math.isfinite(noise_variance(2, budget)):
        raise no_signal(request)
    contrast = 0.0 if law.members is None else law.hit() - law.miss()
    split = Split(budget, contrast, noise_variance(1, budget))
    size = cells or _default_cells(universe, expected, law.modulus, memory)
    if not size:
        message = f"bound= is too large for a memory= of {memory} bytes"
        raise PlanError(message)
    return IncidencePlan(bound, signed, universe, size, expected, law, request, split)


def _check_sizes(universe: int | None, cells: int | None, expected: int | None) -> None:
    """Refuse sizes that do not say how many users there are, or contradict each other."""
    check_cells(universe, cells)
    if universe is None and cells is None and expected is None:
        message = (
            "say universe= (how many users there could be), or for open-ended ids expected= "
            "(the most that may come) or cells="
        )
        raise PlanError(message)


def _default_cells(
    universe: int | None, expected: int | None, modulus: int, memory: int | None
) -> int:
    """One for each user, as far as memory reaches; hashed ones for those that are expected."""
    if universe is not None:
        return min(universe, cells_within(memory, modulus))
    wanted = _CELLS_PER_USER * (expected or 1)
    return wanted if memory is None else min(wanted, cells_within(memory, modulus))


def _best(
    request: Request,
    states: int,
    universe: int | None,
    cells: int | None,
    expected: int | None,
    memory: int | None,
) -> tuple[Budget, DifferenceSet]:
    """The budget and the set of the smallest predicted error."""
    questions = math.inf if universe is None or request.intrusions else _TYPICAL_QUESTIONS

    def variance(budget: Budget, chosen: DifferenceSet) -> float:
        size = cells or _default_cells(universe, expected, chosen.modulus, memory) or 1
        entry = _Entry.of(chosen, budget.state)
        scale = (universe or size) / size
        return scale**2 * entry.variance(size, budget, questions, request.intrusions)

    sets = [*of_at_least(max(states, 3)), point(max(states, 2))]
    options = [(budget, chosen) for budget in budgets(request) for chosen in sets]
    variances = [variance(*option) for option in options]
    best = int(np.argmin(variances))
    if not math.isfinite(variances[best]):
        raise no_signal(request)
    return options[best]


def _budget_for(law: Law, states: int, request: Request) -> Budget:
    """The budget that a law of the user's leaves."""
    if law.modulus < states:
        message = f"the law has {law.modulus:,} values, and the states need {states:,}"
        raise PlanError(message)
    law.check_readable()
    state = request.budget.state if request.budget else Fraction(math.ceil(law.loss * 1e6), 10**6)
    left = (request.epsilon - request.looks * state) / request.releases
    if not law.within(state) or left <= 0:
        message = (
            f"the law's loss of {law.loss:.6g} a look exceeds what epsilon leaves the state; make "
            "it with a smaller epsilon, such as 9/10 of the total"
        )
        raise PlanError(message)
    return request.check(request.budget or Budget(state, left))


def _is_readable(plan: IncidencePlan) -> bool:
    """Whether hashed counters can be read; others always can."""
    if plan.universe is not None:
        return True
    load = (plan.expected or 0) / plan.cells
    model = SharedModel(plan.law, plan.request.intrusions, plan.cells)
    return model.is_readable(load, noise_variance(2, plan.split.budget))

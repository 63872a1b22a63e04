"""The plan of an `Incidence`: which law, how many cells, how epsilon is split."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.aggregation import Aggregation, Form
from panprivacy.statistics.amounts import in_units
from panprivacy.statistics.drawing import Drawing, UserStates, most_made_up
from panprivacy.statistics.incidence.decoder import SharedModel, SharedModels, StateModel
from panprivacy.statistics.incidence.linear_queries import LinearQuery, States
from panprivacy.statistics.incidence.query import IncidenceQuery
from panprivacy.statistics.incidence.reading import HistogramReading, NamedReading
from panprivacy.statistics.incidence.release import (
    COUNTING,
    MEAN,
    VISITS,
    UserPopulation,
    check_askable,
    quantile_name,
)
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.slicing import Slicing
from panprivacy.tables.cells.difference_sets import DifferenceSet
from panprivacy.tables.cells.law import Law, hit_and_miss
from panprivacy.tables.cells.modular import ModularCells
from panprivacy.tables.decoders.intervals import noise_quantile
from panprivacy.tables.planning.learning import StateRange
from panprivacy.tables.planning.request import Request, Split, noise_variance

_WHOLE = (Name("", "histogram"),)
_TOO_MANY = "sums of so many shards do not fit in 64 bits: merge fewer, or ask for lower powers"


@dataclass(frozen=True, slots=True)
class IncidencePlan(Plan):
    """The parameters of an `Incidence`.

    Args:
        bound: the largest distance of a state from 0.
        signed: whether states below 0 occur, down to minus the bound.
        below: how far below 0 states go otherwise; None where nobody says.
        universe: number of possible users; None if nobody knows who might come.
        cells: number of counters.
        expected: the most users that hashed counters are planned for; None if not said.
        law: the noise of the counters.
        request: epsilon and what it covers.
        split: how epsilon is spent.
        asked: the largest state that may be asked for, if windows learn the bound: that of each.
        amount: the unit of amounts that are counted; None for whole deltas.
    """

    bound: int
    signed: bool
    below: int | None
    universe: int | None
    cells: int
    expected: int | None
    law: Law
    request: Request
    split: Split
    asked: int | None = None
    amount: float | None = None

    proofs = ("modular", "releases")
    checks = ("exact/test_counters", "statistical/test_incidence")
    limits = 0.5, 0.25
    question = "how many users have a total of exactly t, for every t?"
    measure = "the users"

    @property
    def unit(self) -> str:
        """The unit of answers."""
        if self.amount is None:
            return "users by how often they came"
        return f"users by their total in {in_units(self.amount)}"

    def unit_of(self, question: str) -> str:
        """Return the unit of the answers to a question."""
        return self.unit if question in COUNTING else self.population.unit_of(question)

    @property
    def population(self) -> UserPopulation:
        """The users that are counted."""
        counted = VISITS if self.amount is None else in_units(self.amount)
        return UserPopulation(self.states, self.universe, self.cells, counted)

    @property
    def table(self) -> ModularCells:
        """The table's cells."""
        return ModularCells(self.cells, self.law)

    @property
    def states(self) -> States:
        """The states that users can be in."""
        return States(self.law.modulus, self.bound, self.signed, self.below)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The remarks about users below 0 in thresholds and sums, where there is no room."""
        caveat = self.states.caveat("at_least")
        return () if caveat is None else (f"in thresholds and sums {caveat}",)

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The lowest and the highest state that is told right: counters have room for more."""
        return self.states.lowest, self.states.highest

    def can_name(self, epoch: int) -> bool:
        """Whether a named statistic can be released as one count of cells."""
        return self.universe is not None and self.law.members is not None and epoch == 0

    def model(self, epoch: int) -> StateModel | SharedModel:
        """Return the estimate model of counts released after `epoch` announced intrusions."""
        if self.universe is None:
            return SharedModel(self.law, epoch, self.cells)
        return StateModel(self.law, epoch, self.cells, self.universe)

    def absolute_error(self, questions: float = 1) -> float:
        """The predicted standard deviation, in users, of an entry that holds few users.

        Args:
            questions: how many are released at once; the whole histogram where that is better.
        """
        scale = (self.universe or self.cells) / self.cells
        intrusions = self.request.intrusions
        load = 0.0 if self.universe else (self.expected or 0) / self.cells
        asked = questions if self.can_name(intrusions) else math.inf
        # As many users as can be in one state make the most of collisions.
        collisions = math.exp(2 * load) * float(np.i0(2 * load))
        variance = self.entry(intrusions).variance(self.cells, self.split.budget, asked)
        return scale * math.sqrt(variance * collisions)

    @property
    def growth(self) -> float:
        """The factor by which each announced intrusion multiplies the error of an entry."""
        before, after = (self.entry(epoch).spread for epoch in (0, 1))
        return math.sqrt(after / before)

    def entry(self, epoch: int) -> EntryReading:
        """Return the reading of an entry after `epoch` announced intrusions."""
        flatness = self.law.entry_deviation(epoch) ** 2
        return EntryReading(self.law.modulus, flatness, 0.0 if epoch else self.split.contrast)

    def linear(self, query: IncidenceQuery) -> list[LinearQuery]:
        """The linear queries that a release is asked, each once.

        Raises:
            PlanError: one cannot be answered.
        """
        if self.asked is not None:
            try:
                query.linear(replace(self.states, bound=self.asked))
            except PlanError as error:
                message = f"{error}; where windows learn it, learn:20:1000 is never below 20"
                raise PlanError(message) from None
        asked = {one.name: one for one in query.linear(self.states)}
        check_askable(asked.values(), self.universe)
        return list(asked.values())

    def reading(self, query: IncidenceQuery, epoch: int) -> NamedReading | HistogramReading:
        """Return the reading of a release: named counts where they are better, or the histogram."""
        asked, model = self.linear(query), self.model(epoch)
        population = self.population
        epsilon = self.split.budget.release
        few = 0 < len(asked) ** 2 <= self.law.modulus and not query.needs_all
        if isinstance(model, StateModel) and few and self.can_name(epoch):
            named = NamedReading.of(population, model, asked, epsilon)
            if named.is_better():
                return named
        further = query.quantile, query.mean
        return HistogramReading(population, model, asked, epsilon, *further)

    def shows_range(self, query: IncidenceQuery) -> bool:
        """Whether a whole histogram leaves; of a few named counts nothing follows."""
        return isinstance(self.reading(query, 0), HistogramReading)

    def reached(self, answers: Mapping[Name, Release | None], epoch: int) -> StateRange | None:
        """Return the range of states, by the released histogram, whatever the query."""
        given = next(filter(None, answers.values()), None)
        if given is None or len(given.counts) != self.law.modulus:
            return None
        whole = self.reading(IncidenceQuery(), epoch)
        return whole.answer(np.array(given.counts), given.confidence).reach()

    @property
    def slicing(self) -> Slicing:
        """The slices of its counters."""
        return Slicing(self, self.cells)

    @property
    def aggregation(self) -> IncidenceAggregation:
        """The contributions of several tables, as one."""
        return IncidenceAggregation(self)

    @property
    def drawing(self) -> IncidenceDrawing:
        """The made-up users of a picture, and the state that each residue stands for."""
        return IncidenceDrawing(self)

    def names(self, query: IncidenceQuery) -> tuple[Name, ...]:
        """Return the names of the queries; a complete histogram has one for each state."""
        linear = (one.name for one in self.linear(query))
        named = (*linear, *map(quantile_name, query.quantile), *[MEAN] * query.mean)
        return named or _WHOLE

    def answered(self, query: IncidenceQuery) -> tuple[Name, ...]:
        """Return the queries, or each state of a complete histogram."""
        asked = self.names(query)
        return self.population.names() if asked == _WHOLE else asked

    @property
    def largest(self) -> float:
        """The most users that are planned for."""
        return float(self.universe or self.expected or self.cells)

    def absolute_margin(self, confidence: float, truth: float | None = None) -> float:  # noqa: ARG002
        """Return the bound on the error of a state's number of users at this probability."""
        return noise_quantile(confidence, 0.0) * self.absolute_error()

    def truth(self, name: Name, states: NDArray[np.int64], last: NDArray[np.int64]) -> float:  # noqa: ARG002
        """The exact answer, beyond the bound too."""
        unseen = (self.universe or len(states)) - len(states)
        numbers = [number for _, number in name.arguments]
        if name.question == "exactly":
            return float((states == numbers[0]).sum() + (0 if numbers[0] else unseen))
        if name.question == "at_least":
            return float((states >= numbers[0]).sum())
        if name.question == "between":
            return float(((states >= numbers[0]) & (states <= numbers[1])).sum())
        if name.question in {"quantile", "mean"}:
            return _of_users_that_came(states[states != 0], self.bound, *numbers)
        if name.question == "distinct":
            return float(np.count_nonzero(states))
        tau, power = (*numbers, 1)[:2]
        return float((np.clip(states, 0, tau) ** power).sum())

    @property
    def readable(self) -> bool:
        """Whether hashed counters can be read; others always can."""
        if self.universe is not None:
            return True
        load = (self.expected or 0) / self.cells
        model = SharedModel(self.law, self.request.intrusions, self.cells)
        return model.spectrum.is_readable(load, noise_variance(2, self.split.budget))


def _of_users_that_came(states: NDArray[np.int64], bound: int, share: float | None = None) -> float:
    """Return the exact mean of states, or a quantile of them; NaN of nobody."""
    if not len(states):
        return math.nan
    if share is None:
        return float(np.clip(states, -bound, bound).mean())
    return float(np.quantile(states, share, method="inverted_cdf"))


class IncidenceAggregation(Aggregation):
    """The contributions of several tables of counters.

    Args:
        plan: of each table.
    """

    __slots__ = ("plan",)

    def __init__(self, plan: IncidencePlan) -> None:
        super().__init__(plan)
        self.plan = plan

    @property
    def separate(self) -> bool:
        """Whether tables are read separately: for hashed users, whose number a spectrum shows."""
        return self.plan.universe is None

    def of_sums(
        self, query: IncidenceQuery, epoch: int, tables: int
    ) -> NamedReading | HistogramReading:
        """Return the reading of counts of several tables of disjoint users."""
        plan = self.plan
        reading, model = plan.reading(query, epoch), plan.model(epoch)
        if isinstance(model, StateModel):
            several = replace(reading, model=replace(model, tables=tables))
            if isinstance(several, NamedReading) and not several.fits():
                raise PlanError(_TOO_MANY)
            return several
        epsilon = plan.split.budget.release
        shared = SharedModels(model, tables)
        asked = plan.linear(query), epsilon, query.quantile, query.mean
        return HistogramReading(plan.population, shared, *asked)

    def of_cells(
        self, query: IncidenceQuery, epoch: int, tables: int
    ) -> NamedReading | HistogramReading:
        """Return the reading of the sum of tables of one key: each adds its noise."""
        return self.plan.reading(query, tables * (epoch + 1) - 1)

    def error(self, form: Form, epoch: int, tables: int) -> float:
        """Return the ratio of the error of an entry to that of one table of all users."""
        if form == "sums":
            return math.sqrt(tables)
        epochs = epoch, tables * (epoch + 1) - 1
        before, after = (self.plan.entry(one).spread for one in epochs)
        return math.sqrt(after / before)


class IncidenceDrawing(Drawing):
    """The picture of a histogram.

    Args:
        plan: of the statistic.
    """

    __slots__ = ("_plan",)

    def __init__(self, plan: IncidencePlan) -> None:
        self._plan = plan

    def made_up(self, answers: Mapping[Name, Release | None]) -> UserStates:
        """Users in each state other than 0 of which the answers clearly say that there are some.

        A mean or a quantile says nothing of how many: these are read off the counts that it needs.
        """
        sizes = self._plan.bound, self._plan.universe
        users = _users_by_state(answers, *sizes)
        given = next(filter(None, answers.values()), None)
        if not users and given is not None and len(given.counts) == self._plan.law.modulus:
            whole = self._plan.reading(IncidenceQuery(), 0)
            found = whole.answer(np.array(given.counts), given.confidence)
            users = _users_by_state(found.answers(), *sizes)
        counts = np.array(list(users.values()))
        most = most_made_up(self._plan.universe)
        if counts.sum() > most:
            counts *= most / counts.sum()
        return np.repeat(np.array(list(users), np.int64), counts.astype(np.int64))

    def values(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the state that each residue stands for."""
        return self._plan.states.values()[cells]


@dataclass(frozen=True, slots=True)
class EntryReading:
    """The reading of an entry.

    Args:
        modulus: number of values of a counter.
        flatness: what each cell adds to the variance, on average over all states.
        contrast: how much more often a user in the state shows a member; 0 if there is no set.
    """

    modulus: int
    flatness: float
    contrast: float

    @classmethod
    def of(cls, chosen: DifferenceSet, epsilon: Fraction) -> EntryReading:
        """Return the reading of an entry for a law on a difference set."""
        hit, miss = hit_and_miss(chosen, epsilon, 0)
        size, modulus = chosen.size, chosen.modulus
        if not hit > miss:
            return cls(modulus, math.inf, 0.0)
        squares = size * (1 - miss) ** 2 + (modulus - size) * miss**2
        return cls(modulus, (squares / (hit - miss) ** 2 - 1) / modulus, hit - miss)

    @property
    def spread(self) -> float:
        """The factor by which the noise variance of each histogram count adds to the variance."""
        return self.modulus * self.flatness + 1 - 1 / self.modulus

    def after(self, intrusions: int) -> EntryReading:
        """The same after announced intrusions, of a law on a difference set.

        Each divides the spectrum off 0, which has one size there, by itself once more.
        """
        if not intrusions:
            return self
        growth = math.log(self.spread * self.modulus / (self.modulus - 1))
        spread = self.spread * math.exp(min(intrusions * growth, 600))
        flatness = (spread - 1 + 1 / self.modulus) / self.modulus
        return EntryReading(self.modulus, flatness, 0.0)

    def variance(self, cells: int, budget: Budget, questions: float) -> float:
        """The variance of the cells and of the output.

        The output is that of so many named counts, or of the histogram if that is less.
        """
        output = noise_variance(2, budget) * self.spread
        if math.isfinite(questions) and self.contrast:
            output = min(output, noise_variance(questions, budget) / self.contrast**2)
        return cells * self.flatness + output


def _users_by_state(
    answers: Mapping[Name, Release | None], bound: int, universe: int | None
) -> dict[int, float]:
    """Return the number of synthetic users in each state: where the answer is clearly not 0."""
    asked: dict[str, dict[int, Release]] = {}
    for name, one in answers.items():
        if one is not None:
            asked.setdefault(name.question, {})[name.argument or 0] = one
    exactly = asked.get("exactly", {})
    users = {
        state: one.value
        for state, one in exactly.items()
        # so far above 0 that hardly one of many states is so by chance
        if state and one.value > 2 * (one.value - one.low)
    }
    for name, one in answers.items():
        if one is not None and name.question == "between" and one.low > 0:
            (_, first), (_, last) = name.arguments
            middle = (first + last) // 2
            users[int(middle)] = users.get(int(middle), 0.0) + one.value
    for least, answer in sorted(asked.get("at_least", {}).items(), reverse=True):
        more = answer.value - sum(count for state, count in users.items() if state >= least)
        free = (state for state in range(least, bound + 1) if state not in users)
        if answer.low > 0 and more > 0:
            place = next(free, least)
            users[place] = users.get(place, 0.0) + more
    some = asked.get("distinct") or asked.get("cropped_sum")
    if not users and some:
        users[1] = min(some.items())[1].value
    if not users and universe is not None and 0 in exactly:
        users[1] = universe - exactly[0].value
    return users

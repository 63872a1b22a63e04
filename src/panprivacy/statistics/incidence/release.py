"""The answers of an `Incidence`: functions of released numbers and public parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.ground.validation import proportion
from panprivacy.statistics.frames import as_pandas, as_polars
from panprivacy.statistics.incidence.constrained import most_likely
from panprivacy.statistics.incidence.decoder import SharedModel, SharedModels, StateModel
from panprivacy.statistics.incidence.estimates import Estimates
from panprivacy.statistics.incidence.linear_queries import LinearQuery, States
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.release import Answers, Label, Name, Named, Release

_CLEAR = 0.9999
"""Of one in ten thousand times it is not so."""


VISITS = "visits"


@dataclass(frozen=True, slots=True)
class UserPopulation:
    """The users of an incidence count.

    Args:
        states: that they can be in.
        universe: how many there could be; None if nobody knows.
        cells: number of counters.
        counted: the unit of what they do, such as "visits".
    """

    states: States
    universe: int | None
    cells: int
    counted: str = VISITS

    def unit_of(self, question: str) -> str:
        """Return the unit of an answer about what users did."""
        if question != MEAN.question:
            return self.counted
        return "events per user" if self.counted == VISITS else f"mean, in {self.counted}"

    def readable(self, most: int | None = None) -> list[int]:
        """The states whose users leave a trace, in order; of many those nearest to 0."""
        traced = [state for state in self.states.listed() if state or self.universe is not None]
        return sorted(sorted(traced, key=abs)[:most])

    def names(self) -> tuple[Name, ...]:
        """Return the name of each answer of a complete histogram, in order."""
        above = self.states.above()
        states = [Name("", "exactly", (("state", state),)) for state in self.readable()]
        return (*states, *([] if above is None else [above.name]))


MEAN = Name("", "mean")


def quantile_name(share: float) -> Name:
    """Return the name of the answer of a quantile."""
    return Name("", "quantile", (("share", share),))


@dataclass(frozen=True, slots=True)
class WholeHistogram:
    """The reading of a complete histogram.

    Args:
        model: reads it.
        noise_variance: of each of its counts.
    """

    model: StateModel | SharedModel | SharedModels
    noise_variance: float


@dataclass(frozen=True, eq=False, repr=False)
class IncidenceRelease(Named[Release]):
    """Noised answers, by name; they are public.

    Args:
        population: of the statistic.
        counts: the noised counts: of the named queries in the order of `release`, or the
            histogram of cell values. All answers are functions of them and of public parameters.
        confidence: probability that an interval covers the truth, each for itself.
        epsilon: what this release cost, in nats.
        named: what was asked by name, and its answer.
        whole: how to read the histogram, if nothing was named.
        statistic: name of the statistic.
        group: of users; None if they are not counted by group.
        shares: the quantiles that were asked.
        asks_mean: whether the mean was.
    """

    population: UserPopulation
    counts: tuple[int, ...]
    confidence: float
    epsilon: float
    named: Mapping[Name, tuple[LinearQuery, Estimates]]
    whole: WholeHistogram | None = None
    statistic: str = ""
    group: Label | None = None
    shares: tuple[float, ...] = ()
    asks_mean: bool = False

    def exactly(self, state: int) -> Release:
        """The number of users in this state."""
        return self._answer(self.population.states.exactly(state))

    def at_least(self, least: int) -> Release:
        """The number of users in this state or a higher one."""
        return self._answer(self.population.states.at_least(least))

    def cropped_sum(self, tau: int) -> Release:
        """The sum of all states, each cut to 0 .. tau."""
        return self._answer(self.population.states.cropped_sum(tau))

    def cropped_moment(self, tau: int, power: int) -> Release:
        """The sum of powers of all states, each state cut to 0 .. tau before."""
        return self._answer(self.population.states.cropped_moment(tau, power))

    def cropped_mean(self, tau: int) -> Release:
        """The average over the universe of states cut to 0 .. tau.

        Raises:
            PlanError: there is no declared universe to average over.
        """
        universe = self.population.universe
        if universe is None:
            message = "a cropped mean is over a universe; without one, ask for the cropped sum"
            raise PlanError(message)
        total = self.cropped_sum(tau)
        value, low, high = (end / universe for end in (total.value, total.low, total.high))
        found = self._release("cropped_mean", value, low, high, tau=tau)
        return replace(
            found,
            estimate=total.estimate / universe,
            standard_error=total.standard_error / universe,
            bias=total.bias / universe,
        )

    def distinct(self) -> Release:
        """The number of users whose state is not 0."""
        return self._answer(self.population.states.distinct())

    def quantile(self, share: float) -> Release:
        """The smallest q such that this share of all users not in state 0 is in state q or lower.

        "Half of those that came did so at most q times." It needs the whole histogram.

        Args:
            share: 0 to 1; 0.5 for the median.

        Raises:
            PlanError: the release answers named statistics only.
        """
        wanted, whole = proportion(share=share), self._histogram()
        states = self.population.states

        def estimates(most: int) -> Estimates:
            query = states.at_most_share(most, wanted)
            return whole.model.from_histogram(query, self.counts, whole.noise_variance)

        def smallest(reaches: Callable[[int], bool]) -> int:
            """Bisect for the smallest state that `reaches`."""
            low, high = states.lowest - (states.lowest < 0), states.highest
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if reaches(middle) else (middle, high)
            return high

        value = smallest(lambda most: float(estimates(most).values) >= 0)
        low = smallest(lambda most: estimates(most).bound(self.confidence, 1) > 0)
        high = smallest(lambda most: estimates(most).bound(self.confidence, -1) > 0)
        ends = min(low, value), max(high, value)
        found = self._release("quantile", value, *ends, share=wanted)
        return (
            found if states.lowest >= 0 else replace(found, note=None)
        )  # 0 is a state like others

    def mean(self) -> Release:
        """The mean state of the users not in state 0, each state cut to the bound.

        Both numbers of this ratio have noise. A mean m is possible as long as the sum of the
        states less m may be 0, over these users: Fieller's interval, from one release. It needs
        the whole histogram.

        Raises:
            PlanError: the release answers named statistics only.
        """
        whole, states = self._histogram(), self.population.states

        def estimates(mean: float) -> Estimates:
            query = states.above_mean(mean)
            return whole.model.from_histogram(query, self.counts, whole.noise_variance)

        def last(possible: Callable[[float], bool], start: float, end: float) -> float:
            """Bisect for the farthest possible mean on the way from the start to the end."""
            if possible(end):
                return end
            for _ in range(_HALVINGS):
                middle = (start + end) / 2
                start, end = (middle, end) if possible(middle) else (start, middle)
            return end

        def may_be(mean: float, sign: int) -> bool:
            found = estimates(mean)
            return sign * found.bound(self.confidence, sign) + found.bias >= 0

        least, most = float(states.listed()[0]), float(states.bound)
        value = last(lambda mean: float(estimates(mean).values) >= 0, least, most)
        low = last(lambda mean: may_be(mean, -1), value, least)
        high = last(lambda mean: may_be(mean, 1), value, most)
        return self._release("mean", value, min(low, value), max(high, value))

    def reach(self) -> tuple[int, int]:
        """Return the largest distance of states from 0; it needs the complete histogram.

        Returns:
            As far as some users clearly are, or further; and as far as nine in ten of those not in
            state 0 clearly are at most, and nobody clearly further. The first is 0 where noise
            hides all users, and the second as far as states are told where it hides how far most
            of them are.

        Raises:
            PlanError: the release answers named statistics only.
        """
        whole, states = self._histogram(), self.population.states
        distances = np.abs(states.values())
        most = int(distances.max())

        users = whole.model.entries(self.counts, whole.noise_variance).values

        def clearly(scores: NDArray[np.bool_] | NDArray[np.int64]) -> bool:
            """Whether the sum of what users count is above 0, and hardly so by chance."""
            if users @ scores <= 0:  # spares most of what reading its variance takes
                return False
            query = LinearQuery.of("clearly", scores.astype(np.int64))
            read = whole.model.from_histogram(query, self.counts, whole.noise_variance)
            return read.bound(_CLEAR, -1) > 0

        steps, present = _steps(most), (distances > 0).astype(np.int64)
        some = next((one for one in reversed(steps) if clearly(distances >= one)), 0)
        nearly_all = (
            one
            for one in steps
            if one >= some and clearly(10 * present * (distances <= one) - 9 * present)
        )
        return some, next(nearly_all, most)

    def under(self, statistic: str | None = None, group: Label | None = None) -> IncidenceRelease:
        """The same answers under the name of a statistic, of a group, or both."""
        name = Name(self.statistic, "", group=self.group).under(statistic, group)
        return replace(self, statistic=name.statistic, group=name.group)

    def answers(self, most: int | None = None) -> dict[Name, Release]:
        """Everything that was named, or all states.

        Args:
            most: of states, only so many, those nearest to 0; None for all.
        """
        if self._names_all:
            found: Iterable[Release] = [
                *(self._read(*one) for one in self.named.values()),
                *map(self.quantile, self.shares),
                *([self.mean()] if self.asks_mean else []),
            ]
        else:
            found = self._states(self._histogram(), most)
        return {one.name: one for one in found}

    @property
    def _names_all(self) -> bool:
        """Whether something was asked by name."""
        return self.whole is None or bool(self.shares) or self.asks_mean

    def __len__(self) -> int:
        if self._names_all:
            return len(self.named) + len(self.shares) + self.asks_mean
        above = self.population.states.above() is not None
        return len(self.population.readable()) + above

    def to_arrow(self, *, constrained: bool = False) -> pa.Table:
        """A row for each answer, with the columns of `COLUMNS`; `argument` is the state.

        Args:
            constrained: have numbers of users that are possible together: none below 0, none
                beyond the bound unless some clearly are, and all of them the universe. As a whole
                they are nearer to the truth than unbiased ones, but what noise takes from a
                frequent state goes to rare ones: for a single number, or a sum of some, ask for
                it. [docs/decoding.md]

        Raises:
            PlanError: there is no histogram to constrain, or no universe.
        """
        return Answers(self._likely()).to_arrow() if constrained else super().to_arrow()

    def to_pandas(self, *, constrained: bool = False) -> Any:  # pandas is not a dependency
        """The same as a pandas data frame."""
        return as_pandas(self.to_arrow(constrained=constrained))

    def to_polars(self, *, constrained: bool = False) -> Any:  # Polars is not a dependency
        """The same as a Polars data frame."""
        return as_polars(self.to_arrow(constrained=constrained))

    def _states(self, whole: WholeHistogram, most: int | None = None) -> Iterator[Release]:
        """The number of users in each state within the bound, and above it."""
        estimates = whole.model.entries(self.counts, whole.noise_variance)
        limit = float(self.population.universe or np.inf)
        low, high = estimates.intervals(self.confidence, limit)
        values, errors = np.clip(estimates.values, 0, limit), estimates.deviations(limit)
        for state in self.population.readable(most):
            at = state % self.population.states.modulus
            ends = float(values[at]), float(low[at]), float(high[at])
            measured = float(estimates.values[at]), float(errors[at]), estimates.bias
            yield self._release("exactly", *ends, measured, state=state)
        above = self.population.states.above()
        if above is not None:
            yield self._answer(above)

    def _likely(self) -> Iterator[Release]:
        """The most likely histogram, with intervals that hold it."""
        whole, universe = self._histogram(), self.population.universe
        if universe is None or not isinstance(whole.model, StateModel):
            message = "a constrained histogram needs universe=: how many users there are in all"
            raise PlanError(message)
        if whole.model.tables > 1:
            message = "a constrained histogram is of one table, and this is of several"
            raise PlanError(message)
        states = self.population.states
        possible, beyond = states.within(), LinearQuery.of("beyond", 1 - states.within())
        if not possible.all() and self._answer(beyond).low > 0:  # clearly, somebody is
            possible = np.ones_like(possible)
        cells = most_likely(whole.model, self.counts, whole.noise_variance, possible)
        users, highest = cells * universe / self.population.cells, states.highest
        for one in self._states(whole):
            state = one.name.argument or 0
            exact = one.name.question == "exactly"
            value = float(users[state % len(users)] if exact else users[state : highest + 1].sum())
            low, high = min(one.low, value), max(one.high, value)
            note = note_on(low, high, caveat=states.caveat(one.name.question), value=value)
            yield replace(one, value=value, low=low, high=high, note=note)

    def _answer(self, query: LinearQuery) -> Release:
        found = self.named.get(query.name)
        if found is not None:
            return self._read(*found)
        whole = self._histogram()
        check_askable([query], self.population.universe)
        return self._read(
            query, whole.model.from_histogram(query, self.counts, whole.noise_variance)
        )

    def _read(self, query: LinearQuery, estimates: Estimates) -> Release:
        """The answer to a query; nobody knows the largest possible one without a universe."""
        universe = self.population.universe
        limit = np.inf if universe is None else float(universe * query.scores.max())
        low, high = estimates.intervals(self.confidence, limit)
        value = float(np.clip(estimates.values, 0, limit))
        question, arguments = query.name.question, dict(query.name.arguments)
        measured = float(estimates.values), float(estimates.deviations(limit)), estimates.bias
        return self._release(question, value, float(low), float(high), measured, **arguments)

    def _release(
        self,
        question: str,
        value: float,
        low: float,
        high: float,
        measured: tuple[float, float, float] = (np.nan, np.nan, 0.0),
        **arguments: float,
    ) -> Release:
        name = Name(self.statistic, question, tuple(arguments.items()), self.group)
        unit = "users" if question in COUNTING else self.population.unit_of(question)
        numbers = value, low, high, self.confidence, self.epsilon
        note = note_on(low, high, caveat=self.population.states.caveat(question), value=value)
        return Release(*numbers, self.counts, name, unit, note, *measured)

    def _histogram(self) -> WholeHistogram:
        if self.whole is None:
            message = (
                f"this release answers {', '.join(map(str, self.named))}; name more in release(), "
                "or nothing for the whole histogram"
            )
            raise PlanError(message)
        return self.whole


_HALVINGS = 40
COUNTING = {"exactly", "at_least", "between", "distinct"}
"""Questions whose answers are numbers of users; others are sums of what users did."""


def _steps(most: int) -> list[int]:
    """Distances from 1 to the largest, each at most a quarter more than the one before, or 1."""
    found = [1]
    while found[-1] < most:
        found.append(min(found[-1] + max(found[-1] // 4, 1), most))
    return found


def check_askable(queries: Iterable[LinearQuery], universe: int | None) -> None:
    """Refuse to count users that leave no trace."""
    if universe is None and "exactly 0" in {str(one.name) for one in queries}:
        message = "without universe= nobody knows how many users came exactly 0 times"
        raise PlanError(message)

"""The answers of an `Incidence`: functions of released numbers and public parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panprivacy._validate import proportion
from panprivacy.decoders import (
    Estimates,
    Name,
    Question,
    SharedModel,
    StateModel,
    most_likely,
)
from panprivacy.errors import PlanError
from panprivacy.planning import IncidencePlan
from panprivacy.statistics.release import Release

Named = tuple[Question, Estimates]


@dataclass(frozen=True, slots=True)
class Whole:
    """How a whole histogram is read.

    Args:
        model: reads it.
        noise_variance: of each of its counts.
    """

    model: StateModel | SharedModel
    noise_variance: float


@dataclass(frozen=True, slots=True, eq=False)
class IncidenceRelease:
    """Noised answers; they are public.

    Args:
        plan: of the statistic.
        counts: the noised counts: of the named questions in the order of `release`, or the
            histogram of cell values. All answers are functions of them and of public parameters.
        confidence: probability that an interval covers the truth, each for itself.
        epsilon: what this release cost, in nats.
        named: what was asked by name, and its answer.
        whole: how to read the histogram, if nothing was named.
    """

    plan: IncidencePlan
    counts: tuple[int, ...]
    confidence: float
    epsilon: float
    named: Mapping[str, Named]
    whole: Whole | None = None

    def exactly(self, state: int) -> Release:
        """The number of users in this state."""
        return self._answer(self.plan.states.exactly(state))

    def at_least(self, least: int) -> Release:
        """The number of users in this state or a higher one."""
        return self._answer(self.plan.states.at_least(least))

    def cropped_sum(self, tau: int) -> Release:
        """The sum of all states, each cut to 0 .. tau."""
        return self._answer(self.plan.states.cropped_sum(tau))

    def cropped_moment(self, tau: int, power: int) -> Release:
        """The sum of powers of all states, each state cut to 0 .. tau before."""
        return self._answer(self.plan.states.cropped_moment(tau, power))

    def cropped_mean(self, tau: int) -> Release:
        """The average over the universe of states cut to 0 .. tau.

        Raises:
            PlanError: there is no declared universe to average over.
        """
        if self.plan.universe is None:
            message = "a cropped mean is over a universe; without one, ask for the cropped sum"
            raise PlanError(message)
        total = self.cropped_sum(tau)
        value, low, high = (x / self.plan.universe for x in (total.value, total.low, total.high))
        return Release(value, low, high, self.confidence, self.epsilon, self.counts)

    def distinct(self) -> Release:
        """The number of users whose state is not 0."""
        return self._answer(self.plan.states.distinct())

    def quantile(self, share: float) -> Release:
        """The smallest q such that this share of all users not in state 0 is in state q or lower.

        "Half of those that came did so at most q times." It needs the whole histogram.

        Args:
            share: 0 to 1; 0.5 for the median.

        Raises:
            PlanError: the release answers named statistics only.
        """
        wanted, whole = proportion(share=share), self._histogram()

        def estimates(most: int) -> Estimates:
            question = self.plan.states.at_most_share(most, wanted)
            return whole.model.whole(question, self.counts, whole.noise_variance)

        def smallest(reaches: Callable[[int], bool]) -> int:
            """Bisect for the smallest state that `reaches`."""
            low, high = self.plan.states.lowest - self.plan.signed, self.plan.bound
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if reaches(middle) else (middle, high)
            return high

        value = smallest(lambda most: float(estimates(most).values) >= 0)
        ends = [
            smallest(functools.partial(self._may_reach, estimates, sign=sign)) for sign in (1, -1)
        ]
        low, high = min(ends[0], value), max(ends[1], value)
        return Release(value, low, high, self.confidence, self.epsilon, self.counts)

    def _may_reach(self, estimates: Callable[[int], Estimates], most: int, *, sign: int) -> bool:
        """Whether the upper (sign 1) or the lower (-1) end of an interval is above 0."""
        return estimates(most).bound(self.confidence, sign) > 0

    def answers(self, most: int | None = None) -> dict[Name, Release]:
        """Everything that was named, or all states.

        Args:
            most: of states, only so many, those nearest to 0; None for all.
        """
        if self.whole is None:
            return {
                Name(question.kind, question.argument, question.power): self._release(
                    question, estimates
                )
                for question, estimates in self.named.values()
            }
        values, low, high = self._entries(self.whole)
        states = self.plan.states
        return {
            Name("exactly", state): Release(
                float(values[at]), float(low[at]), float(high[at]),
                self.confidence, self.epsilon, self.counts,
            )
            for state in self._readable(most)
            for at in [state % states.modulus]
        }  # fmt: skip

    def _readable(self, most: int | None = None) -> list[int]:
        """The states whose users leave a trace, in order."""
        states = range(self.plan.states.lowest, self.plan.bound + 1)
        traced = [state for state in states if state or self.plan.universe is not None]
        return sorted(sorted(traced, key=abs)[:most])

    @property
    def answered(self) -> int:
        """How many answers there are."""
        return len(self.named) if self.whole is None else len(self._readable())

    def to_arrow(self, *, constrained: bool = False) -> pa.Table:
        """The count of counts: a row for each state, with columns `state`, `users`, `low`, `high`.

        After named statistics, a row for each of them, with `statistic` in place of `state`.

        Args:
            constrained: have numbers of users that are possible together: none below 0, and all of
                them the universe. As a whole they are nearer to the truth than unbiased ones, but
                what noise takes from a frequent state goes to rare ones: for a single number, or
                a sum of some, ask for it. [docs/decoding.md]

        Raises:
            PlanError: there is no histogram to constrain, or no universe.
        """
        if constrained:
            return self._likely()
        if self.whole is None:
            answers = list(self.answers().values())
            columns: dict[str, Any] = {"statistic": list(self.named)}
            columns["users"] = [answer.value for answer in answers]
            columns["low"] = [answer.low for answer in answers]
            columns["high"] = [answer.high for answer in answers]
            return pa.table(columns)
        values, low, high = self._entries(self.whole)
        wanted = np.array(self._readable())
        rows = wanted % self.plan.states.modulus
        return pa.table(
            {"state": wanted, "users": values[rows], "low": low[rows], "high": high[rows]}
        )

    def to_pandas(self, *, constrained: bool = False) -> Any:  # pandas is not a dependency
        """The same as a pandas data frame."""
        return self.to_arrow(constrained=constrained).to_pandas()

    def _likely(self) -> pa.Table:
        """The table of the most likely histogram, with intervals that hold it."""
        whole, universe = self._histogram(), self.plan.universe
        if universe is None or not isinstance(whole.model, StateModel):
            message = "a constrained histogram needs universe=: how many users there are in all"
            raise PlanError(message)
        cells = most_likely(whole.model, self.counts, whole.noise_variance)
        users = cells * universe / self.plan.cells
        _, low, high = self._entries(whole)
        wanted = np.array(self._readable())
        rows = wanted % self.plan.states.modulus
        low, high = np.minimum(low, users)[rows], np.maximum(high, users)[rows]
        return pa.table({"state": wanted, "users": users[rows], "low": low, "high": high})

    def _entries(self, whole: Whole) -> tuple[Any, Any, Any]:
        estimates = whole.model.entries(self.counts, whole.noise_variance)
        limit = float(self.plan.universe or np.inf)
        low, high = estimates.intervals(self.confidence, limit)
        return np.clip(estimates.values, 0, limit), low, high

    def _answer(self, question: Question) -> Release:
        found = self.named.get(question.name)
        if found is not None:
            return self._release(*found)
        whole = self._histogram()
        check_askable([question], whole.model)
        estimates = whole.model.whole(question, self.counts, whole.noise_variance)
        return self._release(question, estimates)

    def _release(self, question: Question, estimates: Estimates) -> Release:
        limit = self._limit(question)
        low, high = estimates.intervals(self.confidence, limit)
        value = float(np.clip(estimates.values, 0, limit))
        return Release(value, float(low), float(high), self.confidence, self.epsilon, self.counts)

    def _limit(self, question: Question) -> float:
        """The largest possible answer; nobody knows it without a universe."""
        if self.plan.universe is None:
            return np.inf
        return float(self.plan.universe * question.scores.max())

    def _histogram(self) -> Whole:
        if self.whole is None:
            message = (
                f"this release answers {', '.join(self.named)}; name more in release(), or nothing "
                "for the whole histogram"
            )
            raise PlanError(message)
        return self.whole


def check_askable(questions: Iterable[Question], model: StateModel | SharedModel) -> None:
    """Refuse to count users that leave no trace."""
    if isinstance(model, SharedModel) and "exactly 0" in {one.name for one in questions}:
        message = "without universe= nobody knows how many users came exactly 0 times"
        raise PlanError(message)

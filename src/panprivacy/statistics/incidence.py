"""How many users appeared exactly t times, for every t?

A counter for each user of a universe or of a sample of it, or hashed counters for open-ended ids,
modulo a number above the largest state. What leaves is either one noised count of cells for each
statistic that is named, or the noised histogram of cell values, from which all of them follow.

Reference: M. Naor, "Foundations of Privacy", lecture 10 (incidence counting); D. Mir, S.
Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics on sketches",
Algorithm 3. Where we differ: one modulus above the bound in place of many primes, noise laws on
difference sets, and collisions of hashed cells are undone.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy._validate import MOST_BYTES, positive_integer, proportion, truth
from panprivacy.addressing import MAX_UNIVERSE
from panprivacy.cells import Law
from panprivacy.cells.protocol import Deltas
from panprivacy.coins import Coins
from panprivacy.decoders import (
    Question,
    SharedModel,
    StateModel,
    discrete_laplace_variance,
)
from panprivacy.errors import LostReleaseError, PlanError
from panprivacy.guarantee import Budget, Ledger
from panprivacy.noise import wipe
from panprivacy.planning import IncidencePlan, plan_incidence
from panprivacy.planning.incidence import MOST_BOUND
from panprivacy.statistics.deltas import refuse_beyond
from panprivacy.statistics.incidence_release import IncidenceRelease, Whole, check_askable
from panprivacy.statistics.named_counts import NamedCounts
from panprivacy.statistics.plans import instance, request
from panprivacy.statistics.table import Statistic


class Incidence(Statistic[IncidencePlan]):
    """How many users are in each state: how many came exactly t times, or at least k times.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> visits = pp.Incidence(universe=100_000, bound=30, epsilon=1.0)
    >>> visits.update(np.arange(60_000))
    >>> visits.update(np.arange(20_000))
    >>> answer = visits.release(exactly=(0, 1, 2), at_least=(2,))
    >>> twice = answer.exactly(2)
    >>> 10_000 < twice.low < twice.value < twice.high < 30_000
    True

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do. With `intrusions=k` that includes the states at k announced intrusions before that
    time. [tests/contract, tests/exact/test_counters.py]

    Accuracy: with m cells the standard deviation of an entry is about `sqrt(m)/t`,
    `t = tanh(epsilon/2)`, whatever the bound, and `e**(users/m)` times that with hashed cells; the
    whole histogram adds the noise of its `M` values. `plan.error()` predicts it.
    [tests/statistical/test_incidence.py, docs/accuracy-counters.md]

    Args:
        epsilon: total loss of state and releases, in nats.
        bound: the largest distance of a user's state, the sum of his deltas, from 0. A state beyond
            it is taken for another one; privacy does not rest on it.
        universe: number of possible users, whose ids are 0 .. universe-1; None for open-ended ids.
        cells: number of counters. With a universe, None for one each, as far as 64 MiB reach, and
            fewer for a sample; without one, None for twice the users expected.
        expected: the most users that may come, for open-ended ids.
        signed: whether states below 0 occur.
        law: the noise of the counters; None for the one with the smallest predicted error.
        releases: how many releases epsilon covers.
        intrusions: how many announced intrusions epsilon covers. Each multiplies the error by a
            large factor (docs/decoding.md): a fresh statistic is mostly better.
        budget: how epsilon is split between state and releases; None for the smallest error.
        ledger: budget shared with other statistics of the same stream.
        coins: source of all randomness; None for the operating system's.

    Raises:
        PlanError: an argument out of range, or hashed counters that could not be read.
        BudgetError: the ledger has less than `epsilon` available.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        epsilon: object,
        bound: int,
        universe: int | None = None,
        cells: int | None = None,
        expected: int | None = None,
        signed: bool = False,
        law: Law | None = None,
        releases: int = 1,
        intrusions: int = 0,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        asked = request(epsilon, releases, intrusions, budget)
        plan = plan_incidence(
            positive_integer(MOST_BOUND, bound=bound),
            None if universe is None else positive_integer(MAX_UNIVERSE, universe=universe),
            None if cells is None else positive_integer(MOST_BYTES, cells=cells),
            _expected(expected, universe),
            instance(Law, law=law),
            asked,
            signed=truth(signed=signed),
        )
        super().__init__(plan, coins, ledger)

    def _check_deltas(self, deltas: Deltas) -> None:
        refuse_beyond(deltas, self._plan.bound, signed=self._plan.signed)

    def release(
        self,
        *,
        exactly: int | Iterable[int] = (),
        at_least: int | Iterable[int] = (),
        cropped_sum: int | Iterable[int] = (),
        cropped_moment: tuple[int, int] | Iterable[tuple[int, int]] = (),
        distinct: bool = False,
        confidence: float = 0.95,
    ) -> IncidenceRelease:
        """Publish what is named, or the whole histogram; the budget is spent first.

        With one user a cell, a few named statistics have much less output noise than the histogram.
        With hashed cells all of them are read off the histogram.

        Args:
            exactly: states whose users are counted.
            at_least: states from which on users are counted.
            cropped_sum: where the sum of states is cropped; states below 0 count as 0.
            cropped_moment: pairs of where states are cropped, as for `cropped_sum`, and the power
                that is summed: (10, 2) for the sum of `min(state, 10)**2`.
            distinct: whether to count the users whose state is not 0.
            confidence: probability, 0 to 1, that each interval covers the truth.

        Returns:
            The answers, functions of the noised counts and the plan alone.

        Raises:
            PlanError: a state beyond the bound. Nothing was spent.
            LostReleaseError: too many users for the hashed cells. This has been spent.
            BudgetError: all planned releases have been made. Nothing was spent.
        """
        level = proportion(confidence=confidence)
        questions = self._questions(
            exactly=exactly,
            at_least=at_least,
            cropped_sum=cropped_sum,
            cropped_moment=cropped_moment,
            distinct=distinct,
        )
        model = self._plan.model(self._state.intrusions)
        epsilon = self._plan.split.budget.release
        if isinstance(model, StateModel) and self._may_name(questions):
            named = NamedCounts.of(model, list(questions.values()), epsilon)
            if named.is_better():
                return self._release_named(named, level)
        return self._release_histogram(questions, model, level)

    def _may_name(self, questions: Mapping[str, Question]) -> bool:
        """Whether so few questions may need less noise than the histogram."""
        few = 0 < len(questions) ** 2 <= self._plan.law.modulus
        return few and self._plan.can_name(self._state.intrusions)

    def _check_asked(self, *, confidence: float = 0.95, **states: Any) -> None:
        proportion(confidence=confidence)
        self._questions(**states)

    def _questions(
        self,
        *,
        exactly: int | Iterable[int] = (),
        at_least: int | Iterable[int] = (),
        cropped_sum: int | Iterable[int] = (),
        cropped_moment: tuple[int, int] | Iterable[tuple[int, int]] = (),
        distinct: bool = False,
    ) -> Mapping[str, Question]:
        """The questions that `release` is to answer, by name.

        Raises:
            PlanError: one cannot be answered.
        """
        states = self._plan.states
        asked = [
            *(states.exactly(state) for state in _several(exactly)),
            *(states.at_least(least) for least in _several(at_least)),
            *(states.cropped_sum(tau) for tau in _several(cropped_sum)),
            *(states.cropped_moment(*pair) for pair in _pairs(cropped_moment)),
            *([states.distinct()] if truth(distinct=distinct) else []),
        ]
        check_askable(asked, self._plan.model(self._state.intrusions))
        return {question.name: question for question in asked}

    def _release_named(self, named: NamedCounts, level: float) -> IncidenceRelease:
        epsilon = self._spend()
        histogram = self._plan.table.histogram(self._state.table)
        sums = named.scores @ histogram
        wipe(histogram)
        counts = self._publish(sums, named.scales)
        return IncidenceRelease(
            self._plan,
            tuple(counts.tolist()),
            level,
            float(epsilon),
            named.answers(counts),
        )

    def _release_histogram(
        self, questions: Mapping[str, Question], model: StateModel | SharedModel, level: float
    ) -> IncidenceRelease:
        epsilon = self._spend()
        histogram = self._plan.table.histogram(self._state.table)
        counts = self._publish(histogram, [2 / epsilon])
        variance = discrete_laplace_variance(float(2 / epsilon))
        if isinstance(model, SharedModel):
            _check_load(model, counts, variance)
        named = {
            name: (question, model.whole(question, counts, variance))
            for name, question in questions.items()
        }
        whole = None if named else Whole(model, variance)
        return IncidenceRelease(
            self._plan, tuple(counts.tolist()), level, float(epsilon), named, whole
        )


def _expected(expected: object, universe: object) -> int | None:
    if expected is None:
        return None
    if universe is not None:
        message = "expected= is for open-ended ids: a universe says how many users there are"
        raise PlanError(message)
    return positive_integer(MOST_BYTES, expected=expected)


def _check_load(model: SharedModel, counts: NDArray[np.int64], variance: float) -> None:
    """Refuse to read cells that are too full: the answer would be noise."""
    if model.is_full(counts, variance):
        message = (
            f"the {model.cells:,} hashed counters are too full to be read: this release is lost; "
            "plan for more users with expected=, or cells="
        )
        raise LostReleaseError(message)


def _several(states: object) -> tuple[object, ...]:
    """One state, or several."""
    if isinstance(states, numbers.Integral):
        return (states,)
    if isinstance(states, Iterable) and not isinstance(states, str | bytes | Mapping):
        with suppress(TypeError):  # an array without dimensions
            return tuple(states)
    message = "name a state, or several, as whole numbers"
    raise PlanError(message)


def _pairs(given: object) -> list[tuple[object, object]]:
    """One pair of numbers, or several."""
    message = "cropped_moment must be a pair (tau, power), or several"
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        raise PlanError(message)
    try:
        pairs: list[Any] = list(given)
    except TypeError:  # an array without dimensions
        raise PlanError(message) from None
    if pairs and all(isinstance(one, numbers.Integral) for one in pairs):
        pairs = [pairs]
    if not all(isinstance(one, Sequence) and len(one) == 2 for one in pairs):
        raise PlanError(message)
    return [(tau, power) for tau, power in pairs]

"""Noisy comparisons of one number with the answer that stands; they are paid for together."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from msgspec import structs

from panprivacy.errors import LostReleaseError, PanPrivacyError, PlanError
from panprivacy.ground.validation import positive_integer
from panprivacy.privacy.guarantee import format_rounded_up
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.abilities import Overloaded
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.statistic import Statistic
from panprivacy.tables.planning.comparisons import MOST_UPDATES, comparison_epsilon

_MOST_SCALE: Final = 1 << 56
"""Of the noise of a comparison: sums with such noise fit in 64 bits."""
_LEAST_DELTA: Final = Fraction(1, 10**30)
_MOST_DELTA: Final = Fraction(1, 10)
_TIMES: Final = [1 << power for power in range(1, 12)]
"""How many times as much epsilon, or as many users, a refusal tries."""


class Comparisons:
    """Comparisons of the number that a statistic reads with an answer that stands.

    `compare` makes and pays for them. A comparison draws fresh noise and tells one
    bit. Once one has found that the number has moved, the next is made after a release.

    Guarantee: with the state and the releases of the statistic, all comparisons together cost
    `cost` at `delta`, however many there are.
    [docs/guarantees/moves.md, tests/exact/test_moving.py]

    Args:
        statistic: a new statistic of users.
        cost: epsilon of all comparisons together.
        delta: of all comparisons together.
        updates: after how many releases nothing is compared any more.
        asked: what a release is asked: it has one answer.

    Raises:
        PlanError: the statistic hides events, has several answers, or noise of its own, or so few
            users or so little epsilon that no comparison can be read.
    """

    __slots__ = ("_last", "_query", "_statistic", "cost", "delta", "epsilon", "updates")

    def __init__(
        self,
        statistic: Statistic[Any, Any],
        *,
        cost: Fraction,
        delta: Fraction,
        updates: int,
        asked: Mapping[str, Any],
    ) -> None:
        _check(statistic, asked)
        self._statistic = statistic
        self._query = statistic.internals.releasing.query(asked)
        self.cost, self.delta = cost, delta
        self.updates = positive_integer(MOST_UPDATES, updates=updates)
        if not _LEAST_DELTA <= delta <= _MOST_DELTA:
            message = f"delta must be from {float(_LEAST_DELTA):g} to 0.1; most take 1e-9"
            raise PlanError(message)
        promised = statistic.guarantee
        total, looks = promised.epsilon + cost, promised.intrusions + 1
        self.epsilon = comparison_epsilon(cost, updates, delta, total, looks)
        self._last = -1  # how many releases there were when it was found to have moved
        if not self._readable(self.plan):
            raise PlanError(self._unreadable())
        statistic.ledger.open(cost).spend(cost)

    @property
    def plan(self) -> Plan:
        """The plan of the statistic, if the epsilon of a release were that of a comparison."""
        plan: Plan = self._statistic.plan
        return plan.at(self.epsilon)

    @property
    def left(self) -> int:
        """The number of releases that may still follow a comparison."""
        return max(self.updates - self._statistic.releases, 0)

    def moved(self, stands: float, threshold: Fraction, confidence: float = 0.95) -> bool:
        """Whether the number is a threshold away from the answer that stands, read with noise.

        Args:
            stands: the answer that was published last.
            threshold: the distance, in the unit of answers.
            confidence: of the release that follows.

        Returns:
            True once it has moved, until a release is made. False if not, or if none is left.
        """
        made = self._statistic.releases
        if self.left and made != self._last:
            value = self._read(confidence)
            if value is not None and abs(value - stands) >= threshold:
                self._last = made
        return made == self._last

    def _read(self, confidence: float) -> float | None:
        """The number with fresh noise; None where its noised counts cannot be read."""
        reading = self.plan.reading(self._query, self._statistic.internals.memory.announced)
        counts = self._statistic.internals.releasing.with_noise(reading)
        try:
            (one,) = reading.answer(counts, confidence).answers().values()
        except LostReleaseError:
            return None
        finally:
            wipe(counts)
        return None if one is None else one.value

    def _readable(self, plan: Plan) -> bool:
        """Whether answers can be read off counts with the noise of this plan."""
        reading = plan.reading(self._query, plan.request.intrusions)
        read = plan.readable if isinstance(plan, Overloaded) else True
        return read and max(reading.scales) < _MOST_SCALE

    def _unreadable(self) -> str:
        """Return the error for comparisons that cannot be read, with a remedy."""
        ways = [
            f"{name}={value:,}"
            for name, value in (("epsilon", self._enough_epsilon()), ("expected", self._enough()))
            if value is not None
        ]
        wanted = " or ".join(ways) or "more epsilon, fewer updates or a smaller bound"
        return (
            f"{self._statistic.entry.name} cannot be read in a comparison, which has epsilon "
            f"{format_rounded_up(self.epsilon)}: make it with {wanted}"
        )

    def _enough_epsilon(self) -> int | None:
        """The epsilon in all, comparisons included, with which comparisons can be read."""
        promised = self._statistic.guarantee
        total, looks = promised.epsilon + self.cost, promised.intrusions + 1
        for times in _TIMES:
            spent = times * self.cost, self.updates, self.delta, times * total, looks
            if self._would(comparison_epsilon(*spent), times * promised.epsilon, {}):
                return -int(-times * total // 1)
        return None

    def _enough(self) -> int | None:
        """For how many expected users comparisons can be read: they get more counters."""
        expected = getattr(self._statistic.internals.memory.sizes, "expected", None)
        if not isinstance(expected, int):
            return None
        for times in _TIMES:
            sizes = {"expected": times * expected}
            if self._would(self.epsilon, self._statistic.guarantee.epsilon, sizes):
                return times * expected
        return None

    def _would(self, each: Fraction, total: Fraction, sizes: Mapping[str, Any]) -> bool:
        """Whether comparisons of such an epsilon could be read, of a statistic of other sizes."""
        asked = structs.replace(self._statistic.internals.memory.sizes, **sizes)
        request = self._statistic.plan.request
        try:
            planned = asked.planned(type(request)(total, request.releases, request.intrusions))
        except PlanError:
            return False
        return self._readable(planned.at(each))


def compare(
    statistic: Statistic[Any, Any],
    epsilon: Fraction,
    *,
    delta: Fraction,
    updates: int,
    asked: Mapping[str, Any],
) -> Comparisons:
    """Pay for all comparisons of the number of a statistic with an answer that stands.

    Args:
        statistic: a new statistic of users.
        epsilon: of all comparisons together, beside that of the statistic.
        delta: of all comparisons together.
        updates: after how many releases nothing is compared any more.
        asked: what a release is asked: it has one answer.

    Raises:
        PlanError: its number cannot be compared. Nothing was spent.
        BudgetError: the ledger has less than `epsilon` available. Nothing was spent.
        PanPrivacyError: it has made releases or announced intrusions, or is compared already: a
            statistic has one chain of comparisons. Nothing was spent.
    """
    internals = statistic.internals
    internals.memory.check_new()
    if internals.releasing.compared:
        message = "it is compared already, and all comparisons were paid for together: "
        message += "make a new statistic to compare it otherwise"
        raise PanPrivacyError(message)
    made = Comparisons(statistic, cost=epsilon, delta=delta, updates=updates, asked=asked)
    internals.releasing.compared = True
    return made


def _check(statistic: Statistic[Any, Any], asked: Mapping[str, Any]) -> None:
    """Refuse a statistic whose number cannot be compared."""
    if statistic.guarantee.adjacency != "user":
        message = (
            "what moves is one statistic of users: a running count has an answer at every step"
        )
        raise PlanError(message)
    if not statistic.internals.releasing.adds_noise:
        message = f"{statistic.entry.name} has noise of its own, and is not compared with it"
        raise PlanError(message)
    if statistic.internals.memory.slice is not None:
        message = "a slice has no answer of its own to compare: count the whole table"
        raise PlanError(message)
    if len(statistic.plan.answered(statistic.internals.releasing.query(asked))) != 1:
        message = f"{statistic.entry.name} has several answers: ask for the one that moves"
        raise PlanError(message)

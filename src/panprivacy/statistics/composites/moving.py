"""How many so far? An answer that stands until the number has moved by a threshold.

The general transformation of a statistic of users into a running answer, repaired. At each
comparison the number is read with fresh noise. Once it is a threshold away from the answer that
stands, the next answer is published; so many are at most.

As printed, a noisy threshold is kept: whoever has seen it knows how each later comparison ends
(erratum N3). Here no noise of a comparison is kept. That costs a delta: each answer that stands
says a little. [docs/guarantees/moves.md]

Reference: Naor, "Foundations of Privacy", lecture 10, slides 55 to 61.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from panprivacy.errors import PlanError
from panprivacy.ground.validation import (
    positive_fraction,
    positive_integer,
    proportion,
    whole_number,
)
from panprivacy.privacy.guarantee import Epsilon, Ledger, format_rounded_up
from panprivacy.statistics.comparing import compare
from panprivacy.statistics.composites.moves import Moving, MovingInternals
from panprivacy.statistics.composites.together import Together
from panprivacy.statistics.private import check_maker
from panprivacy.statistics.release import Answers
from panprivacy.statistics.statistic import Statistic
from panprivacy.statistics.useful import sharing
from panprivacy.tables.planning.comparisons import MOST_UPDATES

DELTA: Final = Fraction(1, 10**9)
"""Delta of all comparisons by default."""


class ChangeTriggered(Together[str, Statistic[Any, Any]]):
    """A running answer about users, that is published when it has moved by a threshold.

    >>> from functools import partial
    >>> import panprivacy as pp
    >>> distinct = partial(pp.DistinctCount, expected=(1_000, 100_000))
    >>> visitors = pp.ChangeTriggered(distinct, threshold=10_000, updates=8, epsilon=2)
    >>> visitors.update(range(40_000))
    >>> answer = visitors.check()  # each minute, say
    >>> answer is not None and 10_000 < answer.only().value < 100_000
    True
    >>> visitors.left  # so many may still be published
    7

    Guarantee: let P and P' be the joint laws of the state at any one time, of which comparisons
    were followed by an answer, and of all answers, for two streams that differ in all or some
    updates of one user. For every set S of outcomes `P(S) <= e**epsilon P'(S) + delta`. The number
    of comparisons does not matter, and their times are public. [docs/guarantees/moves.md,
    tests/exact/test_moving.py]

    Accuracy: `margin` says how far what stands strays, as long as updates are left.

    Args:
        statistic: makes the statistic of users from `epsilon`, `releases` and `ledger`, such as
            `partial(DistinctCount, expected=...)`.
        threshold: by how much the number has to move, in the unit of its answers.
        updates: how many answers are published at most because it has.
        epsilon: total loss of state, comparisons and answers, in nats.
        delta: of the comparisons.
        comparisons: the part of epsilon that all comparisons cost together; None for half.
        at_end: how many releases are kept for `release`, beside the updates.
        label: what answers are called; None for the name of the statistic.
        asked: what a release is asked, if the statistic may be asked several things.

    Raises:
        PlanError: an argument out of range, a statistic that counts events, or one that has several
            answers or noise of its own.
    """

    __slots__ = ()

    internals: MovingInternals

    def __init__(
        self,
        statistic: Callable[..., Statistic[Any, Any]],
        *,
        threshold: Epsilon,
        updates: int,
        epsilon: Epsilon,
        delta: Epsilon = DELTA,
        comparisons: Epsilon | None = None,
        at_end: int = 0,
        label: str | None = None,
        asked: Mapping[str, Any] | None = None,
    ) -> None:
        check_maker(
            statistic, "partial(DistinctCount, ...)", by_name=("epsilon", "releases", "ledger")
        )
        distance = positive_fraction(threshold=threshold)
        most = positive_integer(MOST_UPDATES, updates=updates)
        kept = whole_number(0, MOST_UPDATES, at_end=at_end)
        total = positive_fraction(epsilon=epsilon)
        cost = total / 2 if comparisons is None else positive_fraction(epsilon=comparisons)
        if cost >= total:
            message = "comparisons must leave some of epsilon to the statistic"
            raise PlanError(message)
        ledger, releases = Ledger(total), most + kept
        with sharing(total):
            made = statistic(epsilon=total - cost, releases=releases, ledger=ledger)
        known = made.entry.name if isinstance(made, Statistic) else ""
        name, named = known if label is None else label, dict(asked or {})
        super().__init__({name: made}, {name: named})
        _check_made(made, ledger, total - cost, releases)
        left = positive_fraction(delta=delta)
        compared = compare(made, cost, delta=left, updates=most, asked=named)
        self.internals = MovingInternals.of(Moving(self._joint, compared, distance, kept))

    def _check_members(self) -> None:
        """Refuse groups, and several statistics."""
        super()._check_members()
        made: object = self._joint.first
        if not isinstance(made, Statistic) or made.guarantee.adjacency != "user":
            message = "what moves is one statistic of users; a running count has an answer at "
            message += "every step, and groups have many"
            raise PlanError(message)

    @property
    def _moving(self) -> Moving:
        return self.internals.memory.members

    @property
    def threshold(self) -> Fraction:
        """The threshold by which the number has to move."""
        return self._moving.threshold

    @property
    def left(self) -> int:
        """The number of answers that may still be published because the number has moved."""
        return self.internals.releasing.left

    @property
    def stands(self) -> float:
        """The answer that was published last; 0 before the first."""
        return self.internals.releasing.stands

    def go_on_from(self, answer: float) -> None:
        """Set the answer that stands: one that left after the state in use was taken.

        Raises:
            InputError: it is no number.
        """
        self.internals.releasing.go_on_from(answer)

    def check(self, *, confidence: float = 0.95) -> Answers | None:
        """Compare, and publish an answer if the number has moved; else what stands, stands.

        Args:
            confidence: of the interval.

        Returns:
            The answer; None if none is published. The last one says so in its `note`: after it
            nothing is compared any more.
        """
        return self.internals.releasing.check(confidence=confidence)

    def release(self, **asked: Any) -> Answers:
        """Publish the answer, whether it has moved or not: one of the updates, or of `at_end`.

        Args:
            asked: `confidence`, and nothing else.
        """
        return self.internals.releasing.release(**asked)

    def absolute_margin(self, confidence: float = 0.95, truth: float | None = None) -> float:
        """Return the bound on the standing answer's error at this probability, in its unit.

        It is that of any one comparison, as long as updates are left: what stands is then within
        the threshold of what was read, and that strays as an answer with this noise would.

        Args:
            confidence: how often it strays by no more.
            truth: the number; None for where it strays farthest.
        """
        level = proportion(confidence=confidence)
        return float(self.threshold) + self._moving.comparisons.plan.absolute_margin(level, truth)


def _check_made(
    made: Statistic[Any, Any], ledger: Ledger, epsilon: Fraction, releases: int
) -> None:
    """Refuse a factory that does not give all that it is given to one new statistic."""
    if made.ledger is not ledger or ledger.spent != made.internals.releasing.state_epsilon:
        message = "the factory must make one new statistic, with the ledger= that it is given"
        raise PlanError(message)
    share = ledger.total - ledger.available
    if not made.guarantee.epsilon == share == epsilon:
        message = (
            f"the factory must make the statistic with its epsilon=, {format_rounded_up(epsilon)}"
        )
        raise PlanError(message)
    internals = made.internals
    planned, seen = internals.releasing.planned, internals.memory.announced
    if planned != releases or made.releases or seen:
        message = f"the factory must make a new statistic with its releases=, {releases:,}"
        raise PlanError(message)

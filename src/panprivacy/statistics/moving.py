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

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, NoReturn

from panprivacy._validate import positive_fraction, positive_integer, proportion, whole_number
from panprivacy.errors import InputError, PlanError
from panprivacy.guarantee import Epsilon, Guarantee, Ledger, PrivacyLoss, shown
from panprivacy.planning.comparisons import MOST_UPDATES
from panprivacy.statistics.contribution import Form
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.private import check_maker
from panprivacy.statistics.release import Answer, Answers, Lost
from panprivacy.statistics.statistic import Statistic
from panprivacy.statistics.together import Together

DELTA: Final = Fraction(1, 10**9)
"""Delta of all comparisons by default."""
_SILENT: Final = Fraction(1_000)
"""Epsilon of a release without noise, as good as."""
_OWN = struct.Struct("<d")
"""In a state, before that of the statistic: the answer that stands."""


class Continual(Together[str, Statistic[Any, Any]]):
    """A running answer about users, that is published when it has moved by a threshold.

    >>> from functools import partial
    >>> import panprivacy as pp
    >>> distinct = partial(pp.DistinctCount, expected=(1_000, 100_000))
    >>> visitors = pp.Continual(distinct, threshold=10_000, updates=8, epsilon=2)
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

    __slots__ = ("_comparisons", "_kept", "_name", "_stands", "_threshold")

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
        check_maker(statistic, "partial(DistinctCount, ...)")
        self._threshold = positive_fraction(threshold=threshold)
        most = positive_integer(MOST_UPDATES, updates=updates)
        self._kept = whole_number(0, MOST_UPDATES, at_end=at_end)
        total = positive_fraction(epsilon=epsilon)
        cost = total / 2 if comparisons is None else positive_fraction(epsilon=comparisons)
        if cost >= total:
            message = "comparisons must leave some of epsilon to the statistic"
            raise PlanError(message)
        ledger, releases = Ledger(total), most + self._kept
        made = statistic(epsilon=total - cost, releases=releases, ledger=ledger)
        self._name, named = getattr(made, "name", "") if label is None else label, dict(asked or {})
        super().__init__({self._name: made}, {self._name: named})
        _check_made(made, ledger, total - cost, releases)
        left = positive_fraction(delta=delta)
        self._comparisons = made.comparisons(cost, delta=left, updates=most, asked=named)
        self._stands = 0.0

    def _check_members(self) -> None:
        """Refuse groups, and several statistics."""
        super()._check_members()
        made: object = self._first
        if not isinstance(made, Statistic) or made.guarantee.adjacency != "user":
            message = "what moves is one statistic of users; a running count has an answer at "
            message += "every step, and groups have many"
            raise PlanError(message)

    @property
    def threshold(self) -> Fraction:
        """By how much the number has to move."""
        return self._threshold

    @property
    def left(self) -> int:
        """How many answers may still be published because the number has moved."""
        return self._comparisons.left

    @property
    def stands(self) -> float:
        """The answer that was published last; 0 before the first."""
        return self._stands

    def go_on_from(self, answer: float) -> None:
        """Know which answer stands: one that left after the state that it goes on from was taken.

        Raises:
            InputError: it is no number.
        """
        if not math.isfinite(answer):
            message = "the answer that stands must be a finite number"
            raise InputError(message)
        self._stands = float(answer)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to each user."""
        paid = self._comparisons
        return super().guarantee.compared(PrivacyLoss(paid.cost, paid.delta))

    @property
    def state_epsilon(self) -> Fraction:
        """What the state and all comparisons cost; it is paid at birth."""
        return super().state_epsilon + self._comparisons.cost

    def check(self, *, confidence: float = 0.95) -> Answers | None:
        """Compare, and publish an answer if the number has moved; else what stands, stands.

        Args:
            confidence: of the interval.

        Returns:
            The answer; None if none is published. The last one says so in its `note`: after it
            nothing is compared any more.
        """
        level = proportion(confidence=confidence)
        if not self._comparisons.moved(self._stands, self._threshold, level):
            return None
        last = self.left == 1
        answers = self.release(confidence=level)
        return _marked(answers, self._comparisons.updates) if last else answers

    def release(self, **asked: Any) -> Answers:
        """Publish the answer, whether it has moved or not: one of the updates, or of `at_end`.

        Args:
            asked: `confidence`, and nothing else.
        """
        answers = super().release(**asked)
        for one in answers.values():
            if one is not None and math.isfinite(one.value):
                self._stands = one.value
        return answers

    def check_release(self, *, confidence: float = 0.95, **asked: Any) -> None:
        """Raise what `release` would refuse, without spending anything.

        Args:
            confidence: as for `release`.
            asked: nothing: what is published is what is compared.
        """
        if asked:
            message = f"{self._name} publishes what it compares: say what with asked= when it is "
            message += "made"
            raise PlanError(message)
        super().check_release(confidence=confidence)

    def check_parts(self, form: Form, **asked: Any) -> NoReturn:  # noqa: ARG002
        """Refuse to contribute: what merges cannot know what comparisons cost."""
        message = "a running answer is not merged: contribute from a statistic without a threshold"
        raise PlanError(message)

    def absolute_margin(self, confidence: float = 0.95, truth: float | None = None) -> float:
        """How far what stands strays at most with this probability, in the unit of answers.

        It is that of any one comparison, as long as updates are left: what stands is then within
        the threshold of what was read, and that strays as an answer with this noise would.

        Args:
            confidence: how often it strays by no more.
            truth: the number; None for where it strays farthest.
        """
        level = proportion(confidence=confidence)
        return float(self._threshold) + self._comparisons.plan.absolute_margin(level, truth)

    def noise(self) -> float:
        """The deviation of one comparison where nothing moves, in the unit of answers.

        It is that of fresh noise and of the answer that stands, at the best place of the planned
        range.
        """
        plan = self._first.plan
        read = self._comparisons.plan, plan, plan.at(_SILENT)
        least = [least_deviation(one) for one in read]
        return math.sqrt(max(least[0] ** 2 + least[1] ** 2 - 2 * least[2] ** 2, 0))

    def check_threshold(self) -> None:
        """Refuse a threshold that noise alone reaches again and again.

        Raises:
            PlanError: it is not above the deviation of a comparison; says what would do.
        """
        noise = self.noise()
        if self._threshold <= noise:
            message = (
                f"a threshold of {float(self._threshold):g} would be reached by noise, whose "
                f"deviation is {noise:.3g}: take one some times as large, fewer releases, or more "
                "epsilon"
            )
            raise PlanError(message)

    @property
    def _own(self) -> bytes:
        return _OWN.pack(self._stands)

    def _resume_own(self, own: bytes) -> None:
        self.go_on_from(*_OWN.unpack(own))

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        super().check_state(state, released=released, announced=announced)
        own, _ = self._layout.parts(state)
        if not math.isfinite(*_OWN.unpack(own)):
            message = "the state is damaged: no such answer can stand"
            raise InputError(message)

    @property
    def _public(self) -> dict[str, Any]:
        return {
            **super()._public, "threshold": self._threshold,
            "comparisons": self._comparisons.cost, "delta": self._comparisons.delta,
            "at_end": self._kept,
        }  # fmt: skip


def _check_made(
    made: Statistic[Any, Any], ledger: Ledger, epsilon: Fraction, releases: int
) -> None:
    """Refuse a factory that does not give all that it is given to one new statistic."""
    if made.ledger is not ledger or ledger.spent != made.state_epsilon:
        message = "the factory must make one new statistic, with the ledger= that it is given"
        raise PlanError(message)
    share = ledger.total - ledger.available
    if not made.guarantee.epsilon == share == epsilon:
        message = f"the factory must make the statistic with its epsilon=, {shown(epsilon)}"
        raise PlanError(message)
    if made.planned != releases or made.releases or made.announced:
        message = f"the factory must make a new statistic with its releases=, {releases:,}"
        raise PlanError(message)


def least_deviation(plan: Plan) -> float:
    """The predicted standard deviation where in its range it is least, in the unit of answers."""
    if not plan.told_at:
        return plan.absolute_error()
    return min(plan.relative_error(truth) * truth for truth in plan.told_at)


def _marked(answers: Answers, updates: int) -> Answers:
    """Answers that say that no other follows."""
    told = f"the last of {updates:,} updates: it stays, however the number moves"

    def parts() -> Iterator[Answer]:
        for name, one in answers.items():
            if one is None:
                yield Lost((name,))
            else:
                notes = [one.note, told] if one.note else [told]
                yield replace(one, note="; ".join(notes))

    return Answers(parts())

"""The parts of a running answer that is published when it has moved by a threshold."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, NoReturn

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.validation import proportion
from panprivacy.privacy.guarantee import Guarantee, PrivacyLoss
from panprivacy.statistics.aggregation import Form
from panprivacy.statistics.comparing import Comparisons
from panprivacy.statistics.composites.members import (
    JoinedContributions,
    JoinedInternals,
    JoinedMemory,
    JoinedReleasing,
    JoinedWindows,
    Members,
)
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.release import Answer, Answers, Lost
from panprivacy.statistics.statistic import Statistic

_SILENT: Final = Fraction(1_000)
"""Epsilon of a release without noise, as good as."""
CHANGE_TRIGGERED: Final = "Continual"
"""Name of a `ChangeTriggered` in its states: its first one, so that states of before are read."""
_OWN = struct.Struct("<d")
"""In a state, before that of the statistic: the answer that stands."""


class Moving(Members[str, Statistic[Any, Any]]):
    """A statistic, its comparisons with the answer that stands, and that answer.

    Args:
        members: the statistic, by its name.
        comparisons: paid for.
        threshold: by how much the number has to move, in the unit of its answers.
        at_end: number of releases beside the updates.
    """

    __slots__ = ("at_end", "comparisons", "stands", "threshold")

    def __init__(
        self,
        members: Members[str, Statistic[Any, Any]],
        comparisons: Comparisons,
        threshold: Fraction,
        at_end: int,
    ) -> None:
        super().__init__(members.programs, members.asked)
        self.comparisons, self.threshold, self.at_end = comparisons, threshold, at_end
        self.stands = 0.0

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of each user, with all comparisons."""
        paid = self.comparisons
        return super().guarantee.compared(PrivacyLoss(paid.cost, paid.delta))

    @property
    def public(self) -> dict[str, Any]:
        """The public parameters beside those of the statistic."""
        return {
            **super().public, "threshold": self.threshold,
            "comparisons": self.comparisons.cost, "delta": self.comparisons.delta,
            "at_end": self.at_end,
        }  # fmt: skip

    def go_on_from(self, answer: float) -> None:
        """Set the answer that stands.

        Raises:
            InputError: it is no number.
        """
        if not math.isfinite(answer):
            message = "the answer that stands must be a finite number"
            raise InputError(message)
        self.stands = float(answer)


class MovingMemory(JoinedMemory[str, Statistic[Any, Any]]):
    """The memory of a running answer: that of the statistic, and the answer that stands."""

    __slots__ = ()

    members: Moving

    @property
    def _own(self) -> bytes:
        return _OWN.pack(self.members.stands)

    def _resume_own(self, own: bytes) -> None:
        self.members.go_on_from(*_OWN.unpack(own))

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        super().check_state(state, released=released, announced=announced)
        own, _ = self._layout.parts(state)
        if not math.isfinite(*_OWN.unpack(own)):
            message = "the state is damaged: no such answer can stand"
            raise InputError(message)


class MovingContributions(JoinedContributions[str, Statistic[Any, Any]]):
    """The contributions of a running answer: none."""

    __slots__ = ()

    def check_parts(self, form: Form, **asked: Any) -> NoReturn:  # noqa: ARG002
        """Refuse to contribute: what merges cannot know what comparisons cost."""
        message = "a running answer is not merged: contribute from a statistic without a threshold"
        raise PlanError(message)


class MovingReleasing(JoinedReleasing[str, Statistic[Any, Any]]):
    """The releases of a running answer, and the comparisons before them."""

    __slots__ = ()

    members: Moving

    @property
    def left(self) -> int:
        """Number of answers that may still be published because the number has moved."""
        return self.members.comparisons.left

    @property
    def stands(self) -> float:
        """The answer that was published last; 0 before the first."""
        return self.members.stands

    def go_on_from(self, answer: float) -> None:
        """Set the answer that stands: one that left after the state in use was taken.

        Raises:
            InputError: it is no number.
        """
        self.members.go_on_from(answer)

    @property
    def state_epsilon(self) -> Fraction:
        """Loss of the state and of all comparisons; it is charged at the start."""
        return super().state_epsilon + self.members.comparisons.cost

    def check(self, *, confidence: float = 0.95) -> Answers | None:
        """Compare, and publish an answer if the number has moved; see `ChangeTriggered.check`."""
        level = proportion(confidence=confidence)
        if not self.members.comparisons.moved(self.stands, self.members.threshold, level):
            return None
        last = self.left == 1
        answers = self.release(confidence=level)
        return _marked(answers, self.members.comparisons.updates) if last else answers

    def release(self, **asked: Any) -> Answers:
        """Publish the answer, whether it has moved or not; see `ChangeTriggered.release`."""
        answers = super().release(**asked)
        for one in answers.values():
            if one is not None and math.isfinite(one.value):
                self.members.stands = one.value
        return answers

    def check_release(self, *, confidence: float = 0.95, **asked: Any) -> None:
        """Raise what `release` would refuse, without spending anything.

        Args:
            confidence: as for `release`.
            asked: nothing: what is published is what is compared.
        """
        if asked:
            (name,) = self.members.programs
            message = f"{name} publishes what it compares: say what with asked= when it is "
            message += "made"
            raise PlanError(message)
        super().check_release(confidence=confidence)

    def noise(self) -> float:
        """The deviation of one comparison where nothing moves, in the unit of answers.

        It is that of fresh noise and of the answer that stands, at the best place of the planned
        range.
        """
        plan = self.members.first.plan
        read = self.members.comparisons.plan, plan, plan.at(_SILENT)
        least = [smallest_deviation(one) for one in read]
        return math.sqrt(max(least[0] ** 2 + least[1] ** 2 - 2 * least[2] ** 2, 0))

    def check_threshold(self) -> None:
        """Refuse a threshold that noise alone reaches again and again.

        Raises:
            PlanError: it is not above the deviation of a comparison; says what would do.
        """
        noise = self.noise()
        threshold = self.members.threshold
        if threshold <= noise:
            message = (
                f"a threshold of {float(threshold):g} would be reached by noise, whose "
                f"deviation is {noise:.3g}: take one some times as large, fewer releases, or more "
                "epsilon"
            )
            raise PlanError(message)


class MovingInternals(JoinedInternals[str, Statistic[Any, Any]]):
    """The four parts of a running answer."""

    __slots__ = ()

    memory: MovingMemory
    releasing: MovingReleasing

    @classmethod
    def of(cls, moving: Moving) -> MovingInternals:
        """Return the parts of a running answer."""
        return cls(
            MovingMemory(CHANGE_TRIGGERED, moving),
            JoinedWindows(moving),
            MovingContributions(moving),
            MovingReleasing(moving),
        )


def smallest_deviation(plan: Plan) -> float:
    """The predicted standard deviation where in its range it is least, in the unit of answers."""
    if not plan.error_points:
        return plan.absolute_error()
    return min(plan.relative_error(truth) * truth for truth in plan.error_points)


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

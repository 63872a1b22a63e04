"""Plans of a cropped sum whose release may be asked for the mean in place of the sum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.statistics.amounts import in_units
from panprivacy.statistics.drawing import CountDrawing, UserStates, most_made_up
from panprivacy.statistics.means.reading import MEAN, FirstValues, MeanReading
from panprivacy.statistics.release import Name, Release
from panprivacy.tables.planning.blocks import block_chances


class MeanAsked:
    """The part of such a plan that knows the mean; this one's counters do not tell who came."""

    __slots__ = ()

    def names(self, query: object) -> tuple[Name, ...]:
        """The sum, or the mean that is asked for in its place."""
        plan: Any = self
        return (MEAN,) if getattr(query, "mean", False) else (plan.name,)

    def unit_of(self, question: str) -> str:
        """Return the unit of the answers to a question."""
        plan: Any = self
        if question != MEAN.question:
            return str(plan.unit)
        of = "" if plan.amount is None else f" {in_units(plan.amount)}"
        return f"mean{of and f' in{of}'}, at most {plan.tau:,} of each user"

    def reading(self, query: object, epoch: int) -> Any:
        """Return the reading of a release after `epoch` announced intrusions.

        Raises:
            PlanError: a mean is asked, and its counters do not tell who came.
        """
        if getattr(query, "mean", False):
            return self.mean_reading()
        plan: Any = super()
        return plan.reading(query, epoch)

    def mean_reading(self) -> MeanReading:
        """Return the reading of the mean of the users that came.

        Raises:
            PlanError: its counters do not tell who came.
        """
        message = "mean: these counters do not tell how many users came, as those of a universe do "
        message += "without announced intrusions; ask an incidence for its mean"
        raise PlanError(message)

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:
        """The exact sum, or its mean over the users not in state 0; NaN of nobody."""
        plan: Any = super()
        total = float(plan.truth(name, states, last))
        if name.question != MEAN.question:
            return total
        came = np.count_nonzero(states)
        return total / came if came else math.nan

    @property
    def drawing(self) -> MeanDrawing:
        """The made-up users of a picture."""
        return MeanDrawing(self)


class MeanOfBlocks(MeanAsked):
    """The part of a plan of blocks: the first values of blocks tell who came."""

    __slots__ = ()

    def mean_reading(self) -> MeanReading:
        """Return the reading of the mean of the users that came.

        Raises:
            PlanError: there are levels, or an intrusion is announced.
        """
        plan: Any = self
        if not self._tells_who_came:
            return super().mean_reading()
        chances = block_chances(plan.chosen, plan.tau, plan.split.budget, 0)
        return MeanReading(plan, FirstValues.of(plan.law, plan.tau), chances, plan.sharing)

    @property
    def also_counted(self) -> list[tuple[Fraction, Fraction]]:
        """The probabilities of each set of scores, as `counted`: a mean may be asked."""
        plan: Any = self
        if not self._tells_who_came:
            return []
        return FirstValues.of(plan.law, plan.tau).counted(*plan.counted)

    @property
    def _tells_who_came(self) -> bool:
        """Whether its cells tell how many users came: not in levels, nor after an intrusion."""
        plan: Any = self
        return not isinstance(plan.expected, tuple) and not plan.request.intrusions


class MeanDrawing(CountDrawing):
    """The picture of a cropped sum, or of the mean of the users that came.

    Args:
        plan: of the statistic.
    """

    __slots__ = ("_asked",)

    def __init__(self, plan: Any) -> None:
        super().__init__(plan)
        self._asked = plan

    def made_up(self, answers: Mapping[Name, Release | None]) -> UserStates:
        """Users of tau, as many as the sum says; or of the mean, as many as its counts say."""
        given = next(filter(None, answers.values()), None)
        if given is None or given.name.question != MEAN.question:
            return super().made_up(answers)
        if not given.counts:
            return np.zeros(0, np.int64)
        came = self._asked.mean_reading().model.came(given.counts[1])
        most = most_made_up(self._asked.universe)
        return np.full(min(max(round(came), 0), most), round(given.value))

"""Plans of statistics that have one answer, which a model reads off some counts of cells."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import float_above
from panprivacy.statistics.aggregation import Aggregation, Form
from panprivacy.statistics.drawing import CountDrawing, Drawing
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.plan import Plan, with_release
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.slicing import Slicing
from panprivacy.tables.cells.modular import ModularCells
from panprivacy.tables.cells.protocol import Table
from panprivacy.tables.decoders.intervals import Model, noise_quantile
from panprivacy.tables.planning.regret import WORST_ERROR, grid


class CountPlan(Plan):
    """The plan of a statistic that has one answer, which a model reads off some counts of cells."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> Name:
        """The name of the answer."""

    @property
    def groups(self) -> int:
        """The number of counts that a release publishes."""
        return 1

    def sensitivity(self, epoch: int) -> int:  # noqa: ARG002
        """Return the L1 sensitivity of the counts to one user, after announced intrusions."""
        return 1

    def at(self, release: Fraction) -> Self:
        """The plan of the same cells with another epsilon of each release."""
        return with_release(self, release, self.sensitivity(0))

    @abstractmethod
    def model(self, epoch: int) -> Model:
        """Return the estimate model of counts released after `epoch` announced intrusions."""

    def joint_model(self, epoch: int, tables: int) -> Model:  # noqa: ARG002
        """Return the estimate model of counts of several tables of disjoint users.

        They are added up, or side by side where the plan says `reads_separately`.

        Raises:
            PlanError: no answer about all of them follows.
        """
        message = "it cannot be merged: let each shard release, and add up their answers"
        raise PlanError(message)

    @property
    def slicing(self) -> Slicing:
        """The slices of its table among shards."""
        return Slicing(self, self.table.cells)

    @property
    def aggregation(self) -> Aggregation:
        """The contributions of several tables, as one."""
        return CountAggregation(self)

    @property
    def growth(self) -> float | None:
        """The factor by which each announced intrusion multiplies the error of modular counters."""
        if not isinstance(self.table, ModularCells):
            return None
        return self.grown(self.model(0), self.model(1))

    def grown(self, before: Model, after: Model) -> float:
        """Return the ratio of the errors of two models, the median over answers."""
        return float(np.median(after.deviation(self._truths) / before.deviation(self._truths)))

    @property
    def limit(self) -> float:
        """The largest answer that there can be."""
        return self.largest

    @property
    def planned(self) -> tuple[float, float]:
        """The lowest and the highest answer that it is made for."""
        return 0.0, self.limit

    @property
    def error_points(self) -> tuple[float, ...]:
        """The low, middle and high end of a range of answers, where errors are told; else none."""
        low, high = self.planned
        return tuple(dict.fromkeys((low, math.sqrt(low * high), high))) if low else ()

    @property
    def _truths(self) -> NDArray[np.float64]:
        """The answers at which errors are looked at."""
        low, high = self.planned
        return grid(low, high) if low else _SHARES * self.limit

    def absolute_error(self, truth: float | None = None) -> float:
        """The predicted standard deviation, in the unit of answers, after all planned intrusions.

        Where users share cells it is the root mean square of the error, with what they may hide.

        Args:
            truth: the answer; None for where the deviation is largest.
        """
        model = self.model(self.request.intrusions)
        return float(np.max(model.deviation(self._truths if truth is None else truth)))

    def relative_error(self, truth: float | None = None) -> float:
        """The same as a share of `measure`: of the answer itself where a range is planned for.

        Args:
            truth: the answer; None for where the share is largest.
        """
        truths = self._truths if truth is None else np.array([float(truth)])
        return float(self.relative_errors(truths).max())

    def relative_errors(self, truths: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same for many answers at once, cut off at 1e9."""
        deviations = self.model(self.request.intrusions).deviation(truths)
        errors = deviations / (truths if self.error_points else self.largest)
        return np.fmin(errors, WORST_ERROR)  # also where an error is not a number

    def absolute_margin(self, confidence: float, truth: float | None = None) -> float:
        """Return the bound on the error of an answer at this probability, in the unit of answers.

        Args:
            confidence: how often it strays by no more.
            truth: the answer; None for where that is farthest.
        """
        return self.reach(confidence, truth) * self.absolute_error(truth)

    def relative_margin(self, confidence: float, truth: float | None = None) -> float:
        """The same as a share of `measure`: of the answer itself where a range is planned for.

        Args:
            confidence: how often it strays by no more.
            truth: the answer; None for where the share is largest.
        """
        return self.reach(confidence, truth) * self.relative_error(truth)

    def reach(self, confidence: float, truth: float | None) -> float:
        """Return the bound on an answer's error at this probability, in standard deviations."""
        model = self.model(self.request.intrusions)
        truths = self._truths if truth is None else [truth]
        quantile = noise_quantile(confidence, max(model.output_share(float(one)) for one in truths))
        # What collisions hide is no noise: bias + q sd <= hypot(1, q) hypot(bias, sd).
        return math.hypot(1, quantile) if self.numbered is None else quantile

    def names(self, query: object) -> tuple[Name, ...]:  # noqa: ARG002
        """The one answer."""
        return (self.name,)

    def reading(self, query: object, epoch: int) -> CountReading:  # noqa: ARG002
        """Return the reading of a release after `epoch` announced intrusions."""
        return CountReading(self, epoch)

    reads_separately: ClassVar[bool] = False
    """Whether the sums of several tables leave side by side, and are not added up."""

    @property
    def caveat(self) -> str | None:
        """The caveat of each of its answers; None if there is none."""
        return None

    def synthetic_users(self, answer: float) -> tuple[float, int]:
        """Return the synthetic population of an answer: the number of users, and their state."""
        return answer, 1

    @property
    def drawing(self) -> Drawing:
        """The made-up users of a picture."""
        return CountDrawing(self)


_SHARES = np.linspace(0, 1, 17)
"""Of the largest answer: where errors are looked at."""


@dataclass(frozen=True, slots=True)
class CountReading:
    """A release of counts of cells, one a group.

    Args:
        plan: of the statistic.
        epoch: the number of announced intrusions so far.
        tables: how many tables the counts are of.
    """

    plan: CountPlan
    epoch: int
    tables: int = 1

    @property
    def model(self) -> Model:
        """The estimate model of the counts."""
        if self.tables > 1:
            return self.plan.joint_model(self.epoch, self.tables)
        return self.plan.model(self.epoch)

    @property
    def size(self) -> int:
        """The number of counts of one table."""
        return self.plan.groups

    @property
    def scales(self) -> tuple[Fraction]:
        """One for all counts: a user moves them by at most the sensitivity together."""
        return (self.plan.sensitivity(self.epoch) / self.plan.split.budget.release,)

    def sums(self, cells: Any, table: Table) -> NDArray[np.int64]:
        """Return the count of the cells of each group."""
        return cells.group_sums(table, self.plan.groups, self.epoch)

    def answer(self, counts: NDArray[np.int64], confidence: float) -> Release:
        """The estimate with its interval."""
        model = self.model
        value, low, high = model.answer(counts, confidence)
        epsilon = float_above(self.plan.split.budget.release)
        numbers = value, low, high, confidence, epsilon, tuple(counts.tolist())
        plan = self.plan
        note = note_on(low, high, plan.planned, plan.unit, plan.caveat, value)
        return Release(*numbers, plan.name, plan.unit, note, *model.measured(counts))


class CountAggregation(Aggregation):
    """The contributions of tables whose counts are added up, or side by side.

    Args:
        plan: of each table.
    """

    __slots__ = ("plan",)

    def __init__(self, plan: CountPlan) -> None:
        super().__init__(plan)
        self.plan = plan

    @property
    def separate(self) -> bool:
        """Whether counts leave side by side, as the plan says."""
        return self.plan.reads_separately

    def of_sums(self, query: object, epoch: int, tables: int) -> CountReading:
        """Return the reading of counts of several tables."""
        self.plan.joint_model(epoch, tables)  # refuses, before anything is paid for
        return replace(self.plan.reading(query, epoch), tables=tables)

    def error(self, form: Form, epoch: int, tables: int) -> float:
        """Return the ratio of the error of their answer to that of one table of all users."""
        reading = cast("CountReading", self.reading(form, None, epoch, tables))
        return self.plan.grown(self.plan.model(epoch), reading.model)

"""How contributions of several tables are read as one: their sums, or their cells added up."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.statistics.reading import Reading
from panprivacy.statistics.slicing import added
from panprivacy.tables.planning.request import Request, Split

Form = Literal["sums", "cells"]
"""Sums of cells, for shards of different users; or the cells, for shards with one key."""


class Budgeted(Protocol):
    """What an aggregation needs of a plan to say what a further shard costs."""

    @property
    def request(self) -> Request:
        """Epsilon and what it covers."""

    @property
    def split(self) -> Split:
        """How epsilon is spent."""


class Aggregation:
    """The contributions of a plan's tables; of this one nothing follows, and it refuses all.

    Args:
        plan: of each table.
    """

    __slots__ = ("_plan",)

    bounded: ClassVar[bool] = True
    """Whether a release costs no more than its epsilon whatever two values a user's cell has."""

    def __init__(self, plan: Budgeted) -> None:
        self._plan = plan

    @property
    def separate(self) -> bool:
        """Whether the sums of several tables leave side by side, and are not added up."""
        return False

    def of_sums(self, query: Any, epoch: int, tables: int) -> Reading:  # noqa: ARG002
        """Return the reading of sums of several tables of disjoint users, each with its own key.

        Raises:
            PlanError: no answer about all of them follows.
        """
        message = "it cannot be merged: let each shard release, and add up their answers"
        raise PlanError(message)

    def of_cells(self, query: Any, epoch: int, tables: int) -> Reading:  # noqa: ARG002
        """Return the reading of the cell-wise sum of tables of one key.

        Raises:
            PlanError: nothing follows from their sum.
        """
        message = "its cells cannot be added up: merge sums, of shards of different users"
        raise PlanError(message)

    def reading(self, form: Form, query: Any, epoch: int, tables: int) -> Reading:
        """Return the reading of contributions of a form.

        Raises:
            PlanError: no answer follows from them.
        """
        read = self.of_sums if form == "sums" else self.of_cells
        return read(query, epoch, tables)

    def combine_sums(self, each: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the sums of all tables: added up, or side by side."""
        return np.concatenate(each) if self.separate else added(each)

    def error(self, form: Form, epoch: int, tables: int) -> float:
        """Return the ratio of the error of their answer to that of one table of all users.

        Raises:
            PlanError: no answer follows from them.
        """
        self.reading(form, None, epoch, tables)
        raise NotImplementedError

    def additional_loss(self, form: Form) -> Fraction:
        """Return the bound on a user's loss in each additional shard, for contributions of a form.

        Their cells are one cell once they are added up, so that where a release costs the same for
        any two values of a cell, that of the merged answer costs no more then. The other releases
        that the shard may make leave by themselves.
        """
        asked, budget = self._plan.request, self._plan.split.budget
        if form == "sums" or not self.bounded:
            return asked.epsilon
        return budget.of_state(asked.intrusions) + budget.of_releases(asked.releases - 1)

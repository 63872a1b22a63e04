"""The division of one table among the shards of a cluster, which are read as that table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.statistics.reading import Reading
from panprivacy.tables.addressing import Addressing, Dealt
from panprivacy.tables.cells.protocol import Cells
from panprivacy.tables.slices import Slice

Sums = NDArray[np.int64]
T = TypeVar("T")


class Divisible(Protocol):
    """What a slicing needs of a plan, whose copy it makes with fewer cells."""

    @property
    def numbered(self) -> int | None:
        """The number of possible users; None for any ids."""

    @property
    def table(self) -> Cells:
        """The table's cells."""

    def address(self, key: bytes) -> Addressing:
        """Return the addressing of a user's cell."""

    def reading(self, query: Any, epoch: int) -> Reading:
        """Return the reading of a release."""


@dataclass(frozen=True, slots=True)
class Slicing:
    """The slices of a table: each has as many cells of each run.

    Args:
        plan: of the table.
        cells: number of cells.
        runs: the number of equal runs of cells: levels, or tables.
        field: of the plan, that has the number of cells.
        per_run: whether that is the number of each run.
        publishes_cells: whether the sums of a release are its cells, each by itself.
    """

    plan: Divisible
    cells: int
    runs: int = 1
    field: str = "cells"
    per_run: bool = False
    publishes_cells: bool = False

    def share(self, slice_: Slice) -> int:
        """Return the number of cells of a slice.

        Raises:
            PlanError: the cells cannot be dealt to so many shards.
        """
        return self.runs * cells_of(slice_, self.cells // self.runs)

    def table(self, slice_: Slice) -> Cells:
        """Return the cells of a slice, which are those of the table but fewer."""
        return with_fields(self.plan.table, cells=self.share(slice_))

    def address(self, slice_: Slice, key: bytes) -> Addressing:
        """Return the addressing of the cells of a slice; of a universe, for its users alone."""
        fewer, users = self.share(slice_), self.plan.numbered
        changed = {self.field: fewer // self.runs if self.per_run else fewer}
        if users is not None:
            changed["universe"] = slice_.share(users)
        within = with_fields(self.plan, **changed).address(key)
        return within if users is None else Dealt(users, slice_.shards, within)

    def reading(self, query: Any, epoch: int, slices: int) -> Reading:  # noqa: ARG002
        """Return the reading of the sums of all slices: as those of the table.

        Raises:
            PlanError: the query cannot be answered.
        """
        return self.plan.reading(query, epoch)

    def size(self, slice_: Slice, reading: Reading) -> int:
        """Return the number of sums that a slice contributes."""
        return self.share(slice_) if self.publishes_cells else reading.size

    def combine_sums(self, each: Sequence[Sums]) -> Sums:
        """Return the sums of the table, from those of all slices in order."""
        if not self.publishes_cells:
            return added(each)
        runs = zip(*(np.split(one, self.runs) for one in each), strict=True)
        return np.concatenate([of_one for slices in runs for of_one in slices])


class Sliced(Divisible, Protocol):
    """A plan that says how its table is divided."""

    @property
    def slicing(self) -> Slicing:
        """The slices of its table."""


def table_of(plan: Sliced, slice_: Slice | None) -> Cells:
    """Return the cells of a slice of a plan's table; None for all of them."""
    return plan.table if slice_ is None else plan.slicing.table(slice_)


def address_of(plan: Sliced, slice_: Slice | None, key: bytes) -> Addressing:
    """Return the addressing of the cells of a slice; None for the complete table."""
    return plan.address(key) if slice_ is None else plan.slicing.address(slice_, key)


def added(each: Sequence[Sums]) -> Sums:
    """Return the sums of several tables, added up."""
    sums: Sums = np.sum(each, axis=0)
    return sums


def with_fields(record: T, **fields: object) -> T:
    """Return a frozen record with other values of some fields."""
    return replace(record, **fields)  # type: ignore[type-var]


def cells_of(slice_: Slice, cells: int) -> int:
    """Return the number of cells in a slice, out of `cells`.

    Raises:
        PlanError: some slice would have none.
    """
    if cells < slice_.shards:
        message = (
            f"{slice_.shards:,} shards are too many for {cells:,} cells, or as many of each level: "
            "take fewer shards, or plan for more users or memory"
        )
        raise PlanError(message)
    return slice_.share(cells)

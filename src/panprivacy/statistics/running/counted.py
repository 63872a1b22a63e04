"""Cells of users, and noisy sums of what they count together, told at the end of every step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.running.nodes import Nodes
from panprivacy.tables.addressing import Slots
from panprivacy.tables.cells.protocol import Deltas, Table
from panprivacy.tables.counters.running import Running, Sum


class CountedCells(ABC):
    """A table of cells, whose sums are counted as they change, level by level.

    A table is the cells, and for each level the table of a sum of nodes, which has added up by how
    much the level's sum rose since it was born, and that sum then.
    """

    __slots__ = ()

    levels: int
    """How many there are, of as many cells each."""

    nodes: Nodes
    """Of one sum."""

    dtype: ClassVar[type[Any]] = np.uint8
    """Of the table."""

    @property
    @abstractmethod
    def inner(self) -> Any:
        """The cells of all levels."""

    @abstractmethod
    def of_cells(self, table: Table) -> Table:
        """The table of these cells, in place."""

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return self._nodes_from + self.levels * self.nodes.nbytes

    def initial(self, coins: Coins) -> Table:
        """A table in which nobody has appeared; what noise counts for is counted."""
        table: Table = np.zeros(self.nbytes // np.dtype(self.dtype).itemsize, self.dtype)
        newborn = self.inner.initial(coins)
        self.of_cells(table)[:] = newborn
        wipe(newborn)
        self.restart(table, 0, coins)
        return table

    def is_table(self, table: Table) -> bool:
        """Whether cells can hold what they do, and every public number is one."""
        padding = table.view(np.uint8)[self.inner.nbytes : self._nodes_from]
        sums = all(map(self.nodes.is_table, self.of_sums(table)))
        return self.inner.is_table(self.of_cells(table)) and not padding.any() and sums

    def update(
        self, table: Table, slots: Iterable[Slots], deltas: Deltas | None, epoch: int, coins: Coins
    ) -> None:
        """Take in one batch, of which nothing is counted yet."""
        self.inner.update(self.of_cells(table), slots, deltas, epoch, coins)

    def count(self, table: Table, before: NDArray[np.int64], tick: int, coins: Coins) -> None:
        """Add by how much the sum of each level has risen.

        Args:
            table: in place.
            before: their `group_sums` of before, int64[levels], which are wiped.
            tick: how many steps have ended.
            coins: source of randomness.
        """
        rises = self.group_sums(table, self.levels, 0)
        rises -= before
        for one, more in zip(self.sums(table, tick, coins), rises.tolist(), strict=True):
            one.add(more)
        wipe(before, rises)

    def group_sums(self, table: Table, groups: int, epoch: int) -> NDArray[np.int64]:
        """Return the count of each of `groups` equal runs of cells."""
        sums: NDArray[np.int64] = self.inner.group_sums(self.of_cells(table), groups, epoch)
        return sums

    def sums(self, table: Table, tick: int, coins: Coins) -> list[Running]:
        """The sum of each level as it is told, after so many steps."""
        return [one for part in self.of_sums(table) for one in self.nodes.sums(part, tick, coins)]

    def restart(self, table: Table, tick: int, coins: Coins) -> None:
        """Begin to count the sums anew at a step, with new nodes."""
        counted = self.group_sums(table, self.levels, 0)
        for part, count in zip(self.of_sums(table), counted.tolist(), strict=True):
            (one,) = self.nodes.sums(part, tick, coins)
            one.restart(tick, Sum())
            one.add(count)
        wipe(counted)

    def of_sums(self, table: Table) -> list[NDArray[np.int64]]:
        """The table of the nodes of each level, in place."""
        numbers = table.view(np.uint8)[self._nodes_from :].view(np.int64)
        return list(numbers.reshape(self.levels, -1))

    @property
    def _nodes_from(self) -> int:
        return int(-(-self.inner.nbytes // 8) * 8)

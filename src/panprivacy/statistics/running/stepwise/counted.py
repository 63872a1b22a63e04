"""Tables of cells of users, and noisy sums of what the cells count together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import randomised_response
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.running.stepwise.nodes import Nodes
from panprivacy.tables.addressing import Slots
from panprivacy.tables.cells.bits import BitCells
from panprivacy.tables.cells.cropped import CroppedCells
from panprivacy.tables.cells.protocol import Deltas, PresenceCells, Table
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


@dataclass(frozen=True, slots=True)
class EventBits(BitCells):
    """Presence bits that hide one event from one look, and from any number that are announced.

    Whoever saw a bit does not know it any better, after an announcement, than one of which they
    know whether its user came: so it costs nothing. [docs/guarantees/running-distinct.md]
    """

    def gain(self) -> Fraction:
        """Return the factor of the mean of each bit by an announced intrusion: that of a draw."""
        if not self.intrusions:
            return Fraction(1)
        return 2 * randomised_response(self.epsilon_state) - 1


@dataclass(frozen=True, slots=True)
class CountedBits(CountedCells, PresenceCells):
    """A table of presence bits, whose ones are counted as they change, level by level.

    Args:
        bits: the bits of all levels.
        levels: how many there are, of as many bits each.
        nodes: of one sum.
    """

    bits: BitCells
    levels: int
    nodes: Nodes

    says = "noisy bits, and noisy numbers of ones for each node of a tree of steps"

    @property
    def inner(self) -> BitCells:
        """The bits."""
        return self.bits

    @property
    def cells(self) -> int:  # type: ignore[override]
        """The number of bits."""
        return self.bits.cells

    def of_cells(self, table: Table) -> Table:
        """The bits of a table, in place."""
        return table[: self.bits.nbytes]

    def ones(self, table: Table) -> NDArray[np.uint8]:
        """The bits, uint8[cells]."""
        return self.bits.ones(self.of_cells(table))

    def fresh_noise(self, coins: Coins, table: Table, tick: int) -> Table:
        """Return the fresh noise of an announced intrusion: bits to flip, and noise of nodes."""
        noise, flips = np.zeros(self.nbytes, np.uint8), self.bits.fresh_noise(coins)
        noise[: self.bits.nbytes] = flips
        wipe(flips)
        for part, kept in zip(self.of_sums(noise), self.of_sums(table), strict=True):
            drawn = self.nodes.fresh_noise(coins, kept, tick)
            part[:] = drawn
            wipe(drawn)
        return noise

    def rerandomise(self, table: Table, noise: Table, tick: int, coins: Coins) -> None:
        """Flip the bits that the noise names, count how the ones change, and add to the nodes."""
        for part, drawn in zip(self.of_sums(table), self.of_sums(noise), strict=True):
            self.nodes.rerandomise(part, drawn, tick, coins)
        before = self.group_sums(table, self.levels, 0)
        self.bits.rerandomise(self.of_cells(table), self.of_cells(noise))
        self.count(table, before, tick, coins)


@dataclass(frozen=True, slots=True)
class CountedSums(CountedCells):
    """A table of noisy sums of deltas, and a noisy sum of what they count for.

    Args:
        linear: the sums of deltas.
        nodes: of the sum of all.
    """

    linear: CroppedCells
    nodes: Nodes

    levels = 1
    dtype = np.int64
    is_presence = False
    says = "noisy sums of deltas, and noisy sums of these for each node of a tree of steps"

    @property
    def inner(self) -> CroppedCells:
        """The sums of deltas."""
        return self.linear

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self.linear.cells

    def of_cells(self, table: Table) -> Table:
        """The sums of deltas, in place."""
        return table[: self.linear.cells]

    def picture_values(self, table: Table) -> NDArray[np.int64]:
        """The sums of deltas."""
        return self.linear.picture_values(self.of_cells(table))

    def without_noise(
        self, slots: Iterable[Slots], deltas: Deltas, coins: Coins
    ) -> NDArray[np.int64]:
        """Those of a table that begins at 0."""
        return self.linear.without_noise(slots, deltas, coins)

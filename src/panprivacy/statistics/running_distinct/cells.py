"""What a running distinct count keeps: noisy bits, and noisy numbers of ones of each level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.addressing import Slots
from panprivacy.cells.bits import BitCells
from panprivacy.cells.protocol import Deltas, PresenceCells, Table
from panprivacy.coins import Coins
from panprivacy.counters.running import Running, Sum
from panprivacy.guarantee import randomised_response
from panprivacy.noise import wipe
from panprivacy.statistics.running.nodes import Nodes


@dataclass(frozen=True, slots=True)
class EventBits(BitCells):
    """Presence bits that hide one event from one look, and from any number that are announced.

    Whoever saw a bit does not know it any better, after an announcement, than one of which he knows
    whether its user came: so it costs nothing. [docs/guarantees/running-distinct.md]
    """

    def gain(self) -> Fraction:
        """By what factor an announced intrusion shrinks the mean of each bit: as a draw does."""
        if not self.intrusions:
            return Fraction(1)
        return 2 * randomised_response(self.epsilon_state) - 1


@dataclass(frozen=True, slots=True)
class CountedBits(PresenceCells):
    """A table of presence bits, whose ones are counted as they change, level by level.

    A table is uint8: the bits, and for each level the table of a sum of nodes, which has added up
    by how much the number of ones rose since it was born, and that number then.

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
    def cells(self) -> int:  # type: ignore[override]
        """The number of bits."""
        return self.bits.cells

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return self._nodes_from + self.levels * self.nodes.nbytes

    def born(self, coins: Coins) -> Table:
        """A table in which nobody has appeared; the ones that noise has set are counted."""
        table, bits = np.zeros(self.nbytes, np.uint8), self.bits.born(coins)
        table[: self.bits.nbytes] = bits
        wipe(bits)
        self.restart(table, 0, coins)
        return table

    def is_table(self, table: Table) -> bool:
        """Whether the bits beyond the last cell are 0, and every public number is one."""
        padding = table[self.bits.nbytes : self._nodes_from]
        sums = all(map(self.nodes.is_table, self._sums(table)))
        return self.bits.is_table(self._bits(table)) and not padding.any() and sums

    def update(
        self, table: Table, slots: Iterable[Slots], deltas: Deltas | None, epoch: int, coins: Coins
    ) -> None:
        """Redraw each touched bit once."""
        self.bits.update(self._bits(table), slots, deltas, epoch, coins)

    def ones(self, table: Table) -> NDArray[np.uint8]:
        """The bits, uint8[cells]."""
        return self.bits.ones(self._bits(table))

    def fresh_noise(self, coins: Coins, table: Table, tick: int) -> Table:
        """What an announced intrusion takes: which bits flip, and what is added to the nodes."""
        noise, flips = np.zeros(self.nbytes, np.uint8), self.bits.fresh_noise(coins)
        noise[: self.bits.nbytes] = flips
        wipe(flips)
        for part, kept in zip(self._sums(noise), self._sums(table), strict=True):
            drawn = self.nodes.fresh_noise(coins, kept, tick)
            part[:] = drawn
            wipe(drawn)
        return noise

    def rerandomise(self, table: Table, noise: Table, tick: int, coins: Coins) -> None:
        """Flip the bits that the noise names, count how the ones change, and add to the nodes."""
        for part, drawn in zip(self._sums(table), self._sums(noise), strict=True):
            self.nodes.rerandomise(part, drawn, tick, coins)
        before = self.group_sums(table, self.levels, 0)
        self.bits.rerandomise(self._bits(table), self._bits(noise))
        self.count(table, before, tick, coins)

    def count(self, table: Table, before: NDArray[np.int64], tick: int, coins: Coins) -> None:
        """Add by how much the ones of each level have risen.

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
        """The number of ones in each of `groups` equal runs of cells."""
        return self.bits.group_sums(self._bits(table), groups, epoch)

    def sums(self, table: Table, tick: int, coins: Coins) -> list[Running]:
        """The number of ones of each level as it is told, after so many steps."""
        return [one for part in self._sums(table) for one in self.nodes.sums(part, tick, coins)]

    def restart(self, table: Table, tick: int, coins: Coins) -> None:
        """Begin to count the ones anew at a step, with new nodes."""
        ones = self.group_sums(table, self.levels, 0)
        for part, count in zip(self._sums(table), ones.tolist(), strict=True):
            (sum_of_ones,) = self.nodes.sums(part, tick, coins)
            sum_of_ones.restart(tick, Sum())
            sum_of_ones.add(count)
        wipe(ones)

    @property
    def _nodes_from(self) -> int:
        return -(-self.bits.nbytes // 8) * 8

    def _bits(self, table: Table) -> Table:
        return table[: self.bits.nbytes]

    def _sums(self, table: Table) -> list[NDArray[np.int64]]:
        """The table of the nodes of each level, in place."""
        return list(table[self._nodes_from :].view(np.int64).reshape(self.levels, -1))

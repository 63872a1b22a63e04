"""What a running distinct count keeps: noisy bits, and noisy numbers of ones of each level."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import randomised_response
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.running.counted import CountedCells
from panprivacy.statistics.running.nodes import Nodes
from panprivacy.tables.cells.bits import BitCells
from panprivacy.tables.cells.protocol import PresenceCells, Table


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

"""Tables of bits, eight to a byte: what presence bits and parities share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.cells.protocol import PresenceCells, sum_runs

PackedTable = NDArray[np.uint8]


class PackedCells(PresenceCells):
    """A packed table of bits, cell `c` in bit `c % 8` of byte `c // 8`."""

    __slots__ = ()

    dtype = np.dtype(np.uint8)

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return -(-self.cells // 8)

    def is_table(self, table: PackedTable) -> bool:
        """Return whether the bits after the last cell are 0."""
        unused = -self.cells % 8
        return len(table) == self.nbytes and int(table[-1]) >> (8 - unused) == 0

    def rerandomise(self, table: PackedTable, noise: PackedTable) -> None:
        """Flip the bits that the noise names."""
        table ^= noise

    def _draw(self, probability: Fraction, coins: Coins) -> PackedTable:
        """Return one coin for each cell, packed."""
        bits = coins.bernoulli(probability, self.cells)
        packed = np.packbits(bits, bitorder="little")
        wipe(bits)
        return packed

    def ones(self, table: PackedTable) -> NDArray[np.uint8]:
        """Return the bits, uint8[cells]."""
        return np.unpackbits(table, count=self.cells, bitorder="little")

    def group_sums(self, table: PackedTable, groups: int, epoch: int) -> NDArray[np.int64]:
        """Return the number of ones in each of `groups` equal runs of cells, in whatever epoch."""
        if groups > 1 and self.cells % (8 * groups):  # runs end within a byte
            return PresenceCells.group_sums(self, table, groups, epoch)
        return sum_runs(np.bitwise_count(table), groups)

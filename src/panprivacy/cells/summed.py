"""What tables of whole numbers have in common, to which deltas are added without a modulus."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.addressing import Slots
from panprivacy.cells.protocol import Deltas, Table
from panprivacy.coins import Coins


@dataclass(frozen=True, slots=True)
class SummedCells(ABC):
    """A table of sums of deltas, int64, born with discrete Laplace noise.

    Args:
        cells: how many there are.
        scale: of the noise they are born with.
    """

    cells: int
    scale: Fraction

    tells_presence = False
    dtype = np.dtype(np.int64)
    says = "noisy sums of deltas"

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return 8 * self.cells

    def born(self, coins: Coins) -> Table:
        """A table that has counted nothing."""
        return coins.discrete_laplace(self.scale, self.cells)

    def is_table(self, table: Table) -> bool:
        """Whether there are as many numbers as cells: each may be any."""
        return len(table) == self.cells

    @abstractmethod
    def update(
        self,
        table: Table,
        slots: Iterable[Slots],
        deltas: Deltas | None,
        epoch: int,
        coins: Coins,
    ) -> None:
        """Add deltas to the cells of their slots."""

    def shown(self, table: Table) -> NDArray[np.int64]:
        """The numbers themselves."""
        return table.astype(np.int64)

    def without_noise(
        self, slots: Iterable[Slots], deltas: Deltas, coins: Coins
    ) -> NDArray[np.int64]:
        """The cells of a table that begins at 0."""
        table = np.zeros(self.cells, np.int64)
        self.update(table, slots, deltas, 0, coins)
        return table

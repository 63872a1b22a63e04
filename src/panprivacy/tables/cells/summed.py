"""The base class of tables of whole numbers to which deltas are added without a modulus."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.coins import Coins
from panprivacy.tables.addressing import Slots
from panprivacy.tables.cells.protocol import Deltas, Table


@dataclass(frozen=True, slots=True)
class SummedCells(ABC):
    """A table of sums of deltas, int64, with initial discrete Laplace noise.

    Args:
        cells: number of cells.
        scale: scale of the initial noise.
    """

    cells: int
    scale: Fraction

    is_presence = False
    dtype = np.dtype(np.int64)
    says = "noisy sums of deltas"

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return 8 * self.cells

    def initial(self, coins: Coins) -> Table:
        """Return a table that has counted nothing."""
        return coins.discrete_laplace(self.scale, self.cells)

    def is_table(self, table: Table) -> bool:
        """Return whether there are as many numbers as cells: each may be any."""
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

    def picture_values(self, table: Table) -> NDArray[np.int64]:
        """Return the numbers themselves."""
        return table.astype(np.int64)

    def without_noise(
        self, slots: Iterable[Slots], deltas: Deltas, coins: Coins
    ) -> NDArray[np.int64]:
        """Return the cells of a table that begins at 0."""
        table = np.zeros(self.cells, np.int64)
        self.update(table, slots, deltas, 0, coins)
        return table

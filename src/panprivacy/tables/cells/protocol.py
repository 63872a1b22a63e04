"""The interface of all cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.addressing import Slots

Table = NDArray[Any]
Deltas = NDArray[np.int64]


class TableLayout(Protocol):
    """What every table has: a number of cells, a size, and an initial state."""

    @property
    def cells(self) -> int:
        """Number of cells."""

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""

    @property
    def is_presence(self) -> bool:
        """Whether a cell shows only the presence of its user."""

    @property
    def says(self) -> str:
        """Description of a cell."""

    def initial(self, coins: Coins) -> Table:
        """Return a table in which nobody has appeared."""

    def is_table(self, table: Table) -> bool:
        """Return whether each cell holds a value that a cell can have."""


class Cells(TableLayout, Protocol):
    """The cells of a table into which users are mapped: updates, and re-randomisation."""

    def fresh_noise(self, coins: Coins) -> Table:
        """Return noise for an announced intrusion, drawn beforehand so nothing fails half way."""

    def rerandomise(self, table: Table, noise: Table) -> None:
        """Add fresh noise to each cell, so that one more intrusion is covered."""

    def update(
        self, table: Table, slots: Iterable[Slots], deltas: Deltas | None, epoch: int, coins: Coins
    ) -> None:
        """Take in one batch.

        Args:
            table: the cells, changed in place.
            slots: the cell of each row, in pieces; -1 for none.
            deltas: one for each row; None for 1 each.
            epoch: the number of announced intrusions so far.
            coins: source of randomness.
        """

    def picture_values(self, table: Table) -> NDArray[np.int64]:
        """Return the value of each cell in a picture."""

    def without_noise(
        self, slots: Iterable[Slots], deltas: Deltas, coins: Coins
    ) -> NDArray[np.int64]:
        """Return the cells of an ordinary program, for a picture."""


def with_deltas(
    slots: Iterable[Slots], deltas: Deltas | None
) -> Iterator[tuple[Slots, Deltas | None]]:
    """Yield each piece of a batch with the deltas of its rows; None if none are given."""
    row = 0
    for piece in slots:
        yield piece, None if deltas is None else deltas[row : row + len(piece)]
        row += len(piece)


def sum_runs(counted: NDArray[np.uint8], groups: int) -> NDArray[np.int64]:
    """Return the sums of `groups` equal runs of what cells count for, which is wiped."""
    sums: NDArray[np.int64] = counted.reshape(groups, -1).sum(axis=1, dtype=np.int64)
    wipe(counted)
    return sums


class PresenceCells(ABC):
    """Cells that show only the presence of their users; a release counts the ones."""

    __slots__ = ()

    cells: int
    is_presence = True

    @abstractmethod
    def ones(self, table: Table) -> NDArray[np.uint8]:
        """Return whether each cell is a one, uint8[cells]."""

    @property
    def slots_per_cell(self) -> int:
        """Number of slots of one cell."""
        return 1

    def picture_values(self, table: Table) -> NDArray[np.int64]:
        """Return which cells are ones."""
        return self.ones(table).astype(np.int64)

    def without_noise(
        self,
        slots: Iterable[Slots],
        deltas: Deltas,  # noqa: ARG002
        coins: Coins,  # noqa: ARG002
    ) -> NDArray[np.int64]:
        """Return which cells have users."""
        found = np.zeros(self.cells, np.int64)
        for piece in slots:
            found[piece[piece >= 0] // self.slots_per_cell] = 1
        return found

    def group_sums(self, table: Table, groups: int, epoch: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Return the number of ones in each of `groups` equal runs of cells, in whatever epoch."""
        return sum_runs(self.ones(table), groups)

"""What every kind of cell does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from panprivacy.addressing import Slots
from panprivacy.coins import Coins
from panprivacy.noise import wipe

Table = NDArray[Any]
Deltas = NDArray[np.int64]


class Cells(Protocol):
    """The cells of a table: how they are born, updated, and re-randomised once seen."""

    @property
    def cells(self) -> int:
        """How many there are."""

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""

    @property
    def tells_presence(self) -> bool:
        """Whether a cell tells no more of a user than whether he is there."""

    @property
    def says(self) -> str:
        """What a cell is, in words."""

    def born(self, coins: Coins) -> Table:
        """A table in which nobody has appeared."""

    def is_table(self, table: Table) -> bool:
        """Whether each cell holds a value that a cell can have."""

    def fresh_noise(self, coins: Coins) -> Table:
        """What an announced intrusion takes: drawn beforehand, so that nothing fails half way."""

    def rerandomise(self, table: Table, noise: Table) -> None:
        """Change each cell, by fresh noise, so that the table may be seen once more."""

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

    def shown(self, table: Table) -> NDArray[np.int64]:
        """What a picture shows of each cell."""

    def without_noise(
        self, slots: Iterable[Slots], deltas: Deltas, coins: Coins
    ) -> NDArray[np.int64]:
        """What a picture shows of the cells of an ordinary program."""


def with_deltas(
    slots: Iterable[Slots], deltas: Deltas | None
) -> Iterator[tuple[Slots, Deltas | None]]:
    """Each piece of a batch, with the deltas of its rows; None if none are given."""
    row = 0
    for piece in slots:
        yield piece, None if deltas is None else deltas[row : row + len(piece)]
        row += len(piece)


def sum_runs(counted: NDArray[np.uint8], groups: int) -> NDArray[np.int64]:
    """The sums of `groups` equal runs of what cells count for, which is wiped."""
    sums: NDArray[np.int64] = counted.reshape(groups, -1).sum(axis=1, dtype=np.int64)
    wipe(counted)
    return sums


class PresenceCells(ABC):
    """Cells that tell no more of a user than whether he is there; a release counts the ones."""

    __slots__ = ()

    cells: int
    tells_presence = True

    @abstractmethod
    def ones(self, table: Table) -> NDArray[np.uint8]:
        """Whether each cell is a one, uint8[cells]."""

    @property
    def slots_per_cell(self) -> int:
        """So many slots are one cell."""
        return 1

    def shown(self, table: Table) -> NDArray[np.int64]:
        """Which cells are ones."""
        return self.ones(table).astype(np.int64)

    def without_noise(
        self,
        slots: Iterable[Slots],
        deltas: Deltas,  # noqa: ARG002
        coins: Coins,  # noqa: ARG002
    ) -> NDArray[np.int64]:
        """Which cells have users."""
        found = np.zeros(self.cells, np.int64)
        for piece in slots:
            found[piece[piece >= 0] // self.slots_per_cell] = 1
        return found

    def group_sums(self, table: Table, groups: int, epoch: int) -> NDArray[np.int64]:  # noqa: ARG002
        """The number of ones in each of `groups` equal runs of cells, in whatever epoch."""
        return sum_runs(self.ones(table), groups)

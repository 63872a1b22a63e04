"""What a running count keeps, as one table: noisy sums, and what has left of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.cells.protocol import Table, TableLayout
from panprivacy.tables.counters.endless import Endless
from panprivacy.tables.counters.forest import Forest
from panprivacy.tables.counters.mechanism import CounterState, Floats, Integers
from panprivacy.tables.counters.running import KNOWN, Running, RunningState
from panprivacy.tables.counters.tree import Tree

R = TypeVar("R", bound=RunningState)


class SteppedTable(TableLayout, Protocol):
    """A table with noisy sums that go on from step to step; its noise depends on the step."""

    def sums(self, table: Table, tick: int, coins: Coins) -> list[Running]:
        """Return its sums, in place, after so many steps."""

    def restart(self, table: Table, tick: int, coins: Coins) -> None:
        """Restart its sums at a later step, with new noise."""

    def fresh_noise(self, coins: Coins, table: Table, tick: int) -> Table:
        """Return the noise that an announced intrusion adds."""

    def rerandomise(self, table: Table, noise: Table, tick: int, coins: Coins) -> None:
        """Add that noise."""


class StepNodes(ABC, Generic[R]):
    """The open nodes of trees of steps, and public numbers, as one table of int64.

    A table has the sums of the open nodes, the bits of `CounterState.told`, and those of what is
    known beside. How many steps have ended is not in it.
    """

    __slots__ = ()

    is_presence = False

    @property
    @abstractmethod
    def mechanism(self) -> Tree | Endless | Forest:
        """The trees."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the table."""

    @abstractmethod
    def sums(self, table: Table, tick: int, coins: Coins) -> list[R]:
        """Return what counts on in a table, in place, after so many steps."""

    @abstractmethod
    def _parts(self, table: Table) -> tuple[Integers, Floats, Floats]:
        """Return the sums, what has left, and what is known, in place."""

    def initial(self, coins: Coins) -> Table:
        """Return a table that has counted nothing."""
        table, newborn = np.zeros(self.nbytes // 8, np.int64), self.mechanism.initial(coins)
        cells, told, _ = self._parts(table)
        cells[:], told[:] = newborn.cells, newborn.told
        wipe(newborn.cells)
        return table

    def is_table(self, table: Table) -> bool:
        """Return whether every public number is one."""
        _, told, known = self._parts(table)
        return bool(np.isfinite(told).all() and np.isfinite(known).all())

    def fresh_noise(self, coins: Coins, table: Table, tick: int) -> Table:
        """Return the noise that an announced intrusion adds to every open node."""
        (counting,) = self.sums(table, tick, coins)
        noise = np.zeros(self.nbytes // 8, np.int64)
        cells, told, _ = self._parts(noise)
        self.mechanism.rerandomise(CounterState(cells, told, tick - counting.start), coins)
        return noise

    def rerandomise(
        self,
        table: Table,
        noise: Table,
        tick: int,  # noqa: ARG002 - the noise is of this step
        coins: Coins,  # noqa: ARG002 - and drawn
    ) -> None:
        """Add fresh noise to the sums, and what is known of it to what is known of them."""
        (cells, told, _), (drawn, of_drawn, _) = self._parts(table), self._parts(noise)
        cells += drawn
        told += of_drawn

    def restart(self, table: Table, tick: int, coins: Coins) -> None:
        """Restart at a later step with new nodes, on top of the last answers."""
        (counting,) = self.sums(table, tick, coins)
        counting.restart(tick)

    def _memory(self, table: Table, tick: int) -> tuple[CounterState, Floats]:
        """Return the memory of the mechanism after so many steps, and what is known, in place."""
        cells, told, known = self._parts(table)
        begun = int(known[0]) if np.isfinite(known[0]) else 0  # else `check` refuses it
        return CounterState(cells, told, tick - begun), known


@dataclass(frozen=True, slots=True)
class Nodes(StepNodes[Running]):
    """The open nodes of a tree of steps, or of one tree after another, and public numbers.

    The sum of the open node of each level stands first; `Running` says what is known.

    Args:
        tree: the mechanism.
    """

    tree: Tree | Endless

    says = "noisy sums of events, one for each level of a tree of steps"

    @property
    def mechanism(self) -> Tree | Endless:
        """The tree."""
        return self.tree

    @property
    def cells(self) -> int:
        """The number of sums."""
        return self.tree.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        cells, columns = self.tree.shape
        return 8 * (cells + 5 * columns + KNOWN)

    def sums(self, table: Table, tick: int, coins: Coins) -> list[Running]:
        """Return the one sum that counts on."""
        return [Running(self.tree, coins, *self._memory(table, tick))]

    def _parts(self, table: Table) -> tuple[Integers, Floats, Floats]:
        numbers = table[self.cells :].view(np.float64)
        told, known = numbers[:-KNOWN].reshape(-1, self.tree.shape[1]), numbers[-KNOWN:]
        return table[: self.cells], told, known

"""Counters modulo M: cells of `Incidence`, `CroppedSum`, and `DistinctCount` with deletions.

`cells.threshold` has those of `HeavyHitterCount`.

A cell has initial noise from a `Law` on the whole numbers modulo M, and an update adds its delta.
The table is linear, so inserts and deletes just work, and it is private whatever the states do: a
user shifts the law of one cell.

An announced intrusion adds fresh noise of the same law to every cell, or takes it away.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", section 3; M. Naor, "Foundations of Privacy", lecture 10. Where we differ: the law.
docs/guarantees/modular.md proves the claims.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.ground.kernels import inlined, kernel, read_only
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.addressing import Slots
from panprivacy.tables.cells.law import Law
from panprivacy.tables.cells.protocol import Deltas, PresenceCells, Table, sum_runs, with_deltas

_PIECE = 1 << 20
_WIDTHS: tuple[type[np.unsignedinteger[Any]], ...] = (np.uint8, np.uint16, np.uint32)


@dataclass(frozen=True, slots=True)
class ModularCells:
    """A table of counters modulo the law's modulus, in the smallest of uint8, uint16 and uint32.

    Guarantee: the law of all cells seen at one unannounced and up to `k` announced looks changes by
    a factor of at most `law.ratio**(k+1)` between streams that differ in all or some updates of one
    user. [tests/exact/test_counters.py]

    Args:
        cells: the number of counters.
        law: the law of the initial noise.
    """

    cells: int
    law: Law

    is_presence = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a counter."""
        return counter_type(self.law.modulus)

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return self.cells * self.dtype.itemsize

    @property
    def says(self) -> str:
        """Description of a cell."""
        return f"noisy counters modulo {self.law.modulus:,}"

    def initial(self, coins: Coins) -> Table:
        """Return a table in which nobody has appeared."""
        table = np.empty(self.cells, self.dtype)  # NumPy gives empty arrays large pages
        weights = self.law.weights.tolist()
        for start in range(0, self.cells, _PIECE):
            piece = table[start : start + _PIECE]  # so that what is drawn takes little memory
            drawn = coins.categorical(weights, len(piece))
            piece[:] = drawn
            wipe(drawn)
        return table

    def is_table(self, table: Table) -> bool:
        """Return whether each counter is below the modulus."""
        return len(table) == self.cells and int(table.max()) < self.law.modulus

    def fresh_noise(self, coins: Coins) -> Table:
        """Return noise of the same law for every cell."""
        return self.initial(coins)

    def rerandomise(self, table: Table, noise: Table) -> None:
        """Add the noise to every cell."""
        _shift(table, noise, 1, self.law.modulus)

    def update(
        self,
        table: Table,
        slots: Iterable[Slots],
        deltas: Deltas | None,
        epoch: int,  # noqa: ARG002 - later noise is the same whatever came before
        coins: Coins,  # noqa: ARG002 - adding needs no coins
    ) -> None:
        """Add each delta to its cell."""
        for piece, given in with_deltas(slots, deltas):
            if given is None:
                _count(table, piece, self.law.modulus)
            else:
                _add(table, piece, given, self.law.modulus)

    def picture_values(self, table: Table) -> NDArray[np.int64]:
        """Return the values of the counters."""
        return table.astype(np.int64)

    def without_noise(
        self, slots: Iterable[Slots], deltas: Deltas, coins: Coins
    ) -> NDArray[np.int64]:
        """Return the counters of a table that begins at 0."""
        table = np.zeros(self.cells, self.dtype)
        self.update(table, slots, deltas, 0, coins)
        return table.astype(np.int64)

    def histogram(self, table: Table) -> NDArray[np.int64]:
        """Return the number of cells with each value, int64[M]."""
        counts = np.zeros(self.law.modulus, np.int64)
        _tally(table, counts)
        return counts

    def weighted(self, table: Table, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over cells of each value's score, for each row of int64[queries, M]."""
        histogram = self.histogram(table)
        sums: NDArray[np.int64] = scores @ histogram
        wipe(histogram)
        return sums


@dataclass(frozen=True, slots=True)
class ScoredCells(ModularCells):
    """Counters of which a release publishes one weighted count.

    Guarantee: as for `ModularCells`. [tests/exact/test_threshold.py]

    Args:
        scores: int64[looks, M], what a cell of each value counts for after 0, 1, ... announced
            intrusions.
    """

    scores: NDArray[np.int64] = field(compare=False)

    def group_sums(self, table: Table, groups: int, epoch: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Return the sum of the scores of all cells, which are one group."""
        return self.weighted(table, self.scores[epoch : epoch + 1])


@dataclass(frozen=True, slots=True)
class ScaledCells(PresenceCells, ModularCells):
    """Counters that take each user's deltas times a separate factor, 1 .. M-1, M a prime.

    A factor is the part of a user's slot within the cell: slot `s` is factor `s % (M-1) + 1` of
    cell `s // (M-1)`. It is as good as random, so a state that is not a multiple of M adds a
    uniform nonzero number, and what a cell holds depends only on how many such users it has: a
    counter tells a state of 0 from any other.
    """

    def update(
        self, table: Table, slots: Iterable[Slots], deltas: Deltas | None, epoch: int, coins: Coins
    ) -> None:
        """Add each delta, times the user's factor, to its cell."""
        for piece, given in with_deltas(slots, deltas):
            scaled = np.ones(len(piece), np.int64) if given is None else given.copy()
            cells = np.empty(len(piece), np.int64)
            _scale(piece, self.law.modulus, cells, scaled)
            ModularCells.update(self, table, [cells], scaled, epoch, coins)
            wipe(cells, scaled)

    @property
    def slots_per_cell(self) -> int:
        """Number of slots of one cell: one for each factor."""
        return self.law.modulus - 1

    def ones(self, table: Table) -> NDArray[np.uint8]:
        """Return whether each cell holds a value outside of the law's set, uint8[cells]."""
        ordinary = np.ones(self.law.modulus, np.uint8)
        ordinary[self.law.members] = 0
        marks = np.empty(len(table), np.uint8)
        _look_up(table, ordinary, marks)
        return marks


@dataclass(frozen=True, slots=True)
class BlockCells(ModularCells):
    """Counters with an initial block law; a release counts those outside of its high values.

    After an announced intrusion a release counts those that are not 0. Both numbers have an
    expectation that is affine in the sum of `min(|state|, tau)` of users with a cell each.

    Guarantee: as for `ModularCells`. [tests/exact/test_cropped.py]
    """

    def rerandomise(self, table: Table, noise: Table) -> None:
        """Take the noise away from every cell.

        Noise less noise of the same law has the autocorrelation of the law, which is affine in
        the cropped state; noise plus noise has not.
        """
        _shift(table, noise, -1, self.law.modulus)

    def group_sums(self, table: Table, groups: int, epoch: int) -> NDArray[np.int64]:
        """Return the number of cells that count, in each of `groups` equal runs of cells."""
        counted = np.empty(len(table), np.uint8)
        _look_up(table, self._marks(epoch), counted)
        return sum_runs(counted, groups)

    def _marks(self, epoch: int) -> NDArray[np.uint8]:
        """Return whether a cell of each value counts."""
        weights = self.law.weights
        ordinary = np.arange(len(weights)) if epoch else weights < weights.max()
        return (ordinary != 0).astype(np.uint8)


def counter_type(modulus: int) -> np.dtype[Any]:
    """Return the smallest type of a counter modulo `modulus`."""
    return np.dtype(next(kind for kind in _WIDTHS if modulus - 1 <= np.iinfo(kind).max))


_SLOTS = read_only("int64")
COUNTERS = ("uint8", "uint16", "uint32")
"""The types of counters, for kernels."""


@kernel(*(f"void({kind}[::1], {_SLOTS}, int64)" for kind in COUNTERS))
def _count(table: Table, slots: Slots, modulus: int) -> None:
    """Add one to the cell of each row."""
    for row in range(slots.size):
        slot = slots[row]
        if slot >= 0:
            value = np.int64(table[slot]) + 1
            table[slot] = value if value < modulus else 0


@inlined
def _reduce(value, modulus):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the residue of a number mostly near 0: a division takes longer than an addition."""
    if -modulus <= value < 0:
        return value + modulus
    return value if 0 <= value < modulus else value % modulus


@kernel(*(f"void({kind}[::1], {_SLOTS}, {_SLOTS}, int64)" for kind in COUNTERS))
def _add(table: Table, slots: Slots, deltas: Deltas, modulus: int) -> None:
    """Add each delta to its cell."""
    for row in range(slots.size):
        slot = slots[row]
        if slot >= 0:
            value = np.int64(table[slot]) + _reduce(deltas[row], modulus)
            table[slot] = value if value < modulus else value - modulus


@kernel(*(f"void({kind}[::1], {kind}[::1], int64, int64)" for kind in COUNTERS))
def _shift(table: Table, noise: Table, sign: int, modulus: int) -> None:
    """Add to each cell, or take from it, what stands at its place in another table."""
    for cell in range(table.size):
        table[cell] = _reduce(np.int64(table[cell]) + sign * np.int64(noise[cell]), modulus)


@kernel(f"void({_SLOTS}, int64, int64[::1], int64[::1])")
def _scale(slots: Slots, modulus: int, cells: Slots, deltas: Deltas) -> None:
    """Split slots into cells and factors, and multiply the deltas by these."""
    for row in range(slots.size):
        cell = slots[row] // (modulus - 1)
        factor = slots[row] - cell * (modulus - 1) + 1
        cells[row] = cell
        deltas[row] = _reduce(deltas[row], modulus) * factor % modulus


@kernel(*(f"void({kind}[::1], int64[::1])" for kind in COUNTERS))
def _tally(table: Table, counts: NDArray[np.int64]) -> None:
    """Count the cells of each value; NumPy would leave a copy of the table behind."""
    for cell in range(table.size):
        counts[table[cell]] += 1


@kernel(*(f"void({kind}[::1], uint8[::1], uint8[::1])" for kind in COUNTERS))
def _look_up(table: Table, marks: NDArray[np.uint8], cells: NDArray[np.uint8]) -> None:
    """Write the mark of each cell's value."""
    for cell in range(table.size):
        cells[cell] = marks[table[cell]]

"""Tables of bits of one addressing key, and the number of cells that show each pattern of bits.

A *pattern* of k tables is a whole number below `2**k`: table `i` has the bit `i` of it, table 0 the
lowest. Arrays of patterns have `2**k` entries in this order on their last axis. So a set of
patterns of users is an array of booleans, and sets are combined with `|`, `&` and `~`:

>>> first, second = members(2)
>>> (first & ~second).tolist()  # of patterns 00, 01, 10, 11, the lowest bit last
[False, True, False, False]

To read published tables, and to ask them something (see `operations`):

>>> import numpy as np
>>> bits = np.array([[1, 0, 1, 0, 1, 0, 1, 0], [1, 1, 0, 0, 1, 1, 0, 0]], np.uint8)
>>> layout = CellLayout(cells_per_level=8, universe=8)
>>> tables = BitTables.of_bits(layout, bits, absent=(0.25, 0.25), present=(0.75, 0.75))
>>> tables.patterns().counts.tolist()
[[2, 2, 2, 2]]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import InputError
from panprivacy.statistics.overlaps.pairs import PairNoise

Floats = NDArray[np.float64]
PatternSet = NDArray[np.bool_]
"""Which patterns of tables users may have; bool[2**k]."""

MOST_TABLES = 12
"""There are `2**k` patterns of k tables, and as many unknown numbers of users."""
_MOST_INTERSECTED = 5
"""So many tables are counted by intersections of packed bits; more of them cell by cell."""
_MOST_MULTIPLIED = 6
"""Matrices of the patterns of so many tables are multiplied as they are."""


@dataclass(frozen=True, slots=True)
class CellLayout:
    """Layout of the cells that users have: what all tables of one addressing key have in common.

    Args:
        cells_per_level: cells of each level; all cells of a table without levels.
        levels: levels that halve in popularity; 1 for hashed, sampled and direct cells.
        universe: number of possible users, each with at most one cell, and a cell of one user.
            As many as cells: direct; more: a sample. None where users are hashed to cells.

    Raises:
        InputError: there is no such addressing.
    """

    cells_per_level: int
    levels: int = 1
    universe: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        least = self.cells_per_level
        sampled = self.universe is None or (self.levels == 1 and self.universe >= least)
        if self.cells_per_level < 1 or self.levels < 1 or not sampled:
            message = (
                "a table needs a level or more of a cell or more; with a universe, one level of "
                "at most as many cells as users"
            )
            raise InputError(message)

    @property
    def cells(self) -> int:
        """Cells of all levels."""
        return self.levels * self.cells_per_level


@dataclass(frozen=True, slots=True, eq=False)
class ShardTable:
    """The published table of one shard.

    Args:
        layout: of its cells.
        packed: uint8[bytes], cell `c` in bit `c % 8` of byte `c // 8`; later bits are 0.
    """

    layout: CellLayout
    packed: NDArray[np.uint8]

    @property
    def is_packed(self) -> bool:
        """Whether all bits after those of cells are 0."""
        spare = -self.layout.cells % 8
        return not (spare and len(self.packed) and int(self.packed[-1]) >> (8 - spare))


@dataclass(frozen=True, slots=True, eq=False)
class BitTables:
    """Noisy tables of bits of one addressing key; they are public.

    Args:
        layout: of all of them.
        packed: uint8[k, bytes], cell `c` in bit `c % 8` of byte `c // 8`; later bits are 0.
        absent: of each table, the probability that a cell without a user is a 1.
        present: that a cell with one user or more is a 1; larger.

    Raises:
        InputError: the arrays do not fit together, or a table tells nothing.
    """

    layout: CellLayout
    packed: NDArray[np.uint8]
    absent: tuple[float, ...]
    present: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the shapes."""
        shape = len(self.absent), -(-self.layout.cells // 8)
        if self.packed.dtype != np.uint8 or self.packed.shape != shape:
            message = (
                f"{shape[0]:,} tables of {self.layout.cells:,} cells are {shape[1]:,} bytes each, "
                f"not an array of {self.packed.dtype} of shape {self.packed.shape}"
            )
            raise InputError(message)
        check_probabilities(self.absent, self.present)

    @staticmethod
    def of_bits(
        layout: CellLayout,
        bits: NDArray[np.uint8],
        absent: tuple[float, ...],
        present: tuple[float, ...],
    ) -> BitTables:
        """Return tables of unpacked bits, uint8[k, cells] of 0 and 1."""
        return BitTables(layout, np.packbits(bits, axis=-1, bitorder="little"), absent, present)

    def of(self, *numbers: int) -> BitTables:
        """Return some of the tables, in this order, from 0: before patterns are counted."""
        return BitTables(
            self.layout,
            self.packed[list(numbers)],
            tuple(self.absent[number] for number in numbers),
            tuple(self.present[number] for number in numbers),
        )

    def patterns(self) -> PatternCounts:
        """Count the cells of each pattern: all that a decoder reads.

        Two tables of 366 KiB take a third of a millisecond.

        Raises:
            InputError: there are more than `MOST_TABLES`.
        """
        check_number(len(self.absent))
        return PatternCounts(self.layout, self._counts(), self.absent, self.present)

    def _counts(self) -> NDArray[np.int64]:
        tables, levels = len(self.packed), self.layout.levels
        if tables > _MOST_INTERSECTED or (levels > 1 and self.layout.cells_per_level % 8):
            return self._counts_by_cell()
        levelled = self.packed.reshape(tables, levels, -1)
        spare = -levelled.shape[-1] % 8
        padded = np.pad(levelled, ((0, 0), (0, 0), (0, spare))) if spare else levelled
        return _intersections(np.ascontiguousarray(padded).view(np.uint64), self.layout)

    def _counts_by_cell(self) -> NDArray[np.int64]:
        pattern = np.zeros(self.layout.cells, np.uint16)
        for number, table in enumerate(self.packed):
            bits = np.unpackbits(table, count=self.layout.cells, bitorder="little")
            pattern |= bits.astype(np.uint16) << np.uint16(number)
        levels = pattern.reshape(self.layout.levels, -1)
        return np.array([np.bincount(one, minlength=1 << len(self.packed)) for one in levels])


@dataclass(frozen=True, slots=True, eq=False)
class PatternCounts:
    """How many cells of each level show each pattern of bits; sufficient for all questions.

    Args:
        layout: of the tables.
        counts: int64[levels, 2**k]; float64 of counts with noise, of which each level adds up.
        absent: of each table, the probability that a cell without a user is a 1.
        present: that a cell with one user or more is a 1.
        pair: the law of both bits of a cell, where those of two tables depend on each other.
        noise_variance: of independent noise on each count, before a level was made to add up.
    """

    layout: CellLayout
    counts: NDArray[np.int64] | Floats
    absent: tuple[float, ...]
    present: tuple[float, ...]
    pair: PairNoise | None = None
    noise_variance: float = 0.0

    @property
    def tables(self) -> int:
        """Number of tables."""
        return len(self.absent)

    def of(self, *numbers: int) -> PatternCounts:
        """Return the counts of some of the tables, in this order, from 0."""
        kept = [self.tables - 1 - number for number in reversed(numbers)]
        axes = (2,) * self.tables
        levels = self.counts.reshape(self.layout.levels, *axes)
        dropped = tuple(1 + axis for axis in range(self.tables) if axis not in kept)
        summed = levels.sum(axis=dropped)
        order = sorted(kept)
        turned = summed.transpose(0, *(1 + order.index(axis) for axis in kept))
        return PatternCounts(
            self.layout,
            turned.reshape(self.layout.levels, -1),
            tuple(self.absent[number] for number in numbers),
            tuple(self.present[number] for number in numbers),
            self.pair if len(numbers) == self.tables else None,
            self.noise_variance * 2 ** len(dropped),
        )


def members(tables: int) -> PatternSet:
    """Return which patterns are those of users of each table; bool[k, 2**k]."""
    return (np.arange(1 << tables) >> np.arange(tables)[:, None] & 1).astype(bool)


def check_number(tables: int) -> None:
    """Refuse more tables than have patterns that can be told apart.

    Raises:
        InputError: there are none, or more than `MOST_TABLES`.
    """
    if not 1 <= tables <= MOST_TABLES:
        message = (
            f"{tables:,} tables cannot be combined: take 1 to {MOST_TABLES}, or ask for the union "
            "alone, which takes more"
        )
        raise InputError(message)


def check_probabilities(absent: tuple[float, ...], present: tuple[float, ...]) -> None:
    """Refuse tables that tell nothing.

    Raises:
        InputError: a cell with a user is not a 1 more often than one without, in a table.
    """
    pairs = list(zip(absent, present, strict=False))
    if len(absent) != len(present) or not all(0 <= low < high <= 1 for low, high in pairs):
        message = (
            "each table needs two probabilities of a 1, of a cell without a user and of one with "
            "a user: the second one larger, both from 0 to 1"
        )
        raise InputError(message)


class Transform:
    """The Kronecker product of a matrix for each table, applied to patterns or sets of tables.

    Of many tables it takes `k 2**k` steps in place of `4**k`.

    Args:
        steps: float64[k, 2, 2]; entry `[i, a, b]` takes bit `b` of table `i` to bit `a`.
    """

    def __init__(self, steps: Floats) -> None:
        self._steps = steps
        self._matrix = reduce(_kronecker, steps) if len(steps) <= _MOST_MULTIPLIED else None

    def __call__(self, values: Floats) -> Floats:
        """Return the product with the last axis; float64[..., 2**k]."""
        if self._matrix is not None:
            return values @ self._matrix.T
        for number, ((low_low, low_high), (high_low, high_high)) in enumerate(self._steps):
            halves = values.reshape(*values.shape[:-1], -1, 2, 1 << number)
            low, high = halves[..., 0, :], halves[..., 1, :]
            both = (low_low * low + low_high * high, high_low * low + high_high * high)
            values = np.stack(both, axis=-2).reshape(values.shape)
        return values


def _kronecker(low: Floats, high: Floats) -> Floats:
    """Return the matrix of some tables and of a higher one."""
    return np.asarray(np.kron(high, low), float)


def _intersections(words: NDArray[np.uint64], layout: CellLayout) -> NDArray[np.int64]:
    """Count patterns of words[k, levels, n]: cells that are 1 in all of some tables come first."""
    tables = len(words)
    counts = np.empty((layout.levels, 1 << tables))
    counts[:, 0] = layout.cells_per_level
    for chosen in range(1, 1 << tables):
        ones = reduce(np.bitwise_and, (words[i] for i in range(tables) if chosen >> i & 1))
        counts[:, chosen] = np.bitwise_count(ones).sum(axis=-1, dtype=np.int64)
    exactly = Transform(np.tile([[1.0, -1.0], [0.0, 1.0]], (tables, 1, 1)))(counts)
    return np.rint(exactly).astype(np.int64)

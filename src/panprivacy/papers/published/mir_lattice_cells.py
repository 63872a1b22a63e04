"""A sketch with initial noise calibrated to a norm: a point of a lattice, and its privacy loss.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", section 3.1, "A general noise-calibrating technique for sketches". Repaired: no box
around the states, the sensitivity of the lattice in place of a bound on it, and the epsilon of
state and release together. `mir_lattice` enumerates; docs/published.md has each with its number.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.papers.published.mir_lattice import (
    Floats,
    Integers,
    Lattice,
    LatticeSketch,
    lattice_of,
    probabilities,
    sensitivity_of,
    weights_of,
)
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Guarantee
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.count_plan import CountPlan
from panprivacy.statistics.plan import guarantee_of
from panprivacy.tables.addressing import Slots
from panprivacy.tables.cells.modular import counter_type
from panprivacy.tables.cells.protocol import Deltas, Table, with_deltas


@dataclass(frozen=True, slots=True)
class LatticeCells:
    """One cell, which holds the number of a point of a lattice: a complete sketch.

    Guarantee: the law of the point seen at one unannounced and up to `k` announced looks changes by
    a factor of at most `e**((k+1) epsilon)` between streams that differ in all or some updates of
    one user. [tests/exact/test_calibration.py]

    Args:
        sketch: the map.
        norm: norm of the states, 0, 1 or 2.
        epsilon: epsilon of one intrusion.
    """

    sketch: LatticeSketch
    norm: int
    epsilon: Fraction

    cells = 1
    is_presence = False

    @property
    def lattice(self) -> Lattice:
        """The points and their lengths."""
        return lattice_of(self.sketch, self.norm)

    @property
    def sensitivity(self) -> int:
        """The largest number of steps by which a user moves the length of any point."""
        return sensitivity_of(self.sketch, self.norm)

    def weights(self, epsilon: Fraction) -> tuple[int, ...]:
        """Return the weights of all points as noise of this epsilon."""
        return weights_of(self.sketch, self.norm, epsilon)

    @property
    def points(self) -> int:
        """Number of points."""
        return self.sketch.modulus**self.sketch.rows

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the number of a point."""
        return counter_type(self.points)

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return self.dtype.itemsize

    @property
    def says(self) -> str:
        """Description of a cell."""
        return f"a noisy point of {self.sketch.modulus:,}**{self.sketch.rows}"

    def initial(self, coins: Coins) -> Table:
        """Return the sketch of an empty stream, with noise."""
        drawn = coins.categorical(self.weights(self.epsilon), 1)
        table = drawn.astype(self.dtype)
        wipe(drawn)
        return table

    def is_table(self, table: Table) -> bool:
        """Return whether the point is the image of a sketch."""
        lengths = self.lattice.lengths
        return len(table) == 1 and int(table[0]) < len(lengths) and lengths[table[0]] >= 0

    def fresh_noise(self, coins: Coins) -> Table:
        """Return noise of the same law."""
        return self.initial(coins)

    def rerandomise(self, table: Table, noise: Table) -> None:
        """Add the noise."""
        self._move(table, self.entries(noise))

    def update(
        self,
        table: Table,
        slots: Iterable[Slots],
        deltas: Deltas | None,
        epoch: int,  # noqa: ARG002 - later noise is the same whatever came before
        coins: Coins,  # noqa: ARG002 - adding needs no coins
    ) -> None:
        """Add the columns of the users, times their deltas."""
        lattice = self.lattice
        for piece, given in with_deltas(slots, deltas):
            moved = lattice.columns[piece]
            if given is not None:
                reduced = given % lattice.modulus
                moved *= reduced[:, np.newaxis]
                wipe(reduced)
            self._move(table, moved.sum(axis=0))
            wipe(moved)

    def entries(self, table: Table) -> Integers:
        """Return the numbers of the sketch, int64[rows]."""
        return np.array(np.unravel_index(int(table[0]), self.lattice.shape), np.int64)

    def _move(self, table: Table, by: Integers) -> None:
        entries = self.entries(table)
        entries += by
        table[0] = self.lattice.numbers(entries)[0]
        wipe(entries, by)

    def group_sums(self, table: Table, groups: int, epoch: int) -> Integers:  # noqa: ARG002
        """Return the length of the sketch, in steps."""
        return self.lattice.lengths[table]

    def picture_values(self, table: Table) -> NDArray[np.int64]:
        """Return the number of the point."""
        return table.astype(np.int64)

    def without_noise(
        self, slots: Iterable[Slots], deltas: Deltas, coins: Coins
    ) -> NDArray[np.int64]:
        """Return the point of a table that begins at 0."""
        table = np.zeros(1, self.dtype)
        self.update(table, slots, deltas, 0, coins)
        return table.astype(np.int64)


class LatticePlan(CountPlan):
    """The plan of a statistic that has one point of a lattice."""

    __slots__ = ()

    proofs = ("published",)
    checks = ("exact/test_calibration", "statistical/test_calibration")
    key_bytes = 0
    cells = 1

    @property
    @abstractmethod
    def table(self) -> LatticeCells:
        """The cell."""

    def sensitivity(self, epoch: int) -> int:  # noqa: ARG002
        """Return the largest amount by which a user may move the length."""
        return self.table.sensitivity

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee to each user.

        The lemma of docs/guarantees/windows.md wants releases that cost no more between any two
        points, and these cost that between two that one user lies apart. But one release is read
        off the state, which costs no more than a look.
        """
        asked, budget = self.request, self.split.budget
        loss = budget.of_releases(asked.releases)
        return guarantee_of(self, unseen=min(loss, budget.state) if asked.releases == 1 else loss)

    def noise(self, epoch: int) -> Floats:
        """Return the law of all noise in the point after `epoch` announced intrusions."""
        return _noise(self.table, epoch)

    @property
    def range_of_states(self) -> tuple[int, int] | None:
        """The states that modulo M are what they are."""
        reach = self.table.sketch.modulus - 1
        return -(reach // 2), reach // 2


@functools.lru_cache(maxsize=64)
def _noise(table: LatticeCells, epoch: int) -> Floats:
    once = probabilities(table.weights(table.epsilon))
    law = once
    for _ in range(epoch):
        law = table.lattice.convolved(law, once)
    return law

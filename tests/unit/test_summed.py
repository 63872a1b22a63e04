"""Cells that hold noisy sums of deltas."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from panprivacy.tables.cells.summed import SummedCells


@dataclass(frozen=True, slots=True)
class Added(SummedCells):
    """Each slot is a cell."""

    def update(self, table, slots, deltas, epoch, coins):
        for piece in slots:
            np.add.at(table, piece, deltas[: len(piece)])


class Asked:
    """Says which noise it was asked for."""

    def discrete_laplace(self, scale, size):
        self.asked = scale, size
        return np.arange(size)


def test_a_table_is_born_with_noise_of_the_scale():
    cells, coins = Added(3, Fraction(7, 2)), Asked()
    assert cells.initial(coins).tolist() == [0, 1, 2]
    assert coins.asked == (Fraction(7, 2), 3)
    assert cells.nbytes == 3 * 8 == np.zeros(3, cells.dtype).nbytes


def test_a_table_has_as_many_cells():
    cells = Added(3, Fraction(1))
    assert [cells.is_table(np.zeros(size, np.int64)) for size in (2, 3, 4)] == [False, True, False]


def test_what_is_shown_is_a_copy():
    table = np.array([-5, 2**62, 0])
    shown = Added(3, Fraction(1)).picture_values(table)
    assert shown.tolist() == table.tolist()
    assert not np.shares_memory(shown, table)


def test_without_noise_there_are_sums_of_deltas_alone():
    found = Added(3, Fraction(1)).without_noise([np.array([2, 2, 0])], np.array([4, 5, -1]), None)
    assert found.tolist() == [-1, 0, 9]

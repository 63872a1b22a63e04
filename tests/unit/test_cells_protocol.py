"""What cells have in common: pieces with their deltas, sums of runs, and presence."""

from __future__ import annotations

import numpy as np
import pytest

from panprivacy.tables.cells.protocol import PresenceCells, sum_runs, with_deltas


class Plain(PresenceCells):
    """A byte for each of six cells."""

    cells = 6

    def ones(self, table):
        return table.copy()


class Paired(Plain):
    slots_per_cell = 2


def test_each_piece_has_its_own_deltas():
    pieces = [np.arange(2), np.arange(0), np.arange(3)]
    found = list(with_deltas(pieces, np.array([1, 2, 3, 4, 5])))
    assert [piece is given for (piece, _), given in zip(found, pieces, strict=True)] == [True] * 3
    assert [deltas.tolist() for _, deltas in found] == [[1, 2], [], [3, 4, 5]]
    assert [deltas for _, deltas in with_deltas(pieces, None)] == [None] * 3


def test_runs_are_summed_and_what_was_counted_is_wiped():
    counted = np.full(600, 255, np.uint8)
    sums = sum_runs(counted, 2)
    assert sums.tolist() == [300 * 255] * 2
    assert sums.dtype == np.int64
    assert not counted.any()


@pytest.mark.parametrize(
    ("groups", "sums"), [(1, [3]), (2, [2, 1]), (3, [1, 1, 1]), (6, [0, 1, 1, 0, 0, 1])]
)
def test_groups_are_runs_of_neighbouring_cells(groups, sums):
    table = np.array([0, 1, 1, 0, 0, 1], np.uint8)
    assert Plain().group_sums(table, groups, 0).tolist() == sums
    assert table.any()


def test_without_noise_whoever_came_is_present_once():
    slots = [np.array([1, 0, 1]), np.array([-1, 5])]
    found = Plain().without_noise(slots, np.array([1, -1, 2, 1, 0]), None)
    assert found.tolist() == [1, 1, 0, 0, 0, 1]
    assert Paired().without_noise([np.array([3, 2, 11])], np.ones(3, np.int64), None).tolist() == [
        *(0, 1, 0),
        *(0, 0, 1),
    ]


def test_shown_cells_are_whole_numbers_of_their_own():
    table = np.array([1, 0, 1, 0, 1, 1], np.uint8)
    shown = Plain().picture_values(table)
    assert shown.dtype == np.int64
    assert shown.tolist() == table.tolist()
    assert (Plain.is_presence, Plain().slots_per_cell) == (True, 1)

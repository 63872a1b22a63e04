"""Neighbours of a stream."""

from __future__ import annotations

from panprivacy.audit import RELEASE
from panprivacy.audit.neighbours import add_remove, replace


def test_neighbours_keep_deltas_and_public_steps():
    stream = [[(0, 2), (1, 1)], RELEASE, [(0, -1)]]
    moved = [[[(1, 2), (1, 1)], RELEASE, [(1, -1)]]]
    assert list(add_remove(stream, 0))[-1] == [[(1, 1)], RELEASE, []]
    assert list(replace(stream, 0, by=1))[-1:] == moved


def test_of_many_rows_the_first_and_the_last_ones_are_removed():
    removed = [sum(map(len, neighbour)) for neighbour in add_remove([[0]] * 20, 0)]
    assert sorted(set(removed)) == list(range(20))
    assert len(removed) < 100

"""Neighbours of a stream."""

from __future__ import annotations

from panprivacy.audit import CRASH, RELEASE, SAVE
from panprivacy.audit.neighbours import add_remove, event, replace


def test_neighbours_keep_deltas_and_public_steps():
    stream = [[(0, 2), (1, 1)], RELEASE, [(0, -1)]]
    moved = [[[(1, 2), (1, 1)], RELEASE, [(1, -1)]]]
    assert list(add_remove(stream, 0))[-1] == [[(1, 1)], RELEASE, []]
    assert list(replace(stream, 0, by=1))[-1:] == moved


def test_of_many_rows_the_first_and_the_last_ones_are_removed():
    removed = [sum(map(len, neighbour)) for neighbour in add_remove([[0]] * 20, 0)]
    assert sorted(set(removed)) == list(range(20))
    assert len(removed) < 100


def test_an_event_is_left_out_with_every_retry_or_with_some():
    stream = [SAVE, [0], CRASH, [0], CRASH, [0]]
    left = [[len(step) for step in one[1::2]] for one in event(stream, 0)]
    assert len(left) == 7
    assert {*map(tuple, left)} == {
        (one, other, last) for one in (0, 1) for other in (0, 1) for last in (0, 1)
    } - {(1, 1, 1)}

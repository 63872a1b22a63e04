"""What a table statistic keeps: the bytes that an intruder gets are the key and all arrays."""

from __future__ import annotations

import numpy as np

from panprivacy.statistics.state import State


def test_all_of_it_is_packed_in_order():
    arrays = [np.array([1, 2], np.int64), np.array([3], np.uint8)]
    state = State(b"key", arrays, releases=2, intrusions=1, tick=7)
    assert state.packed() == b"key" + arrays[0].tobytes() + b"\x03"
    assert state.nbytes == len(state.packed()) == 3 + 16 + 1
    assert state.table is arrays[0]


def test_a_new_one_has_told_nothing():
    state = State(b"", [np.zeros(1, np.int64)])
    assert (state.releases, state.intrusions, state.tick) == (0, 0, 0)

"""Small arrays that were freed hold nothing any more."""

from __future__ import annotations

import numpy as np
import pytest

from panprivacy.ground.hygiene.wiping import wipe_traces

SIZES = [1, 4, 100, 400, 1_000, 1_023]


def leave(size, blocks=7):
    """Free some arrays of one size."""
    held = [np.full(size, 77, np.uint8) for _ in range(blocks)]
    del held


def left(size, blocks=7):
    """How many bytes of these are in new arrays of that size."""
    held = [np.empty(size, np.uint8) for _ in range(blocks)]
    return sum(int((one == 77).sum()) for one in held)


@pytest.mark.parametrize("size", SIZES)
def test_freed_arrays_are_overwritten(size):
    leave(size)
    wipe_traces()
    assert left(size) == 0


def test_without_it_they_are_not():
    leave(400)
    assert left(400) > 400

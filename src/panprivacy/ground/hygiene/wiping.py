"""Erasure of the traces of a batch where no variable refers to them any more.

NumPy keeps freed blocks below 1 KiB for reuse, seven of each size, as they were: ids that were
widened, where lines began, how many rows each group had. In a protected process it keeps none.
Stacks keep what functions had on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import numpy as np

from panprivacy.ground.hygiene.allocator import keeps_small_arrays
from panprivacy.ground.kernels import wipe_stack

_CACHED_BYTES = 1 << 10
_CACHED_BLOCKS = 7
_STEP_BYTES = 1 << 5
_BYTE = np.dtype(np.uint8)


def wipe_traces() -> None:
    """Overwrite NumPy's freed small blocks, and what lies below on this thread's stack.

    What other threads are about to free stays for them to wipe.
    """
    for _ in traces_wiped():
        pass


def traces_wiped() -> Iterator[None]:
    """Yield the same in steps of less than a millisecond, for a thread that others wait for."""
    kept = _CACHED_BYTES if keeps_small_arrays() else 0
    for start in range(0, kept, _STEP_BYTES):
        sizes = [*range(start, start + _STEP_BYTES)] * _CACHED_BLOCKS
        held = list(map(np.zeros, sizes, repeat(_BYTE)))
        del held  # zeros come out of the blocks that are kept, and go back to them
        yield
    wipe_stack()

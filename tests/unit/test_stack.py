"""`wipe_stack` overwrites what functions that have returned left on the stack of their thread."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from panprivacy._kernels import wipe_stack

PATIENCE = 120
MARK = 0xC7
MARKED_BYTES = 60 << 10
TAKEN_BYTES = 64 << 10
"""The part next to the caller stays unmarked: what returns and waits may lie there."""


@intrinsic
def _mark_stack(_context):
    def generate(_context, builder, _signature, _arguments):
        byte, size, bit = ir.IntType(8), ir.IntType(64), ir.IntType(1)
        piece = builder.alloca(ir.ArrayType(byte, TAKEN_BYTES))
        start = builder.bitcast(piece, byte.as_pointer())
        fill = builder.module.declare_intrinsic("llvm.memset", (byte.as_pointer(), size))
        builder.call(fill, [start, byte(MARK), size(MARKED_BYTES), bit(1)])
        return builder.ptrtoint(start, size)

    return types.int64(), generate


@njit
def mark_stack():
    """Leave marks on the stack; where they lie."""
    return _mark_stack()


def marks_left(after):
    """How many marks another thread sees on the stack of one that called `after` and waits."""
    places, marked, seen = [], Event(), Event()

    def work():
        places.append(mark_stack())
        after()
        marked.set()
        seen.wait(PATIENCE)

    mark_stack()  # compiled by now
    thread = Thread(target=work)
    thread.start()
    try:
        assert marked.wait(PATIENCE)
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            memory.seek(places[0])
            stack = np.frombuffer(memory.read(MARKED_BYTES), np.uint8)
    finally:
        seen.set()
        thread.join()
    assert stack.size == MARKED_BYTES
    return np.count_nonzero(stack == MARK)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_the_stack_is_overwritten():
    assert marks_left(lambda: None) > MARKED_BYTES // 2
    assert marks_left(wipe_stack) == 0

"""Compiled functions, cached on disk where a folder can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_STACK_BYTES = 1 << 17
"""Deeper than pyarrow and the kernels go."""


def kernel(*signatures: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function once and cache it; without a writable folder, compile it at each start."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return njit(*signatures, cache=True, **options)(function)
        except RuntimeError:
            return njit(*signatures, **options)(function)

    return compiled


@intrinsic
def _zero_stack(_context: Any) -> Any:
    """Take a piece of the stack and write zeros to it, in a way that no compiler leaves out."""

    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        byte, size, bit = ir.IntType(8), ir.IntType(64), ir.IntType(1)
        piece = builder.alloca(ir.ArrayType(byte, _STACK_BYTES))
        start = builder.bitcast(piece, byte.as_pointer())
        fill = builder.module.declare_intrinsic("llvm.memset", (byte.as_pointer(), size))
        builder.call(fill, [start, byte(0), size(_STACK_BYTES), bit(1)])
        return size(_STACK_BYTES)

    return types.int64(), generate


@kernel(types.int64())
def wipe_stack() -> int:
    """Overwrite what functions that have returned left on this thread's stack.

    The last values that a parser or a kernel handled lie there for as long as the thread waits.
    """
    return _zero_stack()

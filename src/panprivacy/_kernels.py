"""Compiled functions, cached on disk where a folder can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import njit, types
from numba.extending import intrinsic

_STACK_BYTES = 1 << 17
"""Deeper than pyarrow and the kernels go."""


def kernel(*signatures: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function once and cache it; without a writable folder, compile it at each start.

    Other threads run meanwhile: whoever shares an array with one locks it, as for NumPy.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return njit(*signatures, cache=True, nogil=True, **options)(function)
        except RuntimeError:
            return njit(*signatures, nogil=True, **options)(function)

    return compiled


def _zero_vectors(builder: Any) -> None:
    """Write zeros to all vector registers, the upper ones of AVX-512 too; x86-64 and 64-bit ARM."""
    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        name, count, code = "zmm", 32, "vpxord %zmm{0}, %zmm{0}, %zmm{0}"
    elif features.get("avx"):
        name, count, code = "ymm", 16, "vpxor %ymm{0}, %ymm{0}, %ymm{0}"
    elif features.get("sse2"):
        name, count, code = "xmm", 16, "pxor %xmm{0}, %xmm{0}"
    elif features.get("neon"):
        name, count, code = "v", 32, "movi v{0}.2d, #0"
    else:
        return
    lines = "\n".join(code.format(i) for i in range(count))
    written = ",".join(f"~{{{name}{i}}}" for i in range(count))
    binding.initialize_native_asmparser()
    builder.asm(ir.FunctionType(ir.VoidType(), []), lines, written, [], side_effect=True)


@intrinsic
def _zero_stack(_context: Any) -> Any:
    """Take a piece of the stack and write zeros to it, in a way that no compiler leaves out."""

    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        byte, size, bit = ir.IntType(8), ir.IntType(64), ir.IntType(1)
        piece = builder.alloca(ir.ArrayType(byte, _STACK_BYTES))
        start = builder.bitcast(piece, byte.as_pointer())
        fill = builder.module.declare_intrinsic("llvm.memset", (byte.as_pointer(), size))
        builder.call(fill, [start, byte(0), size(_STACK_BYTES), bit(1)])
        _zero_vectors(builder)
        return size(_STACK_BYTES)

    return types.int64(), generate


@kernel(types.int64())
def wipe_stack() -> int:
    """Overwrite what functions that have returned left on this thread's stack and in its registers.

    The last values that a parser or a kernel handled lie there for as long as the thread waits.
    """
    return _zero_stack()

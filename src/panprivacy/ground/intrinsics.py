"""The instructions of the kernels in LLVM.

It imports numba, so nothing but the compilation of a kernel imports it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

_STACK_BYTES = 1 << 17
"""Deeper than pyarrow and the kernels go."""

ABREAST = 16
"""Words that are hashed at a time: more of them wait for one another."""

_PREFETCH_BYTES = 2_048
"""Bytes of ids that a kernel processes in the time of one memory access."""


def _instruction(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make an intrinsic of what writes its code, of arguments of these types."""

    def made(write: Callable[..., Any]) -> Any:
        @functools.wraps(write)  # numba takes its arguments from there: all but the first
        def typed(_typing: Any, *_arguments: Any) -> Any:
            def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
                written = write(builder, *args)
                return context.get_dummy_value() if written is None else written

            return result(*arguments), codegen

        return intrinsic(typed)

    return made


def _wide_product(builder: Any, a: Any, b: Any) -> Any:
    wide = ir.IntType(128)
    return builder.mul(builder.zext(a, wide), builder.zext(b, wide))


def _high_half(builder: Any, product: Any) -> Any:
    shifted = builder.lshr(product, ir.Constant(product.type, 64))
    return builder.trunc(shifted, ir.IntType(64))


@_instruction(types.uint64, types.uint64, types.uint64)
def multiply_high(builder: Any, a: Any, b: Any) -> Any:
    """Return the upper 64 bits of the 128-bit product: `a` uniform on 64 bits gives 0 .. b-1."""
    return _high_half(builder, _wide_product(builder, a, b))


def _folded(builder: Any, a: Any, b: Any) -> Any:
    product = _wide_product(builder, a, b)
    low = builder.trunc(product, ir.IntType(64))
    return builder.xor(low, _high_half(builder, product))


@_instruction(types.uint64, types.uint64, types.uint64)
def fold(builder: Any, a: Any, b: Any) -> Any:
    """Return the two halves of the 128-bit product, combined by exclusive or."""
    return _folded(builder, a, b)


def _constant(kind: Any, number: int) -> Any:
    """Return a number, or a vector that has it in each place."""
    places = kind.count if isinstance(kind, ir.VectorType) else 0
    return ir.Constant(kind, places * [number] or number)


def _folded_by_parts(builder: Any, a: Any, b: Any) -> Any:
    """Return the result of `fold` by products of 32 by 32 bits: none overflows, with the carry."""
    half, mask = (_constant(a.type, number) for number in (32, (1 << 32) - 1))
    (a_low, a_high), (b_low, b_high) = (
        (builder.and_(one, mask), builder.lshr(one, half)) for one in (a, b)
    )
    lowest = builder.mul(a_low, b_low)
    first = builder.add(builder.mul(a_high, b_low), builder.lshr(lowest, half))
    second = builder.add(builder.mul(a_low, b_high), builder.and_(first, mask))
    high = builder.add(builder.mul(a_high, b_high), builder.lshr(first, half))
    high = builder.add(high, builder.lshr(second, half))
    low = builder.or_(builder.shl(second, half), builder.and_(lowest, mask))
    return builder.xor(low, high)


def _everywhere(builder: Any, word: Any, vector: Any) -> Any:
    """Return a vector of equal words."""
    places = ir.VectorType(ir.IntType(32), vector.count)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), word, ir.IntType(32)(0))
    return builder.shuffle_vector(first, first, _constant(places, 0))


@_instruction(types.void, *6 * [types.uint64])
def fold_abreast(builder: Any, source: Any, a: Any, b: Any, c: Any, d: Any, target: Any) -> None:
    """Read 16 words `x` at one address, and write `fold(fold(x ^ a, b) ^ c, x ^ d)` to another.

    Vector registers take several words at a time, but have products of 32 bits alone. Where they
    are short, one word after another is faster.
    """
    word, vector = ir.IntType(64), ir.VectorType(ir.IntType(64), ABREAST)
    together = binding.get_host_cpu_features().get("avx2")
    kind, fold = (vector, _folded_by_parts) if together else (word, _folded)
    if together:
        a, b, c, d = (_everywhere(builder, one, vector) for one in (a, b, c, d))
    for at in range(0, 8 * ABREAST, 8 * ABREAST if together else 8):
        read, written = (
            builder.inttoptr(builder.add(one, word(at)), ir.PointerType(kind))
            for one in (source, target)
        )
        loaded = builder.load(read, align=8, typ=kind)
        once = fold(builder, builder.xor(loaded, a), b)
        twice = fold(builder, builder.xor(once, c), builder.xor(loaded, d))
        builder.store(twice, written, align=8)


@_instruction(types.uint64, types.uint64)
def trailing_zeros(builder: Any, a: Any) -> Any:
    """Return the number of zero bits below the lowest one; the argument is not 0."""
    return builder.cttz(a, ir.Constant(ir.IntType(1), 1))


@_instruction(types.uint64, types.uint64)
def popcount(builder: Any, a: Any) -> Any:
    """Return the number of one bits."""
    return builder.ctpop(a)


@_instruction(types.uint64, types.uint64)
def load_word(builder: Any, address: Any) -> Any:
    """Return the eight bytes at an address, aligned or not."""
    word = ir.IntType(64)
    pointer = builder.inttoptr(address, ir.PointerType(word))
    loaded = builder.load(pointer, typ=word)
    loaded.align = 1
    return loaded


@_instruction(types.uint64, types.uint64)
def load_byte(builder: Any, address: Any) -> Any:
    """Return the byte at an address."""
    byte = ir.IntType(8)
    pointer = builder.inttoptr(address, ir.PointerType(byte))
    return builder.zext(builder.load(pointer, typ=byte), ir.IntType(64))


@_instruction(types.uint64, types.uint64, types.uint8)
def equal_bytes(builder: Any, address: Any, byte: Any) -> Any:
    """Return a bit for each of the 64 bytes at an address, aligned or not: is it `byte`?"""
    vector = ir.VectorType(ir.IntType(8), 64)
    pointer = builder.inttoptr(address, ir.PointerType(vector))
    loaded = builder.load(pointer, align=1, typ=vector)
    wanted = _everywhere(builder, byte, vector)
    return builder.bitcast(builder.icmp_unsigned("==", loaded, wanted), ir.IntType(64))


@_instruction(types.uint64, types.uint64, types.uint64)
def store_word(builder: Any, address: Any, word: Any) -> Any:
    """Write eight bytes at an address, aligned or not; the word that was written."""
    pointer = builder.inttoptr(address, ir.PointerType(ir.IntType(64)))
    stored = builder.store(word, pointer)
    stored.align = 1
    return word


@_instruction(types.uint64, types.uint64)
def scalar(builder: Any, a: Any) -> Any:
    """Return the argument, in a way that keeps LLVM from taking several rows of a loop at a time.

    Vector registers have no wide product: taking words out and in costs more than the rest gains.
    """
    word = ir.IntType(64)
    return builder.asm(ir.FunctionType(word, [word]), "", "=r,0", [a], side_effect=True)


@_instruction(types.void, types.uint64)
def fetch_ahead(builder: Any, address: Any) -> None:
    """Prefetch the data some way behind an address, which need not exist.

    Where ids come straight from memory, it stops guessing what comes next at the end of each page.
    """
    number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
    ahead = builder.inttoptr(builder.add(address, address.type(_PREFETCH_BYTES)), byte)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
    builder.call(prefetch, [ahead, number(0), number(3), number(1)])  # to read data, and keep


def _deposit_loop(builder: Any, bits: Any, mask: Any) -> Any:
    """Return the result of `deposit`, one bit at a time."""
    word = ir.IntType(64)
    before, body = builder.block, builder.append_basic_block()
    after = builder.append_basic_block()
    builder.cbranch(builder.icmp_unsigned("==", mask, word(0)), after, body)
    builder.position_at_end(body)
    bits_left, mask_left, found = (builder.phi(word) for _ in range(3))
    lowest = builder.and_(mask_left, builder.neg(mask_left))
    chosen = builder.and_(lowest, builder.neg(builder.and_(bits_left, word(1))))
    more = builder.or_(found, chosen)
    next_bits, next_mask = builder.lshr(bits_left, word(1)), builder.xor(mask_left, lowest)
    for phi, start, following in (
        (bits_left, bits, next_bits),
        (mask_left, mask, next_mask),
        (found, word(0), more),
    ):
        phi.add_incoming(start, before)
        phi.add_incoming(following, body)
    builder.cbranch(builder.icmp_unsigned("==", next_mask, word(0)), after, body)
    builder.position_at_end(after)
    result = builder.phi(word)
    result.add_incoming(word(0), before)
    result.add_incoming(more, body)
    return result


@_instruction(types.uint64, types.uint64, types.uint64)
def deposit(builder: Any, bits: Any, mask: Any) -> Any:
    """Return the low bits of the first argument, in order, at the ones of the second."""
    if not binding.get_host_cpu_features().get("bmi2"):
        return _deposit_loop(builder, bits, mask)
    word = ir.IntType(64)
    binding.initialize_native_asmparser()
    return builder.asm(
        ir.FunctionType(word, [word, word]),
        "pdep $2, $1, $0",
        "=r,r,r",
        [bits, mask],
        side_effect=False,
    )


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


@_instruction(types.int64)
def zero_stack(builder: Any) -> Any:
    """Take a piece of the stack and write zeros to it, in a way that no compiler leaves out."""
    byte, size, bit = ir.IntType(8), ir.IntType(64), ir.IntType(1)
    piece = builder.alloca(ir.ArrayType(byte, _STACK_BYTES))
    start = builder.bitcast(piece, byte.as_pointer())
    fill = builder.module.declare_intrinsic("llvm.memset", (byte.as_pointer(), size))
    builder.call(fill, [start, byte(0), size(_STACK_BYTES), bit(1)])
    _zero_vectors(builder)
    return size(_STACK_BYTES)

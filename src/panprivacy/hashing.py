"""A keyed 64-bit hash of whole numbers and byte strings, a few nanoseconds an id.

The construction is that of wyhash: a 64 by 64 to 128 bit product, folded. It spreads ids evenly
for a random key and stops outsiders from aiming at a cell. It is not a cryptographic hash and
privacy does not rest on it: the key is part of the state, and the guarantee holds for each key.

Reference: Wang Yi, "wyhash", version 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types, uint64
from numba.extending import intrinsic
from numpy.typing import NDArray

from panprivacy._kernels import kernel

KEY_BYTES = 16

_SECRET_0 = np.uint64(0x2D358DCCAA6C78A5)
_SECRET_1 = np.uint64(0x8BB84B93962EACC9)
_EIGHT = np.int64(8)


def key_words(key: bytes) -> tuple[np.uint64, np.uint64]:
    """The two 64-bit words of a 16-byte key."""
    first, second = np.frombuffer(key, "<u8", count=2)
    return np.uint64(first), np.uint64(second)


def _wide_product(builder: Any, args: Any) -> Any:
    wide = ir.IntType(128)
    return builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))


def _high_half(builder: Any, product: Any) -> Any:
    shifted = builder.lshr(product, ir.Constant(product.type, 64))
    return builder.trunc(shifted, ir.IntType(64))


@intrinsic
def multiply_high(_typing: Any, _a: Any, _b: Any) -> Any:
    """The upper 64 bits of the 128-bit product: `a` uniform on 64 bits gives 0 .. b-1."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _high_half(builder, _wide_product(builder, args))

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def fold(_typing: Any, _a: Any, _b: Any) -> Any:
    """The two halves of the 128-bit product, combined by exclusive or."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        product = _wide_product(builder, args)
        low = builder.trunc(product, ir.IntType(64))
        return builder.xor(low, _high_half(builder, product))

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def trailing_zeros(_typing: Any, _a: Any) -> Any:
    """The number of zero bits below the lowest one; the argument is not 0."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@intrinsic
def popcount(_typing: Any, _a: Any) -> Any:
    """The number of one bits."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def _load_word(_typing: Any, _address: Any) -> Any:
    """The eight bytes at an address, aligned or not."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        pointer = builder.inttoptr(args[0], ir.PointerType(word))
        loaded = builder.load(pointer, typ=word)
        loaded.align = 1
        return loaded

    return types.uint64(types.uint64), codegen


@njit(inline="always")
def hash_word(word: np.uint64, key_0: np.uint64, key_1: np.uint64) -> np.uint64:
    """The hash of one 64-bit word."""
    product = fold(word ^ key_0, key_1 | uint64(1))
    return fold(product ^ _SECRET_0, word ^ _SECRET_1 ^ key_1)


@njit(inline="always")
def _short_word(data: NDArray[np.uint8], start: np.int64, length: np.int64) -> np.uint64:
    """Fewer than eight bytes as one word, little-endian."""
    word = uint64(0)
    for at in range(length):
        word |= uint64(data[start + at]) << uint64(8 * at)
    return word


@njit(inline="always")
def _hash_bytes(
    data: NDArray[np.uint8], start: np.int64, length: np.int64, key_0: np.uint64, key_1: np.uint64
) -> np.uint64:
    """The hash of `data[start:start+length]`, eight bytes at a time; the last eight overlap."""
    if length < _EIGHT:
        last = _short_word(data, start, length)
        state = key_0
    else:
        address = uint64(data.ctypes.data) + uint64(start)
        state = key_0
        for at in range(0, length - _EIGHT, _EIGHT):
            state = fold(state ^ _load_word(address + uint64(at)), key_1 | uint64(1)) ^ key_0
        last = _load_word(address + uint64(length - _EIGHT))
    return hash_word(last ^ state, key_0 ^ (uint64(length) * _SECRET_1), key_1)


def _readonly(dtype: Any) -> types.Array:
    return types.Array(dtype, 1, "C", readonly=True)


_KEY = (types.uint64, types.uint64)


@kernel(types.void(_readonly(types.int64), *_KEY, types.uint64[::1]))
def hash_integers(
    values: NDArray[np.int64], key_0: np.uint64, key_1: np.uint64, hashes: NDArray[np.uint64]
) -> None:
    """Write the hash of each value into `hashes`."""
    for row in range(values.size):
        hashes[row] = hash_word(uint64(values[row]), key_0, key_1)


@kernel(
    [
        types.void(_readonly(offset), _readonly(types.uint8), *_KEY, types.uint64[::1])
        for offset in (types.int32, types.int64)
    ]
)
def hash_byte_strings(
    offsets: NDArray[Any],
    data: NDArray[np.uint8],
    key_0: np.uint64,
    key_1: np.uint64,
    hashes: NDArray[np.uint64],
) -> None:
    """Write the hash of each string `data[offsets[row]:offsets[row+1]]` into `hashes`."""
    for row in range(hashes.size):
        start = np.int64(offsets[row])
        length = np.int64(offsets[row + 1]) - start
        hashes[row] = _hash_bytes(data, start, length, key_0, key_1)

"""A keyed 64-bit hash of whole numbers and byte strings, a few nanoseconds an id.

The construction is that of wyhash: a 64 by 64 to 128 bit product, folded. It spreads ids evenly
for a random key and stops outsiders from aiming at a cell. It is not a cryptographic hash and
privacy does not rest on it: the key is part of the state, and the guarantee holds for each key.

Reference: Wang Yi, "wyhash", version 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import uint64
from numpy.typing import NDArray

from panprivacy._kernels import inlined, instruction, kernel, read_only

KEY_BYTES = 16

_SECRET_0 = np.uint64(0x2D358DCCAA6C78A5)
_SECRET_1 = np.uint64(0x8BB84B93962EACC9)
_EIGHT = np.int64(8)


def key_words(key: bytes) -> tuple[np.uint64, np.uint64]:
    """The two 64-bit words of a 16-byte key."""
    first, second = np.frombuffer(key, "<u8", count=2)
    return np.uint64(first), np.uint64(second)


multiply_high = instruction("multiply_high")
fold = instruction("fold")
trailing_zeros = instruction("trailing_zeros")
popcount = instruction("popcount")
_load_word = instruction("load_word")


@inlined
def hash_word(word: np.uint64, key_0: np.uint64, key_1: np.uint64) -> np.uint64:
    """The hash of one 64-bit word."""
    product = fold(word ^ key_0, key_1 | uint64(1))
    return fold(product ^ _SECRET_0, word ^ _SECRET_1 ^ key_1)


@inlined
def _short_word(data: NDArray[np.uint8], start: np.int64, length: np.int64) -> np.uint64:
    """Fewer than eight bytes as one word, little-endian."""
    word = uint64(0)
    for at in range(length):
        word |= uint64(data[start + at]) << uint64(8 * at)
    return word


@inlined
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


_KEY = "uint64, uint64"


@kernel(f"void({read_only('int64')}, {_KEY}, uint64[::1])")
def hash_integers(
    values: NDArray[np.int64], key_0: np.uint64, key_1: np.uint64, hashes: NDArray[np.uint64]
) -> None:
    """Write the hash of each value into `hashes`."""
    for row in range(values.size):
        hashes[row] = hash_word(uint64(values[row]), key_0, key_1)


@kernel(
    *(
        f"void({read_only(offset)}, {read_only('uint8')}, {_KEY}, uint64[::1])"
        for offset in ("int32", "int64")
    )
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

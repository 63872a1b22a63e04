"""A keyed 64-bit hash of whole numbers and byte strings, a few nanoseconds an id.

A byte string that is the shortest decimal form of a whole number of 64 bits is that number, so
7, "7" and b"7" are one user, and "07" is another.

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

from panprivacy.ground.kernels import helper, inlined, instruction, kernel, read_only

KEY_BYTES = 16

ABREAST = 16
"""Words that are hashed at a time, in the words of `_intrinsics`, which is slow to import."""

_SECRET_0 = np.uint64(0x2D358DCCAA6C78A5)
_SECRET_1 = np.uint64(0x8BB84B93962EACC9)
_WORD = np.uint64(8)
"""Bytes of a word."""


def key_words(key: bytes) -> tuple[np.uint64, np.uint64]:
    """Return the two 64-bit words of a 16-byte key."""
    first, second = np.frombuffer(key, "<u8", count=2)
    return np.uint64(first), np.uint64(second)


multiply_high = instruction("multiply_high")
fold = instruction("fold")
fetch_ahead = instruction("fetch_ahead")
_fold_abreast = instruction("fold_abreast")
trailing_zeros = instruction("trailing_zeros")
popcount = instruction("popcount")
scalar = instruction("scalar")
equal_bytes = instruction("equal_bytes")
deposit = instruction("deposit")
_load_byte = instruction("load_byte")
_load_word = instruction("load_word")


@inlined
def hash_word(word: np.uint64, key_0: np.uint64, key_1: np.uint64) -> np.uint64:
    """Return the hash of one 64-bit word."""
    product = fold(word ^ key_0, key_1 | uint64(1))
    return fold(product ^ _SECRET_0, word ^ _SECRET_1 ^ key_1)


@inlined
def hash_abreast(source: np.uint64, key_0: np.uint64, key_1: np.uint64, target: np.uint64) -> None:
    """Write the same hashes of the `ABREAST` words at one address to another."""
    _fold_abreast(source, key_0, key_1 | uint64(1), _SECRET_0, _SECRET_1 ^ key_1, target)


@inlined
def _short_word(address: np.uint64, length: np.uint64) -> np.uint64:
    """Return up to eight bytes at an address as one word, little-endian."""
    word, at = uint64(0), uint64(0)
    while at < length:
        word |= _load_byte(address + at) << (uint64(8) * at)
        at += uint64(1)
    return word


_ZERO, _NINE, _TEN, _MINUS = uint64(ord("0")), uint64(9), uint64(10), uint64(ord("-"))
_SAFE_DIGITS, _TEN_TO_19 = uint64(19), uint64(10**19)
_SMALLEST = uint64(2**63)
"""The size of the smallest whole number."""


_MOST_DIGITS = uint64(20)
"""A sign counts as one."""

_SIXES, _TOP_HALVES = uint64(0x0606060606060606), uint64(0xF0F0F0F0F0F0F0F0)
_ZEROS = uint64(0x3030303030303030)


@inlined
def non_digits(word: np.uint64) -> np.uint64:
    """Return the high halves of eight bytes, 0 for digits: 3, and still 3 when 6 is added."""
    return (word ^ _ZEROS) | ((word + _SIXES) ^ _ZEROS)


@inlined
def may_be_number(address: np.uint64, length: np.uint64) -> np.bool:
    """Return whether the byte string at an address may be a number, by its start and its length.

    All of the first eight bytes are looked at, where there are so many: random texts of
    hexadecimal digits often begin with a digit, and rarely with eight. One comparison decides,
    because no processor can guess how several of them turn out.
    """
    if length < _WORD:
        first = _load_byte(address) if length else uint64(0)
        return (first - _ZERO <= _NINE) | (first == _MINUS)
    word = _load_word(address)
    first, rest = word & uint64(0xFF), word >> uint64(8)
    no_sign, no_digit = first ^ _MINUS, non_digits(first) & uint64(0xF0)
    no_digits = non_digits(rest) & (_TOP_HALVES >> uint64(8))
    too_long = (_MOST_DIGITS - length) >> uint64(63)
    return (no_sign * no_digit | no_digits | too_long) == uint64(0)


@helper
def decimal_word(address: np.uint64, length: np.uint64) -> tuple[np.bool, np.uint64]:
    """Return whether a byte string is the shortest decimal form of a 64-bit number, and it.

    It has at least one byte.
    """
    negative = _load_byte(address) == _MINUS
    first = address + uint64(negative)
    digits, read, word = length - uint64(negative), uint64(0), uint64(0)
    while read < digits:
        digit = _load_byte(first + read) - _ZERO
        if digit > _NINE:
            break
        word = word * _TEN + digit
        read += uint64(1)
    leading = _load_byte(first) - _ZERO if digits else uint64(0)
    shortest = read == digits and (leading > uint64(0) or digits == uint64(1))
    if digits > _SAFE_DIGITS:  # beyond 2**64 the word has started again from 0
        fits = digits == _SAFE_DIGITS + uint64(1) and leading == uint64(1) and word >= _TEN_TO_19
        shortest = shortest and fits
    if negative:
        return shortest and leading > uint64(0) and word <= _SMALLEST, uint64(0) - word
    return shortest, word


@inlined
def _eight_digits(word: np.uint64) -> np.uint64:
    """Return the number that eight bytes write in decimal; bytes of 0 count as the digit 0.

    Neighbours are added in pairs, then pairs, then fours: three products in place of eight.
    """
    pairs = (word & uint64(0x0F0F0F0F0F0F0F0F)) * uint64(10 * 2**8 + 1) >> uint64(8)
    fours = (pairs & uint64(0x00FF00FF00FF00FF)) * uint64(100 * 2**16 + 1) >> uint64(16)
    return (fours & uint64(0x0000FFFF0000FFFF)) * uint64(10_000 * 2**32 + 1) >> uint64(32)


@inlined
def hash_bytes(
    address: np.uint64, length: np.uint64, end: np.uint64, key_0: np.uint64, key_1: np.uint64
) -> np.uint64:
    """Return the hash of a byte string, by eight bytes; the last eight overlap.

    It is that of a whole number if these bytes are its shortest decimal form. Up to 16 digits are
    read as words; a sign, or more digits, are rare and take longer.

    Args:
        address: where it starts. numba would count references to an array in each row.
        length: its bytes.
        end: the end of the memory that may be read.
        key_0: the first word of the key.
        key_1: the second.
    """
    state = key_0
    if length > _WORD:
        first, last = _load_word(address), _load_word(address + (length - _WORD))
        state = fold(state ^ first, key_1 | uint64(1)) ^ key_0
        at = _WORD
        while at + _WORD < length:
            state = fold(state ^ _load_word(address + at), key_1 | uint64(1)) ^ key_0
            at += _WORD
        if length > _MOST_DIGITS:
            return hash_word(last ^ state, key_0 ^ (length * _SECRET_1), key_1)
        others = non_digits(first) | non_digits(last)
    else:
        used = ~uint64(0) >> (uint64(64) - uint64(8) * length) if length else uint64(0)
        if address + _WORD <= end:
            first = _load_word(address) & used
        else:
            first = _short_word(address, length)
        last, others = first, non_digits(first | (_ZEROS & ~used))
    leading, only_digits = first & uint64(0xFF), others & _TOP_HALVES == uint64(0)
    if only_digits and uint64(0) < length <= uint64(16):
        if leading != _ZERO or length == uint64(1):
            if length > _WORD:
                high = _eight_digits(first << (uint64(128) - uint64(8) * length))
                word = high * uint64(10**8) + _eight_digits(last)
            else:
                word = _eight_digits(first << (uint64(64) - uint64(8) * length))
            return hash_word(word, key_0, key_1)
    elif uint64(0) < length <= _MOST_DIGITS and (only_digits or leading == _MINUS):
        is_number, word = decimal_word(address, length)
        if is_number:
            return hash_word(word, key_0, key_1)
    return hash_word(last ^ state, key_0 ^ (length * _SECRET_1), key_1)


_KEY = "uint64, uint64"


@kernel(f"void({read_only('int64')}, {_KEY}, uint64[::1])")
def hash_integers(
    values: NDArray[np.int64], key_0: np.uint64, key_1: np.uint64, hashes: NDArray[np.uint64]
) -> None:
    """Write the hash of each value into `hashes`."""
    for row in range(values.size):
        hashes[row] = scalar(hash_word(uint64(values[row]), key_0, key_1))


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
    base = uint64(data.ctypes.data)
    end = base + uint64(data.size)
    start = base + uint64(offsets[0])
    for row in range(hashes.size):
        stop = base + uint64(offsets[row + 1])
        hashes[row] = scalar(hash_bytes(start, stop - start, end, key_0, key_1))
        start = stop

"""Random polynomials modulo `2**61 - 1`: a hash whose values for any r ids are independent.

An id becomes a number modulo p first: its digits are the coefficients of a polynomial, which is
evaluated at a random point. Different ids become the same number with a probability of at most
their number of digits over p. That number is where a second polynomial, of r random coefficients,
is evaluated: for r different numbers all r-tuples of values are equally likely.
docs/guarantees/addressing.md has the proof.

Reference: M. Wegman, L. Carter, "New hash functions and their use in authentication and set
equality", 1981.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import uint64
from numpy.typing import NDArray

from panprivacy.ground.kernels import inlined, kernel, read_only
from panprivacy.tables.hashing import decimal_word, may_be_number, multiply_high

PRIME = (1 << 61) - 1
WORD_BYTES = 8
DIGIT_BYTES = 7
"""Bytes of a digit of a byte string; those of whole numbers have four."""

_INTEGER = np.uint64(1 << 57)
"""Mark in the first digit of a whole number, in place of a length."""

_PRIME = np.uint64(PRIME)
_BITS = np.uint64(61)
_LEFT = np.uint64(3)

Words = NDArray[np.uint64]


def words_of(key: bytes) -> Words:
    """Return a number below `2**61` for each eight bytes of a key: the point, the coefficients."""
    return np.frombuffer(key, "<u8").astype(np.uint64) & _PRIME


@inlined
def _reduced(value: np.uint64) -> np.uint64:
    """Return a value below `2**63`, modulo p."""
    folded = (value & _PRIME) + (value >> _BITS)
    return folded - _PRIME if folded >= _PRIME else folded


@inlined
def _step(value: np.uint64, point: np.uint64, digit: np.uint64) -> np.uint64:
    """Return `value * point + digit` modulo p, all at most p."""
    low, high = value * point, multiply_high(value, point)
    product = (low & _PRIME) + ((high << _LEFT) | (low >> _BITS))
    return _reduced(_reduced(product) + digit)


@inlined
def _cell(number: np.uint64, words: Words, cells: np.uint64) -> np.int64:
    """Return the cell of a number, by the second polynomial."""
    value = uint64(0)
    for place in range(1, words.size):
        value = _step(value, number, words[place])
    return np.int64(multiply_high(value << _LEFT, cells))


@inlined
def _of_word(word: np.uint64, point: np.uint64) -> np.uint64:
    """Return the number of a whole number; no byte string is as long as its first digit."""
    return _step(_INTEGER | word >> uint64(32), point, word & uint64(0xFFFFFFFF))


_WORDS = read_only("uint64")
_SLOTS = "int64[::1]"


@kernel(f"void({read_only('int64')}, {_WORDS}, uint64, {_SLOTS})")
def slots_of_integers(
    values: NDArray[np.int64], words: Words, cells: np.uint64, slots: NDArray[np.int64]
) -> None:
    """Write the cell of each whole number into `slots`."""
    for row in range(values.size):
        slots[row] = _cell(_of_word(uint64(values[row]), words[0]), words, cells)


@kernel(
    *(
        f"void({read_only(offset)}, {read_only('uint8')}, {_WORDS}, uint64, {_SLOTS})"
        for offset in ("int32", "int64")
    )
)
def slots_of_byte_strings(
    offsets: NDArray[Any],
    data: NDArray[np.uint8],
    words: Words,
    cells: np.uint64,
    slots: NDArray[np.int64],
) -> None:
    """Write the cell of each byte string into `slots`; its first digit is its length."""
    base = uint64(data.ctypes.data)
    for row in range(slots.size):
        start, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        address, length = base + uint64(start), uint64(end - start)
        if may_be_number(address, length):
            decimal, word = decimal_word(address, length)
            if decimal:
                slots[row] = _cell(_of_word(word, words[0]), words, cells)
                continue
        number = uint64(end - start)
        while start < end:
            stop = min(start + DIGIT_BYTES, end)
            digit = uint64(0)
            for at in range(start, stop):
                digit |= uint64(data[at]) << uint64(8 * (at - start))
            number = _step(number, words[0], digit)
            start = stop
        slots[row] = _cell(number, words, cells)

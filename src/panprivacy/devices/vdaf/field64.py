"""The field of 2**64 - 2**32 + 1 elements, an array at a time.

An element is a `uint64` below `MODULUS`. The operations take the same steps for all elements.

Reference: draft-irtf-cfrg-vdaf-18, section 6.1.4.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

MODULUS: Final = 2**64 - 2**32 + 1
ELEMENT_BYTES: Final = 8

Elements = NDArray[np.uint64]
Element = np.uint64 | Elements

_MODULUS: Final = np.uint64(MODULUS)
_BITS: Final = np.uint64(32)
_MASK: Final = np.uint64(2**32 - 1)
"""The lower half of a word; also what 2**64 is in the field."""


def encode(elements: Elements) -> bytes:
    """Return eight bytes for each element, the lowest first."""
    return elements.astype("<u8").tobytes()


def decode(encoded: bytes, width: int) -> tuple[Elements, NDArray[np.bool_]]:
    """Return rows of `width` words, and which rows are all elements: others have no meaning."""
    words = np.frombuffer(encoded, "<u8").astype(np.uint64).reshape(-1, width)
    return words, np.logical_and.reduce(words < _MODULUS, axis=1)


def add(one: Element, other: Element) -> Elements:
    """Return sums."""
    total = np.add(one, other)
    return total - _MODULUS * ((total < one) | (total >= _MODULUS))


def subtract(one: Element, other: Element) -> Elements:
    """Return differences."""
    return np.subtract(one, other) + _MODULUS * np.less(one, other)


def multiply(one: Element, other: Element) -> Elements:
    """Return products: 2**64 is 2**32 - 1 in the field, and 2**96 is -1."""
    low, high = _wide_product(one, other)
    above, beyond = high & _MASK, high >> _BITS
    less = low - beyond
    less -= _MASK * (low < beyond)
    added = above * _MASK
    total = less + added
    total += _MASK * (total < added)
    return total - _MODULUS * (total >= _MODULUS)


def _wide_product(one: Element, other: Element) -> tuple[Elements, Elements]:
    """Return the lower and the upper 64 bits of products of words."""
    (a, b), (c, d) = ((word >> _BITS, word & _MASK) for word in (one, other))
    crossed, mixed = a * d, b * c
    carried = ((b * d >> _BITS) + (crossed & _MASK) + (mixed & _MASK)) >> _BITS
    return np.multiply(one, other), a * c + (crossed >> _BITS) + (mixed >> _BITS) + carried

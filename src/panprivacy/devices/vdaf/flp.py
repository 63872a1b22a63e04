"""The proof that a shared number is 0 or 1, which is checked on shares.

A number m is 0 or 1 if `m * m - m` is 0. The prover draws two random numbers a and b, and two
lines: `A(1) = a` and `A(-1) = m`, `B(1) = b` and `B(-1) = m`. The proof is a, b, and the parabola
`G = A * B` by its values at 1, i and -1, where `i * i = -1`. So `m * m` is `G(-1)`.

All but the product are sums of what is shared. Each verifier computes its share of `G(-1) - m`,
and of A, B and G at a random point t. Together they add up these shares. The first sum has to be
0, and the product of the second and the third has to be the fourth.

Why no other number passes, and what the verifiers learn: `docs/guarantees/prio3count.md`.

Reference: draft-irtf-cfrg-vdaf-18, section 7.3: the proof of Boneh et al., CRYPTO 2019, Theorem
4.3, for the circuit `Count` of section 7.4.1, with polynomials given by their values.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from panprivacy.devices.vdaf.field64 import MODULUS, Element, Elements, add, multiply, subtract

SEEDS: Final = 2
PROOF: Final = 5
VERIFIER: Final = 4

_HALF: Final = np.uint64((MODULUS + 1) // 2)
_ROOT: Final = np.uint64(pow(7, (MODULUS - 1) // 4, MODULUS))
"""The draft's root of order 4: its generator is a power of 7."""


def prove(numbers: Elements, seeds: Elements) -> Elements:
    """Return proofs that numbers are 0 or 1.

    Args:
        numbers: array of shape (n,), each 0 or 1; the proof of others is wrong.
        seeds: uniform and secret, of shape (n, 2).
    """
    a, b = seeds.T
    middle = multiply(_line(a, numbers, _ROOT), _line(b, numbers, _ROOT))
    return np.stack([a, b, multiply(a, b), middle, multiply(numbers, numbers)], axis=1)


def query(numbers: Elements, proofs: Elements, points: Elements) -> Elements:
    """Return shares of what is checked, of shape (n, 4).

    Args:
        numbers: shares of the numbers, of shape (n,).
        proofs: shares of their proofs, of shape (n, 5).
        points: where each proof is checked, of shape (n,); see `reveals`.
    """
    a, b, first, middle, last = proofs.T
    product = _parabola(first, middle, last, points)
    lines = _line(a, numbers, points), _line(b, numbers, points)
    return np.stack([subtract(last, numbers), *lines, product], axis=1)


def reveals(points: Elements) -> NDArray[np.bool_]:
    """Return which points are 1 or -1, where the lines reveal the seeds and the number."""
    return multiply(points, points) == 1


def decide(verifiers: Elements) -> NDArray[np.bool_]:
    """Return which numbers are 0 or 1, from the sums of the shares, of shape (n, 4)."""
    output, first, second, product = verifiers.T
    return (output == 0) & (multiply(first, second) == product)


def _line(at_1: Element, at_minus_1: Element, x: Element) -> Elements:
    """Return the value at x of the line that has these values."""
    slope = multiply(subtract(at_1, at_minus_1), x)
    return multiply(add(add(at_1, at_minus_1), slope), _HALF)


def _parabola(at_1: Element, at_i: Element, at_minus_1: Element, x: Element) -> Elements:
    """Return the value at x of the parabola that has these values.

    Its odd part is a multiple of x. Its even part is a line in x * x, which is 1 at 1 and -1 at i.
    """
    odd = multiply(subtract(at_1, at_minus_1), _HALF)
    even = _line(subtract(at_1, odd), subtract(at_i, multiply(odd, _ROOT)), multiply(x, x))
    return add(even, multiply(odd, x))

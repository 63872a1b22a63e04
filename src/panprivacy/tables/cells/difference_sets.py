"""Difference sets: sets of residues that meet every shift of themselves equally often.

A set of `k` of the residues modulo `v` is a difference set if each nonzero shift of it meets it in
the same number of places, `k (k-1)/(v-1)`. A noise law that is constant on one and on its
complement has the flattest spectrum that its density allows.

| family | modulus v | density |
|---|---|---|
| `residues` | a prime that leaves 3 when divided by 4 | 1/2 |
| `biquadratic` | a prime `4 b**2 + 1`, b odd | 1/4 |
| `singer` | `(base**degree - 1)/(base - 1)`, base a prime | `1/base` |
| `point` | any | `1/v` |

Reference: L. Baumert, "Cyclic Difference Sets", Lecture Notes in Mathematics 182 (1971).
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.ground.kernels import inlined, kernel

SetMembers = NDArray[np.int64]

_BASES = (2, 3, 5, 7)
_MOST_SINGER = 1 << 18
"""A larger recurrence takes seconds to search for."""


@dataclass(frozen=True, slots=True)
class DifferenceSet:
    """A difference set by its family, its modulus `v` and its size `k`; `members` makes it."""

    family: str
    modulus: int
    size: int

    @property
    def overlap(self) -> Fraction:
        """Number of places that the set shares with each nonzero shift of itself."""
        return Fraction(self.size * (self.size - 1), self.modulus - 1)

    @property
    def base(self) -> int:
        """Number of elements of the field of a Singer set's geometry."""
        return _geometry(self.modulus, self.size)[0]

    def members(self) -> SetMembers:
        """Return the residues of the set, in order, int64[size]."""
        if self.family == "residues":
            return _squares(self.modulus, 1)
        if self.family == "biquadratic":
            return _squares(self.modulus, 2)
        if self.family == "singer":
            return _singer_members(*_geometry(self.modulus, self.size))
        return np.zeros(1, np.int64)


def residues(modulus: int) -> DifferenceSet:
    """Return the quadratic residues without 0."""
    if modulus % 4 != 3 or not is_prime(modulus):
        message = "a flat law needs a prime modulus that leaves 3 when divided by 4"
        raise PlanError(message)
    return DifferenceSet("residues", modulus, (modulus - 1) // 2)


def biquadratic(modulus: int) -> DifferenceSet:
    """Return the nonzero fourth powers."""
    root = math.isqrt(modulus // 4)
    if 4 * root * root + 1 != modulus or root % 2 == 0 or not is_prime(modulus):
        message = "a biquadratic law needs a prime modulus 4 b**2 + 1 with b odd"
        raise PlanError(message)
    return DifferenceSet("biquadratic", modulus, (modulus - 1) // 4)


def singer(modulus: int, base: int | None = None) -> DifferenceSet:
    """Return the points of a hyperplane in a finite projective space, over the smallest base."""
    for one, degree in itertools.product(_BASES, range(3, 64)):
        if _points(one, degree) == modulus and base in {None, one}:
            return DifferenceSet("singer", modulus, _points(one, degree - 1))
    message = "a singer law needs a modulus (b**d - 1)/(b - 1) with b 2, 3, 5 or 7 and d at least 3"
    raise PlanError(message)


def point(modulus: int) -> DifferenceSet:
    """Return the set of 0 alone."""
    return DifferenceSet("point", modulus, 1)


def next_residues(least: int) -> DifferenceSet:
    """Return the smallest `residues` with a modulus of at least `least`."""
    return residues(next(n for n in itertools.count(least) if n % 4 == 3 and is_prime(n)))


def next_biquadratic(least: int) -> DifferenceSet | None:
    """Return the smallest `biquadratic` with a modulus of `least` to 4 times that, or None."""
    squares = (4 * b * b + 1 for b in itertools.count(3, 2))
    near = itertools.takewhile(lambda modulus: modulus <= 4 * least, squares)
    modulus = next((one for one in near if one >= least and is_prime(one)), None)
    return biquadratic(modulus) if modulus else None


def next_singer(least: int, base: int) -> DifferenceSet | None:
    """Return the smallest `singer` over a base with a modulus from `least` to 4 times that."""
    degree = next(degree for degree in itertools.count(3) if _points(base, degree) >= least)
    modulus, size = _points(base, degree), _points(base, degree - 1)
    near = modulus <= min(4 * least, _MOST_SINGER)
    return DifferenceSet("singer", modulus, size) if near else None


@functools.lru_cache(maxsize=256)
def with_modulus(least: int) -> tuple[DifferenceSet, ...]:
    """Return the smallest difference set of each density with a modulus of at least `least`.

    Moduli go up to 4 times that. Over the base 2 the density would be that of the residues, and
    a `point` fits every modulus.
    """
    others = [next_biquadratic(least), *(next_singer(least, base) for base in _BASES[1:])]
    return (next_residues(least), *(one for one in others if one is not None))


def is_prime(number: int) -> bool:
    """Return whether a number is prime, by trial division."""
    if number < 4:
        return number > 1
    factors = itertools.chain([2], range(3, math.isqrt(number) + 1, 2))
    return all(number % factor for factor in factors)


def next_prime(least: int) -> int:
    """Return the smallest prime of at least `least`."""
    return next(number for number in itertools.count(least) if is_prime(number))


@functools.lru_cache(maxsize=64)
def returns(chosen: DifferenceSet, epoch: int) -> float:
    """Return how many more sums of `epoch + 1` members are members than of evenly spread ones.

    A law on the set is uniform but for a multiple of its indicator, so this is all that its noise
    needs of the set, whatever epsilon is. All coefficients of the indicator's transform but the
    first one have the square `size - overlap`.
    """
    square = float(chosen.size - chosen.overlap)
    return square * _power_sum(chosen, epoch) / chosen.modulus


def _power_sum(chosen: DifferenceSet, power: int) -> float:
    """Return the sum of powers of all coefficients of the indicator's transform but the first.

    The sum of the coefficients themselves follows from whether 0 is a member. Powers of a set of
    power residues have few different coefficients, one a coset, each equally often.
    """
    members = chosen.members()
    if power == 1:
        return float(chosen.modulus * (members[:1] == 0).sum() - chosen.size)
    if chosen.family in _INDICES:
        index = _INDICES[chosen.family]
        angles = 2j * np.pi / chosen.modulus * members
        found = [np.exp(angles * one).sum() for one in _cosets(chosen.modulus, index)]
        return float(np.sum(np.power(found, power)).real) * (chosen.modulus - 1) / index
    indicator = np.zeros(chosen.modulus)
    indicator[members] = 1
    return float((np.fft.fft(indicator)[1:] ** power).real.sum())


def _squares(prime: int, times: int) -> SetMembers:
    """Return what squaring the nonzero residues so often leaves, in order."""
    # A number and its negative have the same square.
    left = np.arange(1, (prime + 1) // 2, dtype=np.int64)
    for _ in range(times):
        left = left * left % prime
    present = np.zeros(prime, np.bool_)
    present[left] = True
    return np.flatnonzero(present)


_INDICES = {"residues": 2, "biquadratic": 4}
"""The number of cosets of the members among all residues but 0."""


def _cosets(prime: int, index: int) -> list[int]:
    """Return the smallest residue of each coset of the powers of this index."""
    found: dict[int, int] = {}
    for one in range(1, prime):
        found.setdefault(pow(one, (prime - 1) // index, prime), one)
        if len(found) == index:
            break
    return list(found.values())


def _points(base: int, degree: int) -> int:
    """Return the number of points of a projective space."""
    return (base**degree - 1) // (base - 1)


def _geometry(modulus: int, size: int) -> tuple[int, int]:
    """Return the base and the degree of a space with `points` points and such a hyperplane."""
    return next(
        (base, degree)
        for base, degree in itertools.product(_BASES, range(3, 64))
        if (_points(base, degree), _points(base, degree - 1)) == (modulus, size)
    )


def _singer_members(base: int, degree: int) -> SetMembers:
    """Return the zeros of a maximal linear recurrence over the field of `base` elements."""
    sequence = np.empty(base**degree - 1, np.uint8)
    for taps in itertools.product(range(base), repeat=degree):
        # The taps of a primitive polynomial give the longest period.
        if taps[-1] and _recur(np.array(taps[::-1], np.int64), base, sequence):
            return np.flatnonzero(sequence[: _points(base, degree)] == 0)
    message = "there is no such field"
    raise PlanError(message)


@inlined
def _feed(taps, state, base):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    total = 0
    for at in range(taps.size):
        total += taps[at] * state[at]
    return total % base


@kernel("boolean(int64[::1], int64, uint8[::1])")
def _recur(taps: SetMembers, base: int, sequence: NDArray[np.uint8]) -> bool:
    """Fill in the recurrence of these taps; False if it repeats before the end."""
    state = np.zeros(taps.size, np.int64)
    state[-1] = 1
    for step in range(sequence.size):
        sequence[step] = state[0]
        fed = _feed(taps, state, base)
        state[:-1] = state[1:]
        state[-1] = fed
        returned = state[-1] == 1 and not state[:-1].any()
        if returned and step + 1 < sequence.size:
            return False
    return True

"""Exact samplers: uniform random bytes in, integers with exactly the stated law out.

Every sampler is a pure function of a byte source, so production, tests and replay share it. No
float decides a sample: probabilities are ratios of integers, compared with uniform integers.
Arrays are int64 while every intermediate value fits, and arrays of Python integers otherwise.

Reference: C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
NeurIPS 2020 (CKS20), Algorithms 1 to 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy import uint64
from numpy.typing import NDArray

from panprivacy.ground.kernels import helper, instruction, kernel

Draw = Callable[[int], NDArray[np.uint8]]
"""A byte source: `draw(n)` returns `n` independent uniform bytes."""

NoiseIntegers = NDArray[Any]
"""int64, or Python integers in an object array."""

_equal_bytes = instruction("equal_bytes")
_popcount = instruction("popcount")
_trailing_zeros = instruction("trailing_zeros")

_KEPT_DIGITS = 3
_UNDECIDED = np.uint8(2)
"""Value of a coin that is tied in all digits that were compared."""
_INT64_BITS = 62


def wipe(*arrays: NDArray[Any]) -> None:
    """Overwrite arrays with zeros before they are freed: an intruder can read freed memory."""
    for array in arrays:
        array.fill(0)


def bernoulli(draw: Draw, probability: Fraction, size: int) -> NDArray[np.uint8]:
    """Return bits that are 1 with exactly `probability`.

    A uniform real is compared with `probability` byte by byte; only ties need another byte, so a
    coin costs 1.004 bytes.
    """
    return toss(draw, leading_digits(probability), size)


class Digits(NamedTuple):
    """The first digits of a probability in base 256.

    Args:
        values: uint8; up to three digits, without zeros behind them; none for a probability of 1.
        rests: for each digit, the probability that the digits after it stand for.
    """

    values: NDArray[np.uint8]
    rests: tuple[Fraction, ...]


def leading_digits(probability: Fraction) -> Digits:
    """Return the first base-256 digits of a probability, each with the value of the rest.

    Exact arithmetic takes longer than a thousand coins, so callers that toss often store these; but
    not digits after them, which would tell how many were tied. One coin of 2**24 needs such a
    digit.
    """
    if not 0 <= probability <= 1:
        message = "a probability lies between 0 and 1"
        raise ValueError(message)
    if probability == 1:
        return Digits(np.empty(0, np.uint8), ())
    values: list[int] = []
    rests = [probability]
    while len(values) < _KEPT_DIGITS and (rests[-1] or not values):
        digit, rest = divmod(rests[-1] * 256, 1)
        values.append(digit)
        rests.append(rest)
    return Digits(np.array(values, np.uint8), tuple(rests[1:]))


def toss(draw: Draw, digits: Digits, size: int) -> NDArray[np.uint8]:
    """Return bits that are 1 with the probability of which `leading_digits` gave the digits.

    Bytes for ties are drawn with the others: a second draw would take longer than them.
    """
    if not digits.rests:
        return np.ones(size, np.uint8)
    data = draw(size + (size // 128 + 32 if digits.rests[0] else 0))
    bits = data[:size]
    compared = _decide(bits, data[size:], digits.values, not digits.rests[-1])
    if compared:
        undecided = bits == _UNDECIDED
        ties = np.flatnonzero(undecided)
        decided = toss(draw, leading_digits(digits.rests[compared - 1]), ties.size)
        bits[ties] = decided
        wipe(decided, ties, undecided)
    return bits


@kernel("int64(uint8[::1], uint8[::1], uint8[::1], boolean)")
def _decide(
    values: NDArray[np.uint8], spare: NDArray[np.uint8], digits: NDArray[np.uint8], ends: np.bool
) -> int:
    """Replace each byte by whether it is below the first digit; spare bytes decide ties.

    All that are tied in one digit are compared in the next one, if there are bytes for all.

    Args:
        values: a byte for each coin; then its bit, or `_UNDECIDED`.
        spare: bytes for ties, which are wiped.
        digits: what bytes are compared with, at least one.
        ends: whether no digit but 0 follows, so that a coin that is tied in all of them is 0.

    Returns:
        The number of digits in which undecided coins are tied; 0 if all are decided.
    """
    leading = digits[0]
    ties = _equal_places(values, leading)
    for at in range(values.size):
        values[at] = np.uint8(1) if values[at] < leading else np.uint8(0)
    used, tied, compared = 0, ties.size, 1
    while tied and compared < digits.size and used + tied <= spare.size:
        left = np.int64(0)
        for at in range(tied):
            byte = spare[used + at]
            values[ties[at]] = np.uint8(byte < digits[compared])
            ties[left] = ties[at]
            left += np.int64(byte == digits[compared])
        used, tied, compared = used + tied, int(left), compared + 1
    decided = tied == 0 or (ends and compared == digits.size)
    if not decided:
        for at in range(tied):
            values[ties[at]] = _UNDECIDED
    ties[:] = 0
    spare[:] = np.uint8(0)
    return 0 if decided else compared


@helper
def _equal_places(values: NDArray[np.uint8], byte: np.uint8) -> NDArray[np.int64]:
    """Return the places of a byte.

    They are counted before they are listed: room for as many as there could be takes longer to
    clear.
    """
    number, found, address = uint64(0), 0, uint64(values.ctypes.data)
    whole = values.size & ~63
    for start in range(0, whole, 64):
        number += _popcount(_equal_bytes(address + uint64(start), byte))
    for at in range(whole, values.size):
        number += uint64(values[at] == byte)
    places = np.empty(np.int64(number), np.int64)
    for start in range(0, whole, 64):
        equal = _equal_bytes(address + uint64(start), byte)
        while equal:
            places[found] = start + np.int64(_trailing_zeros(equal))
            equal &= equal - uint64(1)
            found += 1
    for at in range(whole, values.size):
        if values[at] == byte:
            places[found] = at
            found += 1
    return places


def uniform_below(draw: Draw, bound: int, size: int) -> NoiseIntegers:
    """Return integers uniform on 0 .. bound-1, by rejection from the next power of two."""
    bits = (bound - 1).bit_length()
    values = _uniform_bits(draw, bits, size)
    rejected = np.flatnonzero(values >= bound)
    while rejected.size:
        redrawn = _uniform_bits(draw, bits, rejected.size)
        values[rejected] = redrawn
        wipe(redrawn)
        rejected = rejected[values[rejected] >= bound]
    return values


def _uniform_bits(draw: Draw, bits: int, size: int) -> NoiseIntegers:
    if bits <= _INT64_BITS:
        width = next(width for width in (1, 2, 4, 8) if bits <= 8 * width)
        words = draw(size * width).view(f"<u{width}")
        words &= words.dtype.type((1 << bits) - 1)
        values = words.astype(np.int64)
        wipe(words)
        return values
    nbytes = -(-bits // 8)
    data, mask = draw(size * nbytes).tobytes(), (1 << bits) - 1
    words = np.empty(size, object)
    words[:] = [
        int.from_bytes(data[at : at + nbytes], "little") & mask
        for at in range(0, size * nbytes, nbytes)
    ]
    return words


def categorical(draw: Draw, weights: Sequence[int], size: int) -> NDArray[np.uint32]:
    """Return indices; `i` has probability `weights[i] / sum(weights)`."""
    ends = _cumulated(weights)
    total = int(ends[-1]) if len(ends) else 0
    if total == 0:
        raise ValueError(_WEIGHTS)
    values = uniform_below(draw, total, size)
    if ends.dtype == np.int64:
        indices = _search(values, ends, *_guide(ends))
    else:
        found = np.searchsorted(ends, values, side="right")
        indices = found.astype(np.uint32)
        wipe(found)
    wipe(values)
    return indices


_WEIGHTS = "weights are whole numbers of at least 0, not all 0"


def _cumulated(weights: Sequence[int]) -> NoiseIntegers:
    """Return the sums of the first weights, as int64 where they fit."""
    try:
        exact: NoiseIntegers = np.array(weights, np.int64)
        fits = exact.sum(dtype=float) < 1 << _INT64_BITS - 1
    except OverflowError:
        fits = False
    if not fits:
        exact = np.array([int(weight) for weight in weights], object)
    if (exact < 0).any():
        raise ValueError(_WEIGHTS)
    return np.cumsum(exact)


def _guide(ends: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Return the start of a search by the leading bits of a value, and the number of other bits."""
    total = int(ends[-1])
    shift = max(total.bit_length() - len(ends).bit_length() - 1, 0)
    starts = np.arange((total >> shift) + 1) << shift
    return np.searchsorted(ends, starts, side="right"), shift


@kernel("uint32[::1](int64[::1], int64[::1], int64[::1], int64)")
def _search(
    values: NDArray[np.int64], ends: NDArray[np.int64], guide: NDArray[np.int64], shift: int
) -> NDArray[np.uint32]:
    """Return the first index whose end lies above each value."""
    indices = np.empty(values.size, np.uint32)
    for at in range(values.size):
        index = guide[values[at] >> shift]
        while ends[index] <= values[at]:
            index += 1
        indices[at] = index
    return indices


def discrete_laplace(draw: Draw, scale: Fraction, size: int) -> NDArray[np.int64]:
    """Return integers with `P(k)` proportional to `exp(-|k|/scale)` (CKS20, Algorithm 2)."""
    if scale <= 0:
        message = "scale must be positive"
        raise ValueError(message)
    numerator, denominator = scale.as_integer_ratio()
    bits = max((numerator - 1).bit_length(), _LEAST_BITS)
    fits = bits <= _INT64_BITS - 20  # with room for a magnitude, which is some numerators
    fill = _fill_laplace if fits else _fill_laplace.plain
    samples, done = np.zeros(size, np.int64), 0
    words: NoiseIntegers = np.empty(0, np.int64 if fits else object)
    while done < size:
        unused, fresh = words, _uniform_bits(draw, bits, _WORDS * min(size - done + 1, _PIECE))
        words = np.concatenate([unused, fresh])
        wipe(unused, fresh)
        made, used = fill(words, numerator, denominator, samples[done:])
        done += made
        words[:used] = 0
        words = words[used:]
    wipe(words)
    return samples


_OFFSET, _ACCEPT, _HEADS, _SIGN = range(4)
_LEAST_BITS = 18
"""Minimum bits of a word that also chooses one of k.

A k above 2**18 never comes (probability 1/k!).
"""
_WORDS, _PIECE = 40, 4_096
"""Number of samples made at a time; a sample takes about 25 words."""


@kernel("UniTuple(int64, 2)(int64[::1], int64, int64, int64[::1])")
def _fill_laplace(  # noqa: C901 - one loop, for which words are left is asked in one place
    words: NoiseIntegers, numerator: int, denominator: int, samples: NDArray[np.int64]
) -> tuple[int, int]:
    """Make samples out of uniform words, as far as these go.

    A magnitude is an offset below `numerator`, kept with the probability `exp(-offset/numerator)`,
    and a numerator for each head before the first tail of coins of `exp(-1)`. A coin of
    `exp(-gamma)` tosses others of `gamma/k`, k = 1, 2, ..., until one fails: heads if that k is odd
    (CKS20, Algorithm 1). Plain Python runs this text too, for numbers that no word holds.

    Returns:
        How many samples are made, and how many words they took. The others are for the next
        sample: to draw them anew would favour samples that take few.
    """
    span = 1
    while span < numerator:
        span *= 2
    step = _OFFSET
    done = used = at = offset = heads = 0
    k = below = 1
    while done < len(samples) and at + 1 < len(words):
        first, second = words[at] & (span - 1), words[at + 1]
        at += 2
        if step == _OFFSET:
            if first < numerator:
                offset, step = first, _ACCEPT
        elif step == _SIGN:
            magnitude = (heads * numerator + offset) // denominator
            negative = second & 1
            if magnitude or not negative:  # 0 has one sign
                samples[done] = -magnitude if negative else magnitude
                done, used = done + 1, at
            step, heads = _OFFSET, 0
        elif (second & (below - 1)) < k and (step == _HEADS or first < numerator):
            if (second & (below - 1)) == 0 and (step == _HEADS or first < offset):
                k += 1
                if below < k:
                    below *= 2
                continue
            success = k % 2 == 1
            k = below = 1
            if step == _ACCEPT:
                step = _HEADS if success else _OFFSET
            elif success:
                heads += 1
            else:
                step = _SIGN
    return done, used


def bernoulli_exp(draw: Draw, numerators: NoiseIntegers, denominator: int) -> NDArray[np.bool_]:
    """Return coins, one per numerator, with `P(true) = exp(-numerator/denominator)`."""
    whole, part = numerators // denominator, numerators % denominator
    heads = _bernoulli_exp_unit(draw, part, denominator)
    tossed = 0
    alive = np.flatnonzero(heads & (whole > tossed))
    while alive.size:
        success = _bernoulli_exp_unit(draw, np.ones(alive.size, np.int64), 1)
        heads[alive[~success]] = False
        tossed += 1
        alive = alive[success]
        alive = alive[whole[alive] > tossed]
        wipe(success)
    wipe(whole, part)
    return heads


def _bernoulli_exp_unit(
    draw: Draw, numerators: NoiseIntegers, denominator: int
) -> NDArray[np.bool_]:
    """Return the same for exponents of at most 1 (CKS20, Algorithm 1).

    Coins of probability `gamma/k`, k = 1, 2, ..., are tossed until one fails; the answer is
    whether the failing k is odd. A `gamma/k` coin is a `gamma` coin and a `1/k` coin.
    """
    heads = np.zeros(len(numerators), bool)
    tossing = np.arange(len(numerators))
    k = 0
    while tossing.size:
        k += 1
        uniform, given = uniform_below(draw, denominator, tossing.size), numerators[tossing]
        one_in_k = uniform_below(draw, k, tossing.size)
        success = (uniform < given).astype(bool) & (one_in_k == 0)
        heads[tossing[~success]] = k % 2 == 1
        left = tossing[success]
        wipe(tossing, uniform, given, one_in_k, success)
        tossing = left
    return heads


def discrete_gaussian(draw: Draw, variance: Fraction, size: int) -> NDArray[np.int64]:
    """Return integers with `P(k)` proportional to `exp(-k**2/(2*variance))`.

    Reference: CKS20, Algorithm 3.
    """
    if variance <= 0:
        message = "variance must be positive"
        raise ValueError(message)
    scale = math.isqrt(math.floor(variance)) + 1
    samples = np.zeros(size, np.int64)
    pending = np.arange(size)
    while pending.size:
        proposed = discrete_laplace(draw, Fraction(scale), pending.size)
        accepted = _gaussian_accepts(draw, proposed, variance, scale)
        chosen = proposed[accepted]
        samples[pending[accepted]] = chosen
        pending = pending[~accepted]
        wipe(proposed, accepted, chosen)
    return samples


def _gaussian_accepts(
    draw: Draw, proposed: NDArray[np.int64], variance: Fraction, scale: int
) -> NDArray[np.bool_]:
    """Return coins of probability `exp(-(|y| - variance/scale)**2 / (2*variance))`."""
    numerator, denominator = variance.as_integer_ratio()
    exact = np.abs(proposed).astype(object)
    distance = exact * (denominator * scale) - numerator
    return bernoulli_exp(draw, distance * distance, 2 * numerator * denominator * scale**2)

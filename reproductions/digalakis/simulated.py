"""Streams, and answers of all estimators about them, many runs at once.

A table of bits says how many are 1, which is a sum of two binomials once it is known how many users
of the sample came. So a run costs a few draws, and `tests/docs/test_reproductions.py` compares them
with the classes. Algorithm 3 as printed has no such law: its level depends on the order of the
stream and on how often users come, so it is run, step by step.
"""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
from numpy.typing import NDArray

from panprivacy.papers.published.digalakis_theory import Estimator, tuned_bits
from reproductions.digalakis import STEPS, UNIVERSE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def streams(kind: str, runs: int, generator: np.random.Generator) -> Iterator[Integers]:
    """So many streams of the paper's length, `uniform` or `zipf`: the ids of users, in order.

    In a stream of Zipf's law with parameter 1, user 0 comes most often.
    """
    weights = 1 / np.arange(1, UNIVERSE + 1) if kind == "zipf" else np.ones(UNIVERSE)
    for _ in range(runs):
        times = generator.multinomial(STEPS, weights / weights.sum())
        yield generator.permutation(np.repeat(np.arange(UNIVERSE), times))


def distinct(stream: Integers) -> int:
    """How many users came."""
    return int(np.count_nonzero(np.bincount(stream)))


def ones(one: Estimator, users: int, came: Integers, generator: np.random.Generator) -> Integers:
    """How many bits of a sample of so many users are 1, in each run."""
    hits = generator.hypergeometric(came, UNIVERSE - came, users)
    present = generator.binomial(hits, one.bits.present)
    return present + generator.binomial(users - hits, one.bits.absent)


def read(one: Estimator, users: int, noised: Floats) -> Floats:
    """The unbiased answers, not cut to 0 .. 1."""
    return (noised / users - one.bits.absent) / one.bits.contrast


def printed_answers(
    one: Estimator, users: int, came: Integers, generator: np.random.Generator
) -> Floats:
    """The answer of each run with Laplace noise on the sum."""
    noise = generator.laplace(0, 1 / one.noise.rate, came.size)
    return read(one, users, ones(one, users, came, generator) + noise)


def repaired_answers(
    one: Estimator, users: int, came: Integers, generator: np.random.Generator
) -> Floats:
    """The answer of each run with discrete Laplace noise on the sum."""
    chance = -np.expm1(-one.noise.rate)
    noise = generator.geometric(chance, came.size) - generator.geometric(chance, came.size)
    return read(one, users, ones(one, users, came, generator) + noise)


def ppds_answer(
    stream: Integers, size: int, epsilon: float, generator: np.random.Generator
) -> float:
    """The answer of Algorithm 3 as printed, with a sample of up to so many ids."""
    bits = tuned_bits(epsilon)
    exponent = (UNIVERSE - 1).bit_length()
    factor = 2 * int(generator.integers(1 << (exponent - 1))) + 1
    shift = int(generator.integers(1 << exponent))
    kept, level = distinct_sampling(
        stream, UNIVERSE, size, bits.absent, bits.present, factor, shift, exponent, generator
    )
    share = 2**level / UNIVERSE
    noise = generator.laplace(0, share / epsilon)
    return (share * kept - bits.absent) / bits.contrast + noise


@numba.njit(cache=False)
def distinct_sampling(
    stream, universe, size, absent, present, factor, shift, exponent, generator
):  # pragma: no cover - compiled
    """The number of ids in the sample in the end, and the level."""
    levels = np.empty(universe, np.int64)
    for user in range(universe):
        place = (factor * user + shift) & ((1 << exponent) - 1)
        levels[user] = exponent
        for bit in range(exponent):
            if place >> bit & 1:
                levels[user] = bit
                break
    inside = np.zeros(universe, np.bool_)
    kept = level = 0
    for step in range(universe + stream.size):
        first = step < universe
        user = step if first else stream[step - universe]
        if levels[user] < level:
            continue
        was = inside[user]
        inside[user] = generator.random() < (absent if first else present)
        kept += int(inside[user]) - int(was)
        if not was and kept >= size:
            for other in range(universe):
                if inside[other] and levels[other] <= level:
                    inside[other] = False
                    kept -= 1
            level += 1
    return kept, level

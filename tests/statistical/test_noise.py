"""The exact samplers, with production coins, follow the laws they state."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.privacy.coins import FEW_BYTES, SystemCoins

from .checks import OFF, accepted, fits, fits_integers, happens, rejected

COINS = SystemCoins()
WRONG = Fraction(13, 10)
TOSSES = 1 << 22
SAMPLES = 200_000

PROBABILITIES = [
    Fraction(1, 2),
    Fraction(1, 3),
    Fraction(1, 257),
    Fraction(1, 1_000),
    Fraction(7, 256) + Fraction(1, 2**40),
    1 - Fraction(1, 257),
    1 - Fraction(3, 997),
]
WEIGHTS = {
    "two": [1, 2],
    "some impossible": [5, 0, 1, 0, 7],
    "many": list(range(1, 300)),
    "one short of a power of two": [1] * 255,
    "beyond 64 bits": [2**70, 3 * 2**70 + 1, 10**21],
}
SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(20), Fraction(1_000, 7)]
HUGE = Fraction(3 * 10**30 + 1, 10**30)
VARIANCES = [Fraction(1, 5), Fraction(1), Fraction(200, 7), Fraction(1_000)]


def laplace(scale: Fraction) -> np.ndarray:
    """The law of discrete Laplace noise, as far as it matters."""
    reach = math.ceil(40 * scale)
    law = np.exp(-np.abs(np.arange(-reach, reach + 1)) / float(scale))
    return law / law.sum()


def gaussian(variance: Fraction) -> np.ndarray:
    """The law of discrete Gaussian noise, as far as it matters."""
    reach = math.ceil(9 * math.sqrt(variance)) + 2
    law = np.exp(-(np.arange(-reach, reach + 1) ** 2) / float(2 * variance))
    return law / law.sum()


@pytest.mark.long
@pytest.mark.parametrize("probability", PROBABILITIES)
def test_bernoulli(probability):
    def p_value(asked):
        return happens(int(COINS.bernoulli(asked, TOSSES).sum()), TOSSES, float(probability))

    rare = min(probability, 1 - probability)
    off = rare * WRONG if probability <= Fraction(1, 2) else 1 - rare * WRONG
    assert accepted(p_value(probability))
    assert rejected(p_value(off))


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_categorical(weights):
    law = np.array([weight / sum(weights) for weight in weights])

    def p_value(asked):
        chosen = COINS.categorical(asked, SAMPLES)
        assert not np.isin(chosen, np.flatnonzero(law == 0)).any()
        return fits(np.bincount(chosen, minlength=len(law)), law)

    off = [weight * (10 if at % 3 else 13) for at, weight in enumerate(weights)]
    assert accepted(p_value(weights))
    assert rejected(p_value(off))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_laplace(scale):
    def p_value(asked):
        return fits_integers(COINS.discrete_laplace(asked, SAMPLES), laplace(scale))

    assert accepted(p_value(scale))
    assert rejected(p_value(scale * WRONG))
    assert rejected(p_value(scale / WRONG))


@pytest.mark.long
def test_discrete_laplace_beyond_64_bits():
    def p_value(asked):
        return fits_integers(COINS.discrete_laplace(asked, 20_000), laplace(HUGE))

    assert accepted(p_value(HUGE))
    assert rejected(p_value(HUGE * WRONG))


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_discrete_gaussian(variance):
    def p_value(asked):
        return fits_integers(COINS.discrete_gaussian(asked, 20_000), gaussian(variance))

    assert accepted(p_value(variance))
    assert rejected(p_value(variance * WRONG))
    assert rejected(p_value(variance / WRONG))


def test_bytes_of_the_system_are_uniform():
    data = np.frombuffer(COINS.key(1 << 22), np.uint8)
    tilted = np.where(data < 128, 1.0, OFF)
    kept = data[tilted > np.frombuffer(COINS.key(1 << 22), np.uint8) / 256 * OFF]
    assert accepted(fits(np.bincount(data, minlength=256), np.ones(256)))
    assert rejected(fits(np.bincount(kept, minlength=256), np.ones(256)))


def test_few_bytes_of_the_system_are_uniform():
    """They come from another place than many do."""
    pieces = [COINS.key(FEW_BYTES) for _ in range(2 << 8)]
    data, tossed = (np.frombuffer(b"".join(half), np.uint8) for half in (pieces[::2], pieces[1::2]))
    kept = data[np.where(data < 128, 1.0, OFF) > tossed / 256 * OFF]
    assert accepted(fits(np.bincount(data, minlength=256), np.ones(256)))
    assert rejected(fits(np.bincount(kept, minlength=256), np.ones(256)))


@pytest.mark.parametrize("probability", PROBABILITIES[:3], ids=str)
def test_coins_of_small_calls(probability):
    """As many as a batch of a thousand rows draws; spare bytes of the system decide ties."""

    def p_value(asked):
        heads = sum(int(COINS.bernoulli(asked, 1_000).sum()) for _ in range(2_000))
        return happens(heads, 2_000_000, float(probability))

    assert accepted(p_value(probability))
    assert rejected(p_value(probability * WRONG))


def test_neighbouring_bytes_are_independent():
    def p_value(data):
        return fits(np.bincount(data.view("<u2"), minlength=1 << 16), np.ones(1 << 16))

    data = np.frombuffer(COINS.key(1 << 23), np.uint8).copy()
    assert accepted(p_value(data))
    copied = COINS.bernoulli(Fraction(3, 10), 1 << 22).astype(bool)
    data[1::2][copied] = data[::2][copied]
    assert rejected(p_value(data))


@pytest.mark.parametrize("lag", [1, 8, 64])
def test_coins_are_independent_of_earlier_ones_and_of_earlier_calls(lag):
    probability = Fraction(1, 3)
    law = np.outer([2 / 3, 1 / 3], [2 / 3, 1 / 3]).ravel()

    def p_value(first, second):
        return fits(np.bincount(2 * first + second, minlength=4), law)

    first, second = (COINS.bernoulli(probability, TOSSES) for _ in range(2))
    assert accepted(p_value(first, second))
    blocks = first.reshape(-1, 2, lag)
    before, after = blocks[:, 0].ravel(), blocks[:, 1].ravel()
    assert accepted(p_value(before, after))
    copied = COINS.bernoulli(Fraction(3, 10), len(after)).astype(bool)
    assert rejected(p_value(before, np.where(copied, before, after)))

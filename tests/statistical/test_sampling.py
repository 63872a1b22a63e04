"""Which users have a cell, and which cell, is uniform over keys."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.privacy.coins import SystemCoins
from panprivacy.tables.addressing import Addressing, Levelled, Sampled
from panprivacy.tables.hashing import KEY_BYTES
from panprivacy.tables.ids import read_ids

from .checks import OFF, accepted, centred, chi_square_tail, fits, rejected, spreads

COINS = SystemCoins()
KEYS = 20_000
UNIVERSE, CELLS = 17, 5
LARGE_UNIVERSE, LARGE_CELLS, LARGE_KEYS = 100_002, 2_000, 500


def slots_of(addressing: Addressing, ids: object) -> np.ndarray:
    return np.concatenate(list(addressing.slots(read_ids(ids))))


def tossed(probability: float, size: int) -> np.ndarray:
    return COINS.bernoulli(Fraction(probability), size).astype(bool)


@pytest.fixture(scope="module")
def images():
    """The permutation of a small universe under many keys: int64[keys, universe]."""
    users = np.arange(UNIVERSE)
    keys = (COINS.key(KEY_BYTES) for _ in range(KEYS))
    return np.array([slots_of(Sampled(UNIVERSE, UNIVERSE, key), users) for key in keys])


@pytest.mark.long
def test_images_are_permutations(images):
    assert (np.sort(images, axis=1) == np.arange(UNIVERSE)).all()


@pytest.mark.long
def test_each_user_is_sampled_equally_often(images):
    share = CELLS / UNIVERSE

    def p_value(sampled):
        errors = sampled.sum(axis=0) - KEYS * share
        squares = float((errors**2).sum()) / (KEYS * share * (1 - share))
        return chi_square_tail(squares * (1 - 1 / UNIVERSE), UNIVERSE - 1)

    sampled = images < CELLS
    assert accepted(p_value(sampled))
    favoured = sampled.copy()
    favoured[:, 0] |= tossed((OFF - 1) * share / (1 - share), KEYS)
    assert rejected(p_value(favoured))


@pytest.mark.long
def test_two_users_meet_any_two_cells_equally_often(images):
    different = ~np.eye(UNIVERSE, dtype=bool).ravel()

    def p_value(first, second):
        counts = np.bincount(first * UNIVERSE + second, minlength=UNIVERSE**2)
        return fits(counts[different], np.ones(different.sum()))

    first, second = images[:, 0], images[:, 1]
    assert accepted(p_value(first, second))
    ordered = tossed((OFF - 1) / (OFF + 1), KEYS)
    low, high = np.minimum(first, second), np.maximum(first, second)
    assert rejected(p_value(np.where(ordered, low, first), np.where(ordered, high, second)))


SUBSETS = {
    "the first third": np.arange(LARGE_UNIVERSE // 3),
    "every third": np.arange(0, LARGE_UNIVERSE, 3),
    "two of six": np.flatnonzero(np.arange(LARGE_UNIVERSE) % 6 < 2),
}


@pytest.mark.long
@pytest.mark.parametrize("subset", SUBSETS.values(), ids=SUBSETS)
def test_samples_of_a_large_universe_have_the_hypergeometric_spread(subset):
    expected = LARGE_CELLS / 3
    deviation = np.sqrt(expected * (2 / 3) * (1 - LARGE_CELLS / LARGE_UNIVERSE))

    def errors(sampler, ids):
        keys = (COINS.key(KEY_BYTES) for _ in range(LARGE_KEYS))
        counts = [np.count_nonzero(slots_of(sampler(key), ids) >= 0) for key in keys]
        return np.array(counts) - expected

    right = errors(lambda key: Sampled(LARGE_UNIVERSE, LARGE_CELLS, key), subset)
    assert accepted(centred(right))
    assert accepted(spreads(right, float(deviation)))
    larger = errors(lambda key: Sampled(LARGE_UNIVERSE, int(OFF * LARGE_CELLS), key), subset)
    assert rejected(centred(larger))
    blocks = lambda key: Sampled(LARGE_UNIVERSE // 6, LARGE_CELLS // 6, key)  # noqa: E731
    whole = errors(blocks, np.arange(LARGE_UNIVERSE // 18)) * 6
    assert rejected(spreads(whole, float(deviation)))


FAMILIES = {
    "counted": np.arange(1_000_000),
    "multiples of a power of two": np.arange(1_000_000) << 32,
    "negative": -1 - np.arange(1_000_000),
    "texts": [f"user-{number:06d}" for number in range(200_000)],
    "long texts": [f"https://example.org/people/{number}/profile" for number in range(200_000)],
}


@pytest.mark.parametrize("ids", FAMILIES.values(), ids=FAMILIES)
def test_levels_halve_and_their_cells_are_alike(ids):
    levels, cells = 6, 200
    halving = np.append(2.0 ** -np.arange(1, levels), 2.0 ** -(levels - 1))
    law = np.repeat(halving, cells)

    def p_value(slots):
        return fits(np.bincount(slots, minlength=len(law)), law)

    slots = slots_of(Levelled(levels, cells, COINS.key(KEY_BYTES)), ids)
    assert accepted(p_value(slots))
    moved = tossed((OFF - 1) / (OFF + 1), len(slots))
    assert rejected(p_value(np.where(moved, slots - slots % 2, slots)))
    assert rejected(p_value(np.where(moved, slots % cells, slots)))

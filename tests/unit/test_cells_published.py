"""Bits that are published: how they are born, redrawn and shown."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from panprivacy.privacy.coins import SystemCoins
from panprivacy.tables.cells.published import BitLaw, PublishedBits
from panprivacy.testing import SeededCoins

CELLS = 80_003
LAW = BitLaw(Fraction(1, 4), Fraction(3, 4), Fraction(1, 8), Fraction(5, 8))
BITS = PublishedBits(CELLS, LAW)


def ones(table):
    return int(BITS.ones(table).sum())


def binomial(probability, trials):
    """Whether so many ones come out as often as a probability says, at a rate of 1e-6."""
    return trials * float(probability), float(trials * probability * (1 - probability)) ** 0.5


def near(found, probability, trials):
    mean, deviation = binomial(probability, trials)
    return abs(found - mean) < 5 * deviation  # rate 6e-7


def test_a_table_is_born_and_redrawn_by_its_law():
    coins = SeededCoins(1)
    table = BITS.initial(coins)
    assert len(table) == BITS.nbytes == 10_001
    assert near(ones(table), LAW.absent, CELLS)
    BITS.update(table, [np.arange(CELLS)], None, 0, coins)
    assert near(ones(table), LAW.present, CELLS)


def test_each_bit_is_shown_as_its_law_says():
    coins = SeededCoins(2)
    full, empty = np.full(BITS.nbytes, 255, np.uint8), np.zeros(BITS.nbytes, np.uint8)
    full[-1] = 7
    assert near(ones(BITS.published(full, coins)), LAW.shown_one, CELLS)
    assert near(ones(BITS.published(empty, coins)), LAW.shown_zero, CELLS)
    assert full[0] == 255
    assert not empty.any()


def test_bits_after_the_last_cell_stay_0():
    for _ in range(20):
        assert BITS.is_table(BITS.published(BITS.initial(SystemCoins()), SystemCoins()))


def test_a_copy_needs_no_coins():
    copying = PublishedBits(CELLS, BitLaw(Fraction(1, 4), Fraction(3, 4), Fraction(0), Fraction(1)))
    table = copying.initial(SeededCoins(3))
    shown = copying.published(table, None)
    assert np.array_equal(shown, table)
    assert shown is not table


def test_published_probabilities_are_those_of_both_coins():
    assert LAW.published_absent == Fraction(1, 4)
    assert LAW.published_present == Fraction(1, 2)
    assert LAW.state_ratio == 3
    assert LAW.published_ratio == 2

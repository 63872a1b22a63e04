"""Presence bits have the laws that the guarantee and the decoder count on."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.privacy.coins import SystemCoins
from panprivacy.tables.cells.bits import BitCells

from .checks import OFF, accepted, fits, happens, rejected

COINS = SystemCoins()
CELLS = 1 << 22
TOUCHED = np.arange(0, CELLS, 2)
EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(4)]


def present(epsilon: float) -> float:
    """The probability of a one where the user appeared."""
    return 1 / (1 + math.exp(-epsilon))


def ones(bits: BitCells, table: np.ndarray) -> tuple[int, int]:
    """Ones of the cells that are touched in these tests, and of the others."""
    cells = np.unpackbits(table, count=bits.cells, bitorder="little")
    return int(cells[::2].sum()), int(cells[1::2].sum())


def update(bits: BitCells, table: np.ndarray, deltas=None, *, epoch: int = 0) -> None:
    bits.update(table, [TOUCHED], deltas, epoch, COINS)


def p_values(counts: tuple[int, int], touched: float, others: float) -> list[float]:
    half = CELLS // 2
    return [happens(counts[0], half, touched), happens(counts[1], half, others)]


@pytest.mark.long
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_bits_are_born_and_redrawn_with_the_stated_laws(epsilon):
    def p_value(asked):
        bits = BitCells(CELLS, asked)
        table = bits.initial(COINS)
        born = p_values(ones(bits, table), 1 - present(epsilon), 1 - present(epsilon))
        update(bits, table)
        update(bits, table)
        return min(*born, *p_values(ones(bits, table), present(epsilon), 1 - present(epsilon)))

    assert accepted(p_value(epsilon))
    assert rejected(p_value(epsilon * Fraction(13, 10)))
    assert rejected(p_value(epsilon / Fraction(13, 10)))


@pytest.mark.long
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_a_deleted_user_leaves_a_bit_as_it_was_born(epsilon):
    def p_value(leaving):
        bits = BitCells(CELLS, epsilon)
        table = bits.initial(COINS)
        update(bits, table)
        deltas = np.where(np.arange(len(TOUCHED)) < leaving * len(TOUCHED), -1, 1)
        update(bits, table, deltas)
        return min(p_values(ones(bits, table), 1 - present(epsilon), 1 - present(epsilon)))

    assert accepted(p_value(1))
    assert rejected(p_value(1 / OFF))


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)], ids=str)
def test_an_announced_intrusion_leaves_the_stated_contrast(epsilon):
    """For one announced intrusion a bit keeps `2 t/(1 + 2 t - t**2)` of its mean, old or new."""
    bits = BitCells(CELLS, epsilon, intrusions=1)
    table = bits.initial(COINS)
    update(bits, table)
    bits.rerandomise(table, bits.fresh_noise(COINS))

    t = math.tanh(float(epsilon) / 2)

    def p_value(gain):
        mean = t * gain
        return min(p_values(ones(bits, table), (1 + mean) / 2, (1 - mean) / 2))

    gain = 2 * t / (1 + 2 * t - t**2)
    assert accepted(p_value(gain))
    assert rejected(p_value(gain / OFF))
    update(bits, table, epoch=1)
    assert accepted(p_value(gain))


def test_neighbouring_bits_are_independent():
    probability = 1 - present(1.0)
    law = np.outer([1 - probability, probability], [1 - probability, probability]).ravel()
    bits = BitCells(CELLS, Fraction(1))
    cells = np.unpackbits(bits.initial(COINS), bitorder="little")

    def p_value(cells):
        return fits(np.bincount(2 * cells[::2] + cells[1::2], minlength=4), law)

    assert accepted(p_value(cells))
    copied = COINS.bernoulli(Fraction(3, 10), CELLS // 2).astype(bool)
    cells[1::2][copied] = cells[::2][copied]
    assert rejected(p_value(cells))

"""Counters do what a list of Python integers would do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.cells import Law, ModularCells, ScaledCells
from panprivacy.testing import SeededCoins

CELLS = 5
MODULI = [2, 3, 11, 255, 256, 257, 65_536, 65_537]
INT64 = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(st.tuples(st.integers(-1, CELLS - 1), INT64), max_size=40)


def law(modulus):
    return Law.spike(modulus, 1)


def arrays(rows):
    slots = np.array([slot for slot, _ in rows], np.int64)
    return slots, np.array([delta for _, delta in rows], np.int64)


def born(cells, seed=1):
    return cells.born(SeededCoins(seed))


@pytest.mark.parametrize(
    ("modulus", "name"),
    [(2, "uint8"), (256, "uint8"), (257, "uint16"), (65_536, "uint16"), (65_537, "uint32")],
)
def test_a_counter_is_as_narrow_as_can_be(modulus, name):
    cells = ModularCells(CELLS, law(modulus))
    assert born(cells).dtype == cells.dtype == name
    assert cells.nbytes == born(cells).nbytes


@given(ROWS, st.sampled_from(MODULI))
def test_deltas_of_any_size_add_up_modulo_the_modulus(rows, modulus):
    cells = ModularCells(CELLS, law(modulus))
    table = born(cells)
    expected = table.tolist()
    for slot, delta in rows:
        if slot >= 0:
            expected[slot] = (expected[slot] + delta) % modulus
    slots, deltas = arrays(rows)
    cells.update(table, [slots], deltas, 0, SeededCoins(2))
    assert table.tolist() == expected


@given(ROWS, st.sampled_from(MODULI), st.integers(0, 40))
def test_pieces_and_missing_deltas_change_nothing(rows, modulus, cut):
    cells = ModularCells(CELLS, law(modulus))
    whole, cut_up, counted = born(cells), born(cells), born(cells)
    slots, _ = arrays(rows)
    ones = np.ones(len(slots), np.int64)
    cells.update(whole, [slots], ones, 0, SeededCoins(2))
    cells.update(cut_up, [slots[:cut].copy(), slots[cut:].copy()], ones, 0, SeededCoins(2))
    cells.update(counted, [slots], None, 0, SeededCoins(2))
    assert whole.tolist() == cut_up.tolist() == counted.tolist()


@given(ROWS, st.sampled_from([2, 3, 11, 257, 65_537]))
def test_scaled_counters_multiply_each_delta_by_the_factor_of_the_slot(rows, modulus):
    cells = ScaledCells(CELLS, law(modulus))
    table = born(cells)
    expected = table.tolist()
    wide = [(abs(delta) % (CELLS * (modulus - 1)), delta) for _, delta in rows]
    for slot, delta in wide:
        cell, factor = slot // (modulus - 1), slot % (modulus - 1) + 1
        expected[cell] = (expected[cell] + delta * factor) % modulus
    slots, deltas = arrays(wide)
    cells.update(table, [slots], deltas, 0, SeededCoins(2))
    assert table.tolist() == expected


@pytest.mark.parametrize("modulus", MODULI)
def test_a_histogram_counts_every_cell(modulus):
    cells = ModularCells(1_000, law(modulus))
    table = born(cells)
    assert cells.histogram(table).tolist() == np.bincount(table, minlength=modulus).tolist()


def test_group_sums_count_the_cells_that_hold_no_member():
    cells = ScaledCells(6, Law.flat(7, 1))  # residues 1, 2 and 4
    table = np.array([0, 1, 2, 3, 4, 5], np.uint8)
    assert cells.group_sums(table, 2).tolist() == [1, 2]
    assert cells.group_sums(table, 1).tolist() == [3]


def test_fresh_noise_has_the_law_and_moves_every_value():
    """Chi-square with 10 degrees of freedom: false alarm 1e-6 at 48.3; finds 30 % off for sure."""
    modulus, count = 11, 100_000
    flat = Law.flat(modulus, 2)
    cells = ModularCells(count, flat)
    table = cells.born(SeededCoins(3))
    before = table.copy()
    cells.rerandomise(table, SeededCoins(4))
    for drawn in (before, (table.astype(int) - before) % modulus):
        expected = count * flat.probabilities()
        chi_square = ((np.bincount(drawn, minlength=modulus) - expected) ** 2 / expected).sum()
        assert chi_square < 48.3
    tilted = expected * (1 + 0.3 * np.array([1, -1] * 5 + [0]))
    assert ((tilted - expected) ** 2 / expected).sum() > 1_000


def test_large_tables_are_born_in_pieces_of_one_law():
    cells = ModularCells((1 << 20) + 7, law(3))
    table = cells.born(SeededCoins(5))
    assert len(table) == (1 << 20) + 7
    assert table[-7:].max() < 3
    assert table[:1_000].tolist() != table[1 << 20 :].tolist()

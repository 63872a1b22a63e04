"""Cells of one bit, eight to a byte."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.tables.cells import packed
from panprivacy.tables.cells.packed import PackedCells
from panprivacy.testing import SeededCoins


def of(count):
    made = type("Made", (PackedCells,), {})()
    made.cells = count
    return made


@pytest.mark.parametrize(("count", "nbytes"), [(1, 1), (7, 1), (8, 1), (9, 2), (16, 2), (17, 3)])
def test_bytes_are_as_few_as_hold_the_bits(count, nbytes):
    assert of(count).nbytes == nbytes


@pytest.mark.parametrize("count", [1, 7, 8, 9, 15])
def test_a_table_has_no_bit_beyond_its_cells(count):
    cells = of(count)
    table = np.packbits(np.ones(count, np.uint8), bitorder="little")
    assert cells.is_table(table)
    assert not cells.is_table(np.append(table, np.uint8(0)))
    if count % 8:
        table[-1] |= 1 << (count % 8)
        assert not cells.is_table(table)


def test_bits_are_read_from_the_lowest():
    assert of(10).ones(np.array([0b00000101, 0b00000010], np.uint8)).tolist() == [
        *(1, 0, 1, 0, 0, 0, 0, 0),
        *(0, 1),
    ]


@pytest.mark.parametrize("groups", [1, 2, 4, 8])
def test_sums_of_groups_are_those_of_bits_whether_or_not_they_end_with_bytes(groups):
    cells, bits = of(64), SeededCoins(1).bernoulli(Fraction(1, 3), 64)
    table = np.packbits(bits, bitorder="little")
    before = table.copy()
    assert (cells.group_sums(table, groups, 0) == bits.reshape(groups, -1).sum(axis=1)).all()
    assert (table == before).all()
    odd, few = of(24), np.packbits(bits[:24], bitorder="little")
    assert odd.group_sums(few, 2, 0).tolist() == bits[:24].reshape(2, 12).sum(axis=1).tolist()


def test_drawn_bits_are_packed_and_wiped(monkeypatch):
    drawn = SeededCoins(1).bernoulli(Fraction(1, 2), 11)
    wiped = []
    monkeypatch.setattr(packed, "wipe", lambda bits: wiped.append(bits.tolist()))
    table = of(11)._draw(Fraction(1, 2), SeededCoins(1))
    assert wiped == [drawn.tolist()]
    assert of(11).ones(table).tolist() == drawn.tolist()
    assert of(11).is_table(table)


def test_noise_is_toggled():
    table = np.array([0b1100], np.uint8)
    of(4).rerandomise(table, np.array([0b1010], np.uint8))
    assert table.tolist() == [0b0110]

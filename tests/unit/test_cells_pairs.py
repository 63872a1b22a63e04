"""Pairs of bits: their law, how they are born and redrawn, and how they are counted."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.audit import EnumeratedCoins
from panprivacy.tables.addressing import CellBatch, Direct
from panprivacy.tables.cells.pairs import PAIRS, PairedBits, PairLaw
from panprivacy.tables.ids import read_ids
from panprivacy.testing import SeededCoins

LAW = PairLaw(Fraction(1, 4), Fraction(5, 8), Fraction(3, 16))
SIZES = [1, 7, 8, 9, 64, 1_000]


def history(cells, coins, sides):
    """A table in which user 0 appeared in these streams."""
    table = cells.initial(coins)
    for side in sides:
        batch = CellBatch(Direct(cells.cells), read_ids([0]))
        cells.update(cells.half(table, side), batch, None, 0, coins)
    return table


@pytest.mark.parametrize(("sides", "place"), [((), 0), ((0,), 1), ((1,), 2), ((1, 0, 0), 3)])
def test_a_table_is_born_and_redrawn_by_its_law(sides, place):
    """Exactly: over every outcome of the coins."""
    cells, coins = PairedBits(1, LAW), EnumeratedCoins()
    found = [Fraction(0)] * PAIRS
    for _ in coins:
        found[int(cells.ones(history(cells, coins, sides))[0])] += coins.probability
    assert tuple(found) == LAW.laws[place]
    assert sum(found) == 1


def test_bits_of_a_new_cell_are_those_of_one_stream_alone():
    for of in (1, 2):  # the left bit, the right one
        chances = [sum(law[pair] for pair in (of, 3)) for law in LAW.laws]
        expected = [LAW.present if place & of else LAW.absent for place in range(PAIRS)]
        assert chances == expected


def test_the_ratio_is_the_worst_of_all_histories():
    ratios = [
        one[pair] / other[pair]
        for one, other in itertools.permutations(LAW.laws, 2)
        for pair in range(PAIRS)
    ]
    assert max(ratios) == LAW.ratio > 1


@pytest.mark.parametrize(
    "numbers",
    [
        (Fraction(1, 2), Fraction(1, 2), Fraction(1, 4)),  # tells nobody
        (Fraction(0), Fraction(1, 2), Fraction(0)),
        (Fraction(1, 4), Fraction(1), Fraction(1, 8)),
        (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)),  # no new cell shows one bit alone
        (Fraction(1, 4), Fraction(1, 2), Fraction(0)),
        (Fraction(1, 2), Fraction(3, 4), Fraction(0)),
    ],
)
def test_a_law_that_rules_something_out_is_refused(numbers):
    with pytest.raises(ValueError, match="a pair law needs probabilities between 0 and 1"):
        PairLaw(*numbers)


@pytest.mark.parametrize("size", SIZES)
def test_pairs_are_counted_by_runs(size):
    cells = PairedBits(size, LAW)
    table = cells.initial(SeededCoins(size))
    assert table.nbytes == cells.nbytes == 2 * -(-size // 8)
    assert cells.is_table(table)
    pairs = cells.ones(table)
    assert len(pairs) == size
    groups = size if size < 10 else 4
    counts = cells.pair_counts(table, groups).reshape(groups, PAIRS)
    for run, counted in zip(np.split(pairs, groups), counts, strict=True):
        assert [int((run == pair).sum()) for pair in range(PAIRS)] == counted.tolist()


@pytest.mark.parametrize("size", [7, 9])
@pytest.mark.parametrize("half", [0, 1])
def test_what_stands_after_the_last_cell_is_no_table(size, half):
    cells = PairedBits(size, LAW)
    table = cells.initial(SeededCoins(1))
    cells.half(table, half)[-1] |= 0x80
    assert not cells.is_table(table)
    assert not cells.is_table(table[:-1])


def test_the_bit_of_the_other_stream_stays():
    cells = PairedBits(1_000, LAW)
    table = cells.initial(SeededCoins(1))
    right = cells.half(table, 1).copy()
    batch = CellBatch(Direct(1_000), read_ids(np.arange(1_000)))
    left = cells.half(table, 0).copy()
    cells.update(cells.half(table, 0), batch, None, 0, SeededCoins(2))
    assert (cells.half(table, 1) == right).all()
    assert (cells.half(table, 0) != left).any()


def test_an_announcement_would_change_nothing():
    cells = PairedBits(9, LAW)
    table = cells.initial(SeededCoins(1))
    before = table.copy()
    cells.rerandomise(table, cells.fresh_noise(SeededCoins(2)))
    assert (table == before).all()


def test_a_law_is_written_in_steps_of_the_grid_or_as_fractions():
    assert LAW.text == "400000 a00000 300000"
    assert PairLaw(Fraction(1, 3), Fraction(2, 3), Fraction(1, 9)).text == "1/3 2/3 1/9"

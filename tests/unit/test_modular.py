"""Tables of counters of any width against lists of Python integers, and what their coins do."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.tables.cells.bits import BitCells
from panprivacy.tables.cells.law import Law
from panprivacy.tables.cells.modular import ModularCells, ScaledCells, ScoredCells
from panprivacy.testing import SeededCoins

CELLS = 6
MODULI = st.one_of(
    st.integers(2, 70_000), st.sampled_from([254, 255, 256, 257, 65_535, 65_536, 65_537])
)
WIDEST = [(1 << 24) - 3, 1 << 24]
PRIMES = [2, 3, 251, 257, 65_521, 65_537, (1 << 24) - 3]
INT64 = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 3),
    st.sampled_from([-(2**63), 1 - 2**63, 2**63 - 1]),
)
ROWS = st.lists(st.tuples(st.integers(-1, 10**9), INT64), max_size=30)
NO_COINS = None


class GivenNoise:
    """Coins that return given noise, and note what they were asked."""

    def __init__(self, noise):
        self.noise = np.array(noise, np.uint32)
        self.asked = []

    def categorical(self, weights, size):
        self.asked.append((list(weights), size))
        drawn, self.noise = self.noise[:size].copy(), self.noise[size:]
        return drawn


def spike(modulus):
    return Law.spike(modulus, 1)


def some_table(cells):
    """A table that holds all kinds of values, the largest among them."""
    values = np.linspace(0, cells.law.modulus - 1, cells.cells).astype(np.int64)
    return values.astype(cells.dtype)


def arrays(rows, slots_of_table):
    """Slots of a table that has so many, -1 for none, and deltas."""
    slots = [slot % slots_of_table if slot >= 0 else -1 for slot, _ in rows]
    return np.array(slots, np.int64), np.array([delta for _, delta in rows], np.int64)


def modular_reference(table, slots, deltas, modulus):
    after = table.tolist()
    for slot, delta in zip(slots.tolist(), deltas.tolist(), strict=True):
        if slot >= 0:
            after[slot] = (after[slot] + delta) % modulus
    return after


def scaled_reference(table, slots, deltas, modulus):
    after = table.tolist()
    for slot, delta in zip(slots.tolist(), deltas.tolist(), strict=True):
        if slot >= 0:
            cell, rest = divmod(slot, modulus - 1)
            after[cell] = (after[cell] + delta * (rest + 1)) % modulus
    return after


def check_update(cells, slots, deltas, reference):
    table = some_table(cells)
    expected = reference(table, slots, deltas, cells.law.modulus)
    cells.update(table, [slots], deltas, 0, NO_COINS)
    assert table.tolist() == expected


@given(MODULI, ROWS)
def test_a_counter_of_any_modulus_adds_like_an_integer(modulus, rows):
    cells = ModularCells(CELLS, spike(modulus))
    check_update(cells, *arrays(rows, CELLS), modular_reference)


@pytest.mark.long
@given(st.sampled_from(WIDEST), ROWS)
def test_the_widest_counters_add_like_integers(modulus, rows):
    cells = ModularCells(CELLS, spike(modulus))
    check_update(cells, *arrays(rows, CELLS), modular_reference)


@pytest.mark.long
@given(st.sampled_from(PRIMES), ROWS)
def test_scaled_counters_of_any_width_multiply_by_the_factor_of_the_slot(modulus, rows):
    cells = ScaledCells(CELLS, spike(modulus))
    check_update(cells, *arrays(rows, CELLS * (modulus - 1)), scaled_reference)


KINDS = pytest.mark.parametrize(
    ("kind", "factors"), [(ModularCells, lambda _: 1), (ScaledCells, lambda modulus: modulus - 1)]
)


def split(slots, deltas, cuts):
    """The same rows in several batches, each in two pieces."""
    ends = sorted({min(cut, len(slots)) for cut in cuts} | {0, len(slots)})
    for start, end in pairwise(ends):
        middle = (start + end) // 2
        yield [slots[start:middle].copy(), slots[middle:end].copy()], deltas[start:end]


@KINDS
@given(st.sampled_from(PRIMES[:-1]), ROWS, st.lists(st.integers(0, 30), max_size=5))
def test_batches_split_anywhere_give_the_same_table(kind, factors, modulus, rows, cuts):
    cells = kind(CELLS, spike(modulus))
    slots, deltas = arrays(rows, CELLS * factors(modulus))
    whole, in_parts = some_table(cells), some_table(cells)
    cells.update(whole, [slots], deltas, 0, NO_COINS)
    for pieces, part in split(slots, deltas, cuts):
        cells.update(in_parts, pieces, part, 0, NO_COINS)
    assert in_parts.tolist() == whole.tolist()


@pytest.mark.long
@KINDS
@given(st.sampled_from(PRIMES[:-1]), ROWS, st.integers(0, 30))
def test_rows_without_deltas_add_one_each(kind, factors, modulus, rows, cut):
    cells = kind(CELLS, spike(modulus))
    slots, _ = arrays(rows, CELLS * factors(modulus))
    counted, added = some_table(cells), some_table(cells)
    cells.update(counted, [slots[:cut].copy(), slots[cut:].copy()], None, 0, NO_COINS)
    cells.update(added, [slots], np.ones(len(slots), np.int64), 0, NO_COINS)
    assert counted.tolist() == added.tolist()


@KINDS
@given(st.sampled_from(PRIMES[:-1]), ROWS, st.randoms())
def test_inserts_and_then_the_same_deletes_in_any_order_leave_no_trace(
    kind, factors, modulus, rows, chance
):
    cells = kind(CELLS, spike(modulus))
    table = some_table(cells)
    before = table.tolist()
    slots, deltas = arrays(rows, CELLS * factors(modulus))
    deltas = np.maximum(deltas, 1 - 2**63)  # its negative has to exist
    cells.update(table, [slots], deltas, 0, NO_COINS)
    order = list(range(len(rows)))
    chance.shuffle(order)
    cells.update(table, [slots[order]], -deltas[order], 0, NO_COINS)
    assert table.tolist() == before


@KINDS
def test_a_batch_of_a_user_is_not_changed(kind, factors):
    cells = kind(CELLS, spike(257))
    slots = np.arange(CELLS * factors(257), dtype=np.int64)
    deltas = np.full(len(slots), -7, np.int64)
    slots.flags.writeable = deltas.flags.writeable = False
    cells.update(some_table(cells), [slots], deltas, 0, NO_COINS)
    assert set(deltas.tolist()) == {-7}


@pytest.mark.long
@pytest.mark.parametrize(
    ("modulus", "nbytes"), [(2, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 4), (1 << 24, 4)]
)
def test_a_counter_takes_the_fewest_bytes_that_hold_its_values(modulus, nbytes):
    cells = ModularCells(CELLS, spike(modulus))
    table = cells.initial(GivenNoise([modulus - 1] * CELLS))
    assert table.tolist() == [modulus - 1] * CELLS
    assert table.dtype == cells.dtype == f"uint{8 * nbytes}"
    assert table.nbytes == cells.nbytes == CELLS * nbytes


@pytest.mark.parametrize("modulus", [3, 300, 70_000])
@pytest.mark.parametrize("count", [1, 1_000, (1 << 20) + 7])
def test_a_table_is_born_with_one_draw_of_the_law_for_each_cell(modulus, count):
    cells = ModularCells(count, spike(modulus))
    noise = np.arange(count) % modulus
    coins = GivenNoise(noise)
    assert np.array_equal(cells.initial(coins), noise)
    assert sum(size for _, size in coins.asked) == count
    assert all(weights == cells.law.weights.tolist() for weights, _ in coins.asked)


@pytest.mark.long
@given(MODULI, st.lists(st.integers(0, 10**6), min_size=CELLS, max_size=CELLS))
def test_an_announced_intrusion_adds_noise_to_every_cell(modulus, noise):
    cells = ModularCells(CELLS, spike(modulus))
    table, drawn = some_table(cells), np.array(noise) % modulus
    expected = (table.astype(np.int64) + drawn) % modulus
    coins = GivenNoise(drawn)
    cells.rerandomise(table, cells.fresh_noise(coins))
    assert table.tolist() == expected.tolist()
    assert coins.asked == [(cells.law.weights.tolist(), CELLS)]


@pytest.mark.parametrize("modulus", [2, 300, 70_000])
def test_a_histogram_of_several_pieces_counts_every_cell_once(modulus):
    count = (1 << 20) + 12_345
    cells = ModularCells(count, spike(modulus))
    histogram = cells.histogram((np.arange(count) % modulus).astype(cells.dtype))
    assert histogram.sum() == count
    assert histogram.tolist() == [len(range(value, count, modulus)) for value in range(modulus)]


LAWS = [Law.flat(7, 1), Law.flat(263, 1), Law.biquadratic(37, 1), spike(2), spike(65_537)]


@pytest.mark.long
@given(st.sampled_from(LAWS), st.integers(1, 5), st.integers(1, 6), st.integers(0, 10**6))
def test_group_sums_count_the_values_outside_of_the_set_in_each_run(law, groups, size, seed):
    cells = ScaledCells(groups * size, law)
    table = cells.initial(SeededCoins(seed))
    members = set(law.members.tolist())
    outside = [value not in members for value in table.tolist()]
    expected = [sum(outside[at * size : (at + 1) * size]) for at in range(groups)]
    assert cells.group_sums(table, groups, 0).tolist() == expected


def test_cells_have_the_scores_of_as_many_looks_as_there_were():
    cells = ScoredCells(4, spike(3), np.array([[1, 5, 0], [7, 0, 2]]))
    table = np.array([0, 1, 1, 2], cells.dtype)
    assert [cells.group_sums(table, 1, epoch).tolist() for epoch in range(2)] == [[11], [9]]


@pytest.mark.parametrize(
    ("cells", "slots"),
    [
        (BitCells(4, Fraction(1)), [0, -1, 2, 2]),
        (ScaledCells(4, Law.flat(7, 1)), [5, -1, 12, 17]),
    ],
)
def test_an_ordinary_program_shows_the_cells_that_have_users(cells, slots):
    pieces = np.split(np.array(slots), 2)
    assert cells.without_noise(pieces, np.ones(4, np.int64), NO_COINS).tolist() == [1, 0, 1, 0]

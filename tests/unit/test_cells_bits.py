"""Presence bits: the kernels against plain NumPy, and the loss against brute force."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panprivacy.audit import EnumeratedCoins
from panprivacy.privacy.guarantee import exp_bounds, randomised_response
from panprivacy.tables.addressing import CellBatch, Direct, Hashed, Levelled, Sampled
from panprivacy.tables.cells.bits import SPARSE, BitCells, keep_probability, worst_ratio
from panprivacy.tables.ids import read_ids
from panprivacy.testing import SeededCoins

SIZES = [1, 7, 8, 9, 63, 64, 65, 1_000]
EPSILONS = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3)]


class GivenCoins:
    """Coins that return what they were given, and note what they were asked."""

    def __init__(self, bits):
        self.bits = np.array(bits, np.uint8)
        self.asked = []

    def bernoulli(self, probability, size):
        self.asked.append((probability, size))
        return self.bits[:size].copy()


def pack(bits):
    return np.packbits(np.array(bits, np.uint8), bitorder="little")


def unpack(table, cells):
    """The bits of the cells, once those beyond the last one are known to be 0."""
    bits = np.unpackbits(table, bitorder="little")
    assert not bits[cells:].any()
    return bits[:cells]


def random_bits(name, size):
    return SeededCoins(name).bernoulli(Fraction(1, 2), size)


def reference_update(bits, slots, deltas, coins):
    """Coins go to the touched cells in order; a cell that is deleted last gets the opposite."""
    after = bits.copy()
    for coin, cell in zip(coins, sorted({slot for slot in slots if slot >= 0}), strict=False):
        last = deltas[max(row for row, slot in enumerate(slots) if slot == cell)]
        after[cell] = coin ^ (last < 0)
    return after


@st.composite
def batches(draw):
    """Cells, slots of each row (-1 for none), and deltas or None."""
    cells = draw(st.sampled_from(SIZES))
    slots = draw(st.lists(st.integers(-1, cells - 1), max_size=40))
    deltas = draw(st.lists(st.sampled_from([1, -1, 5]), min_size=len(slots), max_size=len(slots)))
    return cells, slots, draw(st.sampled_from([None, deltas]))


def pieces(slots, length=7):
    array = np.array(slots, np.int64)
    return [array[start : start + length] for start in range(0, len(array), length)]


@pytest.mark.long
@settings(max_examples=150)
@given(batches(), st.integers(0, 99))
def test_an_update_is_that_of_the_reference(batch, seed):
    cells, slots, deltas = batch
    bits, coins = random_bits(seed, cells), GivenCoins(random_bits(seed + 100, cells))
    table = pack(bits)
    signed = None if deltas is None else np.array(deltas, np.int64)
    BitCells(cells, Fraction(1)).update(table, pieces(slots), signed, 0, coins)
    expected = reference_update(bits, slots, deltas or [1] * len(slots), coins.bits.tolist())
    assert unpack(table, cells).tolist() == expected.tolist()


@given(batches())
def test_an_update_asks_for_one_coin_a_touched_cell(batch):
    cells, slots, _ = batch
    coins, bits = GivenCoins(np.ones(cells)), BitCells(cells, Fraction(1))
    bits.update(bits.initial(coins), pieces(slots), None, 0, coins)
    touched = len({slot for slot in slots if slot >= 0})
    assert coins.asked[1:] == [(bits.presence(0), touched)]


# Batches that are so small that the cell of each row is redrawn


@st.composite
def sparse_batches(draw):
    """Ids of a universe of many cells, row by row, and deltas or None."""
    ids = draw(st.lists(st.integers(0, 999), min_size=1, max_size=15))
    deltas = draw(st.lists(st.sampled_from([1, -1, 5]), min_size=len(ids), max_size=len(ids)))
    return ids, draw(st.sampled_from([None, deltas]))


@given(sparse_batches(), st.integers(0, 99))
def test_of_few_rows_the_last_coin_of_a_cell_counts(batch, seed):
    ids, deltas = batch
    bits, coins = random_bits(seed, 1_000), GivenCoins(random_bits(seed + 100, len(ids)))
    table, cells = pack(bits), BitCells(1_000, Fraction(1))
    signed = None if deltas is None else np.array(deltas, np.int64)
    cells.update(table, CellBatch(Direct(1_000), read_ids(ids)), signed, 0, coins)
    for row, user in enumerate(ids):
        bits[user] = coins.bits[row] ^ (deltas is not None and deltas[row] < 0)
    assert unpack(table, 1_000).tolist() == bits.tolist()
    assert coins.asked == [(cells.presence(0), len(ids))]


@pytest.mark.parametrize(
    "make", [lambda key: Hashed(1_000, key), lambda key: Levelled(5, 200, key)]
)
@given(texts=st.lists(st.text(max_size=20), min_size=1, max_size=15), seed=st.integers(0, 99))
def test_few_rows_of_each_kind_of_ids_are_written_to_their_slots(make, texts, seed):
    addressing = make(SeededCoins(seed).key(16))
    for column in (texts, pa.array(texts).dictionary_encode(), list(range(len(texts)))):
        ids, bits = read_ids(column), random_bits(seed, 1_000)
        coins, table = GivenCoins(random_bits(seed + 100, len(texts))), pack(bits)
        BitCells(1_000, Fraction(1)).update(table, CellBatch(addressing, ids), None, 0, coins)
        slots = np.concatenate([one.copy() for one in addressing.slots(ids)])
        for slot, coin in zip(slots, coins.bits, strict=True):
            bits[slot] = coin
        assert unpack(table, 1_000).tolist() == bits.tolist()


@pytest.mark.parametrize("deltas", [None, [1, 1, -1], [-1, 1, 1]])
@pytest.mark.parametrize("ids", [[5, 100, 5], [7, 7, 7], [0, 64, 199]])
def test_few_rows_and_many_leave_the_same_law(ids, deltas):
    """Exactly, over every outcome of the coins: rows are repeated to make many of them."""
    cells, addressing, before = BitCells(200, Fraction(1)), Direct(200), pack(random_bits(9, 200))

    def law(times):
        found, coins = Counter(), EnumeratedCoins()
        rows = read_ids(np.repeat(ids, times))
        signed = None if deltas is None else np.repeat(np.array(deltas, np.int64), times)
        for _ in coins:
            table = before.copy()
            cells.update(table, CellBatch(addressing, rows), signed, 0, coins)
            found[table.tobytes()] += coins.probability
        return found, coins.tossed

    (few, tossed), (many, touched) = law(1), law(SPARSE)
    assert (tossed, touched) == (3, len(set(ids)))
    assert few == many
    assert sum(few.values()) == 1


def test_few_rows_without_a_cell_change_nothing():
    sampled = Sampled(10_000, 1_000, SeededCoins(1).key(16))
    outside = [user for user in range(40) if next(sampled.slots(read_ids([user])))[0] < 0][:10]
    table = pack(random_bits(1, 1_000))
    before = table.copy()
    batch = CellBatch(sampled, read_ids(outside))
    BitCells(1_000, Fraction(1)).update(table, batch, None, 0, GivenCoins(np.ones(10)))
    assert len(outside) == 10
    assert np.array_equal(table, before)


@pytest.mark.parametrize("cells", SIZES)
def test_an_update_of_all_cells_replaces_all_bits(cells):
    table, coins = pack(random_bits(1, cells)), GivenCoins(random_bits(2, cells))
    BitCells(cells, Fraction(1)).update(table, [np.arange(cells)[::-1].copy()], None, 0, coins)
    assert unpack(table, cells).tolist() == coins.bits.tolist()


def test_an_update_that_runs_out_of_coins_changes_nothing():
    class NoCoins:
        def bernoulli(self, probability, size):
            message = "no coins"
            raise OSError(message)

    table = pack(random_bits(1, 100))
    before = table.copy()
    with pytest.raises(OSError, match="no coins"):
        BitCells(100, Fraction(1)).update(table, [np.arange(100)], None, 0, NoCoins())
    assert np.array_equal(table, before)


@pytest.mark.parametrize("cells", SIZES)
def test_a_table_is_born_from_one_coin_a_cell(cells):
    bits, coins = BitCells(cells, Fraction(1)), GivenCoins(random_bits(3, cells))
    table = bits.initial(coins)
    assert coins.asked == [(1 - randomised_response(Fraction(1)), cells)]
    assert table.nbytes == bits.nbytes == math.ceil(cells / 8)
    assert unpack(table, cells).tolist() == coins.bits.tolist()


@pytest.mark.parametrize("cells", SIZES)
def test_a_table_has_no_ones_beyond_its_last_cell(cells):
    bits, full = BitCells(cells, Fraction(1)), pack(np.ones(cells))
    assert bits.is_table(full)
    assert not bits.is_table(np.append(full, np.uint8(0)))
    for beyond in range(cells, 8 * bits.nbytes):
        damaged = full.copy()
        damaged[-1] |= 1 << beyond % 8
        assert not bits.is_table(damaged)


@pytest.mark.parametrize("cells", SIZES)
def test_rerandomising_flips_the_bits_that_the_coins_name(cells):
    bits, coins = random_bits(4, cells), GivenCoins(random_bits(5, cells))
    table = pack(bits)
    seen = BitCells(cells, Fraction(1), intrusions=1)
    seen.rerandomise(table, seen.fresh_noise(coins))
    assert coins.asked == [(1 - keep_probability(Fraction(1), 1), cells)]
    assert unpack(table, cells).tolist() == (bits ^ coins.bits).tolist()


@pytest.mark.parametrize(
    ("cells", "groups"), [(1, 1), (7, 1), (7, 7), (63, 9), (64, 8), (65, 5), (1_000, 8)]
)
def test_group_sums_count_the_ones_of_equal_runs(cells, groups):
    bits = random_bits(6, cells)
    sums = BitCells(cells, Fraction(1)).group_sums(pack(bits), groups, 0)
    assert sums.tolist() == [int(run.sum()) for run in np.split(bits, groups)]
    assert sums.dtype == np.int64


# Laws


def test_presence_before_any_intrusion_is_randomised_response():
    for epsilon in EPSILONS:
        bits = BitCells(1, epsilon)
        assert bits.presence(0) == randomised_response(epsilon)
        assert bits.contrast(0) == 2 * randomised_response(epsilon) - 1


def test_every_announced_intrusion_multiplies_the_contrast_by_the_gain():
    bits = BitCells(1, Fraction(1), 3)
    assert bits.gain() == 2 * keep_probability(Fraction(1), 3) - 1
    for epoch in range(3):
        assert bits.contrast(epoch + 1) == bits.gain() * bits.contrast(epoch)
        assert 2 * bits.presence(epoch) - 1 == bits.contrast(epoch)


def test_without_announced_intrusions_nothing_shrinks():
    assert BitCells(1, Fraction(1)).gain() == 1


# The loss over several looks. A life is a list of steps, of the larger and the smaller stream

LOOK, ANNOUNCE, KEEP, BACK = "look", "announce", "keep", "back"
COMES, LEAVES = 1, -1


def law_of_looks(life, place, present, keep):
    """The exact probability of all bits seen.

    Args:
        life: LOOK, ANNOUNCE, KEEP (the state, as a checkpoint does), BACK (to the state that was
            kept last, flipped once for each announcement since), or a pair: the last thing that
            the cell's user does then in the larger and in the smaller stream, 0 for nothing.
        place: 0 for the larger stream, 1 for the smaller.
        present: the probability of a 1 for a user who came before any intrusion.
        keep: the probability that an announced intrusion leaves a bit as it was.
    """
    mean, gain, announced, kept_at = 2 * present - 1, 2 * keep - 1, 0, 0
    law = {(1, None, ()): 1 - present, (0, None, ()): present}
    for step in life:
        grown = Counter()
        if step == BACK:
            law = _joined(law)
        one = None if isinstance(step, str) else (1 + step[place] * mean * gain**announced) / 2
        flips = 1 if step == ANNOUNCE else announced - kept_at if step == BACK else 0
        stays = (1 + gain**flips) / 2
        for (bit, kept, seen), chance in law.items():
            if step == LOOK:
                grown[bit, kept, (*seen, bit)] += chance
            elif step == KEEP:
                grown[bit, bit, seen] += chance
            elif isinstance(step, str):
                grown[bit, kept, seen] += chance * stays
                grown[1 - bit, kept, seen] += chance * (1 - stays)
            elif step[place]:
                grown[1, kept, seen] += chance * one
                grown[0, kept, seen] += chance * (1 - one)
            else:
                grown[bit, kept, seen] += chance
        announced += step == ANNOUNCE
        kept_at = announced if step == KEEP else kept_at
        law = grown
    seen_law = Counter()
    for (_, _, seen), chance in law.items():
        seen_law[seen] += chance
    return seen_law


def _joined(law):
    """The law once the cell is what was kept."""
    back = Counter()
    for (_, kept, seen), chance in law.items():
        back[kept, kept, seen] += chance
    return back


def worst_of(life, present, keep):
    """The worst ratio of what the two streams show, both ways."""
    larger, smaller = (law_of_looks(life, place, present, keep) for place in (0, 1))
    return max(
        max(chance / smaller[seen], smaller[seen] / chance) for seen, chance in larger.items()
    )


INSERTS = [(0, 0), (COMES, COMES), (COMES, 0)]
WITH_DELETIONS = [*INSERTS, (LEAVES, LEAVES), (LEAVES, 0), (LEAVES, COMES), (COMES, LEAVES)]
"""The smaller stream lacks some events of the larger one: what is left may end otherwise."""

CAME = (COMES, 0)
AFTER_A_CRASH = {
    0: [CAME, LOOK],
    1: [KEEP, CAME, LOOK, ANNOUNCE, BACK, LOOK],
    2: [CAME, LOOK, ANNOUNCE, KEEP, (LEAVES, 0), LOOK, ANNOUNCE, BACK, LOOK],
}
"""Lives that lose all that is planned: two looks are at what one checkpoint became."""


@st.composite
def lives(draw):
    """A life of up to four looks, one in each epoch."""
    events = st.sampled_from(WITH_DELETIONS)
    life = []
    steps = st.lists(st.one_of(events, st.sampled_from([KEEP, BACK])), max_size=3)
    for epoch in range(draw(st.integers(1, 4))):
        life += [ANNOUNCE] if epoch else []
        life += [*draw(steps), LOOK, *draw(steps)]
    return life if KEEP in life else [KEEP, *life]


def _possible(life):
    """The same life without returns to a state that was not kept yet."""
    first = life.index(KEEP)
    return [step for place, step in enumerate(life) if step != BACK or place > first]


@pytest.mark.long
@settings(max_examples=400)
@given(lives(), st.sampled_from([Fraction(3, 5), Fraction(4, 5), Fraction(99, 100)]))
def test_no_life_loses_more_than_the_worst_ratio(life, keep):
    life, present = _possible(life), Fraction(3, 4)
    assert worst_of(life, present, keep) <= worst_ratio(present, keep, life.count(ANNOUNCE))


@pytest.mark.parametrize("keep", [Fraction(3, 5), Fraction(99, 100)])
@pytest.mark.parametrize("intrusions", [0, 1, 2])
def test_the_worst_ratio_is_attained_after_a_crash(keep, intrusions):
    present = Fraction(3, 4)
    expected = worst_of(AFTER_A_CRASH[intrusions], present, keep)
    ratio = worst_ratio(present, keep, intrusions)
    assert expected <= ratio < expected * (1 + Fraction(1, 2**100))


@pytest.mark.parametrize("intrusions", [1, 2])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_gain_is_the_largest_that_the_budget_affords(intrusions, epsilon):
    present = randomised_response(epsilon)
    keep = keep_probability(epsilon, intrusions)
    affordable, _ = exp_bounds((intrusions + 1) * epsilon)
    more = keep + Fraction(1, 2**20)
    life = AFTER_A_CRASH[intrusions]
    assert worst_of(life, present, keep) <= affordable < worst_of(life, present, more)


@pytest.mark.parametrize(("epsilon", "gain"), [("1/2", 0.343), ("1", 0.540)])
def test_the_gain_of_one_announced_intrusion_has_a_formula(epsilon, gain):
    bits, odds = BitCells(1, Fraction(epsilon), 1), math.exp(Fraction(epsilon))
    contrast = float(bits.contrast(0))
    assert float(bits.gain()) == pytest.approx((odds - 1) / (odds + contrast), abs=2**-19)
    assert float(bits.gain()) == pytest.approx(gain, abs=5e-4)
    assert float(bits.contrast(1)) == pytest.approx(gain * contrast, abs=5e-4)


@pytest.mark.parametrize("intrusions", [1, 2, 3])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_gain_of_tanh_epsilon_is_too_much(intrusions, epsilon):
    doubled, _ = exp_bounds(2 * epsilon)
    tanh = (doubled - 1) / (doubled + 1)
    present, (_, affordable) = randomised_response(epsilon), exp_bounds((intrusions + 1) * epsilon)
    assert worst_ratio(present, (1 + tanh) / 2, intrusions) > affordable
    assert BitCells(1, epsilon, intrusions).gain() < tanh


def test_what_that_gain_would_cost_at_one_half():
    """The number of docs/guarantees/intrusions.md."""
    present, keep = randomised_response(Fraction(1, 2)), Fraction((1 + math.tanh(0.5)) / 2)
    assert math.log(worst_ratio(present, keep, 1)) == pytest.approx(1.227, abs=5e-4)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_single_look_costs_epsilon_even_if_users_leave(epsilon):
    present, (_, affordable) = randomised_response(epsilon), exp_bounds(epsilon)
    for event in WITH_DELETIONS:
        assert worst_of([event, LOOK], present, Fraction(1)) <= affordable


@pytest.mark.parametrize("intrusions", [1, 2, 5])
def test_a_bit_is_as_sure_as_the_looks_at_what_flips_left_of_it(intrusions):
    """Seen once in each later epoch, always on a branch of its own.

    It was drawn in the first one, or is what a flip left in the second one of a bit that is known.
    """
    cells = BitCells(1, Fraction(1, 2), intrusions)
    present, gain = float(cells.presence(0)), float(cells.gain())
    chances = [
        through([one, 1 - one], gain, later)
        for one, later in ((present, intrusions), ((1 + gain) / 2, intrusions - 1))
    ]
    assert float(cells.surest) == pytest.approx(max(chances), rel=1e-12)
    assert present < cells.surest < 1
    assert BitCells(1, Fraction(1, 2)).surest == cells.presence(0)


def through(law, gain, later):
    """The probability of a bit, once it was seen through one flip, two, and so on."""
    for flips in range(1, later + 1):
        keep = (1 + gain**flips) / 2
        law = [law[0] * keep, law[1] * (1 - keep)]
    return law[0] / sum(law)

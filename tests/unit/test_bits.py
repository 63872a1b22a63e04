"""Presence bits: the kernels against plain NumPy, and the loss against brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panprivacy.cells.bits import BitCells, keep_probability, worst_ratio
from panprivacy.guarantee import exp_bounds, randomised_response
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


@settings(deadline=None, max_examples=150)
@given(batches(), st.integers(0, 99))
def test_an_update_is_that_of_the_reference(batch, seed):
    cells, slots, deltas = batch
    bits, coins = random_bits(seed, cells), GivenCoins(random_bits(seed + 100, cells))
    table = pack(bits)
    signed = None if deltas is None else np.array(deltas, np.int64)
    BitCells(cells, Fraction(1)).update(table, pieces(slots), signed, 0, coins)
    expected = reference_update(bits, slots, deltas or [1] * len(slots), coins.bits.tolist())
    assert unpack(table, cells).tolist() == expected.tolist()


@settings(deadline=None)
@given(batches())
def test_an_update_asks_for_one_coin_a_touched_cell(batch):
    cells, slots, _ = batch
    coins, bits = GivenCoins(np.ones(cells)), BitCells(cells, Fraction(1))
    bits.update(bits.born(coins), pieces(slots), None, 0, coins)
    touched = len({slot for slot in slots if slot >= 0})
    assert coins.asked[1:] == [(bits.presence(0), touched)]


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
    table = bits.born(coins)
    assert coins.asked == [(1 - randomised_response(Fraction(1)), cells)]
    assert table.nbytes == bits.nbytes == math.ceil(cells / 8)
    assert unpack(table, cells).tolist() == coins.bits.tolist()


@pytest.mark.parametrize("cells", SIZES)
def test_rerandomising_flips_the_bits_that_the_coins_name(cells):
    bits, coins = random_bits(4, cells), GivenCoins(random_bits(5, cells))
    table = pack(bits)
    BitCells(cells, Fraction(1), intrusions=1).rerandomise(table, coins)
    assert coins.asked == [(1 - keep_probability(Fraction(1), 1, deletions=False), cells)]
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


@pytest.mark.parametrize("deletions", [False, True])
def test_every_announced_intrusion_multiplies_the_contrast_by_the_gain(deletions):
    bits = BitCells(1, Fraction(1), 3, deletions)
    assert bits.gain() == 2 * keep_probability(Fraction(1), 3, deletions=deletions) - 1
    for epoch in range(3):
        assert bits.contrast(epoch + 1) == bits.gain() * bits.contrast(epoch)
        assert 2 * bits.presence(epoch) - 1 == bits.contrast(epoch)


def test_without_announced_intrusions_nothing_shrinks():
    assert BitCells(1, Fraction(1)).gain() == 1


# The loss over several looks

NOTHING, COMES, LEAVES = 0, 1, -1


def probability_of_one(event, epoch, seen, present, keep):
    """The probability of a 1 at the look that ends an epoch.

    Args:
        event: the last thing that the cell's user did in the epoch.
        epoch: the number of announced intrusions before.
        seen: the bit at the look before; None at the first one.
        present: the probability of a 1 for a user who came before any intrusion.
        keep: the probability that an announced intrusion leaves a bit as it was.
    """
    if event == NOTHING:
        unseen = 1 - present
        return unseen if seen is None else (keep if seen else 1 - keep)
    return (1 + event * (2 * present - 1) * (2 * keep - 1) ** epoch) / 2


def probability(history, bits, present, keep):
    """The exact probability of the bits at all looks, given what the user did in each epoch."""
    seen, total = None, Fraction(1)
    for epoch, (event, bit) in enumerate(zip(history, bits, strict=True)):
        one = probability_of_one(event, epoch, seen, present, keep)
        total *= one if bit else 1 - one
        seen = bit
    return total


def brute_force_ratio(pairs_of_events, looks, present, keep):
    """The worst ratio over all pairs of histories, both ways, and all bits that may be seen.

    Args:
        pairs_of_events: what the larger and the smaller stream may do last in one epoch.
        looks: the number of looks.
        present: see `probability_of_one`.
        keep: see `probability_of_one`.
    """
    laws = {
        history: [
            probability(history, bits, present, keep) for bits in product((0, 1), repeat=looks)
        ]
        for history in product((NOTHING, COMES, LEAVES), repeat=looks)
    }
    worst = Fraction(1)
    for pairs in product(pairs_of_events, repeat=looks):
        larger, smaller = (laws[history] for history in zip(*pairs, strict=True))
        for one, other in zip(larger, smaller, strict=True):
            worst = max(worst, one / other, other / one)
    return worst


INSERTS = [(NOTHING, NOTHING), (COMES, COMES), (COMES, NOTHING)]
WITH_DELETIONS = [*INSERTS, (LEAVES, LEAVES), (LEAVES, NOTHING), (LEAVES, COMES), (COMES, LEAVES)]
"""The smaller stream lacks some events of the larger one: what is left may end otherwise."""

STREAMS = pytest.mark.parametrize(
    ("deletions", "events"),
    [(False, INSERTS), (True, WITH_DELETIONS)],
    ids=["nobody leaves", "users leave"],
)


@STREAMS
@pytest.mark.parametrize("keep", [Fraction(3, 5), Fraction(99, 100)])
@pytest.mark.parametrize("intrusions", [0, 1, 2, 3])
def test_the_worst_ratio_is_that_of_brute_force_rounded_up(deletions, events, keep, intrusions):
    present = Fraction(3, 4)
    expected = brute_force_ratio(events, intrusions + 1, present, keep)
    ratio = worst_ratio(present, keep, intrusions, deletions=deletions)
    assert expected <= ratio < expected * (1 + Fraction(1, 2**100))


@STREAMS
@pytest.mark.parametrize("intrusions", [1, 2])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_gain_is_the_largest_that_the_budget_affords(deletions, events, intrusions, epsilon):
    present = randomised_response(epsilon)
    keep = keep_probability(epsilon, intrusions, deletions=deletions)
    affordable, _ = exp_bounds((intrusions + 1) * epsilon)
    more = keep + Fraction(1, 2**20)
    assert brute_force_ratio(events, intrusions + 1, present, keep) <= affordable
    assert worst_ratio(present, more, intrusions, deletions=deletions) > affordable


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_announced_intrusion_leaves_a_gain_of_tanh_epsilon_if_nobody_leaves(epsilon):
    gain = BitCells(1, epsilon, 1).gain()
    assert float(gain) == pytest.approx(math.tanh(epsilon), abs=2**-19)


@pytest.mark.parametrize(
    ("intrusions", "deletions"), [(2, False), (3, False), (1, True), (2, True), (3, True)]
)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_gain_of_tanh_epsilon_is_too_much_for_anything_else(epsilon, intrusions, deletions):
    doubled, _ = exp_bounds(2 * epsilon)
    tanh = (doubled - 1) / (doubled + 1)
    present, (_, affordable) = randomised_response(epsilon), exp_bounds((intrusions + 1) * epsilon)
    assert worst_ratio(present, (1 + tanh) / 2, intrusions, deletions=deletions) > affordable
    assert BitCells(1, epsilon, intrusions, deletions).gain() < tanh


@pytest.mark.parametrize(
    ("intrusions", "deletions", "loss"), [(2, False, 1.671), (6, False, 4.135), (1, True, 1.227)]
)
def test_what_that_gain_would_cost_at_one_half(intrusions, deletions, loss):
    """The numbers of docs/guarantees/intrusions.md."""
    present, keep = randomised_response(Fraction(1, 2)), Fraction((1 + math.tanh(0.5)) / 2)
    ratio = worst_ratio(present, keep, intrusions, deletions=deletions)
    assert math.log(ratio) == pytest.approx(loss, abs=5e-4)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_single_look_costs_epsilon_even_if_users_leave(epsilon):
    present, (_, affordable) = randomised_response(epsilon), exp_bounds(epsilon)
    assert brute_force_ratio(WITH_DELETIONS, 1, present, Fraction(1)) <= affordable

"""What each theorem of proofs/ assumes of a class that ships, read off the class."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers import local
from panprivacy.papers.local.response import ShareResponse
from panprivacy.privacy.guarantee import exp_bounds, joint_loss
from panprivacy.privacy.guarantee.losses import unseen_loss
from panprivacy.tables.addressing import Direct, Hashed, Levelled, Sampled
from panprivacy.tables.cells import difference_sets
from panprivacy.tables.cells.bits import BitCells, worst_ratio
from panprivacy.tables.cells.law import Law, on_blocks
from panprivacy.tables.cells.modular import BlockCells, ModularCells, ScaledCells
from panprivacy.tables.cells.parity import ParityCells
from panprivacy.tables.counters.shapes import even_tree, mixed_radix
from panprivacy.tables.ids import read_ids
from panprivacy.tables.slices import deal
from tests.proofs.extracted import NotingCoins, law, moves, ratio, updated

EPSILON = Fraction(1, 2)
BELOW, _ = exp_bounds(EPSILON)
BLOCKS = on_blocks(difference_sets.residues(3), 2, EPSILON)
COUNTERS = {
    "modular": ModularCells(1, Law.flat(7, EPSILON)),
    "scaled": ScaledCells(1, Law.flat(7, EPSILON)),
    "blocks": BlockCells(1, BLOCKS),
    "parities": ParityCells(1, EPSILON),
}
EACH = pytest.mark.parametrize("name", COUNTERS)


def values(cells):
    """One table for each value of a single counter."""
    many = 2 if isinstance(cells, ParityCells) else cells.law.modulus
    return [np.array([value], cells.dtype) for value in range(many)]


# modular_cells


@EACH
def test_no_noise_is_likelier_than_r(name):
    """`bounded_ratio r noise`, and the same of the noise of an announced intrusion."""
    cells = COUNTERS[name]
    born = law(lambda coins: int(cells.initial(coins)[0]))
    again = law(lambda coins: int(cells.fresh_noise(coins)[0]))
    assert len(born) == len(values(cells))
    assert 1 < ratio(born) <= BELOW
    assert again == born


@EACH
def test_an_update_adds_without_a_coin(name):
    """`add`: the cell moves by an amount that depends on the update alone."""
    cells = COUNTERS[name]
    tables = values(cells)
    for slot, delta in itertools.product(range(6 if name == "scaled" else 1), [-3, -1, 1, 2, 5]):
        after = [int(updated(cells, table, [(slot, delta)])[0]) for table in tables]
        moved = {(new - old) % len(tables) for old, new in enumerate(after)}
        assert len(moved) == 1


@EACH
def test_an_announced_intrusion_adds_fresh_noise_or_takes_it_away(name):
    """`noised`: the cell moves by the noise, or by as much the other way."""
    cells = COUNTERS[name]
    tables = values(cells)
    for noise in tables:
        moved = set()
        for table in tables:
            after = table.copy()
            cells.rerandomise(after, noise)
            moved.add((int(after[0]) - int(table[0])) % len(tables))
        assert moved in ({int(noise[0])}, {-int(noise[0]) % len(tables)})


def test_a_law_of_too_large_a_ratio_is_not_taken_for_a_private_one():
    assert ratio(dict(enumerate(Law.of([9, 1, 1]).weights.tolist()))) > BELOW


# redrawn_bits, bits_and_releases


BITS = BitCells(1, EPSILON)


def bit(table):
    """The one bit of a table."""
    return int(table[0])


def drawn(rows, start):
    """The law of the bit after a batch."""
    return law(lambda coins: bit(updated(BITS, np.array([start], np.uint8), rows, coins)))


def test_a_bit_is_drawn_from_p_or_from_its_complement():
    """`presence_bits`: it begins with 1 - p; rows draw it from p, or 1 - p if they delete last."""
    p = BITS.presence(0)
    assert 1 - p <= p < 1
    assert p / (1 - p) <= BELOW
    assert law(lambda coins: bit(BITS.initial(coins))) == {0: p, 1: 1 - p}
    for start in (0, 1):
        assert drawn([(0, 1)], start) == {0: 1 - p, 1: p}
        assert drawn([(0, 1), (0, 1)], start) == {0: 1 - p, 1: p}
        assert drawn([(0, 1), (0, -1)], start) == {0: p, 1: 1 - p}
        assert drawn([(0, -1), (0, 1)], start) == {0: 1 - p, 1: p}
        assert drawn([(-1, 1)], start) == {start: 1}


def test_other_rows_leave_a_bit_alone():
    """`table_program`: each cell meets its own rows, with coins of its own."""
    cells = BitCells(2, EPSILON)
    p = cells.presence(0)
    born = law(lambda coins: bit(cells.initial(coins)))
    after = law(lambda coins: bit(updated(cells, np.zeros(1, np.uint8), [(1, 1)], coins)))
    assert born == {0: p * p, 1: p * (1 - p), 2: p * (1 - p), 3: (1 - p) ** 2}
    assert after == {0: 1 - p, 2: p}


@pytest.mark.parametrize("releases", [1, 3])
def test_bits_and_releases_are_charged_what_the_theorem_says(releases):
    """p/(1-p) (1 - p + p b**n) is what the plan charges for the state and for its releases."""
    state, release = Fraction(1, 2), Fraction(1, 5)
    p = BitCells(1, state).presence(0)
    charged = joint_loss(p, releases * release)
    b = exp_bounds(release)[0]
    assert exp_bounds(charged)[1] >= 1 - p + p * b**releases
    assert exp_bounds(charged)[0] < (1 - p + p * b**releases) * (1 + Fraction(1, 10**12))


# discrete_laplace, release_of_a_count


def test_a_cell_moves_a_count_by_one():
    """`release_of_a_count`: between any two values of one cell, whatever the others are."""
    for others in range(4):
        tables = [np.array([others << 1 | one], np.uint8) for one in (0, 1)]
        assert moves(BitCells(3, EPSILON), tables) == 1
    assert moves(COUNTERS["blocks"], values(COUNTERS["blocks"])) == 1
    assert moves(COUNTERS["scaled"], values(COUNTERS["scaled"])) == 1
    assert moves(COUNTERS["parities"], values(COUNTERS["parities"])) == 1


def test_a_release_asks_for_noise_of_one_over_its_epsilon():
    """`laplace q` with `q**-1 = e**epsilon_release`, so a release costs that."""
    coins = NotingCoins()
    budget = pp.Budget(state=Fraction(1, 2), release=Fraction(1, 4))
    for _ in coins:
        coins.scales.clear()
        density = pp.Density(universe=1, epsilon=1, budget=budget, coins=coins)
        density.release()
        assert coins.scales == [4]


def test_the_noise_falls_by_one_factor_a_step():
    """The weight at k is q**|k|."""
    weights = law(lambda coins: int(coins.discrete_laplace(Fraction(2), 1)[0]), tail=2)
    (q,) = {weights[k + 1] / weights[k] for k in range(4)}
    assert all(weights[k] == weights[0] * q ** abs(k) for k in weights)


# unseen_window


def test_an_unseen_window_is_charged_what_the_theorem_says():
    """(1 + a b)/(a + b), for a = e**state and b = e**release."""
    state, release = Fraction(19, 20), Fraction(1, 20)
    unseen = pp.Budget(state=state, release=release).unseen(releases=1, intrusions=0)
    (a, _), (b, _) = exp_bounds(state), exp_bounds(release)
    charged = exp_bounds(Fraction(unseen))[1]
    assert 0 <= charged - (1 + a * b) / (a + b) < Fraction(1, 10**6)


# randomised_response, unary_encoding


@pytest.mark.parametrize("many", [2, 3])
def test_a_response_has_the_law_of_the_theorem(many):
    response = local.RandomisedResponse(many, epsilon=EPSILON)
    q = response.keep
    for value in range(many):
        found = law(lambda coins, value=value: int(response.randomise([value], coins)[0]))
        for report in range(many):
            assert found[report] == q * (report == value) + (1 - q) / many
    assert 1 + q * many / (1 - q) == response.ratio <= BELOW


def test_a_unary_report_has_the_law_of_the_theorem():
    unary = local.UnaryEncoding(3, epsilon=EPSILON)
    r = unary.other
    assert 0 < r <= 1 - r
    for value in range(3):
        found = law(lambda coins, value=value: int(unary.randomise([value], coins)[0, 0]))
        for report, mass in found.items():
            expected = Fraction(1)
            for place in range(3):
                one = report >> place & 1
                expected *= Fraction(1, 2) if place == value else (r if one else 1 - r)
            assert mass == expected
    assert (1 - r) / r == unary.ratio <= BELOW


# table_ratio


@pytest.mark.parametrize(
    "addressing",
    [Direct(4), Sampled(4, 2, bytes(16)), Hashed(3, bytes(16)), Levelled(2, 3, bytes(16))],
    ids=lambda one: type(one).__name__,
)
def test_a_user_has_one_cell_or_none(addressing):
    """`address`: a function of the user, whatever else is in the batch."""
    together = np.concatenate([*addressing.slots(read_ids([0, 1, 2, 3, 0, 1]))])
    alone = [np.concatenate([*addressing.slots(read_ids([user]))]) for user in range(4)]
    assert all(len(cells) == 1 for cells in alone)
    assert together.tolist() == [int(alone[user][0]) for user in (0, 1, 2, 3, 0, 1)]


# paley_residues


@pytest.mark.parametrize("prime", [3, 7, 11, 19, 23, 31, 43, 47])
def test_residues_are_a_group_with_one_of_each_pair(prime):
    """`residues_mul`, `no_zero` and `or_minus`."""
    members = set(difference_sets.residues(prime).members().tolist())
    assert 0 not in members
    for residue in members:
        assert {residue * other % prime for other in members} == members
    assert all((number in members) != (-number % prime in members) for number in range(1, prime))


# block_law, cropped_sum_is_unbiased


@pytest.mark.parametrize(("prime", "tau"), [(3, 2), (7, 1), (7, 3)])
def test_a_block_law_is_that_of_the_theorem(prime, tau):
    """`difference_set`, `noise`, and what follows from them: `counted`, at every state."""
    chosen = difference_sets.residues(prime)
    members, cells = set(chosen.members().tolist()), BlockCells(1, on_blocks(chosen, tau, EPSILON))
    d, shifts = len(members), range(1, prime)
    (shared,) = {len(members & {(one + i) % prime for one in members}) for i in shifts}
    born = law(lambda coins: int(cells.initial(coins)[0]))
    r = ratio(born)
    high = {value for value in born if value // tau in members}
    assert all(born[value] == (r if value in high else 1) * min(born.values()) for value in born)
    weight = prime + (r - 1) * d
    absent, contrast = (prime - d) / weight, (r - 1) * (d - shared) / weight
    for state in range(tau * (prime - 1) + 1):
        after = {one: updated(cells, np.array([one], cells.dtype), [(0, state)]) for one in born}
        counted = sum(born[one] * int(cells.group_sums(after[one], 1, 0)[0]) for one in born)
        assert counted == absent + contrast * min(state, tau) / tau


# announced_bits

ANNOUNCED = BitCells(1, EPSILON, 3)
LEAN, GAIN = 2 * ANNOUNCED.presence(0) - 1, ANNOUNCED.gain()


def test_a_draw_after_announcements_leans_by_no_more_than_the_theorem_allows():
    """`draw_small` and `q0_small`; and an announcement flips a bit with probability 1 - keep."""
    assert law(lambda coins: bit(ANNOUNCED.initial(coins)))[0] == (1 + LEAN) / 2
    assert law(lambda coins: bit(ANNOUNCED.fresh_noise(coins)))[0] == (1 + GAIN) / 2
    for epoch, delta in itertools.product(range(4), (1, -1)):
        rows = np.zeros(1, np.int64), np.array([delta], np.int64)

        def draw(coins, rows=rows, epoch=epoch):
            table = np.zeros(1, np.uint8)
            ANNOUNCED.update(table, [rows[0]], rows[1], epoch, coins)
            return bit(table)

        leans = law(draw).get(1, Fraction(0)) * 2 - 1
        assert 0 < leans * delta <= LEAN * GAIN**epoch


@pytest.mark.parametrize("announced", [1, 2, 3])
def test_announced_looks_are_charged_what_the_theorem_says(announced):
    """`costs` of all epochs, which the gain of the plan keeps within what is charged."""
    cells = BitCells(1, EPSILON, announced)
    t, s = 2 * cells.presence(0) - 1, cells.gain()
    costs = (1 + t) / (1 - t) * (1 + t * s) / (1 - s) * ((1 + s**2) / (1 - s)) ** (announced - 1)
    found = worst_ratio((1 + t) / 2, (1 + s) / 2, announced)
    assert costs <= found <= costs * (1 + Fraction(1, 10**30))
    assert costs <= exp_bounds((announced + 1) * EPSILON)[0]


# unseen_releases


@pytest.mark.parametrize("releases", [1, 2, 5])
def test_several_releases_of_an_unseen_window_are_charged_what_the_theorem_says(releases):
    """`unseen` with a look that costs a b**n after n releases."""
    state, release = Fraction(19, 20), Fraction(1, 20)
    a, b = exp_bounds(state)[0], exp_bounds(release)[0]
    unseen = Fraction(1)
    for done in range(releases):
        known = a * b**done * unseen
        unseen *= (1 + known * b) / (known + b)
    charged = exp_bounds(unseen_loss(state, release, releases))[1]
    assert 0 <= charged - unseen < Fraction(1, 10**6)


# response_of_a_set, mean_of_reports


@pytest.mark.parametrize("many", [2, 3, 5])
def test_a_hadamard_response_has_the_law_of_the_theorem(many):
    """Each value has a set of half of the columns of a block."""
    response = local.HadamardResponse(many, epsilon=EPSILON)
    q, size, reports = response.keep, response.columns // 2, response.outcomes
    for value in range(many):
        found = law(lambda coins, value=value: int(response.randomise([value], coins)[0]))
        chosen = {report for report in found if found[report] == max(found.values())}
        assert len(chosen) == size
        for report in range(reports):
            assert found[report] == q * (report in chosen) / size + (1 - q) / reports
    assert 1 + q * reports / (size * (1 - q)) == response.ratio <= BELOW


class EveryToss:
    """Coins of as many users as there are tosses, one of each; all other coins come up 1."""

    def categorical(self, weights, size):
        """All pairs of bytes for the toss; 0 for the report of a user who lies."""
        if len(weights) == 256:
            return np.concatenate([np.repeat(np.arange(256), 256), np.tile(np.arange(256), 256)])
        return np.zeros(size, np.int64)

    def bernoulli(self, probability, size):
        """Each user says what was tossed."""
        return np.ones(size, np.uint8)


@pytest.mark.parametrize("value", [0, 1, 255, 256, 30_000, 65_536])
def test_a_share_is_tossed_before_the_response(value):
    """`mu`: of the 2**16 tosses, as many as the value come up 1."""
    reports = ShareResponse(EPSILON).randomise([value] * 65_536, EveryToss())
    assert int(reports.sum()) == value


# retries, shards_of_disjoint_users


@EACH
def test_a_batch_that_is_sent_again_is_more_rows_of_the_same_users(name):
    """`repeated`: two batches of the same rows leave what one batch of both leaves."""
    cells, rows = COUNTERS[name], [(0, 1), (0, -1), (0, 1)]
    for table in values(cells):
        twice = updated(cells, updated(cells, table, rows), rows)
        assert twice.tolist() == updated(cells, table, [*rows, *rows]).tolist()


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_a_user_is_of_one_shard(shards):
    """`reads_B`: a function of the user, whatever else is in the batch."""
    users = np.arange(100)
    together = deal(users, shards, bytes(16))
    assert set(together.tolist()) == set(range(shards))
    assert together.tolist() == [int(deal(users[[one]], shards, bytes(16))[0]) for one in users]


# twice_noised_tree

TREES = {
    "mixed radix": mixed_radix(6, EPSILON, 2, open_steps=True),
    "binary": even_tree(8, EPSILON, 2, pan_private=True),
}


@pytest.mark.parametrize("name", TREES)
def test_the_nodes_of_a_step_hide_an_event_twice(name):
    """`q`: each has noise as it begins and as it leaves; `kept'` and `sums'`: an event adds d."""
    tree = TREES[name]
    for tick in range(tree.horizon):
        scales = [scale for scale in tree.scales(tick) if scale]
        assert sum(tree.bound / scale for scale in scales) <= EPSILON
    born, leaving = NotingCoins(), NotingCoins()
    memory = tree.initial(born)
    begun = [scale for scale in tree.scales(0) if scale]
    assert set(born.scales) <= set(begun)
    assert set(begun[1:]) <= set(born.scales)
    kept = memory.cells.copy()
    tree.add(memory, 2)
    assert (memory.cells - kept).tolist() == [2 * bool(scale) for scale in tree.scales(0)]
    tree.run(memory, np.zeros(tree.horizon, np.int64), leaving)
    assert set(begun) <= set(leaving.scales)

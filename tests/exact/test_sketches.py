"""A look at the state and the published table lose what `BitLaw` says, on the class that ships."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import CRASH, RELEASE, SAVE, EnumeratedCoins, Restarted, exact_loss
from panprivacy.audit.shards import CoinsOf, Contributed, TwoSlices
from panprivacy.audit.suite.products import Unseen, products
from panprivacy.errors import allow_noise
from panprivacy.tables.cells.published import AFTER_A_CRASH, NEIGHBOURS

ATTAINED = 1e-5
"""What the rounding of the search leaves of epsilon, relatively."""


def sketch(coins, **arguments):
    """Published bits of one possible user."""
    with allow_noise():
        return pp.OverlapSketch(universe=1, coins=coins, **{"epsilon": 2, **arguments})


def lost(stream, neighbour, **arguments):
    """The loss of a pair of streams, walked exactly."""
    return exact_loss(
        lambda coins: sketch(coins, **arguments), stream, neighbour, coins=EnumeratedCoins(tail=1)
    )


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
def test_a_look_and_the_published_table_lose_what_is_claimed(epsilon):
    claim, both = Fraction(epsilon), [[0], [0], RELEASE]
    losses = [
        lost(both, fewer, epsilon=claim)
        for fewer in ([[0], [], RELEASE], [[], [0], RELEASE], [[], [], RELEASE])
    ]
    assert all(one.within(claim) for one in losses)
    assert max(one.epsilon for one in losses) > float(claim) * (1 - ATTAINED)


def test_a_look_and_all_tables_lose_what_is_claimed():
    window = [[0], [0], RELEASE]
    nobody = [[], [], RELEASE]
    loss = lost(2 * window, 2 * nobody, releases=2)
    assert loss.within(2)
    assert loss.epsilon > 2 * (1 - ATTAINED)


def test_a_look_at_one_of_two_windows_loses_what_its_sketch_says():
    rows, nobody = [[0], [0], RELEASE], [[], [], RELEASE]
    said = sketch(None, releases=2).release().sketch.guarantee.epsilon
    loss = lost([*rows, *nobody], 2 * nobody, releases=2)
    assert loss.within(said)
    assert loss.epsilon > float(said) * (1 - ATTAINED)


def test_the_table_alone_loses_what_an_unseen_window_is_said_to():
    made = sketch(None)
    law = made.plan.law
    ratio = max(
        law.published_present / law.published_absent,
        (1 - law.published_absent) / (1 - law.published_present),
    )
    assert made.guarantee.unseen < made.guarantee.epsilon
    assert pp.PrivacyLoss(made.guarantee.unseen).epsilon == made.plan.split.budget.alone
    loss = lost([RELEASE, [0]], [RELEASE, []], releases=2)  # seen or not, the first has nobody
    assert loss.within(made.plan.split.budget.total(releases=1, intrusions=0))
    assert ratio > 1


def test_a_table_that_is_the_state_loses_epsilon_where_nobody_sees_the_state():
    copied = {"covers": "publication", "epsilon": 1}
    assert not sketch(None, **copied).guarantee.looks
    for unseen in ([[0], RELEASE], [[0], [0], RELEASE]):
        loss = exact_loss(
            lambda coins: Unseen(sketch(coins, **copied)),
            unseen,
            [[] if step == [0] else step for step in unseen],
            coins=EnumeratedCoins(tail=1),
        )
        assert loss.within(1)
        assert loss.epsilon > 1 - ATTAINED


def test_a_look_at_a_state_that_is_published_is_not_covered():
    loss = lost([[], [0], RELEASE], [[], [], RELEASE], covers="publication", epsilon=1)
    assert loss.epsilon == float("inf")


def test_more_contrast_than_the_law_has_is_caught():
    """A control: the published bit tells a little more than it may."""

    def dishonest(coins):
        made = sketch(coins)
        cells = made.internals.memory.cells
        law = cells.bit_law
        better = type(law)(law.absent, law.present, law.shown_zero, law.shown_one + Fraction(1, 20))
        made.internals.memory.cells = type(cells)(cells.cells, better)
        return made

    loss = exact_loss(
        dishonest, [[0], [0], RELEASE], [[], [], RELEASE], coins=EnumeratedCoins(tail=1)
    )
    assert not loss.within(2)


@pytest.mark.parametrize(("epsilon", "exceeds"), [(2, False), (5, True)])
def test_a_crash_that_brings_back_a_published_window_loses_what_is_said(epsilon, exceeds):
    """The window after it is drawn anew, whatever an intruder saw of it before."""
    one = [[0], SAVE, RELEASE, [0], CRASH, [0], RELEASE]
    nobody = [[] if step == [0] else step for step in one]
    loss = exact_loss(
        lambda coins: Restarted(lambda fresh: sketch(fresh, epsilon=epsilon, releases=2), coins),
        one,
        nobody,
        coins=EnumeratedCoins(tail=1),
    )
    made = sketch(None, epsilon=epsilon, releases=2)
    assert loss.within(made.guarantee.crashed(1).epsilon)
    shared = made.plan.law.crash_ratio * made.plan.law.published_ratio
    assert (loss.epsilon > math.log(shared) + 1e-6) == exceeds


def history(rows):
    """What an intruder meets, of rows before the branches part, on that of the look, and on that of
    the table: the law of the bit that is seen, and the bit that is published."""
    common, looked, published = rows
    seen = int(common or looked)
    if published:
        return seen, 1
    return (seen, int(common)) if looked else (seen, None)


def pairs(crashed):
    """The pairs of different histories of streams of which one lacks rows of a user."""
    subsets = list(itertools.product((False, True), repeat=3))
    if not crashed:
        subsets = [one for one in subsets if not one[1]]
    found = set()
    for larger, smaller, others in itertools.product(subsets, repeat=3):
        if all(one or not other for one, other in zip(larger, smaller, strict=True)):
            both = [
                history([one or other for one, other in zip(rows, others, strict=True)])
                for rows in (larger, smaller)
            ]
            if both[0] != both[1]:
                found.add(tuple(both))
    return found


def test_every_pair_of_histories_is_one_of_the_seven():
    assert pairs(crashed=False) == set(NEIGHBOURS)
    assert pairs(crashed=True) == {*NEIGHBOURS, *AFTER_A_CRASH}


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [1, 2])
def test_the_walks_of_the_audit_hold(epsilon):
    rows = [
        one.row()
        for one in products(Fraction(epsilon))
        if one.name in {"published-table-crash", "published-table-sample"}
    ]
    assert len(rows) == 2
    assert all(row.holds for row in rows)


class JoinedShards:
    """Two shards of one window, each seen once; a row has a user and a shard."""

    def __init__(self, coins):
        self._shards = [sketch(CoinsOf(coins, shard), epsilon=1) for shard in (0, 1)]

    def update(self, users, shards=()):
        rows = np.array([users, shards], np.int64)
        for number, shard in enumerate(self._shards):
            shard.update(rows[0][rows[1] == number].copy())

    def release(self):
        tables = {f"shard {n}": one.release().sketch for n, one in enumerate(self._shards)}
        return Contributed(tuple(pp.join(tables).table))

    def state(self):
        return b"".join(one.state() for one in self._shards)


def joined_loss(rows, neighbour):
    return exact_loss(JoinedShards, rows, neighbour, coins=EnumeratedCoins(tail=1))


HERE, THERE, EMPTY = [(0, 0)], [(0, 1)], []


@pytest.mark.long
def test_a_user_of_one_shard_loses_epsilon_by_looks_at_both_and_the_joined_sketch():
    for others in ([], [THERE], [EMPTY, THERE]):
        rows = [*others, HERE, HERE, RELEASE]
        fewer = [*others, EMPTY, EMPTY, RELEASE]
        loss = joined_loss(rows, fewer)
        assert loss.within(1)
        assert loss.epsilon > 1 - ATTAINED


def test_a_user_of_both_shards_loses_epsilon_in_each():
    rows = [HERE, THERE, HERE, THERE, RELEASE]
    loss = joined_loss(rows, [*(4 * [EMPTY]), RELEASE])
    assert loss.within(2)
    assert loss.epsilon > 1.5


HERE_ONCE = [(0, 1)]


def published_slices(coins):
    """Two slices of a table of a cell for each of two users, one of each shard."""

    def slice_of_two(own, slice_):
        with allow_noise():
            return pp.OverlapSketch(universe=2, epsilon=1, coins=own, slice_=slice_)

    return TwoSlices(slice_of_two, coins)


def test_a_user_of_a_slice_loses_epsilon_by_looks_at_all_and_the_table():
    """Contributions are seen as well, in place of the states that they leave."""
    for others in ([], [[(1, 1)]]):
        rows = [*others, HERE_ONCE, HERE_ONCE, RELEASE, RELEASE]
        loss = exact_loss(
            published_slices,
            rows,
            [[] if step is HERE_ONCE else step for step in rows],
            coins=EnumeratedCoins(tail=1),
        )
        assert loss.within(1)
        assert loss.epsilon > 1 - ATTAINED

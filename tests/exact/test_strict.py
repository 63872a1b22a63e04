"""Parities keep their claim in strict streams, and in streams that are not; exact.

The class that ships, with two cells: plans have eight and more, and each doubles what is walked.
The audit's own walks, `strict-count` and `strict-count-announced`, have a plan's cells.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE, EnumeratedCoins, exact_loss
from panprivacy.audit.neighbours import add_remove
from panprivacy.audit.suite.products import Unseen
from panprivacy.privacy.guarantee import unseen_loss
from panprivacy.statistics.distinct.sizes import DistinctSizes
from panprivacy.statistics.distinct.strict_plan import StrictDistinctPlan
from panprivacy.tables.cells.difference_sets import point
from panprivacy.tables.ids import read_ids
from panprivacy.tables.planning.blocks import best_counters

BUDGET = pp.Budget(state=1, release=3)
STATE = pp.Budget(state=Fraction(9, 10), release=Fraction(1, 10))
COME, GO, OTHER = [(5, 1)], [(5, -1)], [(3, 1)]
"""With a key of zeros users 3 and 5 share a cell, and 7 has the other one."""


class TwoCells(DistinctSizes, frozen=True, tag="distinct"):
    """Sizes for which no planner chose the cells."""

    def plan(self, request):
        ((split, _),) = best_counters(request, [2], (point(2),))
        return StrictDistinctPlan((1, 2), 1, 2, request, split)


def strict(coins, **arguments):
    """A count in two parities."""
    given = {"epsilon": 4, "budget": BUDGET, **arguments}
    return pp.DistinctCount(TwoCells(deletions="strict"), coins=coins, **given)


def lost(stream, neighbour, **arguments):
    """What they lose, and that little of it was set aside."""
    loss = exact_loss(
        lambda coins: strict(coins, **arguments), stream, neighbour, coins=EnumeratedCoins(tail=3)
    )
    assert loss.set_aside < Fraction(1, 2)
    return loss


def test_the_key_of_zeros_has_users_share_a_cell_and_not():
    coins = EnumeratedCoins(tail=3)
    next(iter(coins))
    slots = next(strict(coins).internals.memory.addressing.slots(read_ids([3, 5, 7]))).tolist()
    assert slots[0] == slots[1] != slots[2]


STREAMS = {
    "enters and leaves": [COME, GO],
    "enters again": [COME, [*GO, *COME], OTHER],
    "shares a cell": [[*COME, *OTHER], GO],
    "enters twice": [COME, [*COME, (7, 1)]],
    "leaves without having entered": [GO, [*GO, *OTHER]],
}
RELEASED = {
    "leaves after a release": [COME, RELEASE, GO],
    "enters after a release, twice": [RELEASE, [*COME, *COME, *COME]],
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_the_state_keeps_its_claim_for_each_neighbour(stream):
    neighbours = list(add_remove(stream, 5))
    assert len(neighbours) > 1
    for neighbour in neighbours:
        assert lost(stream, neighbour).within(BUDGET.state)


@pytest.mark.parametrize("stream", RELEASED.values(), ids=RELEASED)
def test_state_and_release_keep_the_claim(stream):
    without = [step if step == RELEASE else [] for step in stream]
    assert lost(stream, without).within(4)


def test_the_state_of_a_parity_spends_all_that_its_budget_allows():
    loss = lost([COME], [[]], epsilon=1, budget=STATE)
    assert loss.within(STATE.state)
    assert not loss.within(STATE.state - Fraction(1, 10**9))


HISTORIES = [[], COME, GO, [*COME, *COME]]
PAIRS = list(itertools.combinations(itertools.product(HISTORIES, repeat=2), 2))


@pytest.mark.long
def test_no_two_histories_around_a_look_lose_more_than_one_look():
    """Strict or not, and neighbours or not; the audit takes every moment for the look."""
    worst = max(lost(list(one), list(other)).epsilon for one, other in PAIRS)
    assert worst == pytest.approx(1, abs=1e-9)


INTRUDED = {
    "leaves": ([COME, ANNOUNCE, GO], [[], ANNOUNCE, []]),
    "enters twice": ([COME, ANNOUNCE, COME], [COME, ANNOUNCE, []]),
    "stays": ([COME, ANNOUNCE, []], [[], ANNOUNCE, []]),
}


@pytest.mark.parametrize("pair", INTRUDED.values(), ids=INTRUDED)
def test_parities_keep_their_claim_after_an_announced_intrusion(pair):
    loss = lost(*pair, epsilon=5, intrusions=1)
    assert loss.within(2)


def test_two_looks_at_a_user_who_leaves_in_between_spend_all_that_they_may():
    stream, neighbour = INTRUDED["leaves"]
    assert lost(stream, neighbour, epsilon=5, intrusions=1).epsilon > 2 - 1e-6


def test_a_release_of_a_state_that_nobody_saw_loses_exactly_what_is_claimed():
    halves = pp.Budget(state=Fraction(1, 2), release=Fraction(1, 2))
    claimed = strict(None, epsilon=1, budget=halves).guarantee.unseen_loss.epsilon
    assert claimed < unseen_loss(halves.state, halves.release)
    loss = exact_loss(
        lambda coins: Unseen(strict(coins, epsilon=1, budget=halves)),
        [COME, RELEASE],
        [[], RELEASE],
        coins=EnumeratedCoins(tail=3),
    )
    assert loss.within(claimed)
    assert loss.epsilon == pytest.approx(float(claimed), rel=1e-6)

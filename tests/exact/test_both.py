"""A look at pairs of bits and a release lose what the plan says, on the class that ships."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit import RELEASE, EnumeratedCoins, worst_loss
from panprivacy.errors import allow_noise
from panprivacy.statistics.both.plan import BothReading

LEFT, RIGHT = [(0, 1, "left")], [(0, 1, "right")]
OTHER = [(1, 1, "left"), (1, 1, "right")]
HISTORIES = [[], LEFT, RIGHT, LEFT + RIGHT]


def pair(coins, **arguments):
    """Two bits of one cell."""
    told = {"expected": 1, "cells": 1, "epsilon": 1, **arguments}
    with allow_noise():
        return pp.BothCount(coins=coins, **told)


def worst(pairs, **arguments):
    """The worst loss of pairs of streams, walked exactly."""
    coins = EnumeratedCoins(tail=1)
    return worst_loss(lambda one: pair(one, **arguments), pairs, coins=coins)


@pytest.fixture
def counts_alone(monkeypatch):
    """Releases tell their noised counts; what follows from them is not decoded."""

    def told(_reading, counts, confidence):
        return pp.Release(0.0, 0.0, 1.0, confidence, 1.0, tuple(counts.tolist()))

    monkeypatch.setattr(BothReading, "answer", told)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
def test_a_look_loses_what_its_budget_says(epsilon):
    """Whatever rows of a user are left out, in either stream; it spends all of the budget."""
    state = pair(None, epsilon=epsilon).plan.split.budget.state
    lives = [list(one) for one in itertools.product(HISTORIES, repeat=2)]
    loss = worst(itertools.combinations(lives, 2), epsilon=epsilon)
    assert loss.within(state)
    assert loss.epsilon > float(state) * (1 - 1e-5)


def test_other_users_of_a_cell_do_not_add_to_the_loss():
    state = pair(None).plan.split.budget.state
    lives = [[one + OTHER[:1], OTHER, two] for one in HISTORIES for two in HISTORIES]
    assert worst([(lives[-1], other) for other in lives[:-1]]).within(state)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["1", "3"])
@pytest.mark.usefixtures("counts_alone")
def test_a_look_and_releases_lose_what_is_claimed(epsilon):
    """Before and after the look, whichever rows are left out; the release costs on top."""
    everything, nothing = [LEFT + RIGHT, RELEASE, LEFT + RIGHT], [[], RELEASE, []]
    pairs = [
        (everything, nothing),
        (everything, [LEFT, RELEASE, []]),
        ([[], RELEASE, LEFT + RIGHT], nothing),
        ([LEFT, RELEASE, RIGHT], nothing),
    ]
    loss = worst(pairs, epsilon=epsilon)
    assert loss.within(Fraction(epsilon))
    assert loss.epsilon > float(pair(None, epsilon=epsilon).plan.split.budget.state) * 1.1


@pytest.mark.long
def test_a_law_above_the_budget_is_found_out():
    """The walk tells a law that costs more than is said."""
    plan = pair(None, epsilon=4).plan
    assert not worst([([LEFT + RIGHT], [[]])], epsilon=4).within(plan.split.budget.state * 9 / 10)

"""What users below 0 count, exactly: every noise of a counter, through the shipping class.

`docs/guarantees/thresholds.md` has what is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.notes import BELOW, ROOM


@dataclass
class OneNoise:
    """Coins with which every counter is born with one value, and a release has no noise."""

    value: int

    def categorical(self, weights, size):
        return np.full(size, self.value, np.uint32)

    def discrete_laplace(self, scale, size):
        return np.zeros(size, np.int64)

    def key(self, nbytes):
        return bytes(nbytes)


def means(make, states, *, full, **asked):
    """The exact mean of what a user counts in each state, as a share of one who counts in full."""
    statistic = make(OneNoise(0))
    weights = statistic.plan.law.weights.tolist()

    def mean(state):
        total = 0
        for value, weight in enumerate(weights):
            statistic = make(OneNoise(value))
            statistic.update(np.zeros(abs(state), np.int64), np.full(abs(state), np.sign(state)))
            total += weight * statistic.release(**asked).counts[0]
        return Fraction(total, sum(weights))

    nothing, everything = mean(0), mean(full)
    return [float((mean(state) - nothing) / (everything - nothing)) for state in states]


def soft(**sizes):
    sizes = {"threshold": 4, "bound": 7, "universe": 1, "epsilon": 1, **sizes}
    return lambda coins: pp.ThresholdCount(coins=coins, **sizes)


def heavy(**sizes):
    sizes = {"k": 1, "total": 8, "cells": 2, "epsilon": 1, **sizes}
    return lambda coins: pp.HeavyHitterCount(coins=coins, **sizes)


def incidence(**sizes):
    sizes = {"bound": 4, "universe": 1, "epsilon": 1, **sizes}
    return lambda coins: pp.Incidence(coins=coins, **sizes)


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "room", "full"),
    [
        (soft(epsilon=4), 1, 4),
        (soft(below=3), 4, 4),
        (soft(threshold=6, below=1), 1, 6),
        (heavy(below=2), 2, 8),
        (heavy(below=5, total=6), 6, 6),
    ],
)
def test_nobody_counts_as_far_below_0_as_there_is_room_and_lower_states_on_a_line(make, room, full):
    plan = make(OneNoise(0)).plan
    lowest, highest = plan.range_of_states
    assert lowest <= -room
    assert plan.caveat is None
    states = [*range(lowest - plan.slope.fall, full + 1), highest]
    claimed = [
        min((lowest - state) / plan.slope.fall, 1)
        if state < lowest
        else min(max(state / plan.low - 1, 0), 1)
        for state in states
    ]
    assert means(make, states, full=full) == pytest.approx(claimed, abs=2e-2 / full)


@pytest.mark.parametrize(("make", "full"), [(soft(below=0), 4), (heavy(), 8)])
def test_without_room_users_below_0_count_by_how_far_they_are_below(make, full):
    plan = make(OneNoise(0)).plan
    states = range(-plan.low, 1)
    assert means(make, states, full=full) == pytest.approx(
        [min(-state / plan.low, 1) for state in states]
    )


@pytest.mark.parametrize("least", [1, 2, 4])
def test_an_incidence_counts_who_is_below_0_unless_there_is_room(least):
    asked = {"full": 4, "at_least": (least,)}
    for sizes, room in (({}, 0), ({"below": 0}, 0), ({"below": 2}, 2), ({"signed": True}, 4)):
        make = incidence(**sizes)
        lowest = make(OneNoise(0)).plan.range_of_states[0]
        assert lowest <= -room
        states = range(lowest - 1, 5)
        claimed = [float(state >= least or state < lowest) for state in states]
        assert means(make, states, **asked) == pytest.approx(claimed)


@pytest.mark.parametrize(("name", "full"), [("at_least", 2), ("cropped_sum", 2)])
def test_an_answer_says_so_where_nobody_said_that_there_is_none(name, full):
    def notes(**sizes):
        counted = incidence(universe=1_000, epsilon=40, **sizes)(None)
        counted.update(np.arange(900), np.full(900, full))
        answers = counted.release(exactly=(full,), **{name: (full,)}).answers().values()
        return [one.note for one in answers]

    assert notes(below=0) == notes(below=1) == notes(signed=True) == [None, None]
    assert notes() == [None, f"{BELOW} count as if far above the bound: {ROOM}"]

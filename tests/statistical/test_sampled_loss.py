"""The sampled audit finds losses that are 30 % off, and none where there is none.

Each bound exceeds the true loss at most once in a million runs. A loss of 1.3 is found to be above
1 nearly always: the bound falls short of it by 0.13 on average (by 0.18 for counters, with twice as
many runs), and the deviation of that is about 0.02: it is missed once in a million runs.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE
from panprivacy.audit.controls import CONTROLS
from panprivacy.audit.sampled.loss import sampled_loss
from panprivacy.statistics.release import Release

CLAIM, OFF = 1, Fraction(13, 10)
E = {Fraction(7, 10): Fraction(201, 100), 1: Fraction(271, 100), OFF: Fraction(367, 100)}
"""Powers of e, rounded down."""


@functools.cache
def odds(epsilon):
    squares = {k * k % 503 for k in range(1, 252)}
    return [round(100 * E[epsilon]) if k in squares else 100 for k in range(503)]


@functools.cache
def truth(epsilon):
    return E[epsilon] / (1 + E[epsilon])


class Bare:
    """A statistic of one user, without noise; he enters or does not."""

    def __init__(self, epsilon, coins):
        self.epsilon, self.coins, self.came = Fraction(epsilon), coins, 0

    def update(self, users, deltas=None):
        self.came += len(users)

    def state(self):
        return b"public"

    def release(self):
        return Release(0, 0, 0, 0.5, 1, (0,))


class Bit(Bare):
    """A bit among others, told truly with probability `e**epsilon / (1 + e**epsilon)`."""

    def state(self):
        told = self.coins.bernoulli(truth(self.epsilon), 1)[0]
        bits = np.append(self.coins.bernoulli(Fraction(1, 2), 31), self.came ^ 1 ^ told)
        return super().state() + np.packbits(bits.astype(np.uint8)).tobytes()


class Tally(Bare):
    """A noised count, and no state."""

    def release(self):
        count = self.came + int(self.coins.discrete_laplace(1 / self.epsilon, 1)[0])
        return Release(0, 0, 0, 0.5, 1, (7, count))


class Interval(Bare):
    """An interval whose width alone, noised for `epsilon`, says something."""

    def release(self):
        middle = float(self.coins.discrete_laplace(Fraction(1, 50), 1)[0])
        width = 1_000 + self.came + int(self.coins.discrete_laplace(1 / self.epsilon, 1)[0])
        return Release(middle, middle - width, middle + width, 0.5, 1, (7,))


class Both(Bit, Tally):
    """A bit and a noised count, each of which loses `epsilon`."""


class Counter(Bare):
    """A counter modulo 503, whose noise is `e**epsilon` times likelier to be a square."""

    def state(self):
        cells = self.coins.categorical(odds(self.epsilon), 40)
        cells[9] = (cells[9] + self.came) % 503
        return super().state() + cells.astype("<u2").tobytes()


def bound(make, stream, neighbour, **arguments):
    return sampled_loss(make, stream, neighbour, **arguments).epsilon


MANY = 40_000
"""Runs for counters and intervals, whose bounds differ more from run to run."""

SEEN = {
    "in a bit": (Bit, [[0]], [[]], {}),
    "in a counter": (Counter, [[0]], [[]], {"cell_bytes": 2}),
    "in a release": (Tally, [[0], RELEASE], [[], RELEASE], {"after_step": 0}),
    "in an interval": (Interval, [[0], RELEASE], [[], RELEASE], {"after_step": 0}),
}


CASES = [
    pytest.param(name, marks=[] if name in {"in a bit", "in an interval"} else [pytest.mark.slow])
    for name in SEEN
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_a_loss_is_found_where_it_is_30_percent_too_large(case):
    kind, stream, neighbour, arguments = SEEN[case]
    runs = MANY if kind in (Counter, Interval) else 20_000
    assert CLAIM < bound(partial(kind, OFF), stream, neighbour, runs=runs, **arguments) < OFF


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_a_loss_that_is_as_claimed_is_not_taken_for_more(case):
    kind, stream, neighbour, arguments = SEEN[case]
    runs = 24_000 if kind is Counter else 8_000
    found = bound(partial(kind, CLAIM), neighbour, stream, runs=runs, **arguments)
    assert 0.4 < found < CLAIM


@pytest.mark.slow
def test_state_and_release_are_seen_together():
    part = Fraction(7, 10)
    losses = [
        bound(partial(kind, part), [[0], RELEASE], [[], RELEASE], after_step=1)
        for kind in (Bit, Tally, Both)
    ]
    assert max(losses[:2]) < part
    assert CLAIM < losses[2] < 2 * part


@pytest.mark.long
def test_nothing_is_found_where_there_is_nothing():
    for kind in (Bit, Tally, Interval, Both, Counter):
        same = [[0], [0], RELEASE]
        assert bound(partial(kind, 1), same, same, runs=1_000) == 0


@pytest.mark.long
def test_a_control_that_leaks_by_its_interval_alone_is_caught():
    (control,) = [one for one in CONTROLS if one.name == "row-interval"]
    found = sampled_loss(control.make, *control.pair, runs=1_000)
    assert found.epsilon > 2 > control.claimed
    assert 3 in found.bars  # its width
    assert not found.counts


def test_an_event_that_one_stream_rules_out_is_found():
    class Open(Bare):
        def state(self):
            return bytes([self.came])

    assert bound(partial(Open, 1), [[0]], [[]], runs=1_000) > 3


def density(coins, **arguments):
    return pp.Density(coins=coins, **{"universe": 200, "epsilon": CLAIM, **arguments})


def distinct(coins, **arguments):
    plan = {"epsilon": CLAIM, "expected": (100, 10_000), "memory": 64}
    return pp.DistinctCount(coins=coins, **{**plan, **arguments})


def counters(coins, **arguments):
    plan = {"epsilon": CLAIM, "universe": 60, "bound": 499}
    return pp.Incidence(coins=coins, **{**plan, **arguments})


SHIPPING = {"density": (density, 1), "distinct count": (distinct, 1), "incidence": (counters, 2)}
NAMES = ["density", *(pytest.param(name, marks=pytest.mark.slow) for name in list(SHIPPING)[1:])]
HISTORIES = {
    "released after the intrusion": ([[5, 6], RELEASE], [[6], RELEASE], 1, {}),
    "released before it": ([[5], RELEASE, [5, 6]], [[], RELEASE, [6]], 3, {}),
    "announced": ([[5, 6], ANNOUNCE, [5]], [[6], ANNOUNCE, []], 3, {"intrusions": 1}),
}


@pytest.mark.long
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("name", NAMES)
def test_a_few_runs_of_a_shipping_class_accuse_nobody(name, history):
    """They would find a gross leak only; the test of large classes below looks closer."""
    make, width = SHIPPING[name]
    *streams, looked, plan = HISTORIES[history]
    found = bound(partial(make, **plan), *streams, after_step=looked, cell_bytes=width, runs=400)
    assert found < CLAIM


LARGE = {
    "density": (partial(density, universe=10_000), 1),
    "distinct count": (partial(distinct, expected=(1_000, 100_000), memory=4_096), 1),
    "incidence": (partial(counters, universe=1_000), 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_shipping_classes_keep_their_claim(name):
    make, width = LARGE[name]
    assert 0.1 < bound(make, [[5, 6]], [[6]], cell_bytes=width) < CLAIM  # 0.56 of counters' states


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_classes_that_are_made_for_30_percent_more_are_found(name):
    make, width = LARGE[name]
    budget = pp.Budget(state=OFF - Fraction(1, 100), release=Fraction(1, 100))
    runs = MANY if width == 2 else 20_000
    seized = partial(make, epsilon=OFF, budget=budget)
    found = bound(seized, [[5, 6]], [[6]], cell_bytes=width, runs=runs)
    assert CLAIM < found < OFF


@pytest.mark.slow
def test_a_release_that_is_made_for_30_percent_more_is_found():
    """At birth a state tells nothing, and what is released later tells `epsilon_release`."""
    budget = pp.Budget(state=6, release=OFF)
    make = partial(density, epsilon=6 + OFF, budget=budget)
    assert CLAIM < bound(make, [[5, 6], RELEASE], [[6], RELEASE], after_step=0) < OFF


@pytest.mark.slow
def test_a_history_around_an_intrusion_is_found_in_state_and_release_together():
    """It loses 1.357: 0.9 in the state, and the rest in the release after it, given the state."""
    make = partial(
        density,
        universe=50,
        epsilon=2,
        budget=pp.Budget(state=Fraction(9, 10), release=Fraction(3, 5)),
    )
    streams = [[0], [], RELEASE], [[], [0], RELEASE]
    assert 0.9 < bound(make, *streams, after_step=1) < 1.357

"""What windows lose, on every outcome of every coin: seen, unseen, and one of each."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import RELEASE, EnumeratedCoins, exact_loss
from panprivacy.privacy.guarantee import exp_bounds, unseen_bits, unseen_loss


class Unseen:
    """A statistic whose state nobody ever sees; only its releases are public."""

    def __init__(self, statistic, **asked):
        self._statistic, self._asked = statistic, asked
        self.update = statistic.update

    def release(self):
        return self._statistic.release(**self._asked)

    def state(self):
        return b""


class Windows:
    """A release is the end of a window, which lasts a second; a step of the stream takes none.

    Args:
        statistic: what a window counts with.
        seen: what an intruder gets of a window, by its number.
        arguments: of the windows.
    """

    def __init__(self, statistic, seen=lambda _: True, **arguments):
        self._now, self._window, self._seen = 0.0, 0, seen
        self._windowed = pp.Windowed(statistic, every=1, clock=lambda: self._now, **arguments)
        self.update = self._windowed.update

    def release(self):
        self._now, self._window = self._now + 1, self._window + 1
        self._windowed.advance()
        (window,) = self._windowed.take()
        return SimpleNamespace(counts=window.release.counts)

    def state(self):
        return self._windowed.current.state() if self._seen(self._window) else b""


def density(coins, budget=None, releases=1, universe=1):
    return pp.Density(universe=universe, epsilon=1, releases=releases, coins=coins, budget=budget)


def counter(coins, **arguments):
    sizes = {"universe": 1, "bound": 2, "epsilon": 1, "budget": HALVES}
    return pp.Incidence(**{**sizes, **arguments}, coins=coins)


NEAR = partial(EnumeratedCoins, tail=3)
"""Coins for several noises, with fewer outcomes each."""

HALVES = pp.Budget(state=Fraction(1, 2), release=Fraction(1, 2))
SPLITS = [
    HALVES,
    pp.Budget(state=Fraction(9, 10), release=Fraction(1, 10)),
    pp.Budget(state=Fraction(1, 10), release=Fraction(9, 10)),
]


@pytest.mark.parametrize("budget", SPLITS)
def test_a_window_that_nobody_saw_loses_exactly_what_is_claimed(budget):
    loss = exact_loss(lambda coins: Unseen(density(coins, budget)), [[0], RELEASE], [[], RELEASE])
    claimed = density(None, budget).guarantee.unseen_loss.epsilon
    assert loss.within(claimed)
    assert loss.epsilon == pytest.approx(float(claimed), rel=1e-9)
    half = [math.tanh(float(epsilon) / 2) for epsilon in (budget.state, budget.release)]
    assert float(claimed) == pytest.approx(2 * math.atanh(half[0] * half[1]), rel=1e-12)


@pytest.mark.parametrize(
    ("stream", "neighbour"),
    [
        ([[0, 1], [0], RELEASE], [[1], [], RELEASE]),
        ([[0], RELEASE, [0, 0]], [[], RELEASE, []]),
        ([[1], [0, 1], RELEASE], [[1], [1], RELEASE]),
    ],
)
def test_other_users_change_nothing_about_an_unseen_window(stream, neighbour):
    make = lambda coins: Unseen(density(coins, HALVES, universe=2))  # noqa: E731
    assert exact_loss(make, stream, neighbour).within(
        density(None, HALVES).guarantee.unseen_loss.epsilon
    )


@pytest.mark.parametrize("states", [[(0, 1)], [(0, 2)], [(0, 2), (0, -1)], [(0, 1), (0, 1)]])
@pytest.mark.parametrize("law", ["flat", "spike"])
def test_counters_that_nobody_saw_lose_at_most_what_is_claimed(states, law):
    chosen = pp.Law.flat(3, HALVES.state) if law == "flat" else pp.Law.spike(3, HALVES.state)
    loss = exact_loss(
        lambda coins: Unseen(counter(coins, law=chosen), exactly=(1,)),
        [states, RELEASE],
        [[], RELEASE],
        coins=NEAR(),
    )
    assert loss.within(counter(None, law=chosen).guarantee.unseen_loss.epsilon)


@pytest.mark.parametrize("releases", [2, 3])
@pytest.mark.parametrize("budget", [SPLITS[0], pp.Budget(Fraction(1, 5), Fraction(3, 10))])
def test_several_releases_of_bits_lose_exactly_what_is_claimed(releases, budget):
    """Who comes before each of them, or never."""
    make = lambda coins: pp.Density(  # noqa: E731
        universe=1, epsilon=9, releases=releases, budget=budget, coins=coins
    )
    claimed = make(None).guarantee.unseen_loss.epsilon
    assert claimed < releases * budget.release
    streams = [[rows, RELEASE] * releases for rows in ([0], [])]
    loss = exact_loss(lambda coins: Unseen(make(coins)), *streams, coins=NEAR(tail=2))
    assert loss.within(claimed)
    assert loss.epsilon == pytest.approx(float(claimed), rel=1e-6)


def test_several_releases_of_bits_that_tell_more_than_the_cells_hide():
    """Beyond twice the epsilon of the state another history is worse than coming every time."""
    budget = pp.Budget(state=Fraction(1, 10), release=1)
    make = lambda coins: pp.Density(  # noqa: E731
        universe=1, epsilon=9, releases=2, budget=budget, coins=coins
    )
    present = make(None).plan.table.presence(0)
    assert unseen_bits(present, budget.release, 2) is None
    streams = [RELEASE, [0], RELEASE], [RELEASE, [], RELEASE]
    loss = exact_loss(lambda coins: Unseen(make(coins)), *streams, coins=NEAR())
    assert loss.within(make(None).guarantee.unseen_loss.epsilon)


@pytest.mark.parametrize("intrusions", [0, 1])
def test_several_releases_of_counters_keep_their_claim(intrusions):
    """Counters keep their noise from release to release: how a user moved shows through it."""
    budget = pp.Budget(state=Fraction(1, 5), release=Fraction(2, 5))
    make = lambda coins: counter(  # noqa: E731
        coins, epsilon=3, budget=budget, releases=2, intrusions=intrusions
    )
    claimed = make(None).guarantee.unseen_loss.epsilon
    assert claimed < 2 * budget.release
    streams = [RELEASE, [(0, 1)], RELEASE], [RELEASE, [], RELEASE]
    loss = exact_loss(lambda coins: Unseen(make(coins), exactly=(1,)), *streams, coins=NEAR())
    assert loss.within(claimed)
    single = unseen_loss(budget.state, budget.release)
    assert not loss.within(2 * single)  # the claim of two releases of fresh states


COUNTS = {
    "cropped": lambda coins: pp.CroppedSum(
        universe=1, tau=2, bound=4, epsilon=1, budget=HALVES, coins=coins
    ),
    "net": lambda coins: pp.DistinctCount(
        expected=(1, 2), memory=1, deletions=True, bound=2, epsilon=1, budget=HALVES, coins=coins
    ),
}


@pytest.mark.parametrize("make", COUNTS.values(), ids=COUNTS)
def test_a_count_of_counters_that_nobody_saw_loses_exactly_what_is_claimed(make):
    claimed = make(None).guarantee.unseen_loss.epsilon
    assert claimed < unseen_loss(HALVES.state, HALVES.release)
    streams = [[(0, 2)], RELEASE], [[], RELEASE]
    loss = exact_loss(lambda coins: Unseen(make(coins)), *streams, coins=NEAR())
    assert loss.within(claimed)
    assert loss.epsilon == pytest.approx(float(claimed), rel=1e-6)


@pytest.mark.parametrize("seen", [0, 1])
def test_two_windows_of_which_one_is_seen(seen):
    """The user comes twice to the window that is seen, before and after it is."""
    often = [[0], [0], RELEASE]
    stream = [*often, [0], RELEASE] if seen == 0 else [[0], RELEASE, *often]
    neighbour = [step if step == RELEASE else [] for step in stream]
    loss = exact_loss(
        lambda coins: Windows(lambda: density(coins, HALVES), lambda window: window == seen),
        stream,
        neighbour,
        coins=NEAR(),
    )
    claimed = pp.Windowed(lambda: density(None, HALVES), every=1).loss(2, seen=1)
    assert claimed == 1 + density(None, HALVES).guarantee.unseen_loss.epsilon
    assert loss.within(claimed)
    t, both = math.tanh(0.25), float(density(None, HALVES).guarantee.unseen_loss.epsilon) + 0.5
    expected = both - math.log((1 - t) / 2 + (1 + t) / 2 * math.exp(-0.5))
    assert loss.epsilon == pytest.approx(expected, rel=1e-6)


def test_one_intruder_at_any_time_sees_one_window():
    stream, neighbour = [[0], RELEASE, [0]], [[], RELEASE, []]
    loss = exact_loss(lambda coins: Windows(lambda: density(coins, HALVES)), stream, neighbour)
    assert loss.within(pp.Windowed(lambda: density(None, HALVES), every=1).loss(2))


USERS_CELLS = 3, 4
"""Where user 5 is, under the plans that a learner may choose; with a key of zeros."""


class OneUser:
    """Coins of one statistic that learns: anew they fall for the cells of user 5 alone.

    Cells of others have the same law in both streams, so they may be fixed. The first table is
    that of the factory, which is planned anew before anything is counted: it has no coins at all.

    Args:
        coins: that are walked.
    """

    def __init__(self, coins):
        self._coins, self._thrown = coins, False
        self.key, self.discrete_laplace = coins.key, coins.discrete_laplace

    def bernoulli(self, probability, size):
        if size < 2:
            return self._coins.bernoulli(probability, size)
        bits = np.zeros(size, np.uint8)
        if self._thrown:
            bits[list(USERS_CELLS)] = self._coins.bernoulli(probability, len(USERS_CELLS))
        self._thrown = True
        return bits


def learner(coins):
    return pp.DistinctCount(expected="learn:1:1", memory=1, epsilon=1, budget=HALVES, coins=coins)


FOURS = pp.Budget(state=Fraction(4), release=Fraction(4))
"""Of a histogram, which leaves with little noise then: few of its values are many."""


class Redrawn:
    """Coins of one counter that learns: the first table, which is planned anew, has none."""

    def __init__(self, coins):
        self._coins, self._thrown = coins, False
        self.key, self.discrete_laplace = coins.key, coins.discrete_laplace

    def categorical(self, weights, size):
        thrown, self._thrown = self._thrown, True
        return self._coins.categorical(weights, size) if thrown else np.zeros(size, np.uint32)


def bounded(coins):
    return pp.Incidence(bound="learn:1:2", universe=1, epsilon=8, budget=FOURS, coins=coins)


class Peeking(Windows):
    """The next window is planned around the count of ones as it was before noise."""

    def __init__(self, statistic):
        super().__init__(statistic, release=self._both)

    @staticmethod
    def _both(current):
        ones = int(
            current.internals.releasing.reading()
            .sums(current.plan.table, current.internals.memory.now.table)
            .sum()
        )
        answers = {"": SimpleNamespace(low=ones, high=ones)}
        made = current.release()
        return SimpleNamespace(counts=made.counts, answers=lambda: answers, under=made.under)


@functools.cache
def views(windows, user, tail=4):
    """How likely each count of the first window is beside each state of the second.

    `exact_loss` takes what noise leaves behind for the same whatever the noise; here a plan
    follows it. Counts that are out of reach of the noise from a sum that there may be are left out.
    """
    coins, masses, plans = EnumeratedCoins(tail=tail), defaultdict(Fraction), set()
    for _ in coins:
        walked = windows(lambda: learner(OneUser(coins)))
        walked.update(list(user))
        (count,) = walked.release().counts
        walked.update(list(user))
        plans.add(walked._windowed.current.plan.levels)
        if abs(count) <= 2 * tail - len(USERS_CELLS):
            masses[count, walked.state()] += coins.probability
    return masses, plans


def worst_ratio(masses, others):
    assert masses.keys() == others.keys()
    return max(max(masses[view] / others[view], others[view] / masses[view]) for view in masses)


@pytest.mark.long
def test_a_window_that_is_planned_around_the_last_one_costs_no_more():
    """The first is unseen, the second is seen: its plan, one of two, is there to be read."""
    (masses, plans), (others, _) = views(Windows, (5,)), views(Windows, ())
    assert plans == {1, 4}
    assert sum(masses.values()) > 0.9
    worst = worst_ratio(masses, others)
    claimed = pp.Windowed(lambda: learner(None), every=1).loss(2, seen=1)
    assert claimed == 1 + learner(None).guarantee.unseen_loss.epsilon
    assert worst <= exp_bounds(claimed)[0]
    without_release = learner(None).guarantee.unseen_loss.epsilon + HALVES.state
    assert math.log(worst) == pytest.approx(float(without_release), rel=1e-9)


@pytest.mark.long
def test_a_bound_that_follows_the_last_release_costs_no_more(monkeypatch):
    """The first window is unseen, the second is seen, with its bound, which is one of two."""
    monkeypatch.setattr("panprivacy.tables.planning.learning._FURTHER", 1)
    reach = lambda released: (1, 1) if released.counts[1] > 0 else (2, 2)  # noqa: E731
    monkeypatch.setattr("panprivacy.statistics.incidence.release.IncidenceRelease.reach", reach)
    tail, moduli, each = 2, set(), []
    for user in (0,), ():
        coins, masses = EnumeratedCoins(tail=tail), defaultdict(Fraction)
        for _ in coins:
            walked = Windows(lambda: bounded(Redrawn(coins)))  # noqa: B023 - made at once
            walked.update(list(user))
            counts = walked.release().counts
            walked.update(list(user))
            moduli.add(walked._windowed.current.plan.law.modulus)
            if -tail < min(counts) and max(counts) <= tail:  # within reach of the noise
                masses[counts, walked.state()] += coins.probability
        each.append(masses)
    assert len(moduli) == 2
    assert sum(each[0].values()) > 0.7
    worst, claimed = worst_ratio(*each), pp.Windowed(lambda: bounded(None), every=1).loss(2, seen=1)
    assert claimed == 8 + bounded(None).guarantee.unseen_loss.epsilon
    assert worst <= exp_bounds(claimed)[0]
    assert math.log(worst) > 0.8 * float(bounded(None).guarantee.unseen_loss.epsilon + FOURS.state)


@pytest.mark.long
def test_a_plan_that_follows_what_was_not_released_is_found():
    """Two windows of which no release was seen lose as much as two that were seen."""
    worst = worst_ratio(views(Peeking, (5,))[0], views(Peeking, ())[0])
    assert math.log(worst) > float(learner(None).guarantee.unseen_loss.epsilon + HALVES.state) + 0.1

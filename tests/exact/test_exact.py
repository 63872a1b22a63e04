"""The shipping classes lose no more than they claim, on every outcome of every coin."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE, EnumeratedCoins, exact_loss
from panprivacy.errors import PlanError


def density(universe=2, **arguments):
    return lambda coins: pp.Density(universe=universe, coins=coins, **{"epsilon": 1, **arguments})


def distinct(**arguments):
    plan = {"epsilon": 1, "expected": (1, 4), "memory": 1}
    return lambda coins: pp.DistinctCount(coins=coins, **{**plan, **arguments})


HISTORIES = {
    "appears once": ([[0]], [[]]),
    "appears again and again": ([[0, 0], [0], [0]], [[], [], []]),
    "appears beside others": ([[0, 1], [1, 0]], [[1], [1]]),
    "appears once less": ([[0], [1], [0]], [[0], [1], []]),
    "appears and is released before and after": ([[0], RELEASE, [0]], [[], RELEASE, []]),
    "appears after a release": ([[1], RELEASE, [0]], [[1], RELEASE, []]),
    "appears before a release": ([[0], [1], RELEASE], [[], [1], RELEASE]),
}


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), 2])
def test_density_keeps_its_claim(history, epsilon):
    stream, neighbour = HISTORIES[history]
    loss = exact_loss(density(epsilon=epsilon), stream, neighbour)
    assert loss.within(epsilon)
    assert loss.set_aside < Fraction(1, 2)


def test_density_keeps_its_claim_over_two_releases():
    stream = [[0], RELEASE, [0], RELEASE]
    neighbour = [[], RELEASE, [], RELEASE]
    coins = EnumeratedCoins(tail=3)
    loss = exact_loss(density(universe=1, releases=2), stream, neighbour, coins=coins)
    assert loss.within(1)


def test_density_keeps_its_claim_when_users_leave():
    stream = [[(0, 1), (1, 1)], [(0, -1)], [(0, 1)], RELEASE]
    loss = exact_loss(density(), stream, [[(1, 1)], [], [], RELEASE])
    assert loss.within(1)


def test_a_sampled_density_keeps_its_claim():
    for user in range(3):
        loss = exact_loss(density(universe=3, cells=2), [[user], RELEASE], [[], RELEASE])
        assert loss.within(1)


@pytest.mark.parametrize("intrusions", [1, 2])
def test_density_keeps_its_claim_after_announced_intrusions(intrusions):
    stream = [[0], *[ANNOUNCE, [0]] * intrusions]
    neighbour = [[], *[ANNOUNCE, []] * intrusions]
    make = density(universe=1, intrusions=intrusions)
    loss = exact_loss(make, stream, neighbour)
    assert loss.within(1)


@pytest.mark.parametrize(
    "history",
    [
        ([[(0, 1)], ANNOUNCE, [(0, -1)]], [[], ANNOUNCE, []]),
        ([[(0, 1)], ANNOUNCE, [(0, 1), (0, -1)]], [[(0, 1)], ANNOUNCE, [(0, 1)]]),
        ([[(0, 1)], ANNOUNCE, [(0, -1)], ANNOUNCE, [(0, 1)]], [[], ANNOUNCE, [], ANNOUNCE, []]),
    ],
)
def test_announced_intrusions_keep_the_claim_when_users_leave(history):
    stream, neighbour = history
    make = density(universe=1, intrusions=stream.count(ANNOUNCE))
    loss = exact_loss(make, stream, neighbour)
    assert loss.within(1)


def test_announced_intrusions_spend_all_that_the_state_may():
    budget = pp.Budget(state=Fraction(499, 1000), release=Fraction(2, 1000))
    make = density(universe=1, intrusions=1, budget=budget)
    loss = exact_loss(make, [[(0, 1)], ANNOUNCE, [(0, -1)]], [[], ANNOUNCE, []])
    assert loss.epsilon == pytest.approx(2 * 0.499, abs=1e-4)
    assert loss.within(2 * budget.state)


def test_announced_intrusions_and_a_release_together_keep_the_claim():
    stream = [[0], ANNOUNCE, [0], RELEASE]
    loss = exact_loss(density(universe=1, intrusions=1), stream, [[], ANNOUNCE, [], RELEASE])
    assert loss.within(1)


@pytest.mark.long
@pytest.mark.parametrize("users", [[5, 3], [5, 5, 7]])
def test_the_distinct_count_keeps_its_claim_with_shared_cells(users):
    """With a key of zeros users 3 and 5 share a cell, and 5 and 7 do not."""
    others = [user for user in users if user != 5]
    loss = exact_loss(distinct(), [users, [5]], [others, []])
    assert loss.within(1)


@pytest.mark.slow
def test_the_distinct_count_keeps_its_claim_with_a_release():
    coins = EnumeratedCoins(tail=8)
    loss = exact_loss(distinct(), [[5, 7], RELEASE], [[7], RELEASE], coins=coins)
    assert loss.within(1)
    assert loss.epsilon > 0.5


@pytest.mark.slow
def test_the_distinct_count_keeps_its_claim_over_two_releases():
    stream, neighbour = [[5], RELEASE, [5, 6], RELEASE], [[], RELEASE, [6], RELEASE]
    coins = EnumeratedCoins(tail=8)
    loss = exact_loss(distinct(releases=2), stream, neighbour, coins=coins)
    assert loss.within(1)


def test_the_state_of_a_bit_spends_all_that_its_budget_allows():
    make = density(
        universe=1, epsilon=1, budget=pp.Budget(state=Fraction(9, 10), release=Fraction(1, 10))
    )
    loss = exact_loss(make, [[0]], [[]])
    assert loss.epsilon == pytest.approx(0.9, abs=1e-12)
    assert loss.within(Fraction(9, 10))
    assert not loss.within(Fraction(9, 10) - Fraction(1, 10**9))


def test_a_release_after_the_intrusion_costs_what_the_proof_says():
    """Two histories attain `epsilon_state + ln((1-t)/2 + (1+t)/2 e^epsilon_release)`."""
    budget = pp.Budget(state=Fraction(3, 5), release=Fraction(2, 5))
    make = density(universe=1, budget=budget)
    loss = exact_loss(make, [[0], [], RELEASE], [[], [0], RELEASE])
    t = math.tanh(0.3)
    assert loss.epsilon == pytest.approx(0.6 + math.log((1 - t) / 2 + (1 + t) / 2 * math.exp(0.4)))


@pytest.mark.parametrize(
    ("make", "releases"),
    [
        (density(universe=1), 1),
        (density(universe=1, epsilon=Fraction(3, 2), releases=2), 2),
        (density(universe=1, epsilon=2, releases=3), 3),
        pytest.param(distinct(), 1, marks=pytest.mark.long),
    ],
    ids=["density", "two releases", "three releases", "distinct"],
)
def test_bits_and_releases_spend_all_that_they_may(make, releases):
    """All releases, then the user comes, then the look: the plan leaves nothing unspent."""
    promised = make(None).guarantee.epsilon
    stream, neighbour = ([*[RELEASE] * releases, rows] for rows in ([0], []))
    loss = exact_loss(make, stream, neighbour, coins=EnumeratedCoins(tail=8 // releases))
    assert loss.within(promised)
    assert loss.epsilon > (1 - 1e-5) * promised


LOOKS, ANNOUNCES = [(8, 1)], [(9, 1)]


class Followed:
    """A first look that is announced later: what happens in between is not before it.

    Batches stand for both, and what the look saw is told with the release.
    """

    def __init__(self, coins, budget):
        self._inner = pp.Density(universe=1, epsilon=9, intrusions=1, budget=budget, coins=coins)
        self._seen, self._announced = b"", False

    def update(self, users, deltas=None):
        if users == [8]:
            self._seen = self._inner.state()
        elif users == [9]:
            self._inner.announce_intrusion()
            self._announced = True
        else:
            self._inner.update(users, deltas)

    def release(self):
        return self._inner.release()

    def state(self):
        """What both looks saw, told at the second one."""
        return self._seen + self._inner.state() if self._announced else b""


@pytest.mark.parametrize("state", [Fraction(1, 2), Fraction(1, 5)])
def test_a_release_between_two_looks_spends_all_that_it_may(state):
    """Who comes, is seen, leaves: a release shows that, and so does what is left of it."""
    budget = pp.Budget(state, Fraction(1, 2))
    claimed = Followed(EnumeratedCoins(), budget)._inner.plan.split.budget.total(
        releases=1, intrusions=1
    )
    assert claimed < 2 * state + Fraction(1, 2)
    comes, leaves = [(0, 1)], [(0, -1)]
    loss = exact_loss(
        partial(Followed, budget=budget),
        [comes, LOOKS, leaves, RELEASE, ANNOUNCES],
        [[], LOOKS, [], RELEASE, ANNOUNCES],
        coins=EnumeratedCoins(tail=3),
    )
    assert loss.within(claimed)
    assert loss.epsilon == pytest.approx(float(claimed), rel=1e-5)


class Overspending:
    """A bit with the output noise that is printed for Algorithm 2: too small by 1/t."""

    def __init__(self, coins):
        self._inner = pp.Density(
            universe=1,
            epsilon=Fraction(3, 10),
            budget=pp.Budget(state=Fraction(1, 10), release=Fraction(1, 10)),
            coins=ScaledNoise(coins),
        )

    def __getattr__(self, name):
        return getattr(self._inner, name)


class ScaledNoise:
    """Coins whose Laplace noise has a scale that is smaller by `t`."""

    def __init__(self, coins):
        self._coins = coins

    def __getattr__(self, name):
        return getattr(self._coins, name)

    def discrete_laplace(self, scale, size):
        return self._coins.discrete_laplace(scale * Fraction(math.tanh(0.05)), size)


def test_the_audit_catches_output_noise_that_is_too_small():
    loss = exact_loss(Overspending, [[0], [0], RELEASE], [[0], [], RELEASE])
    assert not loss.within(Fraction(3, 10))
    assert loss.epsilon > 1


def test_streams_that_differ_in_public_steps_are_refused():
    with pytest.raises(ValueError, match="agree"):
        exact_loss(density(), [[0], RELEASE], [[0]])


def test_enumerated_outcomes_have_probability_one_in_all():
    coins = EnumeratedCoins()
    laws = {"bernoulli": Fraction(0), "categorical": Fraction(0)}
    for _ in coins:
        coins.bernoulli(Fraction(2, 7), 3)
        laws["bernoulli"] += coins.probability
    for _ in coins:
        coins.categorical([1, 0, 3], 2)
        laws["categorical"] += coins.probability
    assert laws == {"bernoulli": 1, "categorical": 1}


@pytest.mark.parametrize("noise", ["discrete_laplace", "discrete_gaussian"])
def test_enumerated_noise_is_symmetric_and_nearly_complete(noise):
    coins = EnumeratedCoins(tail=12)
    law = {}
    for _ in coins:
        value = int(getattr(coins, noise)(Fraction(2), 1)[0])
        law[value] = coins.probability
    assert all(law[k] == law[-k] for k in law)
    assert 1 - sum(law.values()) < Fraction(1, 10**4)
    assert np.argmax([law[k] for k in sorted(law)]) == 24


@pytest.mark.parametrize(
    "draw",
    [
        lambda coins: coins.bernoulli(Fraction(-1, 4), 1),
        lambda coins: coins.bernoulli(Fraction(5, 4), 1),
        lambda coins: coins.categorical([3, -1], 1),
    ],
)
def test_a_law_with_a_probability_below_0_is_refused(draw):
    coins = EnumeratedCoins()
    next(iter(coins))
    with pytest.raises(PlanError, match="outside of 0 to 1"):
        draw(coins)

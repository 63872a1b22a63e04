"""Noise of infinite support that stays in the state: walked, with its tails set aside."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import pytest

from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.exact.loss import exact_loss
from panprivacy.audit.streams import RELEASE


class NoisyCounter:
    """A counter born with noise, which a release publishes with fresh noise."""

    def __init__(self, coins, scale=1):
        self._coins = coins
        self._sum = int(coins.discrete_laplace(Fraction(scale), 1)[0])

    def update(self, users, deltas=None):
        self._sum += len(users)

    def state(self):
        return self._sum.to_bytes(8, "little", signed=True)

    def release(self):
        noise = self._coins.discrete_laplace(Fraction(1), 1)
        return SimpleNamespace(counts=(self._sum + int(noise[0]),))


def loss(make, stream, neighbour, **tails):
    return exact_loss(make, stream, neighbour, coins=EnumeratedCoins(**{"tail": 6, **tails}))


@pytest.mark.parametrize(("scale", "epsilon"), [("1", 1), ("1/2", 2), ("2", 0.5)])
def test_the_loss_of_a_look_is_that_of_its_noise(scale, epsilon):
    found = loss(lambda coins: NoisyCounter(coins, scale), [[0], [1]], [[], [1]])
    assert found.epsilon == pytest.approx(epsilon, abs=1e-9)
    ratio = math.exp(-1 / float(Fraction(scale)))
    beyond = 2 * ratio**7 / (1 + ratio)  # noise of more than 6
    assert float(found.set_aside) == pytest.approx(beyond, rel=1e-9)


def test_noise_that_is_too_small_is_caught():
    found = loss(lambda coins: NoisyCounter(coins, "9/10"), [[0]], [[]])
    assert not found.within(Fraction(1))
    assert loss(NoisyCounter, [[0]], [[]]).within(Fraction(1))


def test_a_look_and_a_release_from_it_add_up():
    found = loss(NoisyCounter, [[0], RELEASE, [1]], [[], RELEASE, [1]], tail=12, state_tail=2)
    assert found.epsilon == pytest.approx(1, abs=1e-9)  # the release tells what the look does
    apart = loss(NoisyCounter, [RELEASE, [0]], [RELEASE, []], tail=12, state_tail=2)
    assert apart.epsilon == pytest.approx(2, abs=1e-9)  # the user came between the two


def test_a_user_of_two_events_loses_twice_as_much():
    found = loss(NoisyCounter, [[0, 0]], [[]])
    assert found.epsilon == pytest.approx(2, abs=1e-9)


def test_a_tail_that_is_shorter_than_what_streams_move_shows():
    assert loss(NoisyCounter, [[0] * 9], [[]], tail=2).epsilon == math.inf


def test_secrets_are_walked_and_keys_are_not():
    coins = EnumeratedCoins()
    seen = [(coins.key(1), coins.secret(1)) for _ in coins]
    assert {key for key, _ in seen} == {b"\0"}
    assert sorted(secret for _, secret in seen) == [bytes([value]) for value in range(256)]

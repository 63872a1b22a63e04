"""Whether a device had an event: what it keeps, what it reports, and what the sum says."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.audit.ideal import IdealEncryption
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.promise import Promise
from panprivacy.testing import SeededCoins

COINS = SeededCoins(1)
SURE = CountNonZero(epsilon_0=Fraction(60))


def test_one_device_has_the_epsilon_of_its_promise():
    assert CountNonZero.planned(Promise(epsilon=Fraction(3, 7))).epsilon_0 == Fraction(3, 7)


def test_among_many_devices_each_adds_less_noise_and_the_promise_is_kept():
    promise = Promise(epsilon=Fraction(1), delta=Fraction(1, 10**6), devices=1_000)
    planned = CountNonZero.planned(promise)
    assert planned.epsilon_0 > 3
    assert planned.keeps(promise)
    step = Fraction(1, 1_024)
    assert not CountNonZero(epsilon_0=planned.epsilon_0 + step).keeps(promise)


def test_delta_is_none_from_epsilon_0_on_and_grows_below_it():
    kind = CountNonZero(epsilon_0=Fraction(1))
    assert kind.delta(Fraction(1), 1) == 0
    assert kind.delta(Fraction(2), 1) == 0
    right = math.e / (1 + math.e)
    half = kind.delta(Fraction(1, 2), 1)
    assert half == pytest.approx(right - math.exp(0.5) * (1 - right), rel=1e-6)


def test_a_bit_is_0_until_an_event_and_1_ever_after():
    key = IdealEncryption()
    row = SURE.initial(key, COINS)
    assert key.values(row) == [0]
    for _ in range(2):
        row = SURE.after_event(row, key, COINS)
        assert key.values(row) == [1]
    assert key.values(SURE.reported(row, key, COINS)) == [1]
    assert (SURE.width, SURE.answers) == (1, 1)


def test_reports_are_right_as_often_as_epsilon_0_says():
    kind = CountNonZero(epsilon_0=Fraction(1))
    noised = kind.noised(np.repeat([0, 5], 20_000), SeededCoins(2))
    assert noised.shape == (40_000, 1)
    right = math.e / (1 + math.e)
    none, some = noised.reshape(2, -1).mean(axis=1)
    assert (none, some) == (pytest.approx(1 - right, abs=0.02), pytest.approx(right, abs=0.02))


def test_what_is_read_is_a_bit_each_and_a_liar_is_0():
    key = IdealEncryption()
    rows = key.encrypt([1, 0, 7], COINS)
    assert SURE.read(rows, key, 1).tolist() == [[1], [0], [0]]


def test_the_answer_undoes_the_noise():
    kind = CountNonZero(epsilon_0=Fraction(1))
    right = math.e / (1 + math.e)
    ones = round(1_000 * (0.3 * right + 0.7 * (1 - right)))
    one = kind.release([ones], 1_000, 0.95, 1.0).only()
    assert one.value == pytest.approx(300, abs=2)
    assert one.low < 300 < one.high
    assert (one.name.question, one.name.arguments) == ("at_least", (("events", 1),))
    assert (one.epsilon, one.confidence) == (1.0, 0.95)

"""How many devices had so many events: what a device keeps, reports and is read as."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.audit.ideal import IdealEncryption
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.promise import Promise
from panprivacy.errors import PlanError
from panprivacy.testing import SeededCoins

COINS = SeededCoins(1)
THREE = DeviceHistogram(most=3, epsilon_0=Fraction(60))


def test_one_place_for_each_number_of_events_kept_twice():
    assert (THREE.answers, THREE.width) == (4, 8)
    key = IdealEncryption()
    row = THREE.initial(key, COINS)
    told = []
    for _ in range(6):
        told.append(key.values(row))
        row = THREE.after_event(row, key, COINS)
    exactly, at_least = ([one[:4] for one in told], [one[4:] for one in told])
    assert exactly == np.eye(6, 4, dtype=int).tolist()
    assert at_least == [[int(place <= events) for place in range(4)] for events in range(6)]


def test_the_last_place_is_of_all_who_had_more():
    key = IdealEncryption()
    for events in range(7):
        row = THREE.initial(key, COINS)
        for _ in range(events):
            row = THREE.after_event(row, key, COINS)
        kept = key.values(row)
        assert kept[:3] + kept[-1:] == np.eye(4, dtype=int)[min(events, 3)].tolist()


def test_a_report_keeps_a_one_with_a_half_and_a_zero_as_epsilon_0_says():
    noised = DeviceHistogram(most=2, epsilon_0=Fraction(1)).noised(
        np.full(30_000, 9), SeededCoins(3)
    )
    zero, also, one = noised.mean(axis=0)
    assert one == pytest.approx(0.5, abs=0.02)
    assert zero == pytest.approx(also, abs=0.02)
    assert zero == pytest.approx(1 / (1 + np.e), abs=0.02)


def test_what_is_read_has_a_row_for_each_report():
    key = IdealEncryption()
    rows = key.encrypt([0, 1, 0, 0, 1, 0, 0, 5], COINS)
    assert THREE.read(rows, key, 1).tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]


def test_answers_say_exactly_but_for_the_last():
    answers = THREE.release([40, 30, 20, 10], 100, 0.9, 2.0).answers().values()
    said = [(one.name.question, one.name.arguments[0]) for one in answers]
    assert said == [
        ("exactly", ("events", 0)),
        ("exactly", ("events", 1)),
        ("exactly", ("events", 2)),
        ("at_least", ("events", 3)),
    ]
    assert [one.counts for one in answers] == [(40,), (30,), (20,), (10,)]


@pytest.mark.long
def test_a_plan_depends_on_the_promise_alone_and_keeps_it():
    promise = Promise(epsilon=Fraction(1), delta=Fraction(1, 10**5), devices=300)
    planned = DeviceHistogram.planned(promise, most=5)
    assert planned.epsilon_0 == DeviceHistogram.planned(promise, most=1).epsilon_0
    assert planned.keeps(promise)
    assert DeviceHistogram.planned(Promise(epsilon=Fraction(2)), most=5).epsilon_0 == 2
    assert THREE.delta(Fraction(60), 1) == 0 < THREE.delta(Fraction(59), 1)


@pytest.mark.parametrize("most", [0, 1_001, True])
def test_the_most_events_are_bounded(most):
    with pytest.raises(PlanError, match="most must be"):
        DeviceHistogram(most=most, epsilon_0=Fraction(1))
    assert DeviceHistogram(most=1_000, epsilon_0=Fraction(1)).answers == 1_001

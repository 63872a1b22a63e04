"""Devices that are simulated, and the command that does it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.audit.ideal import IdealEncryption
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.simulation import (
    DevicePopulation,
    _spread,
    local_deviations,
    simulate,
    truth,
)
from panprivacy.errors import PlanError
from panprivacy.testing import SeededCoins

EVENTS = np.array([0, 0, 1, 2, 3, 7])


def population(**changed):
    return DevicePopulation(**{"devices": 100, "ticks": 10, "events": Fraction(2)} | changed)


@pytest.mark.parametrize("devices", [1, 2, 7, 100, 1_000])
def test_octaves_are_of_all_devices_and_twice_as_busy_each(devices):
    octaves = population(devices=devices).octaves()
    assert sum(size for size, _ in octaves) == devices
    chances = [chance for _, chance in octaves]
    assert chances == [min(Fraction(2**octave, 5), Fraction(1)) for octave in range(len(octaves))]


def test_a_device_of_the_busiest_octaves_has_an_event_at_every_tick():
    ticks = list(population().observed(SeededCoins(1)))
    events = np.sum(ticks, axis=0)
    assert len(ticks) == 10
    assert events[-4:].tolist() == [10] * 4
    assert 0 < events[:50].mean() < 4


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"devices": 0}, "devices must"),
        ({"ticks": 10_000_000}, "ticks must"),
        ({"events": Fraction(0)}, "events must be above 0"),
        ({"events": Fraction(11)}, "at most one a tick"),
    ],
)
def test_a_population_out_of_range_is_refused(changed, message):
    with pytest.raises(PlanError, match=message):
        population(**changed)


def test_the_truth_of_each_kind():
    assert truth(CountNonZero(epsilon_0=Fraction(1)), EVENTS).tolist() == [4]
    histogram = DeviceHistogram(most=3, epsilon_0=Fraction(1))
    assert truth(histogram, EVENTS).tolist() == [2, 1, 1, 2]
    assert truth(Mean(most=3, variance=Fraction(1)), EVENTS).tolist() == [9 / 6]


@pytest.mark.long
@pytest.mark.parametrize("variance", [Fraction(1, 20), Fraction(1), Fraction(100)])
def test_the_deviation_of_a_mean_is_that_of_its_whole_noise(variance):
    """A discrete Gaussian of variance 1/20 is 0 nearly always: its own variance is 9e-5."""
    kind, reports = Mean(most=3, variance=variance), 10**6
    (found,) = local_deviations(kind, np.zeros(1), reports)
    noise = kind.noised(np.zeros(reports, np.int64), SeededCoins(1))
    assert noise.std() == pytest.approx(
        found * math.sqrt(reports), rel=0.2 if variance < 1 else 0.01
    )


def test_devices_with_ciphertexts_are_spread_over_all():
    assert _spread(4, 100).tolist() == [0, 25, 50, 75]
    assert _spread(3, 3).tolist() == [0, 1, 2]
    assert _spread(0, 3).tolist() == []


def test_without_noise_the_answer_is_the_truth_and_each_tick_is_told():
    kind, told = CountNonZero(epsilon_0=Fraction(30)), []
    found = simulate(
        kind,
        Promise(epsilon=Fraction(30)),
        population(),
        IdealEncryption(),
        encrypted=30,
        coins=SeededCoins(2),
        advance=lambda: told.append(1),
    )
    assert found.answers.only().value == pytest.approx(found.truths[0])
    assert len(told) == 10


def test_more_ciphertexts_than_devices_are_refused():
    kind = CountNonZero(epsilon_0=Fraction(1))
    with pytest.raises(PlanError, match="encrypted must"):
        simulate(kind, Promise(epsilon=Fraction(1)), population(), IdealEncryption(), encrypted=101)

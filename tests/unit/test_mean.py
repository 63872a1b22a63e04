"""The mean of what devices have."""

from __future__ import annotations

from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.promise import Promise


def test_the_least_noise_of_a_mean_is_found_where_one_device_would_need_too_much():
    promise = Promise(epsilon=Fraction(1, 2), delta=Fraction(1, 10**9), devices=1_000)
    found = Mean.planned(promise, most=1_000)
    assert found.keeps(promise)
    assert not Mean(most=1_000, variance=found.variance * Fraction(99, 100)).keeps(promise)


def test_the_least_noise_of_a_mean_is_a_hundredth():
    Mean(most=1, variance=Fraction(1, 100))
    with pytest.raises(pp.PlanError, match="variance must be 1/100 to"):
        Mean(most=1, variance=Fraction(1, 100) - Fraction(1, 10**9))

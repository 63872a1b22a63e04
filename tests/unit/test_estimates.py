"""Estimates of linear queries: sums of independent ones."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.incidence.estimates import Estimates, added


def test_sums_add_values_variances_steps_and_biases():
    one = Estimates(
        np.array([5.0, -3.0]), np.array([4.0, 9.0]), np.full(2, 1.0), 0.0, 0.0, 0.5, 0.2
    )
    found = added([one, one, one])
    assert found.values.tolist() == [15, -9]
    assert (found.deviations() ** 2).tolist() == pytest.approx([15, 30])
    assert (found.step, found.bias) == (1.5, pytest.approx(0.6))


def test_an_interval_may_have_an_estimate_below_it():
    one = Estimates(np.array([-30.0]), np.array([25.0]), np.zeros(1), 0.0, 0.0, 0.5)
    low, high = one.intervals(0.95, np.inf)
    assert low[0] == 0 < high[0] < 20


def levels(memory):
    return pp.DistinctCount(expected=(1_000, 1_000_000), memory=memory, epsilon=1).plan.model(0)


@pytest.mark.parametrize(("memory", "most"), [(1 << 16, 0.007), (4_096, 0.046)])
def test_the_bias_of_a_distinct_count_is_a_small_part_of_its_error(memory, most):
    """The numbers of the page on decoding."""
    model, users = levels(memory), np.append(0, np.geomspace(1, 1e6, 200))
    shares = model.bias(users) / model.deviation(users)
    assert 0.8 * most < shares.max() <= most
    assert shares.min() > 0


def test_a_distinct_count_below_0_goes_on_as_it_does_above():
    model = levels(4_096)
    nobody, _, slope = model.moments(np.zeros(()))
    steps = np.arange(-5, 6) / 5 * float(model.deviation(0))
    found = np.array([model.unbiased(nobody + step * slope) for step in steps])
    assert found == pytest.approx(steps, rel=0.05, abs=1)
    assert found[5] == pytest.approx(0, abs=1e-6)
    assert (np.diff(found) > 0).all()
    measured = model.measured(nobody - slope * 300)
    assert measured.estimate == pytest.approx(-300, rel=0.05)
    assert measured.standard_error == model.deviation(0)

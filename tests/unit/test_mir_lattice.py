"""Lattices: laws of spikes and how far errors reach."""

from __future__ import annotations

import numpy as np

import panprivacy as pp
from panprivacy.published import (
    CalibratedDistinctCount,
    CalibratedNorm,
)


def test_the_reach_of_errors_is_the_smallest_that_is_exceeded_so_rarely():
    """Against the law of the sum itself, on a line long enough."""
    model = CalibratedNorm(columns=[[1], [3]], modulus=31, norm=1, epsilon=2).plan.model(0)
    far = np.arange(-4_000, 4_001)
    laplace = np.exp(-np.abs(far) / model.scale)
    law = np.convolve(laplace / laplace.sum(), model.chances)
    tails = law[::-1].cumsum()[::-1]
    for beyond in (0.4, 0.05, 0.001):
        reach = model.reach(beyond)
        place = reach + 4_000  # where errors of `reach` stand
        assert tails[place + 1] <= beyond < tails[place]


def test_the_law_of_identity_is_that_of_a_spike():
    """A lattice of all states has the noise that `CalibratedDistinctCount` draws by counter."""
    budget = pp.Budget(1, 1)
    sizes = {"modulus": 4, "epsilon": 2, "budget": budget}
    whole = CalibratedNorm(columns=[[1, 0], [0, 1]], **sizes).plan.noise(0)
    apart = CalibratedDistinctCount(universe=2, **sizes).plan.law.probabilities()
    np.testing.assert_allclose(whole, np.outer(apart, apart).ravel(), rtol=1e-6)

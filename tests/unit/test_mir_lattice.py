"""Lattices: what is enumerated, what is refused, and laws of spikes."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers.published import CalibratedDistinctCount, CalibratedNorm, StableDistinctCount
from panprivacy.papers.published.mir_exponential import StableMap
from panprivacy.papers.published.mir_lattice import MOST_POINTS, lattice_of


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: StableDistinctCount(universe=9, rows=4, modulus=101, epsilon=1),
            r"101\*\*4 .* at most 65,536 may be: take modulus=16 with 4 rows or 2 rows",
        ),
        (
            lambda: CalibratedNorm(columns=[[1] * 20], modulus=5, epsilon=1),
            r"5\*\*20 .* take 6 rows with modulus=5",
        ),
        (
            lambda: CalibratedNorm(
                columns=[[1, entry] for entry in range(200)], modulus=251, epsilon=1
            ),
            "steps of a lattice of 63,001 points are too many",
        ),
        (
            lambda: CalibratedNorm(
                columns=[[1, entry] for entry in range(200)], modulus=199, norm=2, epsilon=1
            ),
            "steps of a lattice of 39,601 points are too many",
        ),
        (
            lambda: StableDistinctCount(universe=9, rows=2, modulus=2, grid=2, epsilon=1),
            "half of the entries are 0",
        ),
        (lambda: CalibratedNorm(columns=[[3, 0]], modulus=3, epsilon=1), "all 0 modulo M"),
    ],
)
def test_what_cannot_be_enumerated_is_refused_with_what_can(make, message):
    with pytest.raises(pp.PlanError, match=message):
        make()


def test_what_the_refusal_names_is_taken():
    for rows, modulus in ((4, 16), (2, 101)):
        sketch = StableMap(9, rows, modulus, 2, 20, 0)
        assert len(lattice_of(sketch, 0).lengths) == modulus**rows <= MOST_POINTS


def test_the_law_of_identity_is_that_of_a_spike():
    """A lattice of all states has the noise that `CalibratedDistinctCount` draws by counter."""
    budget = pp.Budget(1, 1)
    sizes = {"modulus": 4, "epsilon": 2, "budget": budget}
    whole = CalibratedNorm(columns=[[1, 0], [0, 1]], **sizes).plan.noise(0)
    apart = CalibratedDistinctCount(universe=2, **sizes).plan.law.probabilities()
    np.testing.assert_allclose(whole, np.outer(apart, apart).ravel(), rtol=1e-6)

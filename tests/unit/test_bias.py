"""The bias of logarithms of a noisy spectrum."""

from __future__ import annotations

import numpy as np
import pytest

from panprivacy.statistics.incidence.bias import logarithm_bias


@pytest.mark.parametrize("modulus", [5, 8])
def test_the_mean_of_logarithms_is_off_by_no_more_than_it_says(modulus):
    """10 means of 20,000 runs; each is within 6 deviations of the bound: a false alarm in 1e8."""
    rng, cells, scale = np.random.default_rng(modulus), 2_000, 12.0
    law = rng.dirichlet(np.full(modulus, 0.7))
    runs = rng.multinomial(cells, law, 20_000) + np.rint(rng.laplace(0, scale, (20_000, modulus)))
    truth = np.fft.fft(law)
    errors = np.log(np.fft.fft(runs) / cells / truth)
    for at in range(1, modulus):
        weights = np.zeros(modulus)
        weights[at] = modulus
        bound = logarithm_bias(truth, cells, 2 * scale**2, weights)
        mean, spread = abs(errors[:, at].mean()), errors[:, at].std() / np.sqrt(len(runs))
        assert mean <= 1.2 * bound + 6 * spread
        assert bound <= mean * 1.3 + 6 * spread

"""What products of noisy sums say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.tables.decoders.quadratic import CellNoise


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(999), Fraction(10**6)])
def test_the_cumulants_of_noise_are_those_of_its_law(scale):
    width = float(scale)
    reach = int(60 * width) + 60
    values = np.arange(-reach, reach + 1, max(reach // 10**6, 1), dtype=float)
    law = np.exp(-np.abs(values) / width)
    law /= law.sum()
    noise = CellNoise.laplace(scale)
    variance = float(law @ values**2)
    assert noise.variance == pytest.approx(variance, rel=1e-4)
    assert noise.cumulant == pytest.approx(float(law @ values**4) - 3 * variance**2, rel=1e-3)
    assert (noise + noise).variance == 2 * noise.variance

"""What users leave of a spectrum is read off half of it, and no law is made to plan for more."""

from __future__ import annotations

import math

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.incidence.strain import SharedSpectrum
from panprivacy.tables.cells.law import Law

LAWS = [
    Law.flat(503, 2),
    Law.biquadratic(677, 3),
    Law.singer(364, 3),
    Law.spike(100, 6),
    Law.geometric(60, 5),
    Law.of([900, 1, 2, 1, 3, 4]),
]


def is_readable(law, epoch, cells, load, noise):
    """The same of all frequencies, as the docstrings say it."""
    left = np.abs(np.fft.fft(law.probabilities()))[1:] ** (epoch + 1)
    left = left * np.exp(load * (np.cos(2 * math.pi * np.arange(1, law.modulus) / law.modulus) - 1))
    strains = (cells + law.modulus * noise) / cells**2 / left**2
    sides = np.full(law.modulus // 2, 2.0)
    sides[-1] -= law.modulus % 2 == 0
    pairs = strains[: len(sides)]
    near = np.sqrt(sides * pairs / (0.3 * len(strains)))
    tails = [math.erfc(one) / 2 for one in (1 - near) / np.sqrt(2 * pairs / sides)]
    strain = strains.mean()
    return strain <= 0.1 and load + 6 * math.sqrt(strain) < math.pi and sum(tails) <= 1e-3


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_half_of_the_spectrum_decides_as_all_of_it_does(law, epoch):
    found = []
    for cells in np.geomspace(10, 10**9, 60).astype(int).tolist():
        for load, noise in [(0, 0.0), (0.5, 10.0), (2, 100.0)]:
            spectrum = SharedSpectrum.of(law.modulus, law.spectrum_sizes(), epoch, cells)
            found.append(spectrum.is_readable(load, noise))
            assert found[-1] == is_readable(law, epoch, cells, load, noise)
    assert any(found)
    assert not all(found)


def test_how_many_users_would_do_is_found_without_the_spectrum_of_a_law(monkeypatch):
    """Otherwise a refusal at this bound transforms a law of two million values, 22 times."""
    for name in ("fft", "rfft"):
        monkeypatch.setattr(np.fft, name, lambda *_, **__: pytest.fail("it is transformed"))
    with pytest.raises(pp.PlanError, match="plan for 4,194,304,000 expected users"):
        pp.plan("incidence", bound=1_000_000, expected=1_000, epsilon=1, releases=30)

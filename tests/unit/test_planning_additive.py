"""Noise of sums, and what a clip of them hides."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.decoders.quadratic import Noise
from panprivacy.planning.additive import AdditiveBudget, Reach, Tails
from panprivacy.testing import SeededCoins


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("intrusions", [0, 1, 3])
def test_a_cell_has_the_noise_of_its_birth_of_each_intrusion_and_of_its_release(
    intrusions, published
):
    """A user moves both tables: from 0 to 5 once, and there and back between two moments."""
    reach, budget = Reach(5, signed=False, tables=2), AdditiveBudget(Fraction(1, 2), Fraction(1, 4))
    scales = [20, *[40] * intrusions, *[80] * published]
    found = reach.noise(budget, intrusions, published=published)
    each = [Noise.laplace(Fraction(scale)) for scale in scales]
    assert found.variance == pytest.approx(sum(one.variance for one in each))
    assert found.cumulant == pytest.approx(sum(one.cumulant for one in each))


def test_a_clip_hides_no_more_than_is_said():
    """Over random signs and cells the mean of what is cut off is below the bound, and not far."""
    reach, budget = Reach(4, signed=False, tables=1), AdditiveBudget(Fraction(2), Fraction(1))
    cells, states = 64, np.full(500, 4)
    tails = reach.tails(cells, budget, 0, float(states @ states))
    rng, coins, clip = np.random.default_rng(3), SeededCoins(3), 20
    hidden = []
    for _ in range(400):
        table = coins.discrete_laplace(reach.born(budget), cells)
        signs = rng.choice([-1, 1], len(states))
        np.add.at(table, rng.integers(cells, size=len(states)), signs * states)
        hidden.append(np.maximum(table.astype(float) ** 2 - clip**2, 0).sum())
    assert 0.02 * tails.hidden(clip) < np.mean(hidden) < tails.hidden(clip)


@pytest.mark.parametrize("clip", [1, 20, 300])
@pytest.mark.parametrize("h", [0.02, 0.3, 2.0])
def test_what_a_clip_hides_of_a_cell_is_bounded_by_at_most_twice_as_much(h, clip):
    cells = clip + np.linspace(0, 20 / h, 100_001)
    cut = float(((cells**2 - clip**2) * np.exp(-h * cells)).max())
    assert cut < Tails(((h, 0.0),)).hidden(clip) < 2 * cut
    assert Tails(((h, 1.0), (h, 0.0))).hidden(clip) == Tails(((h, 0.0),)).hidden(clip)
    assert Tails(((h, 1.0),)).hidden(clip) == pytest.approx(
        math.e * Tails(((h, 0.0),)).hidden(clip)
    )

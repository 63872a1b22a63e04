"""Noise of sums, and what a clip of them hides."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.tables.decoders.quadratic import CellNoise
from panprivacy.tables.planning.additive import (
    AdditiveBudget,
    Reach,
    Tails,
    _log_growth,
    _sizes,
    best_design,
    released_variance,
)
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
    each = [CellNoise.laplace(Fraction(scale)) for scale in scales]
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
        table = coins.discrete_laplace(reach.initial(budget), cells)
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


@pytest.mark.parametrize("scale", [0.3, 2.0, 40.0])
def test_noise_grows_by_as_much_as_is_said(scale):
    """The mean of `e**(h x)`, against the sum over the law."""
    line, h = np.arange(-2_000, 2_001), 0.5 / scale
    law = np.exp(-np.abs(line) / scale)
    mean = float(np.exp(h * line - np.abs(line) / scale).sum() / law.sum())
    assert _log_growth(scale, h) == pytest.approx(math.log(mean), rel=1e-9)
    assert _log_growth(scale, 1 / scale) == math.inf


def test_noise_has_no_mean_growth_either_where_rounding_makes_it_negative():
    assert _log_growth(32.0, math.nextafter(1 / 32, 0)) == math.inf


def test_few_cells_are_taken_where_no_more_fit():
    assert _sizes(600) == [64, 128, 256, 512]
    assert _sizes(63) == [32]


def test_the_best_design_is_the_one_that_is_never_much_worse_than_another():
    errors = {(8, None, 0): (0.1, 0.1), (16, None, 0): (0.05, 0.15), (32, None, 0): (0.02, 0.9)}

    class Plan:
        def __init__(self, design):
            self.design = design

        def relative_errors(self, truths):
            low, high = errors[self.design]
            return np.where(truths < 100, low, high)

    assert best_design(Plan, [*errors], (10.0, 1_000.0)).design == (16, None, 0)


@pytest.mark.parametrize("moment", [1e3, 1e5, 1e7])
def test_a_clip_is_hardly_larger_than_what_hides_too_much(moment):
    reach, budget = (
        Reach(bound=10, signed=False, tables=1),
        AdditiveBudget(Fraction(1, 2), Fraction(1, 2)),
    )
    tails = reach.tails(1_024, budget, 0, moment)
    clip = reach.clip(1_024, budget, tails, 1.0)
    assert tails.hidden(clip) <= 1 < tails.hidden(clip * (1 - 1 / 64) - 1)


def test_a_release_without_a_clip_adds_no_noise():
    reach = Reach(bound=10, signed=False, tables=1)
    assert released_variance(reach, 0, AdditiveBudget(Fraction(1, 2), Fraction(1, 2))) == 0.0

"""How bits share epsilon."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.privacy.guarantee import joint_releases, randomised_response
from panprivacy.tables.decoders.intervals import discrete_laplace_variance
from panprivacy.tables.planning.bits import best_split
from panprivacy.tables.planning.request import (
    Request,
    Split,
    noise_variance,
    release_shares,
)  # fmt: skip
from tests.unit.test_planning import ONE


@pytest.mark.parametrize("epsilon", [Fraction(1, 1_000), Fraction(1, 3), 10, 30_000])
@pytest.mark.parametrize("releases", [1, 24, 1_000_000])
@pytest.mark.parametrize("intrusions", [0, 1, 2])
def test_a_split_of_bits_spends_nearly_all_of_epsilon(epsilon, releases, intrusions):
    request = Request(Fraction(epsilon), releases, intrusions)
    budget = best_split(request, 10_000).budget
    spent = budget.total(releases=releases, intrusions=intrusions)
    assert spent <= epsilon
    assert float(spent) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize(("cells", "releases", "epsilon", "less"), [
    (1_000, 1, "1", 0.94), (65_536, 24, "0.5", 0.76), (10_000, 24, "0.1", 0.53),
])  # fmt: skip
def test_what_the_exact_loss_of_bits_gains(cells, releases, epsilon, less):
    """Beside splits whose sum is epsilon; the numbers of docs/guarantees/releases.md."""
    request = Request(Fraction(epsilon), releases)
    summed = min(deviation(by_sum(request, share), cells) for share in release_shares())
    assert deviation(best_split(request, cells), cells) / summed == pytest.approx(less, abs=0.005)


def by_sum(request, share):
    """A split whose losses add up."""
    budget = pp.Budget(request.epsilon * (1 - share), request.epsilon * share / request.releases)
    contrast = float(2 * randomised_response(budget.state) - 1)
    return Split(budget, contrast, noise_variance(1, budget))


def deviation(split, cells):
    """Of a count of fair bits, in units of one user."""
    return math.sqrt(cells / 4 + split.noise_variance) / split.contrast


def split_by_hand(share):
    """A split of 1 whose release costs `share` of it."""
    state = Fraction(1 - share)
    present = randomised_response(state)
    budget = pp.Budget(state, joint_releases(present, 1 - state, 1))
    return Split(budget, float(2 * present - 1), noise_variance(1, budget))


@pytest.mark.parametrize("cells", [1, 100, 10_000, 1_000_000])
def test_the_best_split_is_as_good_as_any(cells):
    shares = np.linspace(0.001, 0.999, 999)
    best = min(deviation(split_by_hand(share), cells) for share in shares)
    assert deviation(best_split(ONE, cells), cells) <= 1.01 * best


def test_a_large_table_spends_nearly_all_of_epsilon_on_its_state():
    half = Split(pp.Budget("0.5", "0.5"), math.tanh(0.25), discrete_laplace_variance(2))
    best = best_split(ONE, 100_000)
    assert best.budget.release < Fraction(1, 10)
    assert 2.7 < (deviation(half, 100_000) / deviation(best, 100_000)) ** 2 < 4.5

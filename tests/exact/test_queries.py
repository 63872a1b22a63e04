"""What linear queries lose, on the code that ships: the noised answers, which decide all else."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.audit import EnumeratedCoins
from panprivacy.audit.exact.numbers import exp
from panprivacy.papers.queries import LinearQueries, linear
from panprivacy.privacy.guarantee import exp_bounds, log_above

MATRIX = [[1, 0.5], [0.5, 1], [0, 0.5]]
COLUMNS = np.array([[2, 1, 0], [1, 2, 1]])
"""What a user of each column adds, in halves."""


def law(make, counts, tail):
    """The law of the noised answers, up to ±2·tail, and what lies beyond; each exactly."""
    coins, found = EnumeratedCoins(tail=tail), defaultdict(Fraction)
    for _ in coins:
        found[tuple(make(coins).release(counts).noised.tolist())] += coins.probability
    return found


def ratios(make, counts, neighbour, tail):
    """All ratios of the probabilities of one outcome in two laws, where both were walked."""
    one, other = law(make, counts, tail), law(make, neighbour, tail)
    return [one[outcome] / other[outcome] for outcome in one.keys() & other.keys()]


@pytest.fixture(autouse=True)
def _no_projection(monkeypatch):
    """The projection is a function of what is walked, and draws nothing."""
    monkeypatch.setattr(linear, "nearest", lambda entries, *_: (np.zeros(entries.shape[1]), 0.0))


@pytest.mark.long
@pytest.mark.parametrize("column", [0, 1])
def test_pure_noise_loses_what_the_column_of_the_user_moves(column):
    def make(coins):
        return LinearQueries(MATRIX, users=5, epsilon=2, coins=coins)

    assert make(None).sensitivity == (4, 6)
    counts = [1, 1]
    more = [1 + (column == 0), 1 + (column == 1)]
    found = ratios(make, counts, more, tail=2)
    lost = Fraction(int(COLUMNS[column].sum())) / make(None)._scale()
    near = exp_bounds(lost)[1] * (1 + Fraction(1, 10**30))
    assert max(found) <= near
    assert 1 / min(found) <= near
    assert max(found) >= near * (1 - Fraction(1, 10**25))
    assert lost <= 2
    assert (lost == 2) == (column == 1)  # the largest column pays all of epsilon


def hockey_stick(noise, scale, shift, epsilon):
    """How much of one law lies above `e**epsilon` times the other, exactly but for e**-60."""
    reach = math.ceil(60 * scale) if noise == "laplace" else math.ceil(12 * scale)
    points = range(-reach, reach + 1)
    if noise == "laplace":
        weights = [math.exp(-abs(k) / scale) for k in range(-reach - 4, reach + 5)]
    else:
        weights = [math.exp(-k * k / (2 * scale**2)) for k in range(-reach - 4, reach + 5)]
    law = np.array(weights) / math.fsum(weights)
    at = np.arange(4, 4 + len(points))
    one, other = np.ones(()), np.ones(())
    for moved in shift:
        one = np.multiply.outer(one, law[at])
        other = np.multiply.outer(other, law[at - moved])
    return np.maximum(one - math.exp(epsilon) * other, 0).sum()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.1), (2, 1e-3), (0.5, 1e-2)])
def test_with_a_delta_no_more_than_it_lies_beyond_epsilon(noise, epsilon, delta):
    """Two equal queries, of which every user counts in both: by the hockey-stick divergence."""
    matrix = [[1], [1]]
    asked = LinearQueries(matrix, users=5, epsilon=epsilon, delta=delta, noise=noise)
    scale = float(asked.scale)
    assert hockey_stick(noise, scale, (1, 1), epsilon) <= delta
    much_less = scale / 8
    assert hockey_stick(noise, much_less, (1, 1), epsilon) > delta


def test_gaussian_noise_has_the_law_that_the_claim_speaks_of():
    def make(coins):
        return LinearQueries([[1]], users=5, epsilon=3, delta="1/10", noise="gaussian", coins=coins)

    found, variance = law(make, [0], tail=2), make(None)._scale() ** 2
    assert found[(1,)] / found[(0,)] == pytest.approx(float(exp(-1 / (2 * variance))), rel=1e-12)
    assert found[(2,)] / found[(0,)] == pytest.approx(float(exp(-2 / variance)), rel=1e-12)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(10)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**12), Fraction(1, 10)])
def test_a_concentrated_loss_is_the_largest_that_fits(epsilon, delta):
    rho = linear.rho_within(epsilon, delta)
    tail = log_above(1 / delta)
    assert rho <= epsilon
    assert (epsilon - rho) ** 2 >= 4 * rho * tail
    more = rho * (1 + Fraction(1, 10**9))
    assert (epsilon - more) ** 2 < 4 * more * tail


@pytest.mark.long
def test_noise_that_forgets_the_grid_is_caught():
    """A matrix of halves has twice the sensitivity, in units of the grid."""

    class Coarse(LinearQueries):
        __slots__ = ()

        def _scale(self):
            return super()._scale() / self.grid

    def make(coins):
        return Coarse(MATRIX, users=5, epsilon=2, coins=coins)

    assert max(ratios(make, [1, 1], [1, 2], tail=2)) > exp_bounds(Fraction(2))[1]

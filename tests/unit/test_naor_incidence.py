"""Incidence by counters modulo primes, and what they refuse."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers.published import (
    PrimeIncidence,
    draw_primes,
)
from tests.unit.test_published import ALL


def counted(**others):
    """With epsilon so large that noise is rare."""
    states = np.repeat([0, 1, 4, 9], [10, 20, 15, 5])
    statistic = PrimeIncidence(**{**ALL["primes"][1], "epsilon": 200, **others})
    statistic.update(np.arange(50), states + 21)
    statistic.update(np.arange(50), np.full(50, -21))
    return statistic.release()


def test_counters_are_modulo_each_prime():
    answer = counted()
    assert len(answer.counts) == 3 + 5 + 7
    assert answer.estimates(4) == pytest.approx((35, 20, 15), abs=3)
    assert answer.minimum(4) == min(answer.estimates(4))
    assert answer.epsilon == pytest.approx(20)


def test_the_linear_programme_finds_the_states():
    pytest.importorskip("scipy")
    answer = counted(primes=(3, 5, 7, 11))
    expected = np.bincount(np.repeat([0, 1, 4, 9], [10, 20, 15, 5]), minlength=10)
    found = answer.states()
    assert found.sum() == pytest.approx(50)
    np.testing.assert_allclose(found, expected, atol=3)


def test_without_scipy_the_linear_programme_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    answer = counted()
    with pytest.raises(ImportError, match=r"panprivacy\[published\]"):
        answer.states()


@pytest.mark.parametrize("state", [-1, 10, 1.5])
def test_states_beyond_the_bound_cannot_be_asked_for(state):
    with pytest.raises(pp.PlanError):
        counted().estimates(state)


@pytest.mark.parametrize("primes", [(), (3, 3), (4,), (1,), (3.5,), 7, (4_099,), None])
def test_moduli_must_be_different_primes(primes):
    with pytest.raises(pp.PlanError):
        PrimeIncidence(universe=5, bound=3, primes=primes, epsilon=1)


def test_primes_are_drawn_from_the_range_of_the_lecture():
    """4 log2(64)/0.5 = 48 primes, the last of which is 223."""
    drawn = {prime for _ in range(40) for prime in draw_primes(8, 64, 0.5)}
    assert max(drawn) <= 223
    assert len(drawn) > 30
    assert len(set(draw_primes(48, 64, 0.5))) == 48
    with pytest.raises(pp.PlanError):
        draw_primes(3, 4_096, 0.01)


def test_primes_that_cannot_be_planned_spend_nothing():
    ledger = pp.Ledger(1)
    with pytest.raises(pp.PlanError):
        PrimeIncidence(
            universe=10, bound=4, primes=(3, 4_093), epsilon=Fraction(1, 10**5), ledger=ledger
        )
    assert ledger.remaining == 1


@pytest.mark.parametrize("error", [5e-324, 1e-50])
def test_errors_that_need_more_primes_than_there_are(error):
    with pytest.raises(pp.PlanError, match="error is too small"):
        draw_primes(1, 100, error)

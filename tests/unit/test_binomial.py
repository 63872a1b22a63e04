"""Bounds of a probability from how often something happened."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from panprivacy.audit.binomial import clopper_pearson


def at_least(hits: int, runs: int, probability: Fraction) -> Fraction:
    """The probability of so many hits or more, exactly: from the shorter tail."""
    few = hits <= runs // 2
    tail = sum(
        math.comb(runs, k) * probability**k * (1 - probability) ** (runs - k)
        for k in (range(hits) if few else range(hits, runs + 1))
    )
    return 1 - tail if few else tail


@pytest.mark.parametrize("error", [0.05, 1e-6])
@pytest.mark.parametrize(("hits", "runs"), [(0, 7), (1, 7), (4, 7), (7, 7), (13, 300), (299, 300)])
def test_the_bounds_are_where_so_many_hits_are_as_rare_as_the_error(hits, runs, error):
    low, high = clopper_pearson(hits, runs, error)
    assert 0 <= low <= hits / runs <= high <= 1
    if hits:
        assert at_least(hits, runs, Fraction(low)) <= error
        assert at_least(hits, runs, Fraction(low) * Fraction(100_001, 100_000)) > error
    if hits < runs:
        miss = 1 - Fraction(high)
        assert at_least(runs - hits, runs, miss) <= error * (1 + 1e-7)
        assert at_least(runs - hits, runs, miss * Fraction(100_001, 100_000)) > error


def test_bounds_of_no_hits_and_of_all_have_closed_forms():
    assert clopper_pearson(0, 100, 1e-6) == (0, pytest.approx(1 - 1e-6 ** (1 / 100)))
    assert clopper_pearson(100, 100, 1e-6) == (pytest.approx(1e-6 ** (1 / 100)), 1)


@pytest.mark.parametrize("probability", [Fraction(1, 50), Fraction(1, 2), Fraction(9, 10)])
def test_the_bounds_are_wrong_no_more_often_than_they_say(probability):
    """Summed over every outcome of 60 runs, so there is no false alarm."""
    wrong = [Fraction(0), Fraction(0)]
    for hits in range(61):
        mass = math.comb(60, hits) * probability**hits * (1 - probability) ** (60 - hits)
        low, high = clopper_pearson(hits, 60, 0.05)
        wrong[0] += mass * (low > probability)
        wrong[1] += mass * (high < probability)
    assert max(wrong) <= Fraction(5, 100)


@pytest.mark.long
def test_bounds_of_many_runs_agree_with_the_normal_law():
    low, high = clopper_pearson(500_000, 1_000_000, 1e-6)
    assert (0.5 - low) / 0.0005 == pytest.approx(4.7534, rel=1e-3)
    assert high + low == pytest.approx(1)

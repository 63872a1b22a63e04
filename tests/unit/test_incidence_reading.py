"""Whether counts are named or read off the histogram."""

from __future__ import annotations

from fractions import Fraction

import pytest

import panprivacy as pp


@pytest.mark.parametrize("release", [Fraction(1, 10**19), Fraction(1, 10**200)])
def test_a_release_of_hardly_any_epsilon_is_refused_at_the_plan(release):
    budget = pp.Budget(Fraction(1), release)
    for law in (pp.Law.of([5, 3, 2, 2]), pp.Law.flat(7, 1), None):
        with pytest.raises(pp.PlanError, match="too small"):
            pp.Incidence(universe=100, bound=3, law=law, epsilon=1 + release, budget=budget)


def test_a_release_of_very_much_epsilon_is_exact():
    visits = pp.Incidence(universe=10, bound=3, epsilon=1_501, budget=pp.Budget(1, 1_500))
    assert visits.release(exactly=1, confidence=1 - 1e-9).exactly(1).low <= 0


def test_named_counts_that_do_not_fit_are_read_off_the_histogram():
    """With a tiny epsilon for each release the noise of a high moment exceeds 64 bits."""
    visits = pp.Incidence(universe=10**6, bound=15, epsilon=1e-6, releases=1_000)
    answer = visits.release(cropped_moment=(15, 8))
    assert answer.cropped_moment(15, 8).value >= 0

"""The laws of published bits: what they cost, and that no other one errs less."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.privacy.guarantee import exp_bounds
from panprivacy.statistics.sketch.publication import OCCUPIED, budget_of, publication_law
from panprivacy.tables.cells.bits import BitCells
from panprivacy.tables.cells.published import BitLaw

EPSILONS = ["0.01", "0.1", "1", "2", "5", "12", "40"]


def spread(absent, present):
    """The standard deviation of a divided bit, where so many cells have users."""
    mean = absent + OCCUPIED * (present - absent)
    return math.sqrt(mean * (1 - mean)) / (present - absent)


def spread_of(law):
    return spread(float(law.published_absent), float(law.published_present))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_law_costs_what_it_may(epsilon):
    law = publication_law(Fraction(epsilon), "seizure")
    assert law.joint_ratio <= exp_bounds(Fraction(epsilon))[0]
    assert law.state_ratio < law.joint_ratio
    assert law.published_ratio < law.joint_ratio
    if Fraction(epsilon) <= 16:
        assert math.log(law.joint_ratio) > float(Fraction(epsilon)) * (1 - 1e-5)


def test_a_law_of_many_tables_costs_what_it_may():
    for epsilon, tables in ((1, 2), (4, 4), (10, 52)):
        law = publication_law(Fraction(epsilon), "seizure", tables)
        budget = budget_of(law, Fraction(epsilon), tables)
        joint = math.log(law.joint_ratio)
        total = joint + (tables - 1) * math.log(law.published_ratio)
        assert epsilon * (1 - 1e-5) < total <= epsilon
        assert budget.total(releases=tables, intrusions=0) == epsilon
        assert budget.unseen(releases=tables, intrusions=0) == tables * budget.alone < epsilon


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_no_law_of_four_probabilities_errs_less(epsilon):
    """A search without structure: random walks from the best of many random laws."""
    found = spread_of(publication_law(Fraction(epsilon), "seizure"))
    rng = np.random.default_rng(7)
    best, where = math.inf, np.array([0.3, 0.6, 0.15, 0.55])
    for width in (0.3, 0.1, 0.03, 0.01, 0.003, 0.001):
        for _ in range(12):
            tried = np.clip(where + rng.uniform(-width, width, (4000, 4)), 1e-6, 1 - 1e-6)
            errors = errors_of(tried, epsilon)
            if errors.min() < best:
                best, where = errors.min(), tried[errors.argmin()]
    assert best > found * (1 - 1e-4)
    assert best < found * 1.05  # the search is good enough to find one that errs less


def errors_of(laws, epsilon):
    """Standard deviations of divided bits, infinite where a law costs more; float64[laws]."""
    absent, present, zero, one = laws.T
    nobody, somebody = zero + (one - zero) * absent, zero + (one - zero) * present
    bits = np.array([[1 - absent, absent], [1 - present, present]])
    same = np.array([[1 - zero, zero], [1 - one, one]])
    fresh = np.array([1 - somebody, somebody])
    views = {
        (seen, new): bits[seen][:, None] * (fresh[None] if new else same)
        for seen in (0, 1)
        for new in (0, 1)
    }
    pairs = [
        ((1, 0), (0, 0)), ((0, 1), (0, 0)), ((1, 1), (0, 0)), ((1, 1), (1, 0)), ((1, 1), (0, 1)),
    ]  # fmt: skip
    worst = np.max([np.abs(np.log(views[a] / views[b])).max(axis=(0, 1)) for a, b in pairs], axis=0)
    mean = nobody + OCCUPIED * (somebody - nobody)
    possible = (worst <= epsilon) & (somebody > nobody)
    with np.errstate(all="ignore"):
        return np.where(possible, np.sqrt(mean * (1 - mean)) / (somebody - nobody), np.inf)


def test_it_errs_less_than_an_announced_intrusion_between_the_look_and_the_table():
    divided = spread_of(publication_law(Fraction(2), "seizure"))
    contrast = float(BitCells(1, Fraction(1), 1).contrast(1))
    announced = spread((1 - contrast) / 2, (1 + contrast) / 2)
    assert (round(divided, 2), round(announced, 2)) == (1.18, 1.99)


@pytest.mark.parametrize("tables", [1, 3])
def test_a_table_alone_is_randomised_response(tables):
    law = publication_law(Fraction(1), "publication", tables)
    assert law.copies
    assert law.published_absent == 1 - law.published_present
    assert law.published_ratio <= exp_bounds(Fraction(1, tables))[0]


def test_a_budget_is_that_of_the_law():
    law = publication_law(Fraction(1), "seizure")
    budget = budget_of(law, Fraction(1), 1)
    assert float(budget.state) == pytest.approx(math.log(law.state_ratio))
    assert math.exp(budget.state) >= law.state_ratio
    assert budget.total(releases=1, intrusions=0) == 1
    assert budget.of_releases(0) == 0
    assert budget.crash == pytest.approx(math.log(law.crash_ratio) - 1, abs=1e-6)
    assert budget.separate(releases=1, intrusions=0) == budget.state + budget.alone > 1


def test_the_budget_of_a_copy_is_charged_once():
    law = publication_law(Fraction(3), "publication", 3)
    budget = budget_of(law, Fraction(3), 3)
    assert (budget.of_state(0), budget.of_releases(1), budget.of_releases(3)) == (1, 0, 2)
    assert budget.total(releases=3, intrusions=0) == 3
    assert budget.unseen(releases=3, intrusions=0) == 3
    assert budget.crash == 0


def test_a_law_that_shows_the_state_is_a_copy():
    assert BitLaw(Fraction(1, 3), Fraction(2, 3), Fraction(0), Fraction(1)).copies
    assert not BitLaw(Fraction(1, 3), Fraction(2, 3), Fraction(0), Fraction(1, 2)).copies


@pytest.mark.parametrize(("epsilon", "tables"), [(1_500, 100), (10_000, 1_000), (50, 7)])
def test_an_enormous_epsilon_has_a_law(epsilon, tables):
    law = publication_law(Fraction(epsilon), "seizure", tables)
    assert budget_of(law, Fraction(epsilon), tables).total(releases=tables, intrusions=0) == epsilon

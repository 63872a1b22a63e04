"""What some plans can: each has exactly the abilities that its callers find."""

from __future__ import annotations

import pytest

import panprivacy as pp
from panprivacy.statistics import abilities
from panprivacy.statistics.abilities import (
    Demonstrable,
    Detailed,
    Drawable,
    Growing,
    Overloaded,
    Ranging,
    Searched,
    Sided,
    UserCounting,
)  # fmt: skip
from tests.contract.cases import CASES

ALL = UserCounting, Demonstrable, Detailed, Drawable, Growing, Overloaded, Ranging, Searched, Sided


def able(plan):
    return {kind.__name__ for kind in ALL if isinstance(plan, kind)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_statistic_can_be_demonstrated(case):
    assert isinstance(case.plan, Demonstrable)


COUNTS = {"UserCounting", "Demonstrable", "Drawable", "Growing"}


@pytest.mark.parametrize(
    ("plan", "can"),
    [
        (pp.Density(universe=9_000, epsilon=1).plan, COUNTS),
        (pp.RunningCount(horizon=9, epsilon=1).plan, {"Demonstrable"}),
        (
            pp.Incidence(universe=9_000, bound=3, epsilon=4).plan,
            {"Demonstrable", "Drawable", "Growing", "Overloaded", "Ranging"},
        ),
        (
            pp.InnerProduct(left="a", right="b", bound=3, expected=(10**5, 10**6), epsilon=9).plan,
            {*COUNTS, "Detailed", "Sided"},
        ),
    ],
    ids=["density", "running-count", "incidence", "inner-product"],
)
def test_a_plan_has_the_abilities_that_it_needs(plan, can):
    assert able(plan) == can


def test_the_caution_before_an_intrusion_is_that_of_counters():
    counters = pp.Incidence(universe=9_000, bound=3, epsilon=4, intrusions=1).plan
    assert f"about {counters.growth:.2g} times larger" in abilities.caution(counters)
    assert abilities.caution(pp.Density(universe=9_000, epsilon=1).plan) is None
    assert abilities.caution(pp.RunningCount(horizon=9, epsilon=1).plan) is None


def test_a_law_from_formulas_is_in_no_front():
    assert abilities.searched_law(pp.Density(universe=9_000, epsilon=1).plan) == ""
    hard = pp.ThresholdCount(threshold=20, universe=30_000, below=0, epsilon=1)
    found = abilities.searched_law(hard.plan)
    assert found == getattr(hard.plan, "searched_law", "")
    assert found.encode() in hard.state()

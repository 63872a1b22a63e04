"""Contributions of several tables as one: what each plan makes of sums and of cells."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.errors import PlanError
from panprivacy.statistics.aggregation import Aggregation


def moment(**given):
    return pp.FrequencyMoment(order=1, bound=3, epsilon=1, **given).plan


def incidence(**given):
    return pp.Incidence(bound=3, epsilon=4, universe=9_000, **given).plan


def test_a_plan_without_its_own_refuses_either_form():
    nothing = Aggregation(moment())
    for ask in (nothing.reading, lambda *asked: nothing.error(asked[0], *asked[2:])):
        with pytest.raises(PlanError, match="let each shard release, and add up their answers"):
            ask("sums", None, 0, 2)
        with pytest.raises(PlanError, match="its cells cannot be added up"):
            ask("cells", None, 0, 2)


def test_bits_have_sums_and_no_cells_to_add_up():
    aggregation = pp.Density(universe=10_000, epsilon=1).plan.aggregation
    assert aggregation.of_sums(None, 0, 2).tables == 2
    with pytest.raises(PlanError, match="its cells cannot be added up"):
        aggregation.of_cells(None, 0, 2)


def test_sums_are_added_up_or_leave_side_by_side():
    each = [np.array([1, 2]), np.array([3, 4])]
    assert moment().aggregation.combine_sums(each).tolist() == [4, 6]
    distinct = pp.DistinctCount(expected=(1_000, 100_000), epsilon=1).plan
    assert distinct.aggregation.combine_sums(each).tolist() == [1, 2, 3, 4]


def test_whether_a_histogram_is_separate_depends_on_who_has_a_cell():
    assert not incidence().aggregation.separate
    assert pp.Incidence(bound=3, epsilon=4, expected=9_000).plan.aggregation.separate


@pytest.mark.parametrize("tables", [2, 5])
def test_errors_grow_with_the_tables(tables):
    plan = incidence()
    assert plan.aggregation.error("sums", 0, tables) == pytest.approx(tables**0.5)
    assert plan.aggregation.error("cells", 0, tables) == pytest.approx(plan.growth ** (tables - 1))


def test_a_further_shard_costs_all_of_epsilon_or_what_its_state_tells():
    """Cells that are added up are one cell, unless noise fits how far a user moves it."""
    plan = incidence(releases=3, intrusions=1)
    budget = plan.split.budget
    assert plan.aggregation.additional_loss("sums") == plan.request.epsilon
    told = budget.of_state(1) + budget.of_releases(2)
    assert plan.aggregation.additional_loss("cells") == told < plan.request.epsilon
    assert moment().aggregation.additional_loss("cells") == moment().request.epsilon

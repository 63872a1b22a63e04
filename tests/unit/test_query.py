"""What an incidence count is asked."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp


@pytest.mark.parametrize(
    "asked", [{"exactly": None}, {"exactly": 1.5}, {"at_least": "x"}, {"exactly": b"1"}]
)
def test_what_names_no_state_is_refused_and_costs_nothing(asked):
    visits = pp.Incidence(universe=100, bound=3, epsilon=1)
    spent = visits.ledger.spent
    with pytest.raises(pp.PlanError):
        visits.release(**asked)
    assert visits.ledger.spent == spent


def test_one_state_may_stand_for_a_list_of_one():
    visits = pp.Incidence(universe=100, bound=3, epsilon=1)
    named = visits.release(exactly=1, at_least=2).named
    assert {str(name) for name in named} == {"exactly 1", "at least 2"}


@pytest.mark.parametrize("wrong", [np.array(3), (True, 2), ["ab"], ("3", 2)])
def test_what_is_no_pair_is_refused_in_plain_words(wrong):
    visits = pp.Incidence(universe=200, bound=5, epsilon=1)
    with pytest.raises(pp.PlanError, match=r"pair \(tau, power\)|whole number from 1 to 5"):
        visits.release(cropped_moment=wrong)

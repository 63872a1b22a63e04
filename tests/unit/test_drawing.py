"""Pictures: which users are made up for an answer, and what a cell shows."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.abilities import Drawable
from panprivacy.statistics.drawing import MOST_MADE_UP, Drawing, most_made_up


def test_the_picture_of_a_plan_that_tells_of_no_user_is_empty():
    nobody, cells = Drawing(), np.array([3, 4])
    assert len(nobody.made_up({})) == 0
    assert nobody.values(cells) is cells
    assert nobody.groups == 1
    assert not isinstance(pp.RunningCount(horizon=9, epsilon=1).plan, Drawable)


def test_as_many_users_are_made_up_as_the_answer_says_in_one_state():
    count = pp.DistinctCount(expected=(100, 10_000), epsilon=4)
    count.update(np.arange(5_000))
    answer = count.release()
    states = count.plan.drawing.made_up(answer.answers())
    assert len(states) == round(answer.value)
    assert set(states.tolist()) == {1}
    assert count.plan.drawing.groups == count.plan.levels


def test_lost_answers_make_up_nobody():
    plan = pp.Density(universe=10_000, epsilon=1).plan
    assert len(plan.drawing.made_up({plan.name: None})) == 0


def test_residues_stand_for_states_of_either_sign():
    plan = pp.Incidence(universe=9_000, bound=2, signed=True, epsilon=4).plan
    modulus = plan.law.modulus
    assert plan.drawing.values(np.array([0, 1, modulus - 1])).tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("numbered", "most"), [(None, MOST_MADE_UP), (7, 7), (1 << 40, MOST_MADE_UP)]
)
def test_no_more_are_made_up_than_there_may_be(numbered, most):
    assert most_made_up(numbered) == most

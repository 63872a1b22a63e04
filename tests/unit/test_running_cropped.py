"""Running cropped sums and counts of heavy hitters: what is planned, refused and counted."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.testing import SeededCoins

CROPPED = {"tau": 3, "horizon": 9, "universe": 2_000, "epsilon": 2}
HEAVY = {"k": 50, "total": 20_000, "horizon": 9, "epsilon": 2}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"universe": None}, "say either universe= "),
        ({"expected": 9}, "say either universe= "),
        ({"cells": 2_001}, "exceed the universe"),
        ({"cells": 9, "memory": 99}, "cells= or memory=, not both"),
        ({"universe": None, "expected": 1_000, "memory": 80}, "memory must be larger: 2,000 cells"),
        ({"intrusions": 1}, "no intrusion can be announced to a running cropped sum"),
        ({"budget": pp.Budget("0.5", "0.1")}, "pays for all at birth"),
        ({"bound": 1 << 20, "epsilon": "1/1000"}, "must fit into 64 bits"),
        ({"horizon": None}, "needs horizon="),
    ],
)
def test_what_cannot_be_planned(wrong, said):
    with pytest.raises(pp.PlanError, match=said) as refused:
        pp.RunningCroppedSum(**{**CROPPED, **wrong})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("made", [(pp.RunningCroppedSum, CROPPED), (pp.RunningHeavyHitters, HEAVY)])
def test_a_row_that_is_refused_and_a_step_too_many_change_nothing(made):
    kind, sizes = made
    count = kind(**{**sizes, "horizon": 1}, coins=SeededCoins(1))
    state = count.state()
    with pytest.raises(pp.InputError, match=r"row 2 .*delta must be 0 to 1"):
        count.update([1, 2], [1, -1])
    assert count.state() == state
    count.release()
    state = count.state()
    with pytest.raises(pp.BudgetError, match="horizon="):
        count.update([1])
    assert count.state() == state


@pytest.mark.parametrize("made", [(pp.RunningCroppedSum, CROPPED), (pp.RunningHeavyHitters, HEAVY)])
def test_batches_of_a_step_are_one_batch(made):
    kind, sizes = made
    one, several = (kind(**sizes, coins=SeededCoins(1)) for _ in range(2))
    users = np.arange(600) % 70
    one.update(users)
    several.update(users[:100])
    several.internals.memory.apply(
        several.internals.memory.prepare(users[100:101]),
        several.internals.memory.prepare(users[101:]),
    )
    assert one.state() == several.state()


def test_the_plan_spends_all_of_epsilon_and_takes_the_tree_for_what_moves():
    plan = pp.RunningCroppedSum(**CROPPED).plan
    assert sum(plan.spent) == plan.request.epsilon
    assert plan.tree.bound == plan.inner.reach(plan.bound)
    assert plan.tree.epsilon == plan.spent.sums
    assert plan.inner.scale == plan.bound / plan.spent.cells


def test_more_steps_or_less_epsilon_err_more():
    def error(**changed):
        return pp.plan("running-cropped-sum", **{**CROPPED, **changed}).absolute_error()

    assert error() < error(horizon=1_000) < error(horizon=1_000_000)
    assert error() < error(epsilon=1)
    assert error(universe=None, expected=2_000) > error()


def test_a_sample_errs_by_who_is_in_it_beside_the_noise():
    model = pp.RunningCroppedSum(**CROPPED, cells=500).plan.model_of(0.0)
    nobody, half = (float(model.deviation(share * model.limit)) ** 2 for share in (0, 0.5))
    drawn = 500 * 0.5 * 0.5 * (2_000 - 500) / (2_000 - 1)  # hypergeometric: who has tau, of half
    assert half - nobody == pytest.approx(drawn * (model.limit / 500) ** 2)

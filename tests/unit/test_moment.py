"""Moments: which plan they take, what they refuse, and what they are fed."""

from __future__ import annotations

from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit import RELEASE, EnumeratedCoins, exact_loss
from panprivacy.planning.additive import AdditiveBudget
from panprivacy.statistics.planner import check_useful
from tests.commands import run_command


def moment(**arguments):
    return pp.FrequencyMoment(**{"order": 2, "bound": 20, "epsilon": 2, **arguments})


def inner(**arguments):
    return pp.InnerProduct(**{"bound": 10, "epsilon": 4, **arguments})


# Cells and noise


@pytest.mark.parametrize("bound", [135_000, 136_000, 1 << 20])
@pytest.mark.parametrize("signed", [False, True])
def test_squares_of_the_largest_states_are_planned_and_counted(bound, signed):
    """What is expected unless told has more than 64 bits."""
    moment = pp.FrequencyMoment(order=2, bound=bound, signed=signed, epsilon=1)
    moment.update([1, 2], [bound, 1])
    answer = moment.release(confidence=1 - 1e-9)
    assert answer.low <= bound**2 + 1 <= answer.high


class Unseen:
    """A moment whose state nobody sees."""

    def __init__(self, coins, releases):
        budget = pp.Budget(Fraction(1, 2), 2)
        sizes = {"order": 1, "bound": 1, "budget": budget, "releases": releases}
        self.moment = pp.FrequencyMoment(epsilon=9, coins=coins, **sizes)
        self.update, self.release = self.moment.update, self.moment.release

    def state(self):
        return b""


def test_what_nobody_saw_costs_no_more_than_is_proved():
    coins = EnumeratedCoins(tail=12, state_tail=2)
    loss = exact_loss(lambda coins: Unseen(coins, 1), [[0], RELEASE], [[], RELEASE], coins=coins)
    assert Unseen(None, 1).moment.unseen == Fraction(1, 2)
    assert loss.within(Fraction(1, 2))
    assert Unseen(None, 3).moment.unseen == Fraction(9, 2)
    budget = AdditiveBudget(Fraction(5), Fraction(1))
    assert budget.unseen(releases=3, intrusions=0) == 3


# Plans


def test_a_plan_takes_one_noised_sum_where_the_answer_is_known_and_every_cell_where_it_is_not():
    known = moment(expected=(4 * 10**7, 10**8)).plan
    assert known.clip > 0
    assert known.groups == 1
    unknown = moment(expected=(10**6, 10**12)).plan
    assert (unknown.clip, unknown.groups) == (0, unknown.cells)
    forced = moment(expected=(4 * 10**7, 10**8), clip=0).plan
    assert forced.relative_error() > 2 * known.relative_error()


@pytest.mark.parametrize("order", [1, 2])
def test_the_error_is_proportional_to_the_bound(order):
    """Ten times the bound, ten times the error of a sum, and of the root of a sum of squares."""
    small, large = (moment(order=order, bound=bound).plan for bound in (20, 200))
    truth = 10**8
    ratio = large.absolute_error(truth * 10**order) / small.absolute_error(truth)
    assert ratio == pytest.approx(10**order, rel=0.01)


def test_a_bound_far_above_what_users_do_is_refused_as_noise():
    sizes = {"order": 2, "bound": 1_000, "expected": (10**6, 10**7)}
    plan = pp.plan("moment", epsilon=1, **sizes)
    with pytest.raises(pp.PlanError, match="times the answer: the answer would be noise; epsilon"):
        check_useful(plan, moment(**sizes).sizes)


def test_a_smaller_memory_takes_fewer_cells():
    assert moment(memory=8_192).plan.cells <= 1_024
    assert inner(memory=8_192).plan.cells <= 1_024
    assert moment(cells=100).plan.cells == 100


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"order": 3}, "order must be"),
        ({"order": 1, "signed": True}, "order 1 has no signed=.*ask for order 2"),
        ({"order": 1, "cells": 8}, "order 1 keeps one sum"),
        ({"bound": 1 << 21}, "bound must be"),
        ({"cells": 8, "memory": 64}, "say cells= or memory=, not both"),
        ({"cells": 1 << 20, "clip": 1 << 30}, r"clip \(1,073,741,824\) is so large"),
        ({"expected": "9:3"}, "expected must run from low to high"),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(arguments, says):
    with pytest.raises(pp.PlanError, match=says):
        moment(**arguments)


def test_the_condition_is_said_wherever_the_guarantee_is_shown(tmp_path):
    says = "it holds while each user's deltas add up to -20 to 20 at all times: who goes c times"
    uneven = moment(signed=True)
    assert says in str(uneven.guarantee)
    assert says in str(pp.Together({"uneven": uneven}).guarantee)
    planned = run_command("plan", "moment,order=2,bound=20,signed", "--epsilon", 1)
    assert says in planned.stdout
    seized = tmp_path / "seized.state"
    seized.write_bytes(uneven.state())
    assert says in " ".join(run_command("explain", seized).stdout.split())
    assert says in run_command("explain", seized, "--json").stdout


# Two streams


# Programs

"""Moments: which plan they take, what they refuse, and what they are fed."""

from __future__ import annotations

import math
from contextvars import Context
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import RELEASE, EnumeratedCoins, exact_loss
from panprivacy.tables.decoders.intervals import noise_quantile
from panprivacy.tables.planning.additive import (
    AdditiveBudget,
    Reach,
    Tails,
    _clips,
    check_clip,
    designs,
    squares_fit,
)
from panprivacy.tables.planning.request import Request, budgets
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


@pytest.mark.long
def test_what_nobody_saw_costs_no_more_than_is_proved():
    coins = EnumeratedCoins(tail=12, state_tail=2)
    loss = exact_loss(lambda coins: Unseen(coins, 1), [[0], RELEASE], [[], RELEASE], coins=coins)
    assert Unseen(None, 1).moment.guarantee.unseen_loss.epsilon == Fraction(1, 2)
    assert loss.within(Fraction(1, 2))
    assert Unseen(None, 3).moment.guarantee.unseen_loss.epsilon == Fraction(9, 2)
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


@pytest.mark.long
def test_a_bound_far_above_what_users_do_is_refused_as_noise():
    sizes = {"order": 2, "bound": 1_000, "expected": (10**6, 10**7)}
    with pytest.raises(pp.NoiseError, match="times the answer: the answer would be noise; epsilon"):
        Context().run(moment, **sizes)


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


@pytest.mark.long
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


@pytest.mark.parametrize("clip", range(1, 8))
@pytest.mark.parametrize("bound", [1, 2])
@pytest.mark.parametrize("signed", [False, True])
def test_a_user_moves_sums_of_clipped_cells_so_far_and_no_further(signed, bound, clip):
    """By all cells and all that a user may have moved them by."""
    reach = Reach(bound, signed=signed, tables=1)
    assert reach.path == 2 * reach.cell == 2 * bound * (1 + signed)
    ends = range(-clip, clip + 1)
    near = [(a, b) for a in ends for b in ends if abs(a - b) <= reach.path]
    assert reach.squares(clip) == max(b * b - a * a for a, b in near)
    both = max(b * d - a * c for a, b in near for c, d in near)
    assert reach.products(clip) == both
    assert reach.sensitivity(clip) == reach.squares(clip)
    assert reach.sensitivity(0) == reach.path
    two = Reach(bound, signed=signed, tables=2)
    assert two.sensitivity(clip) == reach.products(clip) + 2 * reach.squares(clip)
    assert two.sensitivity(0) == 2 * reach.path


@pytest.mark.parametrize("intrusions", [0, 1, 2])
@pytest.mark.parametrize("tables", [1, 2])
def test_cells_fall_off_as_their_noise_and_users_do(tables, intrusions):
    reach, budget = Reach(5, False, tables), AdditiveBudget(Fraction(1, 2), Fraction(1, 4))
    birth, later = 10.0 * tables, 20.0 * tables
    tails = reach.tails(64, budget, intrusions, 1_000.0)
    widest = later if intrusions else birth
    assert [h * widest for h, _ in tails.tilts] == pytest.approx([0.3, 0.5, 0.7, 0.8, 0.9, 0.95])
    line = np.arange(-20_000.0 * tables, 20_000 * tables + 1)
    for h, grown in tails.tilts:
        means = [
            (np.exp(h * line - np.abs(line) / scale) / np.exp(-np.abs(line) / scale).sum()).sum()
            for scale in (birth, *[later] * intrusions)
        ]
        users = 1_000 * (math.cosh(5 * h) - 1) / (64 * 25)
        assert grown == pytest.approx(math.log(2 * 64 * math.prod(means)) + users, rel=1e-6)


@pytest.mark.parametrize("most", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("tables", [1, 2])
def test_a_clip_is_the_least_that_hides_so_much_but_for_one_part_in_128(tables, most):
    reach, budget = Reach(5, False, tables), AdditiveBudget(Fraction(1, 2), Fraction(1, 4))
    tails = reach.tails(64, budget, 1, 1_000.0)
    clip = reach.clip(64, budget, tails, most)
    least = next(at for at in range(reach.path, 10**6) if tails.hidden(at) <= most)
    assert least <= clip <= least + max(least >> 7, 1)


def test_no_clip_is_narrower_than_what_a_user_moves_unless_it_hides_enough():
    reach, budget = Reach(5, False, 1), AdditiveBudget(Fraction(1), Fraction(1))
    nothing = Tails(((100.0, -1e6),))
    assert reach.clip(64, budget, nothing, 1.0) == 2


def test_squares_fit_below_two_to_the_62_and_noise_below_two_to_the_56():
    assert squares_fit(1, (1 << 31) - 1)
    assert not squares_fit(1, 1 << 31)
    assert not squares_fit(4, 1 << 30)
    assert squares_fit(3, 1 << 30)
    check_clip((1 << 31) - 1, None)
    check_clip(None, 1)
    check_clip(0, 1)
    with pytest.raises(pp.PlanError) as refused:
        check_clip(1 << 31, None)
    assert str(refused.value) == (
        "clip (2,147,483,648) is so large that its squares do not fit in 64 bits: say a smaller one"
    )
    with pytest.raises(pp.PlanError, match="clip"):
        check_clip(1 << 30, 4)
    reach, tails = Reach(1, False, 1), Tails(((1e-6, 10.0),))
    budget = AdditiveBudget(Fraction(1), Fraction(1))
    clip = reach.clip(1, budget, tails, 1e12)
    limit = Fraction(reach.sensitivity(clip), 1 << 56)
    for release, fits in ((limit * Fraction(101, 100), True), (limit, False)):
        found = reach.clip(1, AdditiveBudget(Fraction(1), release), tails, 1e12)
        assert (found is not None) == fits
    assert reach.clip(1 << 40, budget, tails, 1e12) is None


@pytest.mark.parametrize("tables", [1, 2])
def test_a_clip_hides_a_hundredth_of_the_deviation_of_empty_cells(tables):
    reach, budget = Reach(5, False, tables), AdditiveBudget(Fraction(1, 2), Fraction(1, 4))
    for intrusions in (0, 1):
        request = Request(Fraction(2), 1, intrusions)
        named = {"reach": reach, "request": request, "cells": 256, "budget": budget}
        publish, clip = _clips(**named, moment=1e4, clip=None)
        empty = reach.noise(budget, intrusions, published=False)
        most = math.sqrt(256 * empty.of_products) / 100
        hidden = reach.tails(256, budget, intrusions, 1e4)
        assert publish == 0
        assert clip == reach.clip(256, budget, hidden, most)
        assert list(_clips(**named, moment=1e4, clip=77)) == [77]


def test_all_designs_are_those_of_every_second_share_and_of_every_power_of_two():
    request, reach = Request(Fraction(1)), Reach(5, False, 1)
    found = designs(reach, request, 1_000, 1e4)
    splits = [(one.state, one.release) for one in budgets(request)[::2]]
    assert {size for size, _, _ in found} == {64, 128, 256, 512}
    assert [(one.state, one.release) for one in dict.fromkeys(one for _, one, _ in found)] == splits
    assert {size for size, _, _ in designs(reach, request, 1_000, 1e4, cells=7)} == {7}
    assert {where for _, _, where in designs(reach, request, 1_000, 1e4, clip=9)} == {9}


PLANS = {
    "unless told": ({}, (8_192, 0, "335/1024", (250_000, 25 * 10**9))),
    "a sum": ({"order": 1}, (1, 0, "335/1024", (50_000, 5 * 10**9))),
    "known": ({"expected": (4 * 10**7, 10**8)}, (131_072, 160, "467/512", (4 * 10**7, 10**8))),
    "signed": (
        {"bound": 100, "signed": True, "epsilon": 4},
        (16_384, 0, "335/256", (10**8, 10**13)),
    ),
    "releases": ({"releases": 10}, (131_072, 2_740, "335/1024", (250_000, 25 * 10**9))),
    "intrusions": (
        {"intrusions": 1, "epsilon": 2},
        (8_192, 0, "319/512", (250_000, 25 * 10**9)),
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_what_was_planned_once_is_planned_again(name):
    """A state has so many cells, and is refused where another plan is made."""
    given, (cells, clip, state, expected) = PLANS[name]
    plan = moment(**{"bound": 5, "epsilon": 1, **given}).plan
    assert (plan.cells, plan.clip, plan.split.budget.state, plan.expected) == (
        cells, clip, Fraction(state), expected,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "publishes", "groups"),
    [({"order": 1}, False, 1), ({"clip": 0}, True, None), ({"clip": 50}, False, 1)],
)
def test_cells_are_published_unless_they_are_summed(given, publishes, groups):
    plan = moment(**given).plan
    assert plan.slicing.publishes_cells is publishes
    assert plan.groups == (groups or plan.cells)
    assert inner(clip=50).plan.groups == 3
    assert inner(clip=0).plan.groups == inner(clip=0).plan.cells


@pytest.mark.parametrize("order", [1, 2])
def test_a_plan_says_what_it_answers_and_in_what(order):
    plan = moment(order=order).plan
    what = ["do the states", "do the squares of the states"][order - 1]
    assert plan.question == f"how much {what} of all users add up to?"
    assert plan.unit == ["added up over users", "squares added up over users"][order - 1]
    assert plan.truth(plan.name, np.array([1, -2, 3]), None) == [2, 14][order - 1]
    assert plan.synthetic_users(-1.0)[0] == 0
    assert plan.synthetic_users(100.0) == (10 if order == 1 else 1, 10)
    assert moment(order=order, bound=1).plan.synthetic_users(9.0) == (9, 1)
    assert plan.limit == plan.largest == plan.planned[1] == plan.expected[1]
    assert plan.planned[0] == plan.expected[0]


def test_what_users_hide_is_read_as_noise():
    plan = moment().plan
    model = plan.model(0)
    assert plan.reach(0.95, 1e9) == noise_quantile(0.95, model.output_share(1e9))
    shares = [model.output_share(float(one)) for one in plan._truths]
    assert plan.reach(0.95, None) == noise_quantile(0.95, max(shares))

"""What is lost by a look, a crash, and another look after the return to an earlier state."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit import CRASH, RELEASE, SAVE, EnumeratedCoins, Restarted, exact_loss
from panprivacy.audit.suite.crashed import OneAfterAnother
from tests import refusals

BUDGET = pp.Budget(Fraction(1, 2), Fraction(1, 2))


def density(**others):
    return pp.Density(universe=1, **others)


def incidence(**others):
    return pp.Incidence(universe=1, bound=2, **others)


def cropped(**others):
    return pp.CroppedSum(universe=1, tau=1, bound=2, **others)


def life(make, coins, before, after, *, announced):
    """What two looks show, one before a crash and one after it.

    Args:
        make: makes the statistic.
        coins: of all its lives.
        before: what the user does between the checkpoint and the first look.
        after: what the user does between the crash and the second look.
        announced: what `resume` is told.
    """
    covered = {"epsilon": Fraction(3, 2), "intrusions": 1, "budget": BUDGET, "coins": coins}
    running = make(**covered)
    checkpoint = running.state()
    running.update(before)
    seen = running.state()
    running.announce_intrusion()
    resumed = make(**covered)
    resumed.resume(checkpoint, announced=announced)
    resumed.update(after)
    return seen, resumed.state()


def law(make, *batches, announced=1):
    """The exact probability of everything that may be seen."""
    coins, seen = EnumeratedCoins(), Counter()
    for _ in coins:
        shown = life(make, coins, *batches, announced=announced)
        seen[shown] += coins.probability
    assert sum(seen.values()) == 1
    return seen


def loss(make, *, announced=1):
    """The worst of the user's rows before and after the crash, both ways."""
    laws = [law(make, *rows, announced=announced) for rows in ([[], []], [[0], []], [[0], [0]])]
    worst = Fraction(1)
    for larger in laws:
        for smaller in laws:
            for shown, chance in larger.items():
                if not smaller[shown]:
                    return math.inf
                worst = max(worst, chance / smaller[shown])
    return math.log(worst)


@pytest.mark.parametrize("make", [density, incidence, cropped])
def test_a_look_before_a_crash_and_one_after_it_cost_what_two_looks_may(make):
    assert 0.99 <= loss(make) <= 1


def test_bits_of_users_who_never_leave_go_back_as_well():
    """A crash takes a user out, as a deletion does: one law for all bits."""
    covered = {"epsilon": Fraction(3, 2), "intrusions": 1, "budget": BUDGET}
    visitors = pp.DistinctCount(expected=(1, 4), memory=1, **covered)
    assert visitors.plan.table.gain() == density(**covered).plan.table.gain()


@pytest.mark.parametrize("make", [incidence, density])
def test_an_announcement_that_is_forgotten_is_found(make):
    """The state is seen twice in one epoch then, and the two looks tell what came in between."""
    assert loss(make, announced=0) > 1.1


# What `Restarted` shows, of programs that crash


def crashing(make, stream, neighbour, **coins):
    walked = EnumeratedCoins(**coins)
    return exact_loss(lambda own: Restarted(make, own), stream, neighbour, coins=walked)


def count(coins):
    return pp.RunningCount(horizon=1, epsilon=1, coins=coins)


@pytest.mark.parametrize(("again", "loss"), [([], 2), ([0], 1)])
def test_an_event_that_a_crash_loses_costs_twice_epsilon(again, loss):
    """It costs once where it is sent again in the same step, under the same noise."""
    other = [] if again else again
    stream = [SAVE, [0], CRASH, again, RELEASE]
    found = crashing(count, stream, [SAVE, [], CRASH, other, RELEASE], tail=5, state_tail=1)
    assert found.epsilon == pytest.approx(loss, rel=1e-12)
    assert found.after_step == (2 if loss == 2 else found.after_step)


def test_a_crash_costs_a_user_nothing_more():
    def one(coins):
        return pp.Density(universe=1, epsilon=1, coins=coins)

    found = crashing(one, [SAVE, [0], CRASH, RELEASE], [SAVE, [], CRASH, RELEASE])
    assert found.within(1)
    assert found.epsilon == pytest.approx(1, rel=1e-6)


def test_a_release_and_a_look_that_a_crash_ends_are_remembered():
    made = []

    def make(_coins):
        made.append(pp.Density(universe=1, epsilon=1, releases=2, intrusions=1))
        return made[-1]

    restarted = Restarted(make, EnumeratedCoins())
    restarted.save()
    restarted.release()
    restarted.announce_intrusion()
    restarted.crash()
    assert restarted.program is made[-1]
    assert (made[-1].releases, made[-1].internals.memory.announced) == (1, 1)
    with refusals.wiped():
        made[0].state()


def window(coins):
    """A window of counters modulo 3 with two releases."""
    budget = pp.Budget(5, Fraction(1, 2))
    sizes = {"universe": 1, "bound": 2, "law": pp.Law.flat(3, budget.state), "budget": budget}
    one = pp.Incidence(**sizes, epsilon=6, releases=2, coins=coins)
    return pp.Together({"states": one}, {"states": {"exactly": (1,)}})


@pytest.mark.long
def test_who_is_sent_again_in_the_next_window_pays_for_two():
    seen, lost = ([SAVE, RELEASE, each, CRASH, RELEASE, each, RELEASE] for each in ([(0, 1)], []))
    found = crashing(lambda coins: OneAfterAnother(window, coins), seen, lost, tail=4)
    guarantee = window(None).guarantee
    assert found.epsilon == pytest.approx(6.490, abs=5e-4)
    assert guarantee.epsilon < found.epsilon
    assert found.within(guarantee.over(2).epsilon)

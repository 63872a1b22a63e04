"""A running distinct count: what it keeps adds up, and no step is made twice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.running.stepwise.counted import CountedBits
from panprivacy.testing import SeededCoins
from tests import refusals

NEAR = 1 - 1e-9
SIZES = {"horizon": 20, "expected": (100, 10_000), "memory": 4_096, "epsilon": 4}


def count(seed=1, **overrides):
    return pp.RunningDistinct(**{**SIZES, "coins": SeededCoins(seed), **overrides})


def told_ones(statistic):
    """What the sums say of the ones of each level, in a life whose noise is next to nothing."""
    return [round(one.last.value) for one in statistic.internals.memory.sums]


def true_ones(statistic):
    plan, table = statistic.plan, statistic.internals.memory.now.table
    return plan.table.group_sums(table, plan.levels, 0).tolist()


def test_it_tells_how_many_users_have_come_so_far():
    visitors = count()
    for step in range(20):
        visitors.update(np.arange(200 * (step + 1)))
        answer = visitors.release(confidence=NEAR)
        assert answer.low <= 200 * (step + 1) <= answer.high
        assert (answer.unit, answer.epsilon) == ("users", 0)
    assert answer.high - answer.low < 2 * visitors.plan.absolute_margin(NEAR)


@pytest.mark.parametrize("announced", [False, True])
def test_the_sums_add_up_to_the_ones_that_there_are(announced):
    """At an enormous epsilon there is no noise to speak of."""
    visitors = count(epsilon=900, intrusions=1)
    for step in range(12):
        visitors.update(np.arange(100 * step, 100 * step + 300))
        if announced and step == 7:
            visitors.announce_intrusion()
        visitors.release()
        assert told_ones(visitors) == true_ones(visitors)
    later = count(2, epsilon=900, intrusions=1)
    later.resume(visitors.state(), released=14, announced=1)
    later.update(np.arange(50_000, 50_500))
    later.release()
    assert later.releases == 15
    assert told_ones(later) == true_ones(later)


def test_batches_of_a_step_are_one_batch():
    one, several = count(epsilon=900), count(epsilon=900)
    one.update(np.arange(70))
    several.update(np.arange(30))
    several.internals.memory.apply(
        several.internals.memory.prepare(np.arange(20)),
        several.internals.memory.prepare(np.arange(70)),
    )
    for each in (one, several):
        each.release()
    assert told_ones(one) == told_ones(several)


def test_a_batch_that_fails_leaves_the_sums_right(monkeypatch):
    visitors = count(epsilon=900)
    drawn = visitors.internals.memory.coins.bernoulli

    def fails(*_):
        raise MemoryError

    monkeypatch.setattr(visitors.internals.memory.coins, "bernoulli", fails)
    with pytest.raises(MemoryError):
        visitors.update([1, 2, 3])
    monkeypatch.setattr(visitors.internals.memory.coins, "bernoulli", drawn)
    visitors.release()
    assert told_ones(visitors) == true_ones(visitors)


def test_a_count_that_cannot_follow_its_bits_is_wiped(monkeypatch):
    visitors = count()
    monkeypatch.setattr(CountedBits, "count", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        visitors.update([1, 2, 3])
    with pytest.raises(pp.PanPrivacyError, match="was wiped"):
        visitors.release()
    announced = count(intrusions=1)
    with pytest.raises(ZeroDivisionError):
        announced.announce_intrusion()
    with pytest.raises(pp.PanPrivacyError, match="was wiped"):
        announced.release()


def test_a_step_that_fails_ends_for_all_levels_or_for_none(monkeypatch):
    visitors, calls = count(expected=(1_000, 10**9)), []
    drawn, before = visitors.internals.memory.coins.discrete_laplace, visitors.state()
    assert visitors.plan.levels > 1

    def fails(*given):
        calls.append(given)
        if len(calls) > 3:
            raise MemoryError
        return drawn(*given)

    monkeypatch.setattr(visitors.internals.memory.coins, "discrete_laplace", fails)
    with pytest.raises(MemoryError):
        visitors.release()
    assert visitors.state() == before


def test_all_is_paid_at_birth_and_one_event_is_hidden():
    visitors = count(intrusions=2, horizon=2)
    assert visitors.ledger.spent == visitors.internals.releasing.state_epsilon == 4
    visitors.announce_intrusion()
    visitors.release()
    visitors.release()
    assert visitors.ledger.spent == 4
    assert visitors.guarantee.adjacency == "event"
    before = visitors.state()
    for use in (visitors.release, lambda: visitors.update([1])):
        with pytest.raises(pp.BudgetError, match=r"all 2 steps have ended: .* larger horizon="):
            use()
    assert visitors.state() == before


def test_a_step_that_left_is_never_made_again():
    before = count(horizon=100)
    for step in range(5):
        before.update(np.arange(400 * (step + 1)))
        before.release()
    after = count(2, horizon=100)
    after.resume(before.state(), released=8)
    after.update(np.arange(3_000))
    answer = after.release(confidence=NEAR)
    assert after.releases == 9
    assert answer.low <= 3_000 <= answer.high
    again = count(3, horizon=100)
    again.resume(after.state())
    assert again.state() == after.state()


def test_without_coins_for_a_new_tree_nothing_is_changed():
    visitors = count()
    visitors.release()
    state, after = visitors.state(), count(2)
    coins, before = after.internals.memory.coins, after.state()
    after.internals.memory.coins = None
    with pytest.raises(AttributeError):
        after.resume(state, released=2)
    after.internals.memory.coins = coins
    assert after.state() == before
    after.resume(state, released=2)
    assert after.releases == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"horizon": 0}, "horizon must be"),
        ({"expected": "learn"}, "expected cannot be learned"),
        ({"budget": pp.Budget("0.5", "0.1")}, "leave out budget="),
        ({"epsilon": 1_001}, "at most 1,000"),
        ({"epsilon": Fraction(1, 10**7)}, "too small to leave any signal"),
        ({"deltas": 3}, "running-distinct has no deltas="),
    ],
)
def test_what_cannot_be_planned(wrong, message):
    with pytest.raises(pp.PlanError, match=message):
        count(**wrong)


def test_a_sum_that_begins_after_its_end_is_refused():
    visitors = count(horizon=5)
    state = bytearray(visitors.state())
    known = len(state) - 8 * 11
    state[known : known + 8] = np.float64(3).tobytes()
    with refusals.spoilt():
        count(horizon=5).resume(bytes(state))


def test_a_thousand_answers_err_little_more_than_one():
    running = pp.plan("running-distinct", horizon=1_000, expected=100_000, epsilon=1)
    once = pp.plan("distinct", expected=100_000, epsilon=1)
    assert running.relative_error(100_000) < 1.6 * once.relative_error(100_000)


def test_visits_and_visitors_go_together():
    ledger = pp.Ledger(8)
    members = {
        "visits": pp.RunningCount(horizon=20, epsilon=4, ledger=ledger),
        "visitors": count(ledger=ledger),
    }
    both = pp.Together(members)
    both.update(np.repeat(np.arange(1_000), 3))
    answers = both.release(confidence=NEAR)
    for name, truth in (("visits", 3_000), ("visitors", 1_000)):
        answer = answers.where(statistic=name).only()
        assert answer.low <= truth <= answer.high
    assert (both.guarantee.epsilon, both.guarantee.adjacency) == (8, "event")

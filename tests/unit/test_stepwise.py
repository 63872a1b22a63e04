"""What answers at every step: it goes on from its state, and makes no step twice."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.tables.counters.running import KNOWN
from panprivacy.testing import SeededCoins
from tests import refusals

NEAR = 1 - 1e-9


def count(seed=1, **overrides):
    return pp.RunningCount(**{"horizon": 20, "epsilon": 1, "coins": SeededCoins(seed), **overrides})


def distinct():
    sizes = {"horizon": 20, "expected": (100, 10_000), "memory": 4_096, "epsilon": 4}
    return pp.RunningDistinct(**sizes, coins=SeededCoins(1))


def table(statistic):
    return statistic.internals.memory.now.table.copy()


def test_an_announced_intrusion_adds_noise_to_every_open_node():
    visits = count(horizon=1_000, epsilon="1/1000", intrusions=1)
    for _ in range(3):
        visits.release()
    before, levels = table(visits), visits.plan.table.cells
    visits.announce_intrusion()
    changed = table(visits) - before
    assert levels > 1
    assert changed[:levels].all()
    wider, narrower = count(horizon=1_000, intrusions=1), count(horizon=1_000)
    for one in (wider, narrower):
        for _ in range(9):
            one.release()
    wider.announce_intrusion()
    ends = [one.release(confidence=0.95) for one in (wider, narrower)]
    assert ends[0].high - ends[0].low > ends[1].high - ends[1].low


def test_it_goes_on_at_its_step():
    before = count(horizon=100)
    for _ in range(37):
        before.update([1] * 9)
        before.release()
    before.update([1] * 50)
    after = count(2, horizon=100)
    after.resume(before.state())
    assert after.state() == before.state()
    assert after.releases == 37
    answer = after.release(confidence=NEAR)
    assert answer.low <= 37 * 9 + 50 <= answer.high


def test_a_step_that_left_is_never_made_again():
    before = count(horizon=100)
    for _ in range(5):
        before.update([1] * 40)
        last = before.release(confidence=NEAR)
    state = before.state()
    after = count(2, horizon=100)
    after.resume(state, released=8)
    assert after.releases == 8
    cells = after.plan.table.cells
    assert not set(table(after)[:cells].tolist()) & set(table(before)[:cells].tolist())
    after.update([1] * 300)
    answer = after.release(confidence=NEAR)
    assert answer.low <= 500 <= answer.high, "on top of the last answer that the state knows"
    assert answer.high - answer.low > last.high - last.low
    assert after.releases == 9
    again = count(3, horizon=100)
    again.resume(after.state())
    assert again.state() == after.state()


def test_steps_after_the_last_one_are_none():
    state = count(horizon=3).state()
    after = count(2, horizon=3)
    after.resume(state, released=3)
    with pytest.raises(pp.BudgetError, match="all 3 steps"):
        after.release()
    with pytest.raises(pp.PlanError, match="released"):
        count(horizon=3).resume(state, released=4)


def test_without_coins_for_a_new_tree_nothing_is_changed():
    visits = count()
    visits.release()
    state, after = visits.state(), count(2)
    coins, before = after.internals.memory.coins, after.state()
    after.internals.memory.coins = None
    with pytest.raises(AttributeError):
        after.resume(state, released=2)
    after.internals.memory.coins = coins
    assert after.state() == before
    after.resume(state, released=2)
    assert after.releases == 2


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_step_that_cannot_end_says_why_and_leaves_no_copy(error, monkeypatch):
    visits, copies = count(), []
    visits.update(["ada"] * 40)
    before = visits.state()

    def fails(_cells, table, *_):
        copies.append(table)
        raise error

    monkeypatch.setattr(type(visits.plan.table), "sums", fails)
    with pytest.raises(error):
        visits.release()
    assert not copies[0].any()
    assert visits.state() == before


@pytest.mark.parametrize("make", [count, distinct])
def test_an_interrupt_leaves_a_step_ended_or_not(make, monkeypatch):
    """Nodes of the next step with the number of this one would take in events without noise."""
    visits = make()
    visits.release()
    release, stepped = visits.release, []

    def interrupted(*arrays):
        stepped.append(visits.releases)
        for array in arrays:
            array.fill(0)
        raise KeyboardInterrupt

    monkeypatch.setattr("panprivacy.statistics.running.stepwise.statistic.wipe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        release()
    state = visits.internals.memory.now
    assert stepped == [2]
    assert (state.releases, state.tick) == (2, 2)
    assert all(one.tick == 2 for one in visits.internals.memory.sums)
    assert state.table.any()


@pytest.mark.parametrize(
    ("number", "value"), [(-KNOWN, 7.0), (-KNOWN, -1.0), (-1, np.inf), (-5, np.nan)], ids=str
)
def test_a_state_that_cannot_be_is_refused(number, value):
    visits = count(horizon=5)
    visits.release()
    state = bytearray(visits.state())
    place = len(state) + 8 * number
    state[place : place + 8] = np.float64(value).tobytes()
    with refusals.spoilt():
        count(horizon=5).resume(bytes(state))


def test_steps_that_do_not_fit_the_releases_are_refused():
    visits = count(horizon=5)
    visits.release()
    damaged = bytearray(visits.state())
    damaged[32] = 3  # of the header: how many steps have ended
    with pytest.raises(pp.InputError, match=r"damaged|no such state"):
        count(horizon=5).resume(bytes(damaged))

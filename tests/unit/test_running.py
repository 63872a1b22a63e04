"""A running count: one event is hidden, all is paid at birth, no step is made twice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.audit.suite.products import products
from panprivacy.tables.counters.mechanism import variances
from panprivacy.tables.counters.running import KNOWN
from panprivacy.testing import SeededCoins

NEAR = 1 - 1e-9
SIZES = {"horizon": 20, "epsilon": 1}


def count(seed=1, **overrides):
    return pp.RunningCount(**{**SIZES, "coins": SeededCoins(seed), **overrides})


def table(statistic):
    return statistic.internals.memory.now.table.copy()


# Answers


def test_it_tells_how_many_events_there_have_been():
    visits, so_far = count(), 0
    for step in range(20):
        visits.update(["ada", None, "ada"] * step)
        so_far += 3 * step
        answer = visits.release(confidence=NEAR)
        assert answer.low <= so_far <= answer.high
        assert (answer.unit, answer.epsilon) == ("events", 0)
        assert answer.high - answer.low < 2 * visits.plan.absolute_margin(NEAR) + 1


def test_amounts_add_up():
    bytes_sent = count(bound=1_000, epsilon=40)
    bytes_sent.update(pa.array(["a", "b"]), [1_000, 0])
    bytes_sent.update(np.zeros((2,), "M8[s]"), np.array([7, 500]))
    answer = bytes_sent.release(confidence=NEAR)
    assert answer.low <= 1_507 <= answer.high < 4_000


def test_batches_of_a_step_are_one_batch():
    one, several = count(), count()
    one.update([1] * 7, [1, 0, 1, 1, 1, 1, 0])
    several.update([2] * 2, [1, 0])
    several.internals.memory.apply(
        several.internals.memory.prepare([3] * 2),
        several.internals.memory.prepare(["x"] * 3, [1, 1, 0]),
    )
    assert one.state() == several.state()


@pytest.mark.parametrize("horizon", [1, 2, 10, 100, 4_000])
@pytest.mark.parametrize("epsilon", ["1/10", 1])
def test_the_predicted_error_is_that_of_the_worst_step(horizon, epsilon):
    plan = pp.plan("running-count", horizon=horizon, bound=3, epsilon=epsilon)
    worst = variances(plan.tree).max() ** 0.5
    assert 0.97 * worst < plan.absolute_error() < 1.03 * worst


def test_an_interval_of_few_events_says_that_it_is_noise():
    assert "more noise than signal" in count().release().note


def test_without_a_horizon_it_goes_on_from_tree_to_tree():
    visits, later = count(horizon=None), count(seed=2, horizon=None)
    for step in range(1, 300):  # the first tree has 256 steps
        visits.update(["ada"] * 3)
        answer = visits.release(confidence=NEAR)
        assert answer.low <= 3 * step <= answer.high
    later.resume(visits.state(), released=visits.releases)
    later.update(["ada"] * 3)
    answer = later.release(confidence=NEAR)
    assert answer.low <= 900 <= answer.high
    assert answer.high - answer.low < 2 * visits.plan.absolute_margin(NEAR) + 1
    assert later.ledger.spent == 1


@pytest.mark.parametrize("steps", [1, 256, 257, 3_000, 30_000])
def test_the_predicted_error_without_a_horizon_is_not_exceeded(steps):
    tree = pp.plan("running-count", epsilon=1).tree
    worst = variances(tree, steps).max() ** 0.5
    assert tree.largest_deviation(steps) > 0.98 * worst
    ended = tree._trees(steps - 1)[0] + tree._trees(steps - 1)[1].horizon
    assert tree.largest_deviation(steps) < 1.2 * variances(tree, ended).max() ** 0.5


# What it costs


def test_all_is_paid_at_birth():
    visits = count(intrusions=2)
    assert visits.ledger.spent == visits.internals.releasing.state_epsilon == 1
    assert (
        visits.internals.releasing.release_epsilon
        == visits.internals.releasing.of_releases(20)
        == 0
    )
    for _ in range(20):
        visits.release()
    visits.announce_intrusion()
    visits.announce_intrusion()
    assert visits.ledger.spent == 1
    assert visits.guarantee.unseen_loss.epsilon == 1


def test_the_horizon_says_how_many_releases_there_are():
    visits = count(horizon=2, releases=7)
    assert visits.internals.releasing.planned == 2
    visits.release()
    visits.release()
    before = visits.state()
    with pytest.raises(pp.BudgetError, match=r"all 2 steps have ended: .* larger horizon="):
        visits.release()
    assert visits.state() == before


def test_no_event_is_counted_after_the_last_step():
    visits = count(horizon=1)
    checked = visits.internals.memory.prepare([1])
    visits.release()
    before = visits.state()
    for use in (lambda: visits.update([1]), lambda: visits.internals.memory.apply(checked)):
        with pytest.raises(pp.BudgetError, match="all 1 steps have ended"):
            use()
    assert visits.state() == before
    assert not visits.internals.memory.now.table[: visits.plan.table.cells].any()


def test_the_guarantee_hides_one_event_and_says_so():
    guarantee = count().guarantee
    assert guarantee.adjacency == "event"
    assert "adding or removing one event" in str(guarantee)
    assert str(guarantee).endswith("what is hidden is one event, not all events of a user")


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "of_all_events"), [("running-count", 1), ("running-count-announced", 2)]
)
def test_the_exact_audit_finds_epsilon_for_one_event(name, of_all_events):
    subject = next(one for one in products(Fraction(1)) if one.name == name)
    row = subject.row()
    assert row.holds, row.says
    assert float(row.worst) == pytest.approx(1)
    assert float(row.losses["add_remove"]) == pytest.approx(of_all_events), "of one user"
    assert row.set_aside < 0.4


# Refused


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"horizon": 0}, "horizon must be"),
        ({"bound": 0}, "bound must be"),
        ({"budget": pp.Budget("0.5", "0.1")}, "leave out budget="),
        ({"ticks": 3}, "running-count has no ticks="),
    ],
)
def test_what_cannot_be_planned(wrong, message):
    with pytest.raises(pp.PlanError, match=message):
        count(**wrong)


@pytest.mark.parametrize("delta", [-1, 4, 2**62])
def test_a_delta_that_would_not_be_hidden(delta):
    visits = count(bound=3)
    before = visits.state()
    with pytest.raises(pp.InputError, match=r"delta must be 0 to 3: .* say bound= \(row 2\)|row 2"):
        visits.update([1, 1, 1], [3, delta, 0])
    assert visits.state() == before


def test_nothing_can_be_asked_of_it_and_no_sum_be_taken():
    visits = count()
    with pytest.raises(pp.PlanError, match="has no tau="):
        visits.release(tau=3)
    with pytest.raises(pp.PlanError, match="call release"):
        visits.internals.releasing.reading()


def test_users_and_events_do_not_go_together():
    ledger = pp.Ledger(2)
    members = {
        "events": pp.RunningCount(horizon=1, epsilon=1, ledger=ledger),
        "users": pp.Density(universe=10, epsilon=1, ledger=ledger),
    }
    with pytest.raises(pp.PlanError, match="one event and one user has no guarantee in common"):
        pp.Together(members)


def test_several_counts_go_together():
    ledger = pp.Ledger(2)
    both = pp.Together(
        {
            "visits": count(ledger=ledger),
            "bytes": pp.RunningCount(horizon=20, bound=9, epsilon=1, ledger=ledger),
        }
    )
    both.update([1, 2], [1, 1])
    assert len(both.release()) == 2
    assert (both.guarantee.epsilon, both.guarantee.adjacency) == (2, "event")


# Groups


def by_page(**named):
    return pp.Grouped(
        lambda epsilon: pp.RunningCount(horizon=3, epsilon=epsilon), ["home", "help"],
        epsilon=1, **named,
    )  # fmt: skip


def test_groups_are_counted_apart_for_the_whole_epsilon_each():
    pages = by_page()
    pages.update([0] * 900, ["home"] * 800 + ["help"] * 100)
    answers = pages.release(confidence=NEAR)
    for group, truth in (("home", 800), ("help", 100)):
        answer = answers.where(group=group).only()
        assert answer.low <= truth <= answer.high
    assert pages.ledger.spent == 1
    assert "further group" not in str(pages.guarantee)
    later = by_page()
    later.resume(pages.state())
    later.release()
    assert (later.releases, later.ledger.spent) == (2, 1)


def test_an_event_is_in_one_group():
    with pytest.raises(pp.PlanError, match="an event is in one group, so per_user must be 1"):
        by_page(per_user=2)


# Intrusions, and going on


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


def test_an_interrupt_leaves_a_step_ended_or_not(monkeypatch):
    """Nodes of the next step with the number of this one would take in events without noise."""
    visits = count()
    visits.release()
    release, stepped = visits.release, []

    def interrupted(*arrays):
        stepped.append(visits.releases)
        for array in arrays:
            array.fill(0)
        raise KeyboardInterrupt

    monkeypatch.setattr("panprivacy.statistics.running.stepwise.wipe", interrupted)
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
    with pytest.raises(pp.InputError, match="no such state can come about"):
        count(horizon=5).resume(bytes(state))


def test_steps_that_do_not_fit_the_releases_are_refused():
    visits = count(horizon=5)
    visits.release()
    damaged = bytearray(visits.state())
    damaged[32] = 3  # of the header: how many steps have ended
    with pytest.raises(pp.InputError, match=r"damaged|no such state"):
        count(horizon=5).resume(bytes(damaged))

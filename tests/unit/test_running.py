"""A running count: one event is hidden, and all is paid at birth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.audit.suite.products import products
from panprivacy.tables.counters.mechanism import variances
from panprivacy.testing import SeededCoins

NEAR = 1 - 1e-9
SIZES = {"horizon": 20, "epsilon": 1}


def count(seed=1, **overrides):
    return pp.RunningCount(**{**SIZES, "coins": SeededCoins(seed), **overrides})


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


def test_events_take_back_what_others_add_where_they_are_signed():
    """With the noise of before, and an answer that may be below 0."""
    stock, plain = count(bound=3, signed=True), count(bound=3)
    assert stock.plan.absolute_error() == plain.plan.absolute_error()
    for step, deltas in enumerate([[3, 2], [-3, -3], [-1, 0]], start=1):
        stock.update(["ada", "grace"], deltas)
        plain.update(["ada", "grace"], [3, 3])
        found, other = stock.release(), plain.release()
        assert found.estimate - other.estimate == pytest.approx([5, -1, -2][step - 1] - 6 * step)
        assert found.value - found.low == pytest.approx(found.high - found.value)
    with pytest.raises(pp.InputError, match="delta must be -3 to 3") as refused:
        stock.update([1, 2], [-3, -4])
    assert refused.value.row == 2


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

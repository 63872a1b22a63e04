"""Several programs that count as one: each part asks every member, or none of them changes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.contribution import read_parts
from panprivacy.statistics.table.windows import TableWindows
from panprivacy.testing import SeededCoins
from tests import refusals
from tests.contract.doubles import BreakableCoins, EntropyError


def make(total=20, releases=2, intrusions=0):
    """Make a density and an incidence under a ledger of their own."""
    ledger = pp.Ledger(total)
    share = {"epsilon": Fraction(total, 2), "ledger": ledger, "releases": releases,
             "intrusions": intrusions}  # fmt: skip
    return pp.Together(
        {
            "here": pp.Density(universe=100, coins=SeededCoins(1), **share),
            "often": pp.Incidence(bound=5, universe=200, coins=SeededCoins(2), **share),
        },
        {"often": {"exactly": (1, 2)}},
    )


def learning(*firsts):
    """Make counts that learn how many users to expect, from these ranges."""
    ledger = pp.Ledger(100)
    return pp.Together(
        {
            f"count {number}": pp.DistinctCount(
                epsilon=10, expected=first, memory=1_024, ledger=ledger
            )
            for number, first in enumerate(firsts)
        }
    )


def test_all_answers_come_under_the_names_of_the_members():
    both = make(total=200)
    both.update([1, 2, 3], [1, 1, 1])
    answers = both.release(confidence=0.8)
    assert [(name.statistic, str(name)) for name in answers] == [
        ("here", "density"), ("often", "exactly 1"), ("often", "exactly 2"),
    ]  # fmt: skip
    assert {one.confidence for one in answers.values()} == {0.8}
    assert answers.where(statistic="here").only().value == pytest.approx(0.03, abs=1e-3)


@pytest.mark.parametrize(
    ("users", "deltas"),
    [([1, 150], None), ([1, None], None), ([1, 2], [1, 9]), ([1, 2], [1])],
    ids=["one member refuses", "all refuse", "a delta that one refuses", "too few deltas"],
)
def test_a_batch_is_counted_by_all_or_by_none(users, deltas):
    both = make()
    before = both.state()
    with pytest.raises(pp.InputError):
        both.update(users, deltas)
    assert both.state() == before


def test_several_batches_are_counted_in_one_pass():
    both = make(total=200)
    both.internals.memory.apply(*(both.internals.memory.prepare([user]) for user in (1, 2, 3)))
    answers = both.release()
    assert [round(one.value * scale) for one, scale in zip(answers.values(), (100, 1, 1),
            strict=True)] == [3, 3, 0]  # fmt: skip


def test_the_losses_add_up_under_one_ledger():
    both = make(intrusions=1)
    members = both.members.values()
    assert both.guarantee == pp.Guarantee(
        Fraction(20), intrusions=1, unseen=both.guarantee.unseen_loss.epsilon
    )
    assert (
        both.internals.releasing.state_epsilon
        == sum(one.internals.releasing.state_epsilon for one in members)
        == both.ledger.spent
    )
    assert both.guarantee.unseen_loss.epsilon == sum(
        one.guarantee.unseen_loss.epsilon for one in members
    )
    cost = both.internals.releasing.release_epsilon
    both.release()
    both.announce_intrusion()
    assert both.releases == 1
    assert both.ledger.spent == both.internals.releasing.state_epsilon + cost
    both.release()
    assert (
        both.ledger.spent
        == both.internals.releasing.state_epsilon + both.internals.releasing.of_releases(2)
    )
    assert 20 * (1 - Fraction(1, 10**6)) < both.ledger.spent <= 20
    with pytest.raises(pp.BudgetError, match="all 2 planned"):
        both.release()
    assert (
        both.ledger.spent
        == both.internals.releasing.state_epsilon + both.internals.releasing.of_releases(2)
    )


@pytest.mark.parametrize("unlucky", ["b", "last"])
def test_all_announce_an_intrusion_or_none(unlucky):
    """Whoever has no coins, and however deep: all can announce it afterwards."""
    coins, ledger = BreakableCoins(3), pp.Ledger(30)

    def density(name, **others):
        others |= {"coins": coins} if name == unlucky else {}
        return pp.Density(universe=500, intrusions=1, **others)

    names = iter("ab")
    groups = pp.Grouped(
        lambda epsilon: density(next(names), epsilon=epsilon),
        ["a", "b"], epsilon=2, per_user=2, ledger=ledger,
    )  # fmt: skip
    alone = pp.Together({"last": density("last", epsilon=1, ledger=ledger)})
    both = pp.Together({"groups": groups, "rest": alone})
    before = both.state()
    coins.reads_left = 0
    with pytest.raises(EntropyError):
        both.announce_intrusion()
    assert both.state() == before
    coins.reads_left = float("inf")
    both.announce_intrusion()
    after = both.state()
    with pytest.raises(pp.BudgetError, match="intrusions="):
        both.announce_intrusion()
    assert both.state() == after != before


def test_what_cannot_be_asked_spends_nothing():
    both = make()
    spent = both.ledger.spent
    for wrong in ({"confidence": 2}, {"exactly": 1}):
        with pytest.raises(pp.PlanError):
            both.release(**wrong)
    assert (both.ledger.spent, both.releases) == (spent, 0)


@pytest.mark.parametrize("act", [lambda both: both.release(), lambda both: both.contribute()],
                         ids=["release", "contribute"])  # fmt: skip
def test_if_one_has_no_release_left_the_others_spend_nothing(act):
    both = make(releases=1)
    both.members["often"].release()
    spent = both.ledger.spent
    with refusals.released():
        act(both)
    assert (both.ledger.spent, both.releases) == (spent, 0)


def test_what_all_are_asked_comes_before_what_one_is():
    ledger = pp.Ledger(1)
    alone = pp.Together(
        {"here": pp.Density(universe=9, epsilon=1, ledger=ledger)}, {"here": {"confidence": 0.9}}
    )
    assert alone.release(confidence=0.5).only().confidence == 0.5


def test_states_reach_as_far_as_the_furthest_of_a_member(monkeypatch):
    both = make()
    assert both.internals.windows.reached({}) is None
    found = iter([(4, 5), (1, 9)])
    monkeypatch.setattr(TableWindows, "reached", lambda *_: next(found))
    assert both.internals.windows.reached({}) == (4, 9)


def test_a_column_that_can_be_read_once_reaches_every_member():
    both, same = make(total=2_000), make(total=2_000)
    both.update(iter(range(90)))
    same.update(list(range(90)))
    for one in (both, same):
        assert one.release().where(statistic="here").only().value == pytest.approx(0.9, abs=0.01)


def test_lost_answers_of_one_member_leave_the_others():
    ledger = pp.Ledger(32)
    both = pp.Together(
        {
            "who": pp.DistinctCount(expected=50_000, epsilon=16, ledger=ledger),
            "often": pp.Incidence(expected=5_000, bound=30, epsilon=16, ledger=ledger),
        },
        {"often": {"exactly": (1, 2)}},
    )
    both.update(np.arange(80_000))
    answers = both.release()
    assert answers.lost
    assert {str(name) for name in answers.where(statistic="often")} == {"exactly 1", "exactly 2"}
    assert set(answers.where(statistic="often").values()) == {None}
    assert answers.where(statistic="who").only().value > 10_000
    assert 32 * (1 - Fraction(1, 10**6)) < ledger.spent <= 32
    assert set(both.internals.releasing.lost()) == set(answers)


def test_a_release_costs_the_sum_of_what_the_members_say():
    both = make()
    releasing = both.internals.releasing
    costs = {
        number: {name: one.internals.releasing.of_release(number)
                 for name, one in both.members.items()}
        for number in (1, 2)
    }  # fmt: skip
    assert costs[1] != costs[2]
    for number, each in costs.items():
        assert releasing.costs(number) == each
        assert releasing.of_release(number) == sum(each.values())


def test_releases_are_counted_down():
    both = make(releases=2)
    releasing = both.internals.releasing
    assert (releasing.planned, releasing.made, releasing.left) == (2, 0, 2)
    both.release()
    assert (releasing.made, releasing.left) == (1, 1)
    assert releasing.check(confidence=0.6).where(statistic="here").only().confidence == 0.6
    assert (releasing.made, releasing.left, releasing.stands) == (2, 0, None)
    with pytest.raises(pp.BudgetError, match="all 2 planned"):
        releasing.check_release()


def test_answers_that_are_not_there_have_the_names_of_those_that_are():
    both = make(total=200)
    releasing = both.internals.releasing
    names = list(both.release())
    assert list(releasing.lost()) == list(releasing.unread()) == names
    spent = both.ledger.spent
    releasing.unread()
    assert both.ledger.spent == spent


def test_an_announced_intrusion_reaches_every_member():
    both = make(total=2, intrusions=2)
    tables = [one.internals.memory.now.table.copy() for one in both.members.values()]
    both.announce_intrusion()
    assert both.internals.memory.announced == 1
    for before, one in zip(tables, both.members.values(), strict=True):
        assert one.internals.memory.announced == 1
        assert (one.internals.memory.now.table != before).any()


def test_a_state_is_a_front_and_the_states_of_the_members_in_order():
    both = make()
    states = [one.state() for one in both.members.values()]
    assert both.state().endswith(b"".join(states))
    fronts = [one.internals.memory.front for one in both.members.values()]
    assert both.internals.memory.front.endswith(b"".join(fronts))
    assert both.internals.memory.state_bytes == len(both.state())


def test_all_members_are_forgotten():
    both = make()
    both.update(range(100))
    tables = [one.internals.memory.now.table for one in both.members.values()]
    assert all(table.any() for table in tables)
    both.forget()
    assert not any(table.any() for table in tables)


def test_contributions_have_the_labels_and_requests_of_the_members():
    both = make(intrusions=1)
    spent = both.ledger.spent
    cost = both.internals.releasing.release_epsilon
    here, often = read_parts(both.contribute())
    assert [here.told.label, often.told.label] == ["here", "often"]
    assert here.told.asked.get("exactly") is None
    assert tuple(often.told.asked["exactly"]) == (1, 2)
    assert both.ledger.spent == spent + cost
    assert both.internals.memory.announced == 1


def test_members_that_learn_are_planned_in_order():
    both = learning("learn:10:100", "learn:1000:2000")
    windows = both.internals.windows
    assert windows.expects == ((10, 100), (1_000, 2_000))
    first, second = windows.expects
    windows.expect([type(first)((20, 90)), type(second)((1_500, 1_900))])
    assert windows.expects == ((20, 90), (1_500, 1_900))
    assert [one.plan.expected for one in both.members.values()] == [(20, 90), (1_500, 1_900)]


def test_each_member_learns_from_its_own_answers():
    both = learning("learn:10:5000", "learn:10:6000")
    few = pp.Release(20.0, 16.0, 24.0, 0.95, 1, (), pp.Name("count 0", "distinct"))
    many = pp.Release(900.0, 800.0, 1_000.0, 0.95, 1, (), pp.Name("count 1", "distinct"))
    after = both.internals.windows.after
    assert after({}) == both.internals.windows.expects
    first, second = after({few.name: few, many.name: many})
    assert first == (4, 96)
    assert second == (200, 4_000)
    assert after({few.name: None, many.name: many}) == ((10, 5_000), second)


@pytest.mark.parametrize(("asked", "shows"), [({}, True), ({"exactly": 1}, False)])
def test_states_are_shown_where_a_member_shows_them(asked, shows):
    ledger = pp.Ledger(9)
    both = pp.Together(
        {
            "here": pp.Density(universe=9, epsilon=1, ledger=ledger),
            "often": pp.Incidence(universe=9, bound=3, epsilon=1, ledger=ledger),
        },
        {"often": asked},
    )
    assert both.internals.windows.shows_range() is shows
    assert both.internals.windows.lasting is False

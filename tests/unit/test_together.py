"""Several statistics as one: they count, release and go on together, or not at all."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.release import Answers, Name, Release
from tests.contract.doubles import BreakableCoins


def make(total=20, releases=2, intrusions=0, **members):
    """A density and an incidence, with a ledger of their own."""
    ledger = pp.Ledger(total)
    share = {"epsilon": Fraction(total, 2), "ledger": ledger, "releases": releases,
             "intrusions": intrusions}  # fmt: skip
    return pp.Together(
        {
            "here": pp.Density(universe=100, **share),
            "often": pp.Incidence(bound=5, **{"universe": 200, **members}, **share),
        },
        {"often": {"exactly": (1, 2)}},
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
    both.apply(*(both.prepare([user]) for user in (1, 2, 3)))
    answers = both.release()
    assert [round(one.value * scale) for one, scale in zip(answers.values(), (100, 1, 1),
            strict=True)] == [3, 3, 0]  # fmt: skip


def test_the_losses_add_up_under_one_ledger():
    both = make(intrusions=1)
    members = both.members.values()
    assert both.guarantee == pp.Guarantee(Fraction(20), intrusions=1, unseen=both.unseen)
    assert both.state_epsilon == sum(one.state_epsilon for one in members) == both.ledger.spent
    assert both.unseen == sum(one.unseen for one in members)
    cost = both.release_epsilon
    both.release()
    both.announce_intrusion()
    assert both.releases == 1
    assert both.ledger.spent == both.state_epsilon + cost
    both.release()
    assert both.ledger.spent == both.state_epsilon + both.of_releases(2)
    assert 20 * (1 - Fraction(1, 10**6)) < both.ledger.spent <= 20
    with pytest.raises(pp.BudgetError, match="all 2 planned"):
        both.release()
    assert both.ledger.spent == both.state_epsilon + both.of_releases(2)


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
    with pytest.raises(OSError, match="entropy"):
        both.announce_intrusion()
    assert both.state() == before
    coins.reads_left = float("inf")
    both.announce_intrusion()
    after = both.state()
    with pytest.raises(pp.BudgetError, match="intrusions="):
        both.announce_intrusion()
    assert both.state() == after != before


def test_all_go_on_from_an_earlier_state_or_none():
    """Else those without coins would be new, and make again the releases that are paid for."""

    def made():
        return pp.Grouped(
            lambda epsilon: pp.Density(
                universe=500, epsilon=epsilon, intrusions=1, coins=coins.pop()
            ),
            ["a", "b"], epsilon=2,
        )  # fmt: skip

    coins = [BreakableCoins(seed) for seed in range(2)]
    early = made()
    state = early.state()
    early.release()
    early.announce_intrusion()
    coins = [unlucky := BreakableCoins(4), BreakableCoins(3)]
    groups = made()
    unlucky.reads_left = 0
    with pytest.raises(OSError, match="entropy"):
        groups.resume(state, released=1, announced=1)
    unlucky.reads_left = float("inf")
    for one in (groups, *groups.members.values()):
        with pytest.raises(pp.PanPrivacyError, match="wiped"):
            one.release()


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
    with pytest.raises(pp.BudgetError, match="all 1 planned"):
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
    assert both.reached({}) is None
    monkeypatch.setattr(pp.Density, "reached", lambda *_: (4, 5))
    monkeypatch.setattr(pp.Incidence, "reached", lambda *_: (1, 9))
    assert both.reached({}) == (4, 9)


def test_members_that_do_not_go_together_are_refused():
    with pytest.raises(pp.PlanError, match="at least one"):
        pp.Together({})
    one, ledger = pp.Density(universe=9, epsilon=1), pp.Ledger(9)
    with pytest.raises(pp.PlanError, match="one ledger"):
        pp.Together({"a": one, "b": pp.Density(universe=9, epsilon=1)})
    each = [pp.Density(universe=9, epsilon=1, releases=n, ledger=ledger) for n in (1, 2)]
    with pytest.raises(pp.PlanError, match="the same number of releases="):
        pp.Together(dict(zip("ab", each, strict=True)))
    seen = [pp.Density(universe=9, epsilon=1, intrusions=n, ledger=ledger) for n in (1, 0)]
    with pytest.raises(pp.PlanError, match="the same number of intrusions="):
        pp.Together(dict(zip("ab", seen, strict=True)))
    used = pp.Density(universe=9, epsilon=1, releases=2, ledger=ledger)
    used.release()
    with pytest.raises(pp.PlanError, match="make a new one"):
        pp.Together({"a": used})
    with pytest.raises(pp.PlanError, match="there twice"):
        pp.Together({"a": one, "b": one})
    with pytest.raises(pp.PlanError, match="put windows around them"):
        pp.Together({"a": pp.Windowed(lambda: pp.Density(universe=9, epsilon=1), every=9)})
    with pytest.raises(pp.PlanError, match="asked= names"):
        pp.Together({"a": one}, {"b": {}})


def test_answers_of_one_name_are_refused():
    ledger = pp.Ledger(9)
    three = [pp.Density(universe=9, epsilon=1, ledger=ledger) for _ in range(3)]
    inner = pp.Together(dict(zip("ab", three, strict=False)))
    with pytest.raises(pp.PlanError, match="one name"):
        pp.Together({"x": inner, "y": three[2]})
    with pytest.raises(pp.PlanError, match="one name"):
        pp.Together({1: three[0], "1": three[1]})


def test_a_guarantee_keeps_every_condition_of_the_members():
    ledger = pp.Ledger(4)
    pages = pp.Grouped(
        lambda epsilon: pp.Density(universe=9, epsilon=epsilon), ["a", "b"], epsilon=1,
        per_user=1, ledger=ledger,
    )  # fmt: skip
    both = pp.Together({"pages": pages, "all": pp.Density(universe=9, epsilon=3, ledger=ledger)})
    assert (both.guarantee.epsilon, both.guarantee.groups) == (4, 1)
    assert len(both.release()) == 3


def test_a_column_that_can_be_read_once_reaches_every_member():
    both, same = make(total=2_000), make(total=2_000)
    both.update(iter(range(90)))
    same.update(list(range(90)))
    for one in (both, same):
        assert one.release().where(statistic="here").only().value == pytest.approx(0.9, abs=0.01)


def test_a_batch_of_another_plan_is_refused():
    small, large = (pp.Density(universe=size, epsilon=1) for size in (10, 20))
    before = small.state()
    with pytest.raises(pp.InputError, match="another plan"):
        small.apply(large.prepare([19]))
    assert small.state() == before


def test_a_batch_of_an_equal_plan_is_counted():
    """Plans are kept for a while: a later statistic of the same sizes may have another object."""
    members = pp.Density(universe=10, epsilon=100)
    batch, equal = members.prepare([3]), dataclasses.replace(members.plan)
    assert equal is not members.plan
    members.apply(dataclasses.replace(batch, plan=equal))
    assert members.release().value == pytest.approx(0.1)


def test_equal_counts_of_two_statistics_are_two():
    names = [Name(statistic, "density") for statistic in ("a", "b")]
    counts = [(7,), tuple(range(7, 8))]
    answers = Answers(
        Release(1, 0, 2, 0.95, 1, one, name=name) for one, name in zip(counts, names, strict=True)
    )
    assert answers.counts == (7, 7)


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
    assert set(both.lost()) == set(answers)


class TestState:
    def test_all_go_on(self):
        before, after = make(), make()
        before.update([1, 2, 3])
        before.release()
        state = before.state()
        assert len(state) == before.state_bytes
        after.check_state(state)
        after.resume(state)
        assert after.state() == state
        assert after.ledger.spent == before.ledger.spent
        after.release()
        with pytest.raises(pp.BudgetError):
            after.release()

    def test_releases_that_left_are_paid_for(self):
        after = make()
        after.resume(make().state(), released=2)
        assert after.ledger.spent == after.state_epsilon + after.of_releases(2)
        for take in (after.check_state, make().check_state):
            with pytest.raises(pp.PanPrivacyError):
                take(make().state(), released=3)

    def test_intrusions_that_were_announced_are_no_more_than_were_planned(self):
        state = make(intrusions=1).state()
        for take in (make(intrusions=1).check_state, make(intrusions=1).resume):
            with pytest.raises(pp.PanPrivacyError):
                take(state, announced=2)

    @pytest.mark.parametrize("damage", [
        lambda state: state[:-1],
        lambda state: state + b"x",
        lambda state: b"x" + state,
        lambda _: make(universe=201).state(),
        lambda _: make(total=21).state(),
        lambda _: make(releases=3).state(),
        lambda _: pp.Density(universe=100, epsilon=10).state(),
        lambda _: b"",
    ])  # fmt: skip
    def test_other_states_are_refused_and_change_nothing(self, damage):
        one = make()
        before, spent = one.state(), one.ledger.spent
        for take in (one.check_state, one.resume):
            with pytest.raises(pp.InputError):
                take(damage(make().state()))
        assert (one.state(), one.ledger.spent) == (before, spent)

    def test_members_of_other_names_are_others(self):
        def named(name):
            return pp.Together({name: pp.Density(universe=9, epsilon=1)})

        with pytest.raises(pp.InputError, match="another members"):
            named("a").resume(named("b").state())

    def test_it_cannot_be_copied_and_is_wiped_as_one(self):
        both = make()
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="second intrusion"):
                duplicate(both)
        both.forget()
        both.forget()
        with pytest.raises(pp.PanPrivacyError, match="wiped"):
            both.update([1])

"""Several statistics as one: they count, release and go on together, or not at all."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.statistics.release import Answers, Name, Release
from tests import refusals
from tests.contract.doubles import BreakableCoins, EntropyError


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
    with pytest.raises(EntropyError):
        groups.resume(state, released=1, announced=1)
    unlucky.reads_left = float("inf")
    for one in (groups, *groups.members.values()):
        with refusals.wiped():
            one.release()


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


def test_a_batch_of_another_plan_is_refused():
    small, large = (pp.Density(universe=size, epsilon=1) for size in (10, 20))
    before = small.state()
    with pytest.raises(pp.InputError, match="another plan"):
        small.internals.memory.apply(large.internals.memory.prepare([19]))
    assert small.state() == before


def test_a_batch_of_an_equal_plan_is_counted():
    """Plans are kept for a while: a later statistic of the same sizes may have another object."""
    members = pp.Density(universe=10, epsilon=100)
    batch, equal = members.internals.memory.prepare([3]), dataclasses.replace(members.plan)
    assert equal is not members.plan
    members.internals.memory.apply(dataclasses.replace(batch, plan=equal))
    assert members.release().value == pytest.approx(0.1)


class Handed:
    """A column that tells how often it was handed over."""

    def __init__(self, values):
        self.times, self._column = 0, pa.chunked_array([values])

    def __arrow_c_stream__(self, requested_schema=None):
        self.times += 1
        return self._column.__arrow_c_stream__(requested_schema)


def net_counts(members):
    """So many counts of who is left, with next to no noise, on one ledger."""
    sizes = {"epsilon": 100, "expected": (1, 100), "deletions": True, "bound": 5}
    ledger = pp.Ledger(100 * members)
    return {str(name): pp.DistinctCount(**sizes, ledger=ledger) for name in range(members)}


@pytest.mark.parametrize("members", [1, 3])
def test_a_column_is_read_once_however_many_statistics_count_it(members):
    users, deltas = Handed(["ada", "grace", "ada"]), Handed([1, 1, -1])
    counts = net_counts(members)
    pp.Together(counts).update(users, deltas)
    assert (users.times, deltas.times) == (1, 1)
    (alone,) = net_counts(1).values()
    alone.update(["ada", "grace", "ada"], np.array([1, 1, -1]))
    found = [one.release().value for one in counts.values()]
    assert found == pytest.approx([alone.release().value] * members, abs=0.5)


def test_a_named_column_is_read_by_every_member_though_an_iterator_ends():
    counts = net_counts(2)
    pp.Together(counts).update(iter(["ada", "grace"]), deltas=iter([1, 1]))
    assert [one.release().value for one in counts.values()] == pytest.approx([2, 2], abs=0.5)


def test_equal_counts_of_two_statistics_are_two():
    names = [Name(statistic, "density") for statistic in ("a", "b")]
    counts = [(7,), tuple(range(7, 8))]
    answers = Answers(
        Release(1, 0, 2, 0.95, 1, one, name=name) for one, name in zip(counts, names, strict=True)
    )
    assert answers.counts == (7, 7)


class TestState:
    def test_all_go_on(self):
        before, after = make(), make()
        before.update([1, 2, 3])
        before.release()
        state = before.state()
        assert len(state) == before.internals.memory.state_bytes
        after.internals.memory.check_state(state)
        after.resume(state)
        assert after.state() == state
        assert after.ledger.spent == before.ledger.spent
        after.release()
        with pytest.raises(pp.BudgetError):
            after.release()

    def test_releases_that_left_are_paid_for(self):
        after = make()
        after.resume(make().state(), released=2)
        assert (
            after.ledger.spent
            == after.internals.releasing.state_epsilon + after.internals.releasing.of_releases(2)
        )
        for take in (after.internals.memory.check_state, make().internals.memory.check_state):
            with pytest.raises(pp.PanPrivacyError):
                take(make().state(), released=3)

    def test_intrusions_that_were_announced_are_no_more_than_were_planned(self):
        state = make(intrusions=1).state()
        for take in (make(intrusions=1).internals.memory.check_state, make(intrusions=1).resume):
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
        for take in (one.internals.memory.check_state, one.resume):
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
            with refusals.copied():
                duplicate(both)
        both.forget()
        both.forget()
        with refusals.wiped():
            both.update([1])

"""A statistic that learns is planned anew before it counts, around the answers of a window."""

from __future__ import annotations

import pytest

import panprivacy as pp
from panprivacy.tables.planning.learning import LearnedBound, LearnedUsers
from panprivacy.testing import SeededCoins
from tests import refusals

FIRST = (100, 100_000)


def count(**given):
    sizes = {"epsilon": 10, "expected": "learn:100:100000", "memory": 1_024}
    return pp.DistinctCount(**{**sizes, "coins": SeededCoins(1), **given})


def visits(**given):
    return pp.Incidence(**{"bound": "learn:3:1000", "universe": 300, "epsilon": 60, **given})


def answer(low, high, name="distinct"):
    return pp.Release((low + high) / 2, low, high, 0.95, 1, (), pp.Name(name, name))


def named(*answers):
    return {one.name: one for one in answers}


class TestExpect:
    def test_it_is_planned_for_the_range_that_is_given(self):
        made = count()
        windows = made.internals.windows
        assert windows.expects == (FIRST,)
        windows.expect([LearnedUsers((2_000, 4_000))])
        assert windows.expects == ((2_000, 4_000),)
        assert made.plan.expected == (2_000, 4_000)
        made.update(range(3_000))
        assert made.release().value == pytest.approx(3_000, rel=0.2)

    def test_the_first_table_is_wiped_and_another_is_drawn(self):
        made = count()
        made.update(range(3_000))
        before = made.internals.memory.now
        table = before.table
        assert table.any()
        made.internals.windows.expect([LearnedUsers((2_000, 4_000))])
        assert not table.any()
        assert made.internals.memory.now.table is not table
        assert made.internals.memory.now.key != before.key

    def test_epsilon_stays_split_and_nothing_is_spent(self):
        made = count(releases=2, intrusions=1)
        budget, spent, loss = made.plan.split.budget, made.ledger.spent, made.guarantee
        made.internals.windows.expect([LearnedUsers((2_000, 4_000))])
        now = made.plan.split.budget
        assert (now.state, now.release) == (budget.state, budget.release)
        assert (made.ledger.spent, made.guarantee) == (spent, loss)
        assert (made.plan.request.releases, made.plan.request.intrusions) == (2, 1)

    def test_a_range_is_kept_within_the_room_of_the_first_window(self):
        made = count()
        made.internals.windows.expect([LearnedUsers((500, 10**9))])
        assert made.internals.windows.expects == ((500, 100_000),)
        made = visits()
        made.internals.windows.expect([LearnedBound((1, 5_000))])
        assert made.internals.windows.expects == ((3, 1_000),)

    def test_without_a_range_nothing_changes(self):
        for made in (count(), pp.Density(universe=9, epsilon=1)):
            state = made.state()
            made.internals.windows.expect(())
            assert made.state() == state

    def test_as_many_ranges_are_needed_as_are_learned(self):
        made = count()
        state = made.state()
        with pytest.raises(ValueError, match="zip"):
            made.internals.windows.expect([LearnedUsers(FIRST)] * 2)
        assert made.state() == state

    @pytest.mark.parametrize("act", ["release", "announce_intrusion"])
    @pytest.mark.parametrize("ranges", [(), [LearnedUsers((2_000, 4_000))]])
    def test_only_what_is_new_is_planned_anew(self, act, ranges):
        made = count(intrusions=1, releases=2)
        getattr(made, act)()
        state = made.state()
        with refusals.begun():
            made.internals.windows.expect(ranges)
        assert made.state() == state


class TestAfter:
    def test_users_come_from_the_interval_of_the_answer(self):
        after = count().internals.windows.after
        assert after(named(answer(1_000.0, 2_000.0))) == ((250, 8_000),)

    def test_ends_are_told_apart(self):
        total = pp.CroppedSum(tau=10, expected="learn:100:100000", memory=1 << 12, epsilon=8)
        (found,) = total.internals.windows.after(named(answer(10_000.0, 40_000.0, "cropped_sum")))
        assert found == (250, 16_000)

    @pytest.mark.parametrize("answers", [{}, {answer(1, 2).name: None}])
    def test_without_an_answer_the_range_is_unchanged(self, answers):
        windows = count().internals.windows
        assert windows.after(answers) == windows.expects == (FIRST,)

    def test_the_first_answer_that_is_there_counts(self):
        lost, found = answer(1, 2, "lost"), answer(1_000.0, 2_000.0)
        after = count().internals.windows.after
        assert after({lost.name: None, found.name: found}) == ((250, 8_000),)

    def test_nothing_is_learned_where_nothing_is_to_be_learned(self):
        windows = pp.Density(universe=9, epsilon=1).internals.windows
        assert windows.expects == windows.after(named(answer(0.2, 0.4, "density"))) == ()

    def test_states_come_from_its_own_answers_before_those_beside_it(self):
        made = visits()
        made.update([user for user in range(300) for _ in range(1 + user % 4)])
        windows = made.internals.windows
        answers = made.release().answers()
        reached = windows.reached(answers)
        assert reached is not None
        assert 3 <= reached[1] <= 8
        assert windows.after(answers, (90, 95)) == windows.after(answers)
        assert windows.after(answers) == ((3, 10 * reached[1]),)

    def test_states_of_a_statistic_beside_it_count_where_it_says_none(self):
        total = pp.CroppedSum(tau=3, bound="learn:3:1000", universe=300, epsilon=60)
        windows = total.internals.windows
        asked = named(answer(10.0, 20.0, "cropped_sum"))
        assert windows.reached(asked) is None
        assert windows.after(asked, (7, 8)) == ((3, 80),)
        assert windows.after(asked) == ((3, 1_000),)


@pytest.mark.parametrize(
    ("made", "lasting"),
    [
        (lambda: pp.Density(universe=9, epsilon=1), False),
        (lambda: pp.RunningCount(horizon=9, epsilon=1), True),
    ],
    ids=["table", "running"],
)
def test_a_statistic_with_steps_goes_on_from_window_to_window(made, lasting):
    assert made().internals.windows.lasting is lasting


@pytest.mark.parametrize(("asked", "shows"), [({}, True), ({"exactly": 1}, False)])
def test_a_whole_histogram_shows_how_far_states_reach(asked, shows):
    windows = pp.Incidence(bound=3, universe=30, epsilon=1).internals.windows
    assert windows.shows_range(**asked) is shows
    assert pp.Density(universe=9, epsilon=1).internals.windows.shows_range() is False

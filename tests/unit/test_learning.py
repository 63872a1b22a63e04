"""Windows plan the next one around what they released."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.explain.reading import read_states
from panprivacy.planning.learning import Learned
from panprivacy.statistics.containers import parted, resume_all
from panprivacy.statistics.release import Answers
from panprivacy.statistics.specification import Specification, together

DAY = 86_400
MONDAY = 1_794_787_200.0
learning = partial(pp.DistinctCount, epsilon=10, expected="learn:100:100000", memory=1_024)


class Clock:
    """What time it is: at first the beginning of a day."""

    def __init__(self):
        self.now = MONDAY

    def __call__(self):
        return self.now


class Days:
    """Days of users, one after the other."""

    def __init__(self, factory=learning, **arguments):
        self.clock = Clock()
        self.windowed = pp.Windowed(factory, every=DAY, clock=self.clock, **arguments)

    def pass_one(self, *columns):
        self.windowed.update(*columns)
        self.clock.now += DAY
        self.windowed.advance()
        return self.windowed.releases[-1]

    @property
    def expects(self):
        return self.windowed.current.expects


class TestRange:
    @pytest.mark.parametrize(
        ("expected", "low", "high", "then"),
        [
            ((1_000, 10**9), 400, 500, (100, 10**9)),
            ((1_000, 10**9), 2_000, 3_000, (500, 12_000)),
            ((500, 12_000), 11_000, 12_100, (500, 48_400)),
            ((500, 12_000), 9_000, math.inf, (500, 1 << 60)),
            ((500, 12_000), 0.0, 0.0, (1, 12_000)),
            ((1, 12_000), 0.0, 0.0, (1, 4)),
            ((1, 12_000), 0.0, 1e30, (1, 1 << 60)),
        ],
    )
    def test_the_next_window_expects_what_came_or_besides_it_what_was_expected(
        self, expected, low, high, then
    ):
        assert Learned(expected).after(low, high) == then

    @given(
        st.tuples(st.integers(1, 10**12), st.integers(1, 10**12)).map(sorted).map(tuple),
        st.tuples(st.floats(0, 1e15), st.floats(0, 1e15) | st.just(math.inf)).map(sorted),
    )
    def test_what_comes_of_an_interval_is_a_range_that_can_be_planned(self, expected, interval):
        low, high = Learned(expected).after(*interval)
        assert 1 <= low <= max(interval[0], 1)
        assert low <= high <= 1 << 60
        assert high >= min(interval[1], 1 << 60)

    @pytest.mark.parametrize(
        ("expected", "then"),
        [
            ((500, 1 << 60), (500, 100_000)),
            ((5_000, 1 << 60), (5_000, 320_000)),
            ((500, 90_000), (500, 90_000)),
            ((400_000, 1_000_000), (400_000, 1_000_000)),
            ((1, 1), (1, 1)),
        ],
    )
    def test_no_more_users_are_expected_than_there_is_evidence_for(self, expected, then):
        found = Learned(expected).within((100, 100_000))
        assert found == then == found.within((100, 100_000))

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("distinct,expected=learn", (1_000, 10**9)),
            ("distinct,expected=learn:1e3:10_000", (1_000, 10_000)),
            ("cropped-sum,tau=3,expected=learn:9:10", (9, 10)),
        ],
    )
    def test_a_text_says_that_windows_learn_and_how_they_begin(self, text, expected):
        assert Specification.from_text(text).sizes.learned == expected

    def test_so_does_a_table(self):
        table = {"name": "distinct", "expected": "learn"}
        assert Specification.from_table(table).sizes.learned == (1_000, 10**9)
        assert Specification.from_table({"name": "distinct"}).sizes.learned is None

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("distinct,expected=learn:5", "may begin with a range: learn:LOW:HIGH"),
            ("distinct,expected=learn:", "LOW:HIGH"),
            ("distinct,expected=learnt", "LOW:HIGH"),
            ("distinct,expected=learn:9:5", "from low to high"),
            ("incidence,bound=5,expected=learn", "cannot be learned here"),
        ],
    )
    def test_what_cannot_be_learned_is_refused(self, text, message):
        with pytest.raises(pp.PlanError, match=message):
            Specification.from_text(text)


class TestWindows:
    def test_answers_without_an_upper_end_make_no_plan_wider_than_the_first(self):
        """A noisy plan has such answers; a wider one would have more of them."""
        noisy = partial(
            pp.DistinctCount, epsilon=1, expected="learn:100:100000", memory=1 << 10,
            deletions=True, bound=1,
        )  # fmt: skip
        days = Days(noisy)
        for _ in range(12):
            days.pass_one(np.arange(1_000), np.ones(1_000, np.int64))
            assert days.expects[0][1] <= 100_000

    def test_a_window_is_planned_around_the_one_before(self):
        days = Days()
        assert days.expects == ((100, 100_000),)
        released = days.pass_one(np.arange(5_000)).release
        assert days.expects == ((math.floor(released.low / 4), math.ceil(4 * released.high)),)
        assert days.windowed.current.plan.expected == days.expects[0]
        wide = learning().plan.relative_error(5_000)
        assert days.windowed.current.plan.relative_error(5_000) < 0.8 * wide

    def test_epsilon_stays_split_as_it_was_and_the_memory_is_no_larger(self):
        days = Days()
        first = days.windowed.current
        budget, loss, spent = first.plan.split.budget, first.unseen, first.ledger.spent
        for users in (5_000, 80_000, 3, 0):
            days.pass_one(np.arange(users))
            now = days.windowed.current
            assert now.plan.split.budget == budget
            assert (now.unseen, now.ledger.spent) == (loss, spent)
            assert now.plan.table.nbytes <= 1_024
        now.release()
        with pytest.raises(pp.BudgetError):
            now.release()

    def test_what_an_unseen_window_loses_is_that_of_any_plan_of_this_split(self):
        """That of one plan of counters may be smaller, and another one would exceed it."""
        make = lambda expected: pp.CroppedSum(  # noqa: E731
            tau=10, expected=expected, memory=1 << 12, epsilon=1
        )
        learns, fixed = make("learn:1000:1000000"), make((1_000, 1_000_000))
        split = fixed.plan.split.budget
        assert learns.unseen == split.unseen(releases=1, intrusions=0) > fixed.unseen

    def test_a_window_that_is_cut_short_changes_nothing(self):
        days = Days()
        days.windowed.update(np.arange(5_000))
        days.clock.now += DAY / 2
        days.windowed.close()
        assert days.expects == ((100, 100_000),)
        days.pass_one(np.arange(5_000))
        assert days.expects == ((100, 100_000),)

    @pytest.mark.parametrize("told", [None, Answers([])])
    def test_a_window_without_an_answer_changes_nothing(self, told):
        days = Days(release=lambda _: told)
        days.pass_one(np.arange(5_000))
        assert days.expects == ((100, 100_000),)

    def test_a_release_that_raises_changes_nothing(self):
        def fail(_):
            raise OSError

        days = Days(release=fail)
        with pytest.raises(OSError):
            days.pass_one(np.arange(5_000))
        assert days.expects == ((100, 100_000),)
        assert days.windowed.current.releases == 0

    def test_answers_are_found_in_what_a_release_gave(self):
        days = Days(release=lambda current: [1, current.release()], answers=lambda pair: pair[1])
        _, answer = days.pass_one(np.arange(5_000)).release
        assert days.expects == (Learned((100, 100_000)).after(answer.low, answer.high),)

    def test_what_cannot_be_planned_begins_as_the_first_one(self):
        days = Days(
            lambda: pp.CroppedSum(tau=1, bound=1, expected="learn:1:2", memory=3, epsilon=1)
        )
        days.pass_one([])
        assert days.windowed.current.plan.expected == (1, 2)

    def test_each_of_several_learns_its_own(self):
        texts = "distinct,expected=learn:1:1000,memory=4096", "density,universe=9", \
            "cropped-sum,tau=10,expected=learn,memory=65536,bound=10"  # fmt: skip
        specifications = [Specification.from_text(text) for text in texts]
        days = Days(lambda: together(specifications, epsilon=Fraction(90), releases=1))
        answers = days.pass_one(np.arange(8).repeat(5)).release
        users, total = (
            answers.where(statistic=name).only() for name in ("distinct", "cropped-sum")
        )
        assert days.expects == (
            Learned((1, 1_000)).after(users.low, users.high),
            Learned((1_000, 10**9)).after(total.low / 10, total.high / 10),
        )
        assert days.expects[0] != days.expects[1]

    def test_groups_expect_as_few_as_the_least_and_as_many_as_the_largest(self):
        days = Days(
            lambda: pp.Grouped(lambda share: learning(epsilon=share), ["a", "b"], epsilon=10)
        )
        ids, groups = np.arange(6_000), np.array(["a", "b"]).repeat([5_000, 1_000])
        answers = days.pass_one(ids, groups).release
        each = [answers.where(group=group).only() for group in "ab"]
        around = [Learned((100, 100_000)).after(one.low, one.high) for one in each]
        assert days.expects == (around[0].together(around[1]),)
        assert around[0] != around[1]
        days.pass_one(ids, groups)

    def test_only_what_is_new_can_be_planned_anew(self):
        statistic = learning()
        statistic.release()
        with pytest.raises(pp.PanPrivacyError, match="only a new statistic"):
            statistic.expect(statistic.expects)


class TestResume:
    def begun(self):
        """A day that was planned around the one before."""
        days = Days()
        days.pass_one(np.arange(5_000))
        days.windowed.update(np.arange(4_000))
        return days

    def after(self, days):
        other = pp.Windowed(learning, every=DAY, clock=days.clock)
        assert other.current.expects != days.expects
        return other

    def test_a_window_goes_on_as_it_was_planned(self):
        days = self.begun()
        state = days.windowed.state()
        assert len(state) == days.windowed.state_bytes
        other = self.after(days)
        other.check_state(state)
        other.resume(state)
        assert other.current.expects == days.expects
        assert other.state() == state
        assert other.current.release().value == pytest.approx(4_000, rel=0.2)

    def test_looking_changes_nothing(self):
        days = self.begun()
        other = self.after(days)
        before = other.state()
        other.check_state(days.windowed.state())
        assert other.state() == before

    def test_only_a_new_one_goes_on(self):
        days = self.begun()
        other = self.after(days)
        other.current.release()
        for take in (other.check_state, other.resume):
            with pytest.raises(pp.PanPrivacyError, match="only a new statistic"):
                take(days.windowed.state())

    @pytest.mark.parametrize("ends", [(0, 5), (9, 5), (5, (1 << 64) - 1), (7, 1_000)])
    def test_a_range_that_is_not_that_of_the_state_is_refused(self, ends):
        days = self.begun()
        state, other = bytearray(days.windowed.state()), self.after(days)
        place = len(state) - len(days.windowed.current.state()) - 16
        state[place : place + 16] = np.array(ends, np.uint64).tobytes()
        before = other.state()
        for take in (other.check_state, other.resume):
            with pytest.raises(pp.InputError, match=r"state is damaged|another expected"):
                take(bytes(state))
        assert other.state() == before

    def test_it_can_be_explained(self, tmp_path):
        days = self.begun()
        path = tmp_path / "state"
        path.write_bytes(days.windowed.state())
        (found,) = read_states(path)
        assert found.within == ("Windowed",)
        assert found.description.plan == days.windowed.current.plan

    def test_states_of_several_are_told_apart_by_what_they_say(self, tmp_path):
        """Though one is not as long as a new one would be."""
        days = self.begun()
        days.pass_one([])
        days.pass_one([])
        others = [self.after(days), self.after(days)]
        states = days.windowed.state() * 2
        assert [one.state_bytes for one in others] != 2 * [len(states) // 2]
        resume_all(others, parted(states, others))
        assert b"".join(one.state() for one in others) == states

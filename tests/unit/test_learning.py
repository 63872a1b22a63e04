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
from panprivacy.statistics.containers import parted, resume_all
from panprivacy.statistics.explain.reading import read_states
from panprivacy.statistics.release import Answers
from panprivacy.statistics.specification import Specification, together
from panprivacy.tables.planning.learning import Evidence, LearnedBound, LearnedUsers
from tests import refusals

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
        return self.windowed.current.internals.windows.expects


def following(expected, answer, each=1):
    """What is expected after an answer about users that count for so much each."""
    return LearnedUsers(expected).after(Evidence((answer.low / each, answer.high / each), None))


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
        assert LearnedUsers(expected).after(Evidence((low, high), None)) == then

    @given(
        st.tuples(st.integers(1, 10**12), st.integers(1, 10**12)).map(sorted).map(tuple),
        st.tuples(st.floats(0, 1e15), st.floats(0, 1e15) | st.just(math.inf)).map(sorted),
    )
    def test_what_comes_of_an_interval_is_a_range_that_can_be_planned(self, expected, interval):
        low, high = LearnedUsers(expected).after(Evidence(tuple(interval), None))
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
        found = LearnedUsers(expected).within(LearnedUsers((100, 100_000)))
        assert found == then == found.within(LearnedUsers((100, 100_000)))

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("distinct,expected=learn", (1_000, 10**9)),
            ("distinct,expected=learn:1e3:10_000", (1_000, 10_000)),
            ("cropped-sum,tau=3,expected=learn:9:10", (9, 10)),
        ],
    )
    def test_a_text_says_that_windows_learn_and_how_they_begin(self, text, expected):
        assert Specification.from_text(text).sizes.learned == {"expected": expected}

    def test_so_does_a_table(self):
        table = {"name": "distinct", "expected": "learn"}
        assert Specification.from_table(table).sizes.learned == {"expected": (1_000, 10**9)}
        assert Specification.from_table({"name": "distinct"}).sizes.learned == {}

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

    def test_a_key_of_its_own_is_refused_for_each_window_has_another(self):
        with pytest.raises(pp.PlanError, match="leave out key="):
            learning(key=b"0" * 16)


class TestWindows:
    @pytest.mark.long
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
        budget, loss, spent = (
            first.plan.split.budget,
            first.guarantee.unseen_loss.epsilon,
            first.ledger.spent,
        )
        for users in (5_000, 80_000, 3, 0):
            days.pass_one(np.arange(users))
            now = days.windowed.current
            assert now.plan.split.budget == budget
            assert (now.guarantee.unseen_loss.epsilon, now.ledger.spent) == (loss, spent)
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
        assert (
            learns.guarantee.unseen_loss.epsilon
            == split.unseen(releases=1, intrusions=0)
            > fixed.guarantee.unseen_loss.epsilon
        )

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
        assert days.expects == (following((100, 100_000), answer),)

    def test_what_is_no_answer_is_kept_and_nothing_is_learned_of_it(self):
        days = Days(release=lambda current: current.contribute())
        assert isinstance(days.pass_one(np.arange(5_000)).release, bytes)
        assert days.expects == ((100, 100_000),)

    def test_what_cannot_be_planned_begins_as_the_first_one(self):
        days = Days(
            lambda: pp.CroppedSum(tau=1, bound=1, expected="learn:1:2", memory=3, epsilon=1)
        )
        days.pass_one([])
        assert days.windowed.current.plan.expected == (1, 2)

    @pytest.mark.long
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
            following((1, 1_000), users),
            following((1_000, 10**9), total, each=10),
        )
        assert days.expects[0] != days.expects[1]

    def test_groups_expect_as_few_as_the_least_and_as_many_as_the_largest(self):
        days = Days(
            lambda: pp.Grouped(lambda share: learning(epsilon=share), ["a", "b"], epsilon=10)
        )
        ids, groups = np.arange(6_000), np.array(["a", "b"]).repeat([5_000, 1_000])
        answers = days.pass_one(ids, groups).release
        each = [answers.where(group=group).only() for group in "ab"]
        around = [following((100, 100_000), one) for one in each]
        assert days.expects == (around[0].together(around[1]),)
        assert around[0] != around[1]
        days.pass_one(ids, groups)

    def test_only_what_is_new_can_be_planned_anew(self):
        statistic = learning()
        statistic.release()
        with refusals.begun():
            statistic.internals.windows.expect(statistic.internals.windows.expects)


ROUNDS = partial(pp.Incidence, bound="learn:3:1000", universe=3_000, epsilon=60)
"""Its noise hides nobody."""


class TestBound:
    @pytest.mark.parametrize(
        ("learned", "states", "then"),
        [
            ((1, 1_000), (7, 8), (1, 80)),
            ((1, 80), (8, 8), (1, 80)),
            ((1, 80), (9, 100), (1, 90)),
            ((1, 80), (60, 60), (1, 600)),
            ((1, 80), (81, 120), (1, 810)),
            ((1, 80), (120, 120), (1, 1_000)),
            ((1, 1_000), (0, 1_092), (1, 1_000)),
            ((1, 80), (0, 120), (1, 80)),
            ((20, 80), (1, 1), (20, 20)),
            ((20, 1_000), None, (20, 1_000)),
        ],
    )
    def test_the_next_bound_is_ten_times_what_nearly_all_reach(self, learned, states, then):
        """It grows only by what is clear, and never beyond that of the first window."""
        after = LearnedBound(learned).after(Evidence((5, 5), states))
        assert after.within(LearnedBound((learned[0], 1_000))) == then

    @pytest.mark.parametrize(
        ("given", "learned"),
        [
            ("learn", (1, 1_000)),
            ("learn:5:400", (5, 400)),
            ("learn:1e1:10_000", (10, 10_000)),
            (30, None),
        ],
    )
    @pytest.mark.parametrize("name", ["incidence", "cropped-sum", "threshold"])
    def test_a_bound_is_told_or_learned(self, name, given, learned):
        own = {"cropped-sum": {"tau": 4}, "threshold": {"threshold": 4}}.get(name, {})
        sizes = Specification.from_table({"name": name, "universe": 9, "bound": given, **own}).sizes
        assert sizes.learned == ({} if learned is None else {"bound": learned})
        assert isinstance(sizes.bound, int) is (learned is None)
        extra = "".join(f",{key}={value}" for key, value in own.items())
        assert Specification.from_text(f"{name},universe=9,bound={given}{extra}").sizes == sizes

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("bound=learn:5", "bound=learn may begin with a range: learn:LOW:HIGH"),
            ("bound=learn:0:5", "bound=learn may begin with a range: .*, from low to high"),
            ("bound=learn:9:5", "bound=learn may begin with a range: .*, from low to high"),
            ("bound=learn:few", "bound=learn may begin with a range: .*, from low to high"),
            ("bound=learn:5:10_001", "bound=learn must be at most 10,000"),
            ("bound=learnt", "not a whole number"),
            ("bound=learn:3:9,below=4", r"below= \(4\) exceeds the bound \(3\)"),
            ("bound=learn,law=flat 7 1/2", "law= is made for one bound"),
            ("bound=learn:5:400,exactly=6", "learn:20:1000 is never below 20"),
            ("bound=learn,at_least=1", "count incidence beside it, for the whole histogram"),
        ],
    )
    def test_what_cannot_be_learned_is_refused(self, text, message):
        with pytest.raises(pp.PlanError, match=message):
            together(
                [Specification.from_text(f"incidence,universe=1000,{text}")],
                epsilon=Fraction(60),
                releases=1,
            )

    @pytest.mark.parametrize("pair", [(5, 9), [5, 9], (9, 5)])
    def test_a_pair_of_states_is_no_bound_that_is_learned(self, pair):
        with pytest.raises(pp.PlanError, match="bound must be a whole number"):
            pp.Incidence(bound=pair, universe=1_000, epsilon=1)

    def test_who_comes_as_often_as_counters_have_values_and_once_more_came_once(self):
        """If all do so, nothing tells: the bound stays, which the page says."""
        days = Days(partial(ROUNDS, bound="learn:1:1000"))
        self.day_of(days, 1)
        values = days.windowed.current.plan.law.modulus
        for _ in range(2):
            released = days.pass_one(np.arange(1_000), np.full(1_000, values + 1)).release
            assert released.exactly(1).value == pytest.approx(1_000, abs=20)
            assert days.expects == ((1, 10),)

    @pytest.mark.parametrize("make", [
        partial(pp.CroppedSum, tau=4), partial(pp.ThresholdCount, threshold=4)
    ])  # fmt: skip
    def test_a_statistic_that_tells_no_states_cannot_learn_alone(self, make):
        alone = partial(make, bound="learn", universe=3_000, epsilon=60)
        with pytest.raises(pp.PlanError, match="which no answer here says"):
            pp.Windowed(alone, every=DAY)

    def test_it_follows_how_often_users_come(self):
        """Ten times as far as the day before is told right; further, and it is wide again."""
        days = Days(ROUNDS)
        assert (days.expects, days.windowed.current.plan.bound) == (((3, 1_000),), 1_000)
        for most, then in (2, 20), (17, 150), (150, 1_000), (900, 1_000), (5, 50), (0, 50):
            released = self.day_of(days, most)
            assert days.expects == ((3, then),)
            assert days.windowed.current.plan.bound == then
            if most:
                users = 1_000 // most  # in each state
                assert released.exactly(most).value == pytest.approx(users, abs=20)
                assert released.reach()[0] <= most
                assert 10 * released.reach()[1] >= 9 * most

    def test_what_is_far_beyond_the_bound_makes_it_wide_again(self):
        days = Days(ROUNDS)
        self.day_of(days, 2)
        self.day_of(days, 1_000)
        assert days.expects[0][1] > 100
        self.day_of(days, 1_000)
        assert days.expects == ((3, 1_000),)

    def day_of(self, days, most):
        """A day of a thousand users, as many in each state from 1 on."""
        states = np.arange(1_000) % max(most, 1) + (most > 0)
        for _ in range(int(states.max())):
            came = states > 0
            days.windowed.update(np.arange(1_000)[came])
            states = states - came
        return days.pass_one([]).release

    def test_noise_that_hides_how_far_states_reach_leaves_it_as_it_is(self):
        days = Days(partial(ROUNDS, epsilon=Fraction(1, 2), universe=1_000))
        for _ in range(5):
            self.day_of(days, 2)
            assert days.expects == ((3, 1_000),)

    def test_others_follow_what_is_released_beside_them(self):
        texts = (
            "cropped-sum,tau=30,bound=learn,universe=3000",
            "incidence,universe=3000,bound=learn:9:1000",
            "threshold,threshold=4,bound=learn,universe=3000",
        )
        specifications = [Specification.from_text(text) for text in texts]
        days = Days(lambda: together(specifications, epsilon=Fraction(180), releases=1))
        before = [one.plan for one in days.windowed.current.statistics.values()]
        self.day_of(days, 2)
        assert days.expects == ((1, 20), (9, 20), (1, 20))
        after = [one.plan for one in days.windowed.current.statistics.values()]
        assert [plan.bound for plan in after] == [30, 20, 20]  # no sum is cropped beyond the bound
        assert [plan.split.budget for plan in after] == [plan.split.budget for plan in before]

    def test_groups_reach_as_far_as_the_furthest(self):
        days = Days(lambda: pp.Grouped(lambda share: ROUNDS(epsilon=share), ["a", "b"], epsilon=60))
        ids = np.arange(2_000)
        groups = np.array(["a", "b"]).repeat(1_000)
        days.pass_one(ids, groups, np.array([2, 6]).repeat(1_000))
        assert days.expects == ((3, 60),)

    def test_a_smaller_bound_refuses_no_row_that_the_first_one_took(self):
        days = Days(ROUNDS)
        self.day_of(days, 2)
        days.windowed.update([1], [1_000])
        with pytest.raises(pp.InputError, match="within ±1,000"):
            days.windowed.update([1], [1_001])

    def test_below_0_counts_like_above(self):
        days = Days(partial(ROUNDS, signed=True))
        days.pass_one(np.arange(1_000), np.full(1_000, -6))
        assert days.expects == ((3, 60),)

    def test_a_release_of_named_counts_tells_no_states(self):
        days = Days(ROUNDS, release=lambda current: current.release(at_least=2))
        self.day_of(days, 2)
        assert days.expects == ((3, 1_000),)
        whole = ROUNDS()
        assert whole.internals.windows.shows_range()
        assert not whole.internals.windows.shows_range(at_least=(2,))
        with pytest.raises(pp.PlanError, match="whole histogram"):
            whole.release(at_least=(2,)).reach()

    def test_a_state_goes_on_with_its_bound_and_a_forged_one_is_refused(self):
        days = Days(ROUNDS)
        self.day_of(days, 2)
        days.windowed.update(np.arange(1_000))
        state = days.windowed.state()
        other = pp.Windowed(ROUNDS, every=DAY, clock=days.clock)
        other.resume(state)
        assert other.current.plan.bound == 20
        assert other.state() == state
        forged = bytearray(state)
        place = len(state) - len(days.windowed.current.state()) - 8
        forged[place : place + 8] = (1 << 60).to_bytes(8, "little")
        fresh = pp.Windowed(ROUNDS, every=DAY, clock=days.clock)
        with pytest.raises(pp.InputError, match="with another bound"):
            fresh.resume(bytes(forged))

    @pytest.mark.parametrize("bound", ["learn:3:1000", "learn:30:1000", "learn:1:15"])
    def test_a_state_of_another_range_is_refused_as_what_may_be_asked_is_another(self, bound):
        """Else the state would keep its lowest bound, for good, and each release would fail."""
        before = Days(partial(ROUNDS, bound="learn:1:1000"))
        self.day_of(before, 2)
        days = Days(partial(ROUNDS, bound=bound))
        with pytest.raises(pp.InputError, match="with another bound"):
            days.windowed.resume(before.windowed.state())

    def test_a_state_goes_on_where_only_the_first_bound_is_another(self):
        before, days = Days(ROUNDS), Days(partial(ROUNDS, bound="learn:3:500"))
        self.day_of(before, 2)
        days.windowed.resume(before.windowed.state())
        assert days.expects == ((3, 20),)

    def test_it_can_be_explained(self, tmp_path):
        days = Days(ROUNDS)
        self.day_of(days, 2)
        path = tmp_path / "state"
        path.write_bytes(days.windowed.state())
        (found,) = read_states(path)
        assert found.description.plan == days.windowed.current.plan


class TestResume:
    def begun(self):
        """A day that was planned around the one before."""
        days = Days()
        days.pass_one(np.arange(5_000))
        days.windowed.update(np.arange(4_000))
        return days

    def after(self, days):
        other = pp.Windowed(learning, every=DAY, clock=days.clock)
        assert other.current.internals.windows.expects != days.expects
        return other

    def test_a_window_goes_on_as_it_was_planned(self):
        days = self.begun()
        state = days.windowed.state()
        assert len(state) == days.windowed.state_bytes
        other = self.after(days)
        other.check_state(state)
        other.resume(state)
        assert other.current.internals.windows.expects == days.expects
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
            with refusals.begun():
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

"""Windows end by the clock, release once, and are wiped."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.privacy.guarantee import unseen_loss
from panprivacy.statistics import grid
from tests import refusals

MONDAY = datetime(2026, 11, 16, tzinfo=UTC).timestamp()
DAY = 86_400
SMALL = {"epsilon": 8, "expected": 5_000, "bound": 30}
"""Counters that 80,000 users fill: so many frequencies are never all far from 0."""
YEAR = Fraction("0.95"), Fraction("0.05")


class Clock:
    """What time it is."""

    def __init__(self, now=MONDAY + 9 * 3_600):
        self.now = now

    def __call__(self):
        return self.now


def density(**arguments):
    return pp.Density(**{"universe": 1_000, "epsilon": 1, **arguments})


def windowed(clock, every=DAY, factory=density, **arguments):
    return pp.Windowed(factory, every=every, clock=clock, **arguments)


def starts(windows):
    return [window.start.isoformat() for window in windows]


class TestClock:
    def test_windows_are_cut_on_the_grid(self):
        clock = Clock()
        daily = windowed(clock, timedelta(days=1))
        assert daily.ends == datetime(2026, 11, 17, tzinfo=UTC)
        clock.now = MONDAY + DAY - 0.001
        daily.advance()
        assert len(daily.releases) == 0
        clock.now = MONDAY + DAY
        daily.advance()
        (window,) = daily.releases
        assert window.start == datetime(2026, 11, 16, 9, tzinfo=UTC)
        assert window.end == datetime(2026, 11, 17, tzinfo=UTC)
        assert daily.ends == datetime(2026, 11, 18, tzinfo=UTC)
        assert not window.complete
        assert list(daily.take()) == [window]
        assert len(daily.releases) == 0

    def test_weeks_begin_on_mondays_and_hours_on_the_hour(self):
        clock = Clock(MONDAY + 2 * DAY + 1_234)
        assert windowed(clock, 7 * DAY).ends == datetime(2026, 11, 23, tzinfo=UTC)
        assert windowed(clock, 3_600).ends == datetime(2026, 11, 18, 1, tzinfo=UTC)

    def test_idle_windows_release_too(self):
        clock = Clock()
        daily = windowed(clock)
        clock.now += 3 * DAY
        daily.update([1, 2, 3])
        assert starts(daily.releases) == [
            "2026-11-16T09:00:00+00:00",
            "2026-11-17T00:00:00+00:00",
            "2026-11-18T00:00:00+00:00",
        ]
        assert all(len(window.release.counts) == 1 for window in daily.releases)

    def test_an_update_counts_in_the_window_of_its_moment(self):
        clock = Clock()
        daily = windowed(clock, factory=lambda: density(epsilon=30))
        daily.update(np.arange(1_000))
        clock.now += DAY
        daily.update(np.arange(500))
        clock.now += DAY
        daily.update(np.arange(250))
        assert [window.complete for window in daily.releases] == [False, True]
        shares = [window.release.value for window in daily.releases]
        assert shares == pytest.approx([1, 0.5], abs=1e-3)
        daily.close()
        assert daily.releases[-1].release.value == pytest.approx(0.25, abs=1e-3)

    def test_a_clock_that_is_set_back_a_little_prolongs_the_window(self):
        clock = Clock()
        daily = windowed(clock)
        clock.now -= DAY / 2
        daily.advance()
        clock.now = MONDAY + DAY
        daily.advance()
        assert len(daily.releases) == 1

    def test_a_clock_that_was_a_year_ahead_does_not_silence_a_year(self):
        clock = Clock(MONDAY + 365 * DAY)
        daily = windowed(clock)
        clock.now = MONDAY + 1
        daily.update([1])
        assert daily.ends == datetime(2026, 11, 17, tzinfo=UTC)
        assert len(daily.releases) == 1

    def test_a_window_closed_after_the_clock_was_set_back_does_not_end_before_it_began(self):
        clock = Clock()
        daily = windowed(clock)
        clock.now -= DAY / 2
        daily.close()
        (window,) = daily.releases
        assert window.end >= window.start

    def test_a_clock_that_is_set_forward_by_years_leaves_out_what_is_between(self):
        clock = Clock(0.0)
        daily = windowed(clock, every=1)
        clock.now = MONDAY + 0.5
        daily.advance()
        assert len(daily.releases) == 1
        assert daily.ends.timestamp() == MONDAY + 1

    @pytest.mark.long
    @given(
        st.integers(1, 10**6),
        st.lists(st.floats(0, 3) | st.floats(1_001, 10_000), max_size=4),
        st.sampled_from(["UTC", "Europe/Paris", "Australia/Lord_Howe", "Africa/Casablanca"]),
    )
    def test_windows_follow_one_another(self, every, steps, zone):
        """Steps of some windows, or of more than are made up for."""
        clock = Clock()
        windows = windowed(clock, every, lambda: density(universe=1), zone=zone)
        for step in steps:
            clock.now += step * every
            windows.advance()
            assert windows.ends.timestamp() > clock.now
        found = windows.releases
        assert all(window.start <= window.end for window in found)
        pairs = itertools.pairwise(found)
        assert all(one.end <= other.start for one, other in pairs)

    def test_a_window_that_closes_early_is_not_complete(self):
        clock = Clock(MONDAY)
        daily = windowed(clock)
        clock.now += DAY - 1
        daily.close()
        clock.now += 1
        assert [window.complete for window in daily.release()] == [False, False]

    def test_the_last_window_closes_early(self):
        clock = Clock()
        daily = windowed(clock)
        clock.now += 60
        daily.close()
        assert daily.ends == datetime(2026, 11, 17, tzinfo=UTC)
        clock.now += 60
        daily.close()
        one, other = daily.releases
        assert one.end - one.start == other.end - other.start == timedelta(minutes=1)
        assert other.start == one.end


def at(text):
    return datetime.fromisoformat(text).timestamp()


class TestZone:
    SUMMER = "2026-03-28T00:00:00+01:00", "2026-03-29T00:00:00+01:00", [24, 23, 24]
    WINTER = "2026-10-24T00:00:00+02:00", "2026-10-25T00:00:00+02:00", [24, 25, 24]

    @staticmethod
    def paris(clock, every=DAY):
        return windowed(clock, every, lambda: density(epsilon=30), zone="Europe/Paris")

    @pytest.mark.parametrize(("first", "second", "lengths"), [SUMMER, WINTER])
    def test_days_of_23_and_25_hours_are_counted_whole(self, first, second, lengths):
        clock = Clock(at(first))
        daily = self.paris(clock)
        for share, hours in zip([1_000, 500, 250], lengths, strict=True):
            daily.update(np.arange(share))
            clock.now += hours * 3_600 - 0.001
            assert not daily.due
            clock.now += 0.001
        windows = daily.release()
        assert starts(windows)[:2] == [
            datetime.fromisoformat(one).astimezone(UTC).isoformat() for one in (first, second)
        ]
        spans = [(window.end - window.start) / timedelta(hours=1) for window in windows]
        assert spans == lengths
        assert all(window.complete for window in windows)
        shares = [window.release.value for window in windows]
        assert shares == pytest.approx([1, 0.5, 0.25], abs=1e-3)
        assert windows[0].end == windows[1].start

    @pytest.mark.parametrize(("_", "day", "lengths"), [SUMMER, WINTER])
    @pytest.mark.parametrize(("left", "back"), [(1, 2), (1, 9), (9, 10), (1, 30)])
    def test_a_window_goes_on_before_and_after_the_clock_is_set(self, _, day, lengths, left, back):
        """It is set in the third hour of the day."""
        clock = Clock(at(day))
        before = self.paris(clock)
        clock.now += left * 3_600
        before.update(np.arange(400))
        state = before.state()
        clock.now = at(day) + back * 3_600
        after = self.paris(clock)
        after.resume(state)
        assert (after.began, after.ends) == (before.began, before.ends)
        assert (after.ends - after.began) / timedelta(hours=1) == lengths[1]
        clock.now = max(clock.now, after.ends.timestamp())
        (window,) = after.release()
        assert not window.complete
        assert window.release.value == pytest.approx(0.4, abs=1e-3)
        clock.now = after.ends.timestamp()
        (window,) = after.release()
        assert window.complete

    @pytest.mark.parametrize("zones", [("UTC", "Europe/Paris"), ("Europe/Paris", "Europe/Rome")])
    @pytest.mark.parametrize("turn", [1, -1])
    def test_a_state_of_another_zone_is_refused(self, zones, turn):
        this, other = (windowed(Clock(), zone=zone) for zone in zones[::turn])
        with pytest.raises(pp.InputError) as refused:
            this.resume(other.state())
        assert str(refused.value) == "the state is of Windowed, with another zone"

    def test_a_change_that_a_government_moves_cuts_the_window_that_was_under_way(self, monkeypatch):
        """A newer database has no summer time: the midnight at which the state began was none."""
        clock = Clock(at("2026-04-01T00:00:00+02:00"))
        before = self.paris(clock)
        state = before.state()
        clock.now += 1_800
        moved = grid.time_zone("Africa/Algiers")  # which has no summer time
        monkeypatch.setattr(grid, "time_zone", lambda name: moved)
        after = self.paris(clock)
        after.resume(state)
        assert after.began == before.began
        assert after.ends.timestamp() == at("2026-04-01T00:00:00+01:00")
        clock.now = at("2026-04-03T00:00:00+01:00")
        whole = [window.complete for window in after.release()]
        assert whole == [False, True, True]

    def test_a_clock_that_is_set_forward_by_years_goes_on_with_a_whole_day(self):
        clock = Clock(at("2000-01-01T12:00:00+01:00"))
        daily = self.paris(clock)
        clock.now = at("2026-07-01T12:00:00+02:00")
        assert len(daily.release()) == 1
        assert daily.began.timestamp() == at("2026-07-01T00:00:00+02:00")
        assert daily.ends.timestamp() == at("2026-07-02T00:00:00+02:00")

    def test_a_zone_that_there_is_not(self):
        with pytest.raises(pp.PlanError, match=r"zone must be .*; did you mean Europe/Paris\?"):
            windowed(Clock(), zone="europe/paris")


class TestState:
    def test_the_old_table_is_wiped(self):
        clock = Clock()
        daily = windowed(clock)
        old = daily.current
        table = old.internals.memory.now.table
        assert table.any()
        clock.now += DAY
        daily.advance()
        assert not table.any()
        assert daily.current is not old
        for use in (old.state, old.release, lambda: old.update([1]), old.announce_intrusion):
            with refusals.wiped():
                use()
        old.forget()

    def test_each_window_has_its_own_ledger(self):
        clock = Clock()
        daily = windowed(clock)
        clock.now += DAY
        daily.advance()
        assert daily.current.ledger.spent == daily.current.plan.split.budget.state

    def test_a_shared_ledger_is_refused(self):
        ledger = pp.Ledger(5)
        with pytest.raises(pp.PlanError, match="a ledger of its own"):
            windowed(Clock(), factory=lambda: density(ledger=ledger))

    @pytest.mark.parametrize("before", [0, 1])
    def test_a_factory_whose_statistics_have_told_something_is_refused(self, before):
        made = [density(releases=2) for _ in range(2)]
        made[before].release()
        each = iter(made)
        with pytest.raises(pp.PlanError, match="make a new one"):
            windowed(Clock(), factory=lambda: next(each))

    def test_a_factory_that_gives_one_statistic_again_and_again_is_refused(self):
        same = density()
        with pytest.raises(pp.PlanError, match="a ledger of its own"):
            windowed(Clock(), factory=lambda: same)

    def test_a_factory_that_changes_is_refused_and_ends_nothing(self):
        clock, epsilons = Clock(), iter([1, 1, 2])
        daily = windowed(clock, factory=lambda: density(epsilon=next(epsilons)))
        daily.update([3])
        before = daily.current.state()
        clock.now += DAY
        with pytest.raises(pp.PlanError, match="the same statistic for each window"):
            daily.advance()
        assert daily.current.state() == before

    def test_a_lost_release_ends_its_window_and_no_other(self):
        clock = Clock()
        daily = windowed(clock, factory=lambda: pp.Incidence(**SMALL))
        daily.update(np.arange(80_000))
        table = daily.current.internals.memory.now.table
        clock.now += DAY
        daily.update([5])
        clock.now += DAY
        daily.advance()
        lost, other = (set(window.release.answers().values()) for window in daily.releases)
        assert lost == {None}
        assert None not in other
        assert not table.any()

    def test_a_release_that_raises_wipes_its_state_too(self):
        clock = Clock()
        daily = windowed(clock, release=lambda statistic: statistic.release(confidence=7))
        table = daily.current.internals.memory.now.table
        clock.now += DAY
        with refusals.confidence():
            daily.advance()
        assert not table.any()
        daily.update([1])

    def test_what_is_asked_at_the_end(self):
        clock = Clock()
        daily = windowed(clock, release=lambda statistic: statistic.release(confidence=0.5))
        daily.close()
        assert daily.releases[0].release.confidence == 0.5

    def test_an_update_that_is_refused_counts_nothing(self):
        daily = windowed(Clock())
        before = daily.current.state()
        with pytest.raises(pp.InputError):
            daily.update([5_000])
        assert daily.current.state() == before

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
    def test_it_cannot_be_copied(self, copied):
        with refusals.copied():
            copied(windowed(Clock()))


def test_a_window_is_whole_if_one_process_has_counted_it_from_its_start():
    clock = Clock()
    daily = windowed(clock)
    assert not daily.is_complete  # it began at nine
    clock.now = MONDAY + DAY
    daily.advance()
    assert daily.is_complete
    again = windowed(clock)
    assert again.is_complete
    again.resume(daily.state())
    assert not again.is_complete
    clock.now += DAY
    again.advance()
    assert again.is_complete


def test_a_statistic_in_place_of_what_makes_it_is_refused():
    with pytest.raises(pp.PlanError, match=r"give what makes the statistic, as lambda: "):
        windowed(Clock(), factory=density())
    with pytest.raises(pp.PlanError, match=r"^the factory of a Windowed must make a statistic"):
        windowed(Clock(), factory=lambda: 7)


def test_the_length_may_come_second():
    daily = pp.Windowed(density, timedelta(days=1), clock=Clock())
    assert daily.ends.timestamp() == MONDAY + DAY


@pytest.mark.parametrize(
    "every",
    [0, 0.5, 1.1, -1, True, math.nan, "1d", None, timedelta(0), timedelta(seconds=1.5)],
)
def test_lengths_that_are_refused(every):
    with pytest.raises(pp.PlanError, match="every must be"):
        windowed(Clock(), every)


@pytest.mark.parametrize("every", [1, 400 * DAY, timedelta(seconds=1), timedelta(days=3_660)])
def test_the_shortest_and_the_longest_windows_are_taken(every):
    grid = windowed(Clock(), every).grid
    assert timedelta(seconds=grid.every) == timedelta(seconds=1) * (
        every if isinstance(every, int) else every // timedelta(seconds=1)
    )


@pytest.mark.parametrize("every", [timedelta(days=3_660, seconds=1), 3_660 * DAY + 1, 10**12])
def test_no_window_is_longer_than_ten_years(every):
    with pytest.raises(pp.PlanError) as refused:
        windowed(Clock(), every)
    assert str(refused.value) == (
        "every must be a timedelta or a number, of whole seconds from 1 to 3,660 days"
    )


@pytest.mark.parametrize(
    ("every", "told"),
    [
        (400 * DAY + 1, "34,560,001 seconds, 400 days"),
        (500 * DAY - 1, "43,199,999 seconds, 499 days"),
        (500 * DAY, "43,200,000 seconds, 500 days"),
        (3_660 * DAY, "316,224,000 seconds, 3,660 days"),
    ],
)
def test_a_long_number_is_told_in_days(every, told):
    with pytest.raises(pp.PlanError) as refused:
        windowed(Clock(), every)
    assert str(refused.value) == (
        f"every is {told}: if that is meant, say timedelta(seconds={every}); if milliseconds are, "
        "divide by 1,000"
    )


LAST = int(datetime(9_999, 12, 28, tzinfo=UTC).timestamp())


def test_a_clock_shows_no_moment_before_1970_or_ten_years_before_the_end():
    for moment in (0, LAST - 3_660 * DAY):
        windowed(Clock(moment))
    for moment in (-1, LAST - 3_660 * DAY + 1):
        with pytest.raises(pp.PlanError, match=r"seconds since 1970, as time\.time does"):
            windowed(Clock(moment))


@pytest.mark.parametrize(
    ("start", "begins"),
    [(0.0, True), (LAST - DAY, True), (-1.0, False), (LAST - DAY + 1, False)],
)
def test_a_state_begins_between_1970_and_the_last_window(start, begins):
    daily = windowed(Clock())
    state = bytearray(daily.state())
    front = len(state) - len(daily.current.state()) - 8
    state[front : front + 8] = np.float64(start).tobytes()
    if begins:
        assert daily.began_in(bytes(state)).timestamp() == start
    else:
        with pytest.raises(pp.InputError, match="no window begins then"):
            daily.began_in(bytes(state))


@pytest.mark.parametrize("ask", ["loss", "delta"])
def test_losses_are_told_of_up_to_a_thousand_million_windows(ask):
    told = getattr(windowed(Clock()), ask)
    told(1)
    told(10**9)
    for windows in (0, 10**9 + 1):
        with pytest.raises(pp.PlanError, match=r"^windows must"):
            told(windows)


class TestLoss:
    def test_a_year_of_which_one_day_is_seen(self):
        budget = pp.Budget(*YEAR)
        daily = windowed(Clock(), factory=lambda: density(budget=budget))
        assert float(daily.loss(365)) == pytest.approx(9.05, abs=0.005)
        assert daily.loss(365, seen=365) == 365
        assert (
            daily.loss(1, seen=0) == daily.current.guarantee.unseen_loss.epsilon < Fraction("0.05")
        )
        assert daily.loss(1) == 1

    def test_what_is_seen_costs_epsilon_and_the_rest_what_an_unseen_window_does(self):
        daily = windowed(Clock(), factory=lambda: density(epsilon=Fraction(2, 3)))
        assert daily.loss(7, seen=3) == 2 + 4 * daily.current.guarantee.unseen_loss.epsilon
        assert daily.loss(7, seen=7) == Fraction(14, 3)

    def test_each_window_has_its_delta_whether_it_is_seen_or_not(self):
        def moving(delta="1e-6"):
            make = partial(density, universe=1_000)
            return pp.ChangeTriggered(make, threshold="0.5", updates=2, epsilon=1, delta=delta)

        assert windowed(Clock(), factory=moving).delta(7) == Fraction(7, 10**6)
        assert windowed(Clock()).delta(7) == 0
        with pytest.raises(pp.PlanError, match="windows must"):
            windowed(Clock()).delta(0)

    @pytest.mark.parametrize(("windows", "seen"), [(0, 0), (2, 3), (5, -1), (1.5, 1)])
    def test_numbers_that_are_refused(self, windows, seen):
        with pytest.raises(pp.PlanError, match=r"(windows|seen) must"):
            windowed(Clock()).loss(windows, seen=seen)

    @given(
        st.fractions(Fraction(1, 10**6), 30, max_denominator=10**6),
        st.fractions(Fraction(1, 10**6), 30, max_denominator=10**6),
    )
    def test_the_bound_lies_just_above_the_formula(self, state, release):
        bound = unseen_loss(state, release)
        assert 0 < bound <= min(state, release)
        a, b = float(state), float(release)
        formula = math.log1p(math.expm1(a) * math.expm1(b) / (math.exp(a) + math.exp(b)))
        assert float(bound) == pytest.approx(formula, rel=1e-9)

    def test_epsilons_beyond_the_exponential(self):
        assert unseen_loss(Fraction(10**6), Fraction(1, 2)) == Fraction(1, 2)
        assert unseen_loss(Fraction(1, 2), Fraction(10**6), 3) == 2 * 10**6 + Fraction(1, 2)

    def test_a_day_of_releases_every_hour(self):
        """The numbers of docs/guarantees/windows.md."""
        hourly = Fraction("0.05") / 24
        assert float(unseen_loss(Fraction("0.95"), hourly, 24)) == pytest.approx(0.0228, abs=5e-5)
        budget = pp.Budget("0.95", hourly)
        bits = density(epsilon=1, releases=24, budget=budget).guarantee.unseen_loss.epsilon
        assert float(bits) == pytest.approx(0.0224, abs=5e-5)

    def test_more_releases_than_are_followed_cost_their_sum(self):
        release = Fraction(1, 10**4)
        followed = unseen_loss(Fraction(1), release, 2_000)
        assert unseen_loss(Fraction(1), release, 2_100) == followed + 100 * release

    def test_a_year_of_a_cropped_sum(self):
        sizes = {"tau": 10, "bound": 100, "universe": 1_000}
        make = lambda: pp.CroppedSum(epsilon=1, budget=pp.Budget(*YEAR), **sizes)  # noqa: E731
        year = pp.Windowed(make, every=86_400).loss(365)
        assert float(year) == pytest.approx(5.59, abs=0.005)


def test_a_year_of_days_with_the_default_split_loses_what_the_page_says():
    daily = pp.Windowed(lambda: pp.DistinctCount(epsilon=1), every=86_400)
    assert round(float(daily.loss(365, seen=1)), 1) == 13.5


class TestResume:
    @staticmethod
    def begun(clock):
        daily = windowed(clock)
        daily.update(np.arange(400))
        return daily

    def test_the_window_goes_on(self):
        clock = Clock()
        before = self.begun(clock)
        state = before.state()
        assert len(state) == before.state_bytes
        clock.now += 3_600
        after = windowed(clock)
        after.resume(state)
        assert after.state() == state
        assert after.began == datetime(2026, 11, 16, 9, tzinfo=UTC)
        assert after.ends == datetime(2026, 11, 17, tzinfo=UTC)

    def test_a_window_that_has_passed_ends_at_once(self):
        clock = Clock(MONDAY)
        state = self.begun(clock).state()
        clock.now += DAY + 3_600
        after = windowed(clock)
        after.resume(state)
        after.advance()
        (window,) = after.releases
        assert (window.start.timestamp(), window.end.timestamp()) == (MONDAY, MONDAY + DAY)
        assert not window.complete
        clock.now += DAY
        after.advance()
        assert after.releases[-1].complete

    def test_a_release_that_left_is_paid_for(self):
        clock = Clock()
        state = self.begun(clock).state()
        after = windowed(clock)
        after.resume(state, released=1)
        with pytest.raises(pp.BudgetError):
            after.current.release()

    @pytest.mark.parametrize("start", [-1.0, math.nan, math.inf, 1e300])
    def test_a_moment_that_no_window_begins_at_is_refused(self, start):
        clock = Clock()
        daily = windowed(clock)
        front = len(daily.state()) - len(daily.current.state()) - 8
        state = bytearray(daily.state())
        state[front : front + 8] = np.float64(start).tobytes()
        before = daily.state()
        with pytest.raises(pp.InputError, match="no window begins then"):
            daily.resume(bytes(state))
        assert daily.state() == before

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            (lambda clock: windowed(clock, 3_600), "another every"),
            (lambda clock: windowed(clock, factory=lambda: density(universe=9)), "with another"),
            (lambda clock: windowed(clock, factory=lambda: density(epsilon=2)), "another"),
            (lambda clock: density(), "is of statistic Windowed, and this is density"),
        ],
    )
    def test_what_is_of_something_else_is_refused(self, other, message):
        clock = Clock()
        state = self.begun(clock).state()
        with pytest.raises(pp.InputError, match=message):
            other(clock).resume(state)


class TestMilliseconds:
    @pytest.mark.parametrize("every", [86_400_000, 401 * DAY])
    def test_a_number_that_looks_like_milliseconds_is_refused(self, every):
        with pytest.raises(pp.PlanError, match=r"if milliseconds are, divide|whole seconds from 1"):
            windowed(Clock(), every)

    def test_a_clock_of_milliseconds_is_refused(self):
        with pytest.raises(pp.PlanError, match="seconds since 1970"):
            pp.Windowed(density, every=DAY, clock=lambda: 1e15)

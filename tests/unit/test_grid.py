"""The grid of windows, on the clocks of all zones."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import windows_in_a_year
from panprivacy.statistics.grid import Grid, time_zone

HOUR, DAY, WEEK = 3_600, 86_400, 604_800
ZONES = sorted(available_timezones() - {"localtime"})
MONDAY = datetime(1970, 1, 5, tzinfo=UTC).timestamp()
HAVANA_ENDS_SUMMER = datetime(2025, 11, 2, 5, tzinfo=UTC)
"""At one o'clock, so that midnight comes twice."""


def local(second, zone):
    return datetime.fromtimestamp(second, ZoneInfo(zone))


def cuts(zone, every, first, last):
    """Where windows begin from one day on, up to another, as clocks of the zone show it."""
    grid, found = Grid(every, zone), []
    end = datetime.fromisoformat(last).replace(tzinfo=ZoneInfo(zone)).timestamp()
    at = datetime.fromisoformat(first).replace(tzinfo=ZoneInfo(zone)).timestamp()
    while at < end:
        found.append(at)
        start, at = grid.around(at)
        assert start == found[-1]
    return [*found, at]


def hours(zone, every, first, last):
    """The lengths of those windows."""
    return [(b - a) / HOUR for a, b in itertools.pairwise(cuts(zone, every, first, last))]


@pytest.mark.long
@settings(max_examples=500)
@given(
    st.sampled_from(ZONES),
    st.integers(0, int(datetime(2150, 1, 1, tzinfo=UTC).timestamp())),
    st.sampled_from([60, 600, 1_800, HOUR, 6 * HOUR, 12 * HOUR, DAY, WEEK])
    | st.integers(1, 20 * DAY),
)
@example("Australia/Lord_Howe", int(datetime(2026, 4, 4, 15, tzinfo=UTC).timestamp()), HOUR)
@example("Australia/Lord_Howe", int(datetime(2026, 10, 3, 15, 30, tzinfo=UTC).timestamp()), HOUR)
@example("Pacific/Apia", int(datetime(2011, 12, 30, 10, tzinfo=UTC).timestamp()), 7 * HOUR)
@example("America/Havana", int(HAVANA_ENDS_SUMMER.timestamp()), 2 * HOUR)
@example("America/St_Johns", int(datetime(2010, 11, 7, 2, 31, tzinfo=UTC).timestamp()), DAY)
def test_windows_follow_one_another_without_a_gap(zone, moment, every):
    grid = Grid(every, zone)
    start, end = grid.around(moment)
    assert start <= moment < end
    assert grid.around(start) == grid.around(moment + 0.5) == grid.around(end - 1) == (start, end)
    assert grid.around(end)[0] == end
    assert grid.around(start - 1)[1] == start
    shift = 26 * HOUR  # at most, of a zone that moves to the other side of the date line
    assert end - start <= (every if every <= HOUR else every + shift)


@pytest.mark.long
@given(
    st.sampled_from(ZONES),
    st.dates(date(1973, 1, 1), date(2150, 1, 1)),  # before, a zone was not whole minutes from UTC
    st.sampled_from([2 * HOUR, 6 * HOUR, 7 * HOUR, 12 * HOUR, DAY]),
)
@example("Europe/Paris", date(2026, 3, 28), DAY)
@example("Europe/Paris", date(2026, 10, 24), 2 * HOUR)
@example("Africa/Casablanca", date(2024, 3, 9), DAY)
@example("America/Havana", date(2025, 3, 8), DAY)
@example("America/Havana", date(2025, 11, 1), 12 * HOUR)
@example("America/Sao_Paulo", date(2018, 2, 16), DAY)
@example("America/Sao_Paulo", date(2018, 11, 2), DAY)
@example("America/St_Johns", date(2010, 11, 5), DAY)
@example("Pacific/Apia", date(2011, 12, 28), DAY)
@example("Pacific/Apia", date(2011, 12, 28), 7 * HOUR)
def test_long_windows_begin_when_the_clock_first_shows_it(zone, first, every):
    """Found without the grid: by a look at the clock each minute of four days."""
    noon = int(datetime(first.year, first.month, first.day, 12, tzinfo=UTC).timestamp())
    shown, reached = [], range(noon, noon + 4 * DAY, 60)
    for minute in reached:
        on_the_wall = local(minute, zone).replace(tzinfo=UTC).timestamp()
        shown.append((on_the_wall - MONDAY) // every)
    highest = [*itertools.accumulate(shown, max)]
    expected = [
        m for m, (a, b) in zip(reached[1:], itertools.pairwise(highest), strict=True) if a < b
    ]
    grid, at, found = Grid(every, zone), noon, []
    while (at := grid.around(at)[1]) < reached[-1]:
        found.append(at)
    assert found == [one for one in expected if one < reached[-1]]


@pytest.mark.parametrize(
    ("zone", "first", "last", "lengths"),
    [
        ("UTC", "2026-03-28", "2026-03-31", [24, 24, 24]),
        ("Europe/Paris", "2026-03-28", "2026-03-31", [24, 23, 24]),
        ("Europe/Paris", "2026-10-24", "2026-10-27", [24, 25, 24]),
        ("Australia/Lord_Howe", "2025-04-05", "2025-04-08", [24, 24.5, 24]),
        ("Australia/Lord_Howe", "2025-10-04", "2025-10-07", [24, 23.5, 24]),
        ("Africa/Casablanca", "2024-03-09", "2024-03-12", [24, 25, 24]),
        ("America/Havana", "2025-03-08", "2025-03-11", [24, 23, 24]),  # midnight is skipped
        ("America/Havana", "2025-11-01", "2025-11-04", [24, 25, 24]),  # it comes twice
        ("America/St_Johns", "2010-11-06", "2010-11-09", [24, 25, 24]),  # the day before goes on
        ("Pacific/Apia", "2011-12-28", "2012-01-01", [24, 24, 24]),  # there was no 30th
        ("Asia/Kolkata", "2026-03-28", "2026-03-30", [24, 24]),
    ],
)
def test_days(zone, first, last, lengths):
    assert hours(zone, DAY, first, last) == lengths


def test_the_day_that_a_zone_left_out_is_no_window():
    found = cuts("Pacific/Apia", DAY, "2011-12-28", "2012-01-01")
    assert [local(one, "Pacific/Apia").day for one in found] == [28, 29, 31, 1]


def test_a_day_without_midnight_begins_with_its_first_moment():
    start, _ = Grid(DAY, "America/Havana").around(datetime(2025, 3, 9, 12, tzinfo=UTC).timestamp())
    assert local(start, "America/Havana").isoformat() == "2025-03-09T01:00:00-04:00"


def test_of_two_midnights_the_first_one_counts():
    start, _ = Grid(DAY, "America/Havana").around(HAVANA_ENDS_SUMMER.timestamp())
    assert local(start, "America/Havana").isoformat() == "2025-11-02T00:00:00-04:00"


def test_weeks_begin_on_mondays():
    found = cuts("Europe/Paris", WEEK, "2026-03-16", "2026-04-06")
    assert {local(one, "Europe/Paris").strftime("%a %H:%M") for one in found} == {"Mon 00:00"}
    assert hours("Europe/Paris", WEEK, "2026-03-16", "2026-04-06") == [168, 167, 168]


@pytest.mark.parametrize(
    ("zone", "first", "last", "count"),
    [
        ("Europe/Paris", "2026-03-29", "2026-03-30", 23),
        ("Europe/Paris", "2026-10-25", "2026-10-26", 25),
        ("Asia/Kolkata", "2026-03-29", "2026-03-30", 24),
        ("Asia/Kathmandu", "2026-03-29", "2026-03-30", 24),
        ("America/St_Johns", "2010-11-07", "2010-11-08", 25),  # set a minute after midnight
    ],
)
def test_hours_are_hours_and_begin_as_the_clock_strikes(zone, first, last, count):
    assert hours(zone, HOUR, first, last) == [1] * count
    assert {local(one, zone).minute for one in cuts(zone, HOUR, first, last)} == {0}
    assert hours(zone, 60, first, last) == [1 / 60] * 60 * count


def test_an_hour_within_which_the_clock_is_set_by_half_of_one_is_cut_short():
    zone = "Australia/Lord_Howe"
    assert hours(zone, HOUR, "2025-04-06", "2025-04-07").count(1) == 24
    assert hours(zone, HOUR, "2025-04-06", "2025-04-07")[:4] == [1, 1, 0.5, 1]
    assert hours(zone, HOUR, "2025-10-05", "2025-10-06")[:4] == [1, 1, 0.5, 1]


def test_a_short_window_ends_where_the_clock_is_set_by_no_multiple_of_it():
    zone, minutes = "Europe/Paris", 45 * 60
    assert hours(zone, minutes, "2026-03-29", "2026-03-30")[:4] == [0.75, 0.75, 0.5, 0.75]
    autumn = hours(zone, minutes, "2026-10-25", "2026-10-26")[:6]
    assert autumn == [0.75, 0.75, 0.75, 0.75, 0.25, 0.75]


@pytest.mark.parametrize(
    ("zone", "every", "first", "more"),
    [
        ("UTC", DAY, "2025-03-30", 0),
        ("UTC", WEEK, "2025-03-31", 0),
        ("Europe/Paris", DAY, "2025-03-30", 1),
        ("Europe/Paris", HOUR, "2025-03-30", 0),
        ("Australia/Lord_Howe", HOUR, "2025-04-05T03:00", 2),
    ],
)
def test_a_year_has_the_windows_that_are_told_and_two_more_at_most(zone, every, first, more):
    found = cuts(zone, every, first, "2026-04-10")
    began = sum(one < found[0] + 365 * DAY for one in found)
    assert began == windows_in_a_year(every) + more


def test_parts_of_a_day_follow_the_clock():
    for first, last in [("2026-03-29", "2026-03-30"), ("2026-10-25", "2026-10-26")]:
        found = cuts("Europe/Paris", 6 * HOUR, first, last)
        assert [local(one, "Europe/Paris").hour for one in found] == [0, 6, 12, 18, 0]
    assert hours("Europe/Paris", 6 * HOUR, "2026-03-29", "2026-03-30") == [5, 6, 6, 6]
    assert hours("Europe/Paris", 2 * HOUR, "2026-10-25", "2026-10-26")[:3] == [2, 3, 2]


@pytest.mark.parametrize(
    ("now", "passed"),
    [
        (1_799.0, (5_400.0, 1_799.0)),  # set back by more than a window: it ended where it began
        (1_800.0, None),
        (7_199.9, None),
        (7_200.0, (7_200, 7_200)),
        (7_200.0 + 1_000 * 3_600, (7_200, 7_200)),
        (7_201.0 + 1_000 * 3_600, (7_200, 7_200 + 1_000 * 3_600)),  # set forward: left out
    ],
)
def test_a_window_passes_by_a_clock_that_may_be_set(now, passed):
    assert Grid(3_600).passed(5_400.0, 7_200, now) == passed


def test_lengths_within_a_window_are_counted_from_its_start():
    day = datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Paris")).timestamp()
    within = Grid(DAY, "Europe/Paris").within(day, 7 * HOUR)
    at, found = day, []
    for _ in range(3):
        at = within.around(at)[1]
        found.append(local(at, "Europe/Paris").hour)
    assert found == [7, 14, 21]


@pytest.mark.parametrize(
    ("zone", "meant"),
    [
        ("Europe/Pariss", "Europe/Paris"),
        ("europe/paris", "Europe/Paris"),
        ("Paris", "Europe/Paris"),
        ("kolkatta", "Asia/Kolkata"),
        ("Utc", "UTC"),
        (ZoneInfo("Asia/Tokyo"), "Asia/Tokyo"),
    ],
)
def test_a_zone_that_there_is_not(zone, meant):
    with pytest.raises(PlanError) as refused:
        Grid(DAY, zone)
    assert str(refused.value) == (
        f"zone must be the name of a time zone, such as Europe/Paris or UTC; did you mean {meant}?"
    )


@pytest.mark.parametrize(
    "zone",
    ["", "\0", "../UTC", "Europe", "/etc/localtime", "localtime", "right/UTC", "x" * 10**6, 1, []],
)
def test_what_is_no_zone(zone):
    with pytest.raises(PlanError, match="zone must be the name of a time zone"):
        Grid(DAY, zone)


def test_utc_needs_no_database():
    assert time_zone("UTC") is UTC

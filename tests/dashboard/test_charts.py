"""How series are drawn."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from panprivacy.service.dashboard import charts
from panprivacy.service.dashboard.series import Bar, ChartPoint
from tests.dashboard.rows import line, point

NUMBERS = st.floats() | st.just(math.inf) | st.just(-math.inf) | st.just(math.nan)


POINTS = st.builds(
    ChartPoint, st.floats(0, 4e9), NUMBERS, NUMBERS, NUMBERS, st.booleans(), st.just(1)
)


@settings(max_examples=15)
@given(st.lists(POINTS, max_size=8))
def test_whatever_ends_an_interval_has_it_is_drawn(points):
    bars = [Bar(f'<img src=x onerror="{n}">', one) for n, one in enumerate(points)]
    drawn = [
        charts.over_time(line(*points), "users", "Europe/Paris"),
        charts.by_number(bars, "users"),
        charts.by_label(bars, "users"),
    ]
    for options in drawn:
        json.dumps(options, allow_nan=False)
        for key, value in keys(options):
            assert "onerror" not in key
            if key.startswith(":"):  # a function that the browser runs
                assert "onerror" not in value


def keys(tree):
    """All keys of dictionaries, with their values."""
    for key, value in tree.items() if isinstance(tree, dict) else ():
        yield key, value
        yield from keys(value)
    for one in tree if isinstance(tree, list) else ():
        yield from keys(one)


def test_a_band_reaches_from_the_lower_end_to_the_upper_one():
    points = [point(10.0, 8.0, 13.0), point(4.0, 3.0, math.inf), point(math.nan)]
    low, width, answer, parts = charts.over_time(line(*points), "users", "UTC")["series"]
    assert [one for _, one in low["data"]] == [8.0, 3.0, None]
    first, second, third = (one for _, one in width["data"])
    assert first == 5.0
    assert second > 10  # an interval without an end goes beyond everything else
    assert third is None
    assert answer["data"][1][3] is None
    assert parts["data"] == []


def test_the_axis_shows_the_clock_of_the_zone():
    summer = datetime(2026, 7, 1, 22, tzinfo=UTC).timestamp()  # midnight in Paris
    series = charts.over_time(line(ChartPoint(summer, 1, 1, 1)), "users", "Europe/Paris")["series"]
    shown = datetime.fromtimestamp(series[2]["data"][0][0] / 1_000, UTC)
    assert shown == datetime(2026, 7, 2, tzinfo=UTC)

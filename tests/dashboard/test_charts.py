"""How series are drawn."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panprivacy.service.dashboard import charts
from panprivacy.service.dashboard.densities import ValueDensity
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
        charts.percentiles({"p50": line(*points), "p95": line(*points[:2])}, "UTC"),
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


def test_percentiles_far_apart_are_drawn_by_their_logarithms():
    near, far = line(point(10.0, 8.0, 13.0)), line(point(900.0, 700.0, math.inf))
    drawn = charts.percentiles({"p50": near, "p99": far}, "UTC")
    assert drawn["yAxis"]["type"] == "log"
    assert drawn["legend"]["data"] == ["p50", "p99"]
    series = drawn["series"]
    assert [one["name"] for one in series] == ["low", "interval", "p50", "low", "interval", "p99"]
    assert len({one["stack"] for one in series if "stack" in one}) == 2
    assert series[4]["data"][0][1] > 200  # an interval without an end goes beyond the numbers
    assert charts.percentiles({"p50": near}, "UTC")["yAxis"]["type"] == "value"
    below = charts.percentiles({"p1": line(point(-900.0)), "p99": far}, "UTC")
    assert below["yAxis"]["type"] == "value"


def test_an_interval_without_a_lower_end_has_a_place_on_an_axis_without_zero():
    drawn = charts.percentiles({"p50": line(point(10.0, -math.inf, 900.0))}, "UTC")
    assert drawn["yAxis"]["type"] == "log"
    low, width, _ = drawn["series"]
    assert 0 < low["data"][0][1] < 10
    assert low["data"][0][1] + width["data"][0][1] == pytest.approx(900)


def test_a_density_is_drawn_in_steps_up_to_its_last_edge():
    numbers = (np.array(one, float) for one in ([1, 10, 100], [5, 7], [4, 6], [6, 9]))
    drawn = charts.density(ValueDensity(*numbers, is_log=True, unit="events", says=""))
    low, width, steps = drawn["series"]
    assert steps["data"] == [[1, 5, 4, 6, 10], [10, 7, 6, 9, 100], [100, 7, 6, 9, 100]]
    assert low["data"] == [[1, 4], [10, 6], [100, 6]]
    assert width["data"] == [[1, 2], [10, 3], [100, 3]]
    assert {one["step"] for one in drawn["series"]} == {"end"}
    axis = drawn["xAxis"]
    assert (axis["type"], axis["min"], axis["max"]) == ("log", 1, 100)
    json.dumps(drawn, allow_nan=False)

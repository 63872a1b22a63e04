"""What a chart is made of: lines, bars, bands and questions in words."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from panprivacy.service.dashboard.series import SeriesName, by_group, histograms, thinned
from tests.dashboard.rows import ROW, line, point
from tests.service.binned import bins


def test_a_thinned_line_hides_nothing_that_stuck_out():
    points = [point(float(value), value - 1, value + 1) for value in range(100_000)]
    points[777] = point(5.0, -1e9, math.inf)
    points[50_000] = points[-1] = point(math.nan)
    points[333] = points[333]._replace(complete=False)
    shown = thinned(line(*points))
    assert len(shown) <= 600
    assert sum(one.of for one in shown) == 100_000
    assert min(one.low for one in shown) == -1e9
    assert max(one.high for one in shown) == math.inf
    assert shown[-1].value == 99_998
    assert sum(not one.complete for one in shown) == 1
    assert not any(one.is_lost for one in shown)
    assert thinned(line(*points[:600])) == points[:600]


def test_a_line_of_lost_answers_is_a_gap():
    (only,) = thinned(line(*[point(math.nan)] * 1_000), most=1)
    assert only.is_lost
    assert only.of == 1_000


def test_bars_stand_in_the_order_of_their_numbers():
    rows = [replace(ROW, argument=n, arguments=f"state={n}") for n in (10, 2, 1)]
    pairs = [replace(ROW, question="cropped_sum", argument=n, arguments=f"tau={n}") for n in (1, 2)]
    ((asked, bars),) = histograms([*rows, *pairs]).items()
    assert str(asked) == "visits: exactly"
    assert [bar.label for bar in bars] == ["1", "2", "10"]


def test_groups_stand_from_the_largest_to_what_is_lost():
    rows = [replace(ROW, group=name, value=value) for name, value in
            (("a", 1.0), ("b", None), ("c", 3.0))]  # fmt: skip
    ((_, bars),) = by_group(rows).items()
    assert [bar.label for bar in bars] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (ROW, "visits: exactly 1"),
        (replace(ROW, question="distinct", arguments="", statistic="distinct"), "distinct"),
        (replace(ROW, question="running_count", arguments="", statistic="running-count"),
         "running count"),
        (replace(ROW, question="cropped_moment", arguments="tau=10,power=2"),
         "visits: cropped moment 10**2"),
    ],
)  # fmt: skip
def test_a_question_is_told_in_words(row, words):
    assert str(SeriesName.of(row)) == words


def test_a_bin_is_called_by_its_ends_and_is_no_group():
    rows = bins([1, 2.5], [1, 2, 3], group="north")
    assert [str(SeriesName.of(row)) for row in rows] == [
        *("times: -inf to 1", "times: 1 to 2.5", "times: 2.5 to inf")
    ]
    assert all(SeriesName.of(row).is_bin for row in rows)
    assert not SeriesName.of(ROW).is_bin
    assert by_group(rows) == {}


@pytest.mark.parametrize(
    ("question", "arguments", "says"),
    [
        ("between", "first=1,last=4", "visits: between 1 to 4"),
        ("cropped_moment", "tau=10,power=2", "visits: cropped moment 10**2"),
        ("quantile", "share=0.5", "visits: quantile 0.5"),
        ("mean", "", "visits: mean"),
    ],
)
def test_a_question_is_named_as_elsewhere(question, arguments, says):
    assert str(SeriesName("visits", question, arguments, None)) == says


def test_ranges_of_states_are_bars():
    rows = [
        replace(ROW, question="between", argument=low, arguments=f"first={low},last={low + 1}")
        for low in (1, 3, 5)
    ]
    ((_, bars),) = histograms(rows).items()
    assert [bar.label for bar in bars] == ["1 to 2", "3 to 4", "5 to 6"]

"""The cards of the values of events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from panprivacy.service.config.loading import load
from panprivacy.service.dashboard.board import Board
from panprivacy.service.dashboard.distribution import DistributionCards, of_group, percentile_lines
from panprivacy.service.dashboard.series import SeriesName
from tests.dashboard.rows import ROW, line, point, published
from tests.service.binned import bins


def percentile(share, **given):
    told = {"statistic": "times", "question": "quantile", "argument": None}
    return replace(ROW, **{**told, "arguments": f"share={share}", **given})


@pytest.fixture
def made(page, board, store):
    """Draws what was published."""

    def draw(rows, group=""):
        published(store, rows)
        look = board.looks["shop"]
        look.follow()
        cards = DistributionCards(look)
        cards.draw(group)
        return cards

    return draw


LATER = 24 * 30  # hours: after all rows of the board


def test_the_newest_histogram_and_the_percentiles_are_drawn(made):
    rows = bins([0, 10, 20], [4, 50, 6, 1], hours=LATER)
    one = rows[0]
    moment = {"start": one.start, "end": one.end, "released": one.released}
    rows += [percentile(share, **moment) for share in (0.95, 0.5)]
    cards = made(rows)
    assert "hidden" not in cards._values.styles | cards._over_time.styles
    (_, _, steps) = cards._density.options["series"]
    assert [row[1] for row in steps["data"]] == [50, 6, 6]
    assert cards._says.text.startswith("The band holds all counts together, 95 %. A step is 10")
    assert cards._lines.options["legend"]["data"] == ["p50", "p95"]


def test_what_there_is_nothing_of_is_hidden(made):
    cards = made([])
    assert "hidden" in cards._values.styles
    assert "hidden" in cards._over_time.styles


def test_only_the_chosen_group_is_drawn(made):
    north = bins([0, 10, 20], [4, 50, 6, 1], hours=LATER, group="north")
    south = bins([0, 10, 20], [0, 9, 8, 0], hours=LATER, group="south")
    cards = made(north + south, "south")
    (_, _, steps) = cards._density.options["series"]
    assert [row[1] for row in steps["data"]] == [9, 8, 8]


def test_rows_of_another_group_are_left_out():
    north, south = (replace(ROW, group=name) for name in ("north", "south"))
    assert of_group([ROW, north, south], "south") == [ROW, south]


def test_percentiles_are_in_order_and_no_more_than_there_are_colours():
    points = {
        SeriesName("times", "quantile", f"share={share}", group): line(point(share))
        for share in (0.99, 0.5, 0.1, 0.2, 0.3, 0.4, 0.999)
        for group in ("north", "south")
    }
    points[SeriesName("times", "mean", "", "north")] = line(point(1.0))
    (found,) = percentile_lines(points, "north").values()
    assert list(found) == ["p20", "p30", "p40", "p50", "p99", "p99.9"]
    assert percentile_lines(points, "east") == {}


HISTOGRAM = """
[streams.times]
epsilon = 1
window = "1d"
[[streams.times.stat]]
name = "histogram"
low = 0
high = 100
"""


def test_answers_of_a_histogram_have_units_by_question(file, store):  # the store is made
    file.write_text(file.read_text() + HISTOGRAM)
    board = Board(load(file), file)
    unit = board.looks["times"].unit
    assert [unit("histogram", one) for one in ("quantile", "mean", "count", "share_below")] == [
        *("value", "value", "events", "share of the events")
    ]
    assert unit("histogram", "other") == "events"
    assert board.looks["shop"].unit("visits", "exactly").startswith("users")
    board.close()

"""The rows of a release: what was asked, of which users."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pytest
from panprivacy.options import Asked, Grouping, Sizes, Statistics

from panprivacy.programs.counting import make_counting
from panprivacy.service.outgoing.results import Moment, published

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MOMENT = Moment("visits", NOON, NOON, number=1, complete=True, now=NOON)
EPSILON = Fraction(8)
SIZES = {
    "distinct": {"expected": 1_000},
    "density": {"universe": 1_000},
    "incidence": {"universe": 1_000, "bound": 9},
    "cropped-sum": {"universe": 1_000, "tau": 7},
    "threshold": {"universe": 1_000, "least": 3},
    "heavy-hitters": {"k": 100, "total": 5_000},
}
ASKED = {
    "distinct": [(None, None)],
    "density": [(None, None)],
    "incidence": [("exactly", 2), ("at_least", 3)],
    "cropped-sum": [("cropped_sum", 7)],
    "threshold": [("threshold", 3)],
    "heavy-hitters": [("heavy_hitters", 100)],
}
"""Kind and number of each row."""


def rows(name, groups=None):
    asked = Asked(exactly=(2,), at_least=(3,)) if name == "incidence" else Asked()
    grouping = Grouping(groups, per_user=1, ignore_others=False) if groups else None
    counting = make_counting(
        [Statistics(name)], Sizes(**SIZES[name]), asked, grouping, 1,
        epsilon=EPSILON, confidence=0.9,
    )  # fmt: skip
    labels = None if groups is None else [groups[i % len(groups)] for i in range(500)]
    counting.update(np.arange(500), None, labels)
    return published(counting.release(), counting, MOMENT)


@pytest.mark.parametrize("name", SIZES)
def test_a_row_says_what_was_asked(name):
    found = rows(name)
    assert [(row.kind, row.state) for row in found] == ASKED[name]
    for row in found:
        assert (row.stream, row.statistic, row.group) == ("visits", name, None)
        assert (row.start, row.end, row.released, row.number) == (NOON, NOON, NOON, 1)
        assert row.complete
        assert row.low <= row.value <= row.high
        assert row.confidence == 0.9


def test_each_group_has_its_rows():
    found = rows("cropped-sum", groups=["home", "help"])
    assert [(row.group, row.kind, row.state) for row in found] == [
        ("home", "cropped_sum", 7),
        ("help", "cropped_sum", 7),
    ]

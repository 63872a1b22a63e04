"""A published histogram in steps that can be seen."""

from __future__ import annotations

import numpy as np
import pytest

from panprivacy.service.dashboard.densities import MOST_STEPS, ValueDensity
from panprivacy.service.outgoing.histograms import published_bins
from tests.service.binned import bins


def density(*told, **given):
    (found,) = published_bins(bins(*told, **given))
    return ValueDensity.of(found)


def test_bins_of_one_width_are_steps():
    found = density([0, 10, 20, 30], [4, 50, -2, 7, 1])
    assert found.edges.tolist() == [0, 10, 20, 30]
    assert found.value.tolist() == [50, 0, 7]
    assert (found.low.tolist(), found.high.tolist()) == ([47, 0, 4], [53, 1, 10])
    assert (found.is_log, found.unit) == (False, "events in a step")
    assert found.says == "A step is 10 wide. Below 0: 4 (1 to 7). From 30 on: 1 (0 to 4)."


def test_bins_of_one_ratio_are_steps_of_their_logarithm():
    edges = np.geomspace(1, 60_000, 12)
    found = density(edges, range(11), is_open=False)
    assert found.is_log
    assert found.value == pytest.approx(np.arange(11))
    assert found.says == "A step is 172 % wide."


@pytest.mark.parametrize(
    ("edges", "is_log", "unit", "value"),
    [
        ([-60, 0, 10, 110], False, "events per unit of value", [1, 6, 0.6]),
        ([1, 10, 1_000, 10_000], True, "events per factor of 10", [60, 30, 60]),
        ([1, 10, 50], False, "events per unit of value", [60 / 9, 1.5]),
    ],
)
def test_of_bins_that_differ_in_width_the_height_is_by_width(edges, is_log, unit, value):
    found = density(edges, [60] * (len(edges) - 1), is_open=False)
    assert (found.is_log, found.unit) == (is_log, unit)
    assert found.value == pytest.approx(value)
    assert found.high == pytest.approx(1.05 * found.value)
    assert found.says.startswith("Bins differ in width")


@pytest.mark.parametrize("many", [MOST_STEPS, MOST_STEPS + 1, 10 * MOST_STEPS, 1_999])
def test_very_many_bins_are_added_up_side_by_side(many):
    counts = np.random.default_rng(many).integers(0, 100, many)
    found = density(np.arange(many + 1), counts, is_open=False)
    steps = len(found.value)
    assert steps <= MOST_STEPS
    assert (found.edges[0], found.edges[-1]) == (0, many)
    width = np.diff(found.edges)
    assert (width[:-1] == width[0]).all()
    whole = found.value * width / width[0]  # the last step may be narrower
    assert whole.sum() == pytest.approx(counts.sum())
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()


def test_one_bin_is_one_step():
    assert density([1, 3], [5], is_open=False).value.tolist() == [5]

"""Histograms in the terms of Prometheus."""

from __future__ import annotations

import math

import numpy as np
import pytest

from panprivacy.service.outgoing.histograms import published_bins
from panprivacy.service.web.exponential import Buckets, HistogramFamily, Native, native_of
from tests.service.binned import bins, powers


def buckets(*told, **given):
    (found,) = published_bins(bins(*told, **given))
    return Buckets.of(found)


def test_open_bins_are_the_first_and_the_last_bucket():
    found = buckets([1, 2, 8], [4, 5, 6, 7])
    assert found.upper == (1, 2, 8, math.inf)
    assert found.cumulative == (4, 9, 15, 22)
    assert found.total == 4 * 1 + 5 * 1.5 + 6 * 5 + 7 * 8
    assert found.labels == {"stream": "shop", "statistic": "times", "group": ""}
    assert found.native is None


def test_closed_bins_have_nothing_outside():
    found = buckets([1, 2, 8], [5, 6], is_open=False, group="home")
    assert found.upper == (1, 2, 8, math.inf)
    assert found.cumulative == (0, 5, 11, 11)
    assert found.labels["group"] == "home"


def test_noise_below_zero_makes_no_falling_bucket():
    found = buckets([1, 2, 3, 4], [-3, 50, -4, 20, -2])
    assert found.cumulative == tuple(sorted(found.cumulative))
    assert found.cumulative[0] == 0
    assert found.cumulative[-1] == 61


@pytest.mark.parametrize("schema", range(9))
def test_edges_that_are_powers_are_those_of_a_native_histogram(schema):
    edges = powers(-3, 5, schema)
    printed = np.array([float(f"{edge:.12g}") for edge in edges])
    found = native_of(printed, has_lower=True)
    assert found == Native(schema, -3 * 2**schema + 1, 0.125)


@pytest.mark.parametrize(("schema", "base"), [(-1, 4), (-2, 16), (-3, 256), (-4, 65_536)])
def test_wide_buckets_are_native_too(schema, base):
    assert native_of(np.array([1.0, base, base**2]), has_lower=False) == Native(
        schema, 1, 2.0**-128
    )


@pytest.mark.parametrize(
    "edges",
    [
        [0.0, 1, 2],
        [-2.0, -1],
        [1.0, 2, 3],
        [1.0, 2, 8],
        [3.0, 6, 12],
        [1.0, 1.5],
        [1.0, 2.0**32],
        [1.0, 2 ** (2.0**-9)],
        [1.0, 2 * (1 + 1e-7)],
        [1.0, math.nextafter(1, 2)],
    ],
)
def test_other_edges_are_not(edges):
    assert native_of(np.array(edges), has_lower=True) is None


def test_a_native_histogram_has_the_same_counts():
    found = buckets([1, 2, 4], [4, 5, 6, 7])
    assert found.native == Native(0, 1, 1.0)
    assert (found.zero, found.counts) == (4, (5, 6, 7))
    closed = buckets([1, 2, 4], [5, 6], is_open=False)
    assert (closed.zero, closed.counts) == (0, (5, 6, 0))
    assert closed.native == Native(0, 1, 2.0**-128)


def test_those_that_are_not_native_stand_first():
    native, other = buckets([1, 2, 4], [4, 5, 6, 7]), buckets([1, 2, 3], [4, 5, 6, 7], group="x")
    family = HistogramFamily("times", "times", [native, other])
    assert family.members == [other, native]
    names = [(one.name, one.labels.get("le")) for one in family.samples[:6]]
    assert names[:4] == [("times_bucket", end) for end in ("1.0", "2.0", "3.0", "+Inf")]
    assert [name for name, _ in names[4:]] == ["times_count", "times_sum"]


def test_a_sum_of_values_below_zero_is_not_told():
    family = HistogramFamily("delays", "delays", [buckets([-30, 0, 30], [1, 2, 3, 4])])
    assert {one.name for one in family.samples} == {"delays_bucket"}

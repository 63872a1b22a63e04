"""The bin of a value is found exactly, however the edges lie."""

from __future__ import annotations

import math

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.tables.edges import Edges


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("outside", ["open", "refuse"])
@pytest.mark.parametrize("bins", [1, 2, 7, 100, 1_000])
def test_bins_are_those_of_numpy(scale, outside, bins):
    draw = np.random.default_rng(bins)
    edges = (Edges.log if scale == "log" else Edges.linear)(
        0.5, 9_000, bins, is_open=outside == "open"
    )
    values = np.concatenate([draw.uniform(0.5, 9_000, 5_000), 0.5 * 18_000 ** draw.random(5_000)])
    inner = np.array(edges.inner)
    near = np.concatenate([inner, np.nextafter(inner, 0)[1:], np.nextafter(inner, 1e9)[:-1]])
    values = np.clip(np.concatenate([values, near]), inner[0], inner[-1])
    found = edges.count(values, None)
    expected = np.histogram(values, inner)[0]
    if outside == "open":
        at_the_end = int((values == inner[-1]).sum())
        expected[-1] -= at_the_end
        expected = np.array([0, *expected, at_the_end])
    assert found.tolist() == expected.tolist()
    deltas = draw.integers(-1, 2, len(values))
    weighed = edges.count(values, deltas)
    assert weighed.sum() == deltas.sum()


def test_given_edges_of_very_different_width_are_found():
    edges = Edges((-5.0, 0.0, 1e-9, 1e-6, 1.0, 1e12), is_open=True)
    values = np.array([-6, -5, -1e-300, 0, 5e-10, 1e-9, 1e-7, 0.5, 1, 1e11, 1e12])
    expected = [1, 2, 2, 2, 1, 2, 1]
    assert edges.count(values, None).tolist() == expected
    positive = Edges((1e-9, 1e-6, 1.0, 1e12), is_open=True)
    assert positive.count(values, None).tolist() == [5, 2, 1, 2, 1]


def test_the_first_bad_row_is_named_and_nothing_is_returned():
    edges = Edges((0.0, 1.0), is_open=False)
    for bad, reason in ((math.nan, "NaN"), (2.0, "outside"), (-0.5, "outside")):
        with pytest.raises(pp.InputError, match=reason) as caught:
            edges.count(np.array([0.5, 1.0, bad, bad]), None)
        assert caught.value.row == 3


def test_positions_are_interpolated_within_a_bin():
    linear = Edges.linear(0, 10, 2, is_open=True)
    assert [linear.at(one) for one in (0, 0.5, 1, 1.5, 3, 3.5, 4)] == [0, 0, 0, 2.5, 10, 10, 10]
    log = Edges.log(1, 100, 2, is_open=False)
    assert [log.at(one) for one in (0, 0.5, 2)] == pytest.approx([1, math.sqrt(10), 100])
    assert log.widest == pytest.approx(9)
    assert linear.widest == 5


def test_deltas_are_added_to_the_bin_of_their_value():
    edges = Edges.linear(0, 4, 4, is_open=False)
    found = edges.count(np.array([0.5, 0.5, 3.5, 4]), np.array([1, 1, -1, 1]))
    assert found.tolist() == [2, 0, 0, 0]


def test_edges_are_told_in_a_few_words():
    edges = Edges.log(1, 1_000, 300, is_open=True)
    assert str(edges) == "301 from 1 to 1000, with a bin without an end on each side"
    assert str(Edges.linear(0, 10, 5, is_open=False)) == "6 from 0 to 10"

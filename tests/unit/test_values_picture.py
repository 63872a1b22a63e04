"""The picture of a released histogram."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from matplotlib.figure import Figure

import panprivacy as pp
from panprivacy.intake.programs.pictures import plot_steps
from panprivacy.intake.programs.values_picture import draw_values

ENDS = datetime(2026, 1, 31, tzinfo=UTC)


def histogram(**asked):
    """A histogram whose noise is far below one event, and its answers."""
    made = pp.Histogram(low=1, high=1_000, bins=12, scale="log", epsilon=1_000)
    made.update(np.repeat([0.5, 20.0, 90.0, 5_000.0], [3, 40, 60, 2]))
    return made, pp.Answers([made.release(**asked)]).under("times")


def axis_of(answers, *, is_log=True):
    axis = Figure().subplots()
    draw_values(axis, answers, is_log=is_log)
    return axis


def legend(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def test_bins_are_steps_with_their_band():
    axis = axis_of(histogram()[1])
    band, steps = axis.patches
    values, edges, _ = steps.get_data()
    assert sorted(values)[-3:] == [0, 40, 60]
    assert (edges[0], edges[-1], len(edges)) == (1, 1_000, 13)
    assert (band.get_data().values >= values).all()
    assert legend(axis) == ["events, 95 % band"]
    assert axis.get_xscale() == "log"


def test_percentiles_and_the_mean_are_lines_with_their_intervals():
    axis = axis_of(histogram(counts=True, quantile=(0.5, 0.95), mean=True)[1])
    told = legend(axis)
    assert [one.partition(":")[0] for one in told[1:]] == ["quantile 0.5", "quantile 0.95", "mean"]
    assert len(axis.lines) == 3
    assert 56 < axis.lines[0].get_xdata()[0] < 100  # the bin of 90


def test_shares_are_a_rising_curve():
    axis = axis_of(histogram(cumulative=True)[1])
    (curve,) = axis.lines
    assert (np.diff(curve.get_ydata()) >= 0).all()
    assert curve.get_ydata()[-1] == pytest.approx(103 / 105)
    assert legend(axis) == ["share below, 95 % band"]


def test_percentiles_alone_have_no_other_axis():
    axis = axis_of(histogram(quantile=0.5)[1], is_log=False)
    assert len(axis.get_yticks()) == 0
    assert axis.get_xscale() == "linear"


def test_an_interval_without_an_end_reaches_the_edge_of_the_picture():
    made = pp.Histogram(low=1, high=10, bins=3, epsilon=1_000)
    made.update(np.repeat([0.5, 20.0], 10))
    answers = pp.Answers([made.release(counts=True, quantile=(0.1, 0.9))]).under("times")
    low, high = (answers.rows()[place] for place in (0, 1))
    assert (low["low"], high["high"]) == (-np.inf, np.inf)
    spans = axis_of(answers, is_log=False).patches[2:]
    assert all(np.isfinite(one.get_extents().bounds).all() for one in spans)


def test_a_program_draws_it(tmp_path):
    made, answers = histogram(counts=True, quantile=0.5)
    path = tmp_path / "values.png"
    plot_steps(path, {"times": made}, [(ENDS, answers, {})])
    assert path.read_bytes().startswith(b"\x89PNG")

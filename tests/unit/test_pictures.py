"""Pictures: what is drawn can be read."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest import mock

import numpy as np
import pytest
from matplotlib.figure import Figure

import panprivacy as pp
from panprivacy.intake.programs.pictures import plot_answers, plot_steps


def drawn(plot, path, *arguments):
    """The figure that a function writes to a file."""
    with mock.patch.object(Figure, "savefig", autospec=True) as saved:
        plot(path, *arguments)
    return saved.call_args.args[0]


def steps(number):
    """So many answers of a running count that hardly moves, a minute apart."""
    count = pp.RunningCount(epsilon=1, horizon=100)
    count.update(np.arange(70_000))
    each = [pp.Answers([count.release()]).under("visits") for _ in range(number)]
    moments = [datetime(2026, 1, 31, 8, minute, tzinfo=UTC) for minute in range(number)]
    return {"visits": count}, [(*step, {}) for step in zip(moments, each, strict=True)]


@pytest.mark.parametrize("number", [1, 2, 30])
def test_answers_over_time_lie_within_the_box(tmp_path, number):
    statistics, each = steps(number)
    (axis,) = drawn(plot_steps, tmp_path / "steps.png", statistics, each).axes
    highest = max(answers.only().high for _, answers, _ in each)
    bottom, top = axis.get_ylim()
    assert bottom == 0
    assert top > 1.02 * highest


def test_one_step_is_a_bar_and_no_point_in_an_empty_box(tmp_path):
    statistics, each = steps(1)
    (axis,) = drawn(plot_steps, tmp_path / "steps.png", statistics, each).axes
    (bar,) = axis.patches
    assert bar.get_height() == each[0][1].only().value
    assert [label.get_text() for label in axis.get_xticklabels()] == ["2026-01-31 08:00:00"]


@pytest.mark.parametrize("bound", [3, 30])
def test_the_legend_stands_below_the_title_of_the_axis(tmp_path, bound):
    count = pp.Incidence(universe=10_000, bound=bound, epsilon=1)
    count.update(np.arange(5_000))
    answers = pp.Answers([count.release()])
    figure = drawn(plot_answers, tmp_path / "bars.png", {"incidence": count}, answers)
    figure.canvas.draw()
    axis = figure.axes[0]
    title, legend = axis.xaxis.label.get_window_extent(), axis.get_legend().get_window_extent()
    assert legend.y1 <= title.y0 + 2


ASKED = {
    "quantiles": ({"quantile": (0.25, 0.5), "mean": True}, ["25 %", "50 %", "mean"]),
    "bins": ({"histogram": (1, 2, 5), "mean": True}, ["1", "2 to 4", "≥ 5"]),
}


@pytest.mark.parametrize("name", ASKED)
def test_bars_of_an_incidence_have_short_names_and_numbers_in_their_unit(tmp_path, name):
    asked, labels = ASKED[name]
    count = pp.Incidence(universe=20_000, bound=9, epsilon=8)
    count.update(np.repeat(np.arange(10_000), 3))
    answers = pp.Answers([count.release(**asked)])
    figure = drawn(plot_answers, tmp_path / "bars.png", {"incidence": count}, answers)
    figure.canvas.draw()
    axis, ordinary = figure.axes[:2]
    assert [one.get_text() for one in axis.get_xticklabels()] == labels
    values = [one.get_text() for one in axis.texts]
    shown = [one for one in answers.values() if len(values) == 3][: len(values)]
    assert values == [one.formatted()[0] for one in shown]
    assert not ordinary.texts  # users are made up: the answers say how many there are
    assert ordinary.images[0].get_array().max() > 0
    title, legend = axis.xaxis.label.get_window_extent(), axis.get_legend().get_window_extent()
    assert legend.y1 <= title.y0 + 2


def test_a_mean_of_a_cropped_sum_is_drawn_with_users_that_came(tmp_path):
    count = pp.CroppedSum(tau=5, bound=20, universe=20_000, epsilon=8)
    count.update(np.repeat(np.arange(10_000), 3))
    answers = pp.Answers([count.release(mean=True)])
    made_up = count.plan.drawing.made_up(answers.answers())
    assert 8_000 < len(made_up) < 12_000  # 12 deviations
    assert set(made_up.tolist()) == {3}
    figure = drawn(plot_answers, tmp_path / "mean.png", {"cropped-sum": count}, answers)
    assert figure.axes[0].get_ylabel() == "mean, at most 5 of each user"


def test_bars_of_both_have_the_names_of_their_questions(tmp_path):
    pages = pp.BothCount(expected=1_000, left="shoes", right="checkout", epsilon=8)
    pages.update(range(1_000), sides="shoes")
    pages.update(range(500, 1_500), sides="checkout")
    answers = pp.Answers([pages.release()])
    figure = drawn(plot_answers, tmp_path / "both.png", {"both": pages}, answers)
    labels = [one.get_text() for one in figure.axes[0].get_xticklabels()]
    assert labels == ["left", "right", "intersection", "union"]

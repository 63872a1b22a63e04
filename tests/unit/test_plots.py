"""Plots of answers: intervals, units, titles, losses, and what cannot be drawn."""

from __future__ import annotations

import math
from importlib.util import find_spec
from unittest import mock

import numpy as np
import pytest
from matplotlib import pyplot as plt

import panprivacy as pp
from panprivacy.statistics.release import Answers, Lost, Name, Release


@pytest.fixture(autouse=True)
def _closed():
    """Figures of pyplot stay until they are closed."""
    with plt.rc_context({"backend": "agg"}):
        yield
        plt.close("all")


def answer(value, statistic="visits", group=None, **others):
    """An answer within ±10."""
    ends = {"low": value - 10.0, "high": value + 10.0, "confidence": 0.9, "epsilon": 0.12341}
    return Release(
        value, counts=(), name=Name(statistic, statistic, group=group), **{**ends, **others}
    )


def intervals(axes):
    """The ends of the intervals that are drawn."""
    (collection,) = [one for one in axes.collections if hasattr(one, "get_segments")]
    return [tuple(segment[:, 0]) for segment in collection.get_segments()]


def labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def words(axes):
    return "\n".join(text.get_text() for text in axes.texts)


def test_one_answer_has_interval_title_unit_and_loss():
    axes = answer(100.0).plot()
    assert intervals(axes) == [(90, 110)]
    assert axes.get_title(loc="left") == "visits, with 90 % intervals"
    assert axes.get_xlabel().strip() == "users"
    assert "100  (90 to 110)" in words(axes)
    assert "epsilon 0.124 at most, on top of the state's" in words(axes).replace("\n", " ")


def test_the_guarantee_of_a_statistic_is_printed():
    visitors = pp.DistinctCount(epsilon=1, expected=(1_000, 10_000))
    visitors.update(np.arange(3_000))
    axes = visitors.release().plot(visitors.guarantee)
    assert "Guarantee: epsilon 1 for adding or removing one user" in words(axes)


def test_groups_are_bars_from_the_top():
    axes = Answers([answer(100.0, group="home"), answer(30.0, group="help")]).plot()
    assert labels(axes) == ["home", "help"]
    assert intervals(axes) == [(90, 110), (20, 40)]
    bottom, top = axes.get_ylim()
    assert top < bottom


def test_units_have_axes_of_their_own():
    axes = Answers([answer(100.0), answer(30.0, "calls", unit="events")]).plot()
    assert [one.get_xlabel().strip() for one in axes] == ["users", "events"]
    assert [labels(one) for one in axes] == [["visits"], ["calls"]]


def test_given_axes_are_drawn_on_and_hold_one_unit():
    _, axes = plt.subplots()
    assert answer(100.0).plot(ax=axes) is axes
    with pytest.raises(pp.PlanError, match=r"these have users and events: choose some"):
        Answers([answer(100.0), answer(30.0, "calls", unit="events")]).plot(ax=axes)


@pytest.mark.parametrize(
    ("low", "high", "says", "caps", "arrows"),
    [
        (90, 110, "100  (90 to 110)", 2, 0),
        (90, math.inf, "100  (90 or more)", 1, 1),
        (-math.inf, 110, "100  (110 or less)", 1, 1),
        (-math.inf, math.inf, "100  (it may be any number)", 0, 2),
    ],
)
def test_an_interval_without_end_has_an_arrow_and_no_cap(low, high, says, caps, arrows):
    axes = answer(100.0, low=low, high=high).plot()
    assert says in words(axes)
    marks = [line.get_marker() for line in axes.lines]
    assert marks.count("|") == caps
    assert marks.count("<") + marks.count(">") == arrows
    ((left, right),) = intervals(axes)
    assert bool(left == 90) is math.isfinite(low)
    assert bool(right == 110) is math.isfinite(high)
    assert left <= 90 < 110 <= right


def test_arrows_reach_beyond_all_ends():
    both = [answer(100.0, group="home"), answer(30.0, group="help", high=math.inf)]
    assert intervals(Answers(both).plot())[1][1] > 110


def test_notes_are_printed_once():
    both = [answer(100.0, group=one, note="mostly noise") for one in ("home", "help")]
    assert "Note on home, help: mostly noise." in words(Answers(both).plot())


def test_a_note_names_five_answers_and_how_many_more():
    many = [answer(100.0, group=f"page{n}", note="mostly noise") for n in range(40)]
    said = " ".join(words(Answers(many).plot()).split())
    assert "Note on page0, page1, page2, page3, page4 and 35 more: mostly noise." in said
    assert "page5" not in said.partition("Note on")[2]


@pytest.mark.parametrize("inches", [4, 7, 14])
def test_the_caption_is_as_wide_as_the_axes(inches):
    figure, axes = plt.subplots(figsize=(inches, 4), layout="constrained")
    note = "mostly noise: take longer windows, or read several small pages as one group " * 3
    answer(100.0, note=note.strip()).plot(ax=axes)
    (caption,) = [one for one in axes.texts if "Note on" in one.get_text()]
    figure.draw_without_rendering()
    share = caption.get_window_extent().width / axes.get_window_extent().width
    assert 0.7 < share < 1.05


def test_lost_answers_are_counted():
    lost = Lost((Name("calls", "calls"),))
    assert "(1 lost)" in Answers([answer(100.0), lost]).plot().get_title(loc="left")
    with pytest.raises(pp.PlanError, match="all answers are lost"):
        Answers([lost]).plot()


def test_of_many_states_those_nearest_to_0_are_drawn():
    often = pp.Incidence(universe=1_000, bound=40, epsilon=1)
    axes = often.release().plot()
    drawn = len(labels(axes))
    assert drawn < 25
    title = axes.get_title(loc="left")
    assert f"the {drawn - 1} states nearest to 0 and at least 41, of 42 answers" in title


def test_without_matplotlib_it_says_what_to_install():
    def found(name):
        return None if name == "matplotlib" else find_spec(name)

    with (
        mock.patch("panprivacy.statistics.plots.find_spec", found),
        pytest.raises(pp.PlanError, match=r"pip install '\.\[plot\]' in a clone"),
    ):
        answer(100.0).plot()

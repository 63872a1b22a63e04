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


def test_an_interval_without_end_is_said():
    axes = answer(100.0, high=math.inf).plot()
    assert "100  (90 or more)" in words(axes)


def test_notes_are_printed_once():
    both = [answer(100.0, group=one, note="mostly noise") for one in ("home", "help")]
    assert "Note on home, help: mostly noise." in words(Answers(both).plot())


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
    assert f"the {drawn} nearest to 0 of 42" in axes.get_title(loc="left")


def test_without_matplotlib_it_says_what_to_install():
    def found(name):
        return None if name == "matplotlib" else find_spec(name)

    with (
        mock.patch("panprivacy.statistics.plots.find_spec", found),
        pytest.raises(pp.PlanError, match=r"pip install 'panprivacy\[plot\]'"),
    ):
        answer(100.0).plot()

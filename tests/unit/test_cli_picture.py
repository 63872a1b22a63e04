"""The picture of a run: when it is drawn, and what of."""

from __future__ import annotations

from types import SimpleNamespace
from unittest import mock

import pytest

import panprivacy as pp
from panprivacy.cli import picture as pictures
from panprivacy.cli.output import Printed
from panprivacy.cli.picture import Picture
from panprivacy.statistics.specification import Specification


@pytest.fixture
def drawn():
    """What was drawn: the steps of each picture, or its answers and exact ones."""
    with (
        mock.patch("panprivacy.intake.programs.pictures.plot_steps") as steps,
        mock.patch("panprivacy.intake.programs.pictures.plot_answers") as answers,
    ):
        yield SimpleNamespace(steps=steps, answers=answers)


@pytest.fixture
def later(monkeypatch):
    """Lets seconds pass."""
    now = [100.0]
    monkeypatch.setattr(pictures.time, "monotonic", lambda: now[0])

    def passed(seconds):
        now[0] += seconds

    return passed


def made(text, path="picture.png", **statistics):
    counting = SimpleNamespace(statistics=statistics)
    return Picture(path, lambda: counting, [Specification.from_text(text)])


def running():
    count = pp.RunningCount(epsilon=1, horizon=100)
    return count, made("running-count,horizon=100", visits=count)


def printed(statistic, label, facts=None, *, lost=False):
    one = statistic.internals.releasing.lost() if lost else statistic.release()
    return Printed(pp.Answers([one]).under(label), statistic.guarantee, 8, 0.95, facts=facts)


def test_what_has_steps_is_drawn_as_they_come_but_not_too_often(drawn, later):
    count, picture = running()
    picture.add(printed(count, "visits"))
    assert drawn.steps.call_count == 1
    later(4.9)
    picture.add(printed(count, "visits"))
    assert drawn.steps.call_count == 1
    later(0.2)
    picture.add(printed(count, "visits"))
    assert drawn.steps.call_count == 2
    path, statistics, steps = drawn.steps.call_args.args
    assert (path, statistics) == ("picture.png", {"visits": count})
    assert len(steps) == 3
    assert [moment for moment, *_ in steps] == sorted(moment for moment, *_ in steps)
    assert not drawn.answers.called


@pytest.mark.usefixtures("later")
def test_each_step_has_its_exact_answers_where_they_are_public(drawn):
    count, picture = running()
    picture.add(printed(count, "visits", SimpleNamespace(truth={"name": 7.0})))
    picture.add(printed(count, "visits"))
    picture.draw()
    assert [truth for *_, truth in drawn.steps.call_args.args[2]] == [{"name": 7.0}, {}]


@pytest.mark.usefixtures("later")
def test_of_very_many_steps_the_last_ones_are_drawn(drawn, monkeypatch):
    monkeypatch.setattr(pictures, "_MOST_DRAWN", 2)
    count, picture = running()
    each = [printed(count, "visits") for _ in range(3)]
    for one in each:
        picture.add(one)
    picture.draw()
    assert [step[1] for step in drawn.steps.call_args.args[2]] == [one.answers for one in each[1:]]


def distinct(releases=1):
    return pp.DistinctCount(expected=100, epsilon=8, releases=releases)


@pytest.mark.usefixtures("later")
def test_all_else_is_drawn_at_the_end_with_its_last_answers(drawn):
    users = distinct(2)
    picture = made("distinct,expected=100", users=users)
    first, last = printed(users, "users"), printed(users, "users", SimpleNamespace(truth={"a": 1}))
    picture.add(first)
    picture.add(last)
    assert not drawn.answers.called
    picture.draw()
    drawn.answers.assert_called_once_with("picture.png", {"users": users}, last.answers, {"a": 1})
    assert not drawn.steps.called


@pytest.mark.usefixtures("later")
def test_what_is_lost_is_left_out_and_where_all_is_nothing_is_drawn(drawn):
    users, others = distinct(), distinct()
    picture = made("distinct,expected=100", users=users, others=others)
    picture.add(printed(users, "users"))
    picture.draw()
    assert drawn.answers.call_args.args[1] == {"users": users}
    picture.add(printed(others, "others", lost=True))
    picture.draw()
    assert drawn.answers.call_count == 1

"""`--moves`: an answer leaves a pipe where its number has moved, and at its end."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial

import pytest

from panprivacy.cli import publishing
from panprivacy.cli.publishing import InWindows, Schedule, Timed
from panprivacy.errors import PlanError
from panprivacy.intake.programs.counting import make_counting
from panprivacy.statistics.specification import Specification
from tests.commands import run_command

UNIVERSE = 4_000
ASKED = ["--user", "user", "--stat", "density,universe=4_000", "--epsilon", "300"]
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


class Clock:
    """What all clocks show."""

    def __init__(self, monkeypatch):
        self.now = NOON.timestamp()
        monkeypatch.setattr(publishing.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(publishing.time, "time", lambda: self.now)
        windowed = partial(publishing.Windowed, clock=lambda: self.now)
        monkeypatch.setattr(publishing, "Windowed", windowed)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def counted(**more):
    """So much privacy loss that a share is exact to 0.01, but once in 1e12."""
    given = {"epsilon": Fraction(300), "releases": 3, "moves": Fraction(1, 10), **more}
    return make_counting([Specification.from_text("density,universe=4_000")], **given)


def led(publisher, clock):
    """The answers of each second, in which 300 users come, and of the end."""
    found = []
    for second in range(5):
        publisher.counting().update(range(300 * second, 300 * (second + 1)))
        clock.now += 1
        found.append([round(one.answers.only().value, 2) for one in publisher.due()])
    return found, [round(one.answers.only().value, 2) for one in publisher.last()]


def near(*values):
    return [pytest.approx(value, abs=0.02) for value in values]


def test_a_pipe_is_told_of_moves_and_of_its_end(clock):
    schedule = Schedule(3, 1.0, None, moves=Fraction(1, 10))
    publisher = Timed(counted(), schedule, 0.95, None)
    found, last = led(publisher, clock)
    assert found == [[], near(0.15), [], near(0.3), []]
    assert last == near(0.375)
    assert publisher.deadline() is None, "no update is left"


def test_so_is_each_window(clock):
    schedule = Schedule(3, 1.0, 86_400.0, moves=Fraction(1, 10))
    publisher = InWindows(counted, schedule, 0.95)
    assert publisher.deadline() == clock.now + 1
    found, last = led(publisher, clock)
    assert found == [[], near(0.15), [], near(0.3), []]
    assert last == near(0.375)


def test_a_window_that_has_moved_says_when_it_was_told(clock):
    publisher = InWindows(counted, Schedule(3, 1.0, 86_400.0, moves=Fraction(1, 10)), 0.95)
    publisher.counting().update(range(2_000))
    clock.now += 1
    (printed,) = publisher.due()
    assert printed.window.start == NOON
    assert printed.window.end >= NOON
    assert not printed.window.complete
    assert printed.guarantee.delta == Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--moves", "0.1"], "--moves needs --every"),
        (["--moves", "0.1", "--every", "1"], "--every needs --releases of at least 2"),
        (["--moves", "0", "--every", "1", "--releases", "3"], "--moves must be"),
        (["--moves", "x", "--every", "1", "--releases", "3"], "--moves must be"),
        (
            ["--moves", "1e400", "--every", "1", "--releases", "3"],
            "--moves must be at most 1,000,000,000,000,000,000",
        ),
        (
            ["--moves", "1", "--every", "1", "--releases", "9999"],
            "--releases must be at most 5,001 with moves",
        ),
        (["--intrusions", "101"], "--intrusions must be at most 100"),
        (
            ["--moves", "1", "--every", "1", "--releases", "3", "--by", "p", "--groups", "a,b"],
            "one statistic without groups",
        ),
        (
            ["--moves", "1", "--every", "1", "--releases", "3", "--stat", "distinct"],
            "moves is for one statistic",
        ),
        (
            ["--moves", "1e-6", "--every", "1", "--releases", "3"],
            "would be reached by noise, whose deviation is",
        ),
    ],
)
def test_what_cannot_move_is_refused_in_a_line(words, message):
    result = run_command("run", "-", "--format", "csv", *ASKED, *words)
    assert result.code != 0
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_answers_on_a_clock_in_a_window_are_refused_as_before():
    with pytest.raises(PlanError, match="leave out --every"):
        Schedule(3, 1.0, 86_400.0)


def test_plan_tells_of_moves_beside_a_clock():
    words = ["density,universe=1_000_000", "--epsilon", "1", "--releases", "11", "--moves", "0.1"]
    shown = run_command("plan", *words).stdout
    assert "10 answers where it has moved by so much, which reach 1.0000" in shown
    assert "of the truth at any time; delta 1e-9" in shown
    assert "on a clock each of 11 answers is within 0.00" in shown


@pytest.mark.parametrize("moves", ["x", "0", "1e-6", "1e400"])
def test_plan_prints_nothing_beside_what_is_wrong_with_moves(moves):
    words = ["density,universe=1_000_000", "--epsilon", "1", "--releases", "11", "--moves", moves]
    result = run_command("plan", *words)
    assert result.code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1


def run_of_one_visitor(monkeypatch, *words):
    """What a run says that is given one row by a pipe."""
    reading, writing = os.pipe()
    os.write(writing, b"user\n1\n")
    os.close(writing)
    timed = ["--window", "1d", "--every", "1", "--releases", "3", "--moves", "0.1"]
    with os.fdopen(reading) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        return run_command("run", "-", "--format", "csv", *ASKED, *timed, *words).stdout


def test_a_delta_adds_up_over_windows(monkeypatch):
    shown = run_of_one_visitor(monkeypatch)
    assert "over 365 windows" in shown
    assert "and delta 3.65e-7" in shown


def test_machines_read_the_delta_of_one_window_and_of_all(monkeypatch):
    told = json.loads(run_of_one_visitor(monkeypatch, "--json", "--windows", "30"))
    assert told["delta"] == 1e-9
    assert told["loss"]["windows"] == 30
    assert told["loss"]["delta"] == pytest.approx(3e-8)

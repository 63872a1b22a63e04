"""A terminal shows progress while a long search runs; a file is told nothing."""

from __future__ import annotations

import io
import sys
import threading
from contextlib import redirect_stderr
from fractions import Fraction

import pytest

from panprivacy.ground.patience import searching
from panprivacy.statistics.records import Sizes
from panprivacy.tables.planning.request import Request


class Terminal(io.StringIO):
    """A terminal that notes when something is displayed."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        super().write(text)
        self.written.set()

    @property
    def displayed(self):
        """What remains on its only line: each text overwrites as many characters as it has."""
        line = ""
        for text in self.getvalue().split("\r"):
            line = text + line[len(text) :]
        return line.rstrip()

    @property
    def is_erased(self):
        """Whether nothing remains, and the next text begins at the left."""
        return self.displayed == "" and self.getvalue().endswith("\r")


def test_a_terminal_shows_progress_while_a_search_runs():
    with redirect_stderr(Terminal()) as terminal, searching(unsaid=0.01):
        assert terminal.written.wait(30)
        assert "searching for the best plan, 0 s" in terminal.displayed
    assert terminal.is_erased


def test_it_shows_how_many_plans_were_tried():
    with redirect_stderr(Terminal()) as terminal, searching(unsaid=0.2):
        for _ in range(3):
            with searching():
                pass
        assert terminal.written.wait(30)
        assert terminal.displayed.endswith(", 3 tried")


def test_a_short_search_shows_nothing():
    with redirect_stderr(Terminal()) as terminal, searching():
        pass
    assert terminal.getvalue() == ""


def test_a_search_that_fails_erases_its_line():
    threads = threading.active_count()
    with (
        redirect_stderr(Terminal()) as terminal,
        pytest.raises(ZeroDivisionError),
        searching(unsaid=0.0),
    ):
        Fraction(int(not terminal.written.wait(30)), 0)
    assert terminal.is_erased
    assert threading.active_count() == threads


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_what_is_no_terminal_is_told_nothing(stream):
    threads = threading.active_count()
    with redirect_stderr(stream), searching(unsaid=0.0):
        assert threading.active_count() == threads
    assert stream is None or stream.getvalue() == ""


class Patient(Sizes, frozen=True):
    """Sizes whose plan takes until the terminal shows something."""

    def plan(self, request):
        assert sys.stderr.written.wait(30)
        assert "searching for the best plan" in sys.stderr.displayed
        message = "it was displayed"
        raise ValueError(message)


def test_any_plan_that_takes_long_shows_progress():
    with (
        redirect_stderr(Terminal()) as terminal,
        pytest.raises(ValueError, match="it was displayed"),
    ):
        Patient().planned(Request(Fraction(1), 1, 0))
    assert terminal.is_erased

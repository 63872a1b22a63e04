"""A signal announces that somebody has seen the state of a pipe."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import pytest

from panprivacy.cli.announcements import SignalledAnnouncements
from panprivacy.errors import BudgetError, PlanError


class Pipe:
    """What is read, and counted."""

    size, woken, announced = None, 0, 0

    @property
    def internals(self):
        return SimpleNamespace(memory=self)

    def wake(self):
        self.woken += 1

    def announce_intrusion(self):
        if self.announced == 2:
            raise BudgetError("all are used")
        self.announced += 1


@pytest.fixture
def pipe():
    before = signal.getsignal(signal.SIGUSR1)
    yield Pipe()
    assert signal.getsignal(signal.SIGUSR1) == before


def test_a_signal_is_taken_once_where_it_is_looked_for(pipe, capsys):
    with SignalledAnnouncements(pipe, lambda: pipe, 2) as announcements:
        announcements.take()
        signal.raise_signal(signal.SIGUSR1)
        assert (pipe.woken, pipe.announced) == (1, 0)
        announcements.take()
        announcements.take()
    assert pipe.announced == 1
    assert capsys.readouterr().err == (
        "panprivacy: announced 1 of 2 intrusions; the state may be seen once more\n"
    )


def test_more_than_were_planned_are_told(pipe, capsys):
    with SignalledAnnouncements(pipe, lambda: pipe, 2) as announcements:
        for _ in range(3):
            signal.raise_signal(signal.SIGUSR1)
            announcements.take()
    assert "nothing was announced: all are used" in capsys.readouterr().err


def test_a_file_is_counted_at_once(pipe):
    file = SimpleNamespace(size=7)
    with pytest.raises(PlanError, match="--intrusions is for a pipe: a file is counted at once"):
        SignalledAnnouncements(file, lambda: pipe, 1)
    with SignalledAnnouncements(file, lambda: pipe, 0):
        pass


def test_without_any_planned_the_signal_is_not_ours(pipe):
    before = signal.getsignal(signal.SIGUSR1)
    with SignalledAnnouncements(pipe, lambda: pipe, 0):
        assert signal.getsignal(signal.SIGUSR1) == before

"""Signals that end a pipe: the first one is waited for, the second ends at once."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import pytest

from panprivacy.cli import interruption
from panprivacy.cli.interruption import Interruption


class EndedError(BaseException):
    """The program would have ended here."""


class Source(SimpleNamespace):
    """A pipe that is told to stop."""

    def stop(self):
        self.stops = getattr(self, "stops", 0) + 1


@pytest.fixture
def died(monkeypatch):
    """With which signals the program would have ended."""
    found = []

    def die(number):
        found.append(number)
        raise EndedError

    monkeypatch.setattr(interruption, "_die", die)
    # a shell has what it runs in the background ignore SIGINT
    numbers = signal.SIGINT, signal.SIGTERM
    before = {one: signal.signal(one, signal.SIG_DFL) for one in numbers}
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_stops_the_pipe_and_the_second_ends_the_program(died, number, capsys):
    source = Source(size=None)
    with Interruption(source) as ended:
        signal.raise_signal(number)
        assert source.stops == 1
        assert died == []
        with pytest.raises(EndedError):
            signal.raise_signal(signal.SIGTERM)
        assert died == [signal.SIGTERM]
    with pytest.raises(EndedError):
        ended.end()
    assert died == [signal.SIGTERM, number]
    assert (
        f"ended by {signal.Signals(number).name}: the last answer is of" in capsys.readouterr().err
    )


def test_without_a_signal_handlers_are_as_before(died, capsys):
    before = signal.getsignal(signal.SIGTERM)
    with Interruption(Source(size=None)) as ended:
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
    ended.end()
    assert died == []
    assert capsys.readouterr().err == ""


def test_a_file_and_an_ignored_signal_are_left_alone(died):
    before = signal.getsignal(signal.SIGINT)
    with Interruption(Source(size=0)):
        assert signal.getsignal(signal.SIGINT) == before
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interruption(Source(size=None)):
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) not in {signal.SIG_IGN, signal.SIG_DFL}

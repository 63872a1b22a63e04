"""A clock that stood still or was set back is noticed."""

from __future__ import annotations

import pytest

from panprivacy.service.kept.pulse import Pulse


class Clocks:
    """That on the wall, and one that nobody sets."""

    def __init__(self):
        self.now, self.running = 1_790_000_000.0, 500.0
        self.pulse = Pulse(lambda: self.now, lambda: self.running)
        self.pulse.start()
        self.pulse.stop()  # a test looks itself

    def pass_by(self, wall, running=None):
        """Let time pass; whether something is noticed."""
        before = self.pulse.broken()
        self.now += wall
        self.running += wall if running is None else running
        return self.pulse.broken() != before


def test_a_clock_that_goes_on_evenly_is_not_noticed(caplog):
    clocks = Clocks()
    for passed in (0.0, 1.0, 4.9, 0.1):
        assert not clocks.pass_by(passed)
    assert not clocks.pass_by(-3, 1), "a little is set by each synchronisation"
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("wall", "running"), [(60, 60), (60, 0.1), (0.1, 60)], ids=["stopped", "paused", "set back too"]
)
def test_what_stood_still_is_noticed_once(caplog, wall, running):
    clocks = Clocks()
    assert clocks.pass_by(wall, running)
    assert not clocks.pass_by(1)
    assert caplog.text.count("the service stood still") == 1
    assert "seconds=60" in caplog.text


def test_a_clock_that_is_set_back_is_told_once_and_once_when_it_is_right(caplog):
    clocks = Clocks()
    assert clocks.pass_by(-3_600, 1)
    for _ in range(300):
        assert not clocks.pass_by(1)
    assert caplog.text.count("the clock was set back") == 1
    assert "where it was" not in caplog.text
    for _ in range(3_400):
        clocks.pass_by(1)
    assert caplog.text.count("where it was before") == 1
    assert len(caplog.records) == 2


def test_before_it_begins_nothing_is_noticed():
    moments = iter(range(0, 1_000, 100))
    pulse = Pulse(lambda: next(moments), lambda: 0.0)
    assert pulse.broken() == pulse.broken()
    pulse.stop()

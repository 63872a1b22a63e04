"""The start waits for Ray, up to a limit, and says so once."""

from __future__ import annotations

import pytest

from panprivacy.cluster.vault import SilentError
from panprivacy.cluster.waiting import Patience
from panprivacy.errors import PlanError
from panprivacy.service.journal import Event


class Time:
    """A clock that moves while somebody sleeps."""

    now = 0.0

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def patience():
    time = Time()
    return Patience(5.0, lambda: time.now, time.sleep)


def silent(times):
    """Work that fails so many times."""
    left = iter(range(times))

    def work():
        if next(left, None) is not None:
            raise SilentError("it does not answer")
        return "answer"

    return work


@pytest.mark.parametrize(("times", "lines"), [(0, 0), (1, 1), (5, 1)])
def test_the_answer_is_waited_for_and_the_journal_says_so_once(patience, caplog, times, lines):
    assert patience.wait_for(silent(times), SilentError) == "answer"
    told = [record for record in caplog.records if str(Event.waiting_for_ray) in record.message]
    assert len(told) == lines


def test_the_operator_is_told_what_to_do_when_the_time_is_over(patience):
    with pytest.raises(PlanError) as error:
        patience.wait_for(silent(9), SilentError)
    assert str(error.value) == (
        "Ray does not answer within 5 seconds (it does not answer): give this machine more "
        "processors, or raise start_patience in [cluster]"
    )


def test_another_error_is_raised_at_once(patience):
    def work():
        raise ValueError("of another kind")

    with pytest.raises(ValueError, match="of another kind"):
        patience.wait_for(work, SilentError)
    assert patience.clock() == 0

"""What connections share: turns, in order, and an end for those who read nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from panprivacy.service.web.connections import Flow, InOrder, Turns, Uncounted


class Clock:
    """Calls what was to be called later when it is told to."""

    def __init__(self):
        self.due = []

    def later(self, seconds, call):
        assert seconds > 0
        self.due.append(call)

    def tick(self):
        due, self.due = self.due, []
        for call in due:
            call()


def test_one_connection_goes_on_at_each_turn_in_order():
    clock, went = Clock(), []
    turns = Turns(0.001, clock.later)
    calls = [lambda number=number: went.append(number) for number in range(3)]
    for call in [*calls, calls[0]]:  # twice is once
        turns.add(call)
    for expected in ([0], [0, 1], [0, 1, 2], [0, 1, 2]):
        assert len(clock.due) <= 1
        clock.tick()
        assert went == expected
    turns.add(calls[1])
    clock.tick()
    assert went == [0, 1, 2, 1]


def test_one_that_fails_holds_up_no_other():
    clock, went = Clock(), []
    turns = Turns(0.001, clock.later)
    turns.add(lambda: 1 / 0)
    turns.add(lambda: went.append(1))
    for _ in range(2):
        try:
            clock.tick()
        except ZeroDivisionError:
            continue
    assert went == [1]


def test_a_flow_that_is_held_is_not_read_whoever_asks():
    said = []
    transport = SimpleNamespace(
        pause_reading=lambda: said.append("pause"), resume_reading=lambda: said.append("resume")
    )
    flow = Flow(transport, lambda: 0.0)
    flow.hold()
    flow.resume_reading()
    assert said == ["pause"]
    flow.release()
    assert said == ["pause", "resume"]


@pytest.mark.parametrize(
    ("stop", "go_on"), [(Flow.pause_reading, Flow.resume_reading), (Flow.hold, Flow.release)]
)
@pytest.mark.parametrize("turn_first", [False, True])
def test_a_flow_that_waits_for_its_turn_is_not_read_before(stop, go_on, turn_first):
    said = []
    transport = SimpleNamespace(
        pause_reading=lambda: said.append("pause"), resume_reading=lambda: said.append("resume")
    )
    flow = Flow(transport, lambda: 0.0)
    flow.await_turn()
    stop(flow)
    first, last = (Flow.take_turn, go_on) if turn_first else (go_on, Flow.take_turn)
    first(flow)
    assert said == ["pause"]
    last(flow)
    assert said == ["pause", "resume"]


def test_only_some_are_cut_off_at_once():
    state, asked = Uncounted(), []

    class Unread:
        def __init__(self):
            self.flow = self

        def cut_if_unread(self, seconds):
            assert seconds == state.limits.unread_seconds
            asked.append(self)
            return True

    made = [Unread() if number % 2 else object() for number in range(100)]
    for one in made:
        state.connections.add(one)
    state.check_readers()
    assert asked == made[1:41:2]


def test_who_reads_a_little_is_not_cut_off():
    sizes, now, aborted = iter([5, 4, 4, 4, 0, 0, 7]), [0.0], []
    transport = SimpleNamespace(
        get_write_buffer_size=lambda: next(sizes), abort=lambda: aborted.append(now[0])
    )
    flow = Flow(transport, lambda: now[0])
    cut = []
    for now[0] in (0.0, 5.0, 9.9, 10.0, 20.0, 30.0, 40.0):
        cut.append(flow.cut_if_unread(5.0))
    assert cut == [False, False, False, True, False, False, False]
    assert aborted == [10.0]


@pytest.mark.parametrize(("waits", "expected"), [(0, "close"), (7, "abort")])
def test_a_connection_is_cut_without_waiting_for_what_is_to_be_sent(waits, expected):
    said = []
    transport = SimpleNamespace(
        get_write_buffer_size=lambda: waits,
        abort=lambda: said.append("abort"),
        close=lambda: said.append("close"),
    )
    Flow(transport, lambda: 0.0).cut()
    assert said == [expected]


def test_a_set_in_order():
    found = InOrder()
    for one in ("b", "a", "b"):
        found.add(one)
    assert list(found) == ["b", "a"]
    found.discard("b")
    found.remove("c")
    assert list(found) == ["a"]

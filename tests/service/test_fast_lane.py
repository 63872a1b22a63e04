"""A request that is complete at once: its head is read once, if the next one has the same."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from panprivacy.service.web.fast_lane import FastLane

HEAD, BODY, OTHER = b"POST / HTTP/1.1\r\nHost: a\r\n\r\n", b"first", b"other"


class Lane:
    """A lane whose requests are answered when the test says so."""

    def __init__(self, takes=True):
        self.takes, self.tells, self.bodies, self.answers = takes, [], [], []
        self.tasks = set()
        self.lane = FastLane(self, self.tasks, lambda *given: self.answers.append(given))
        self.cycle = SimpleNamespace(
            scope={},
            body=bytearray(BODY),
            response_complete=False,
            response_started=False,
            flow=SimpleNamespace(write_paused=False),
        )

    def taker(self, scope):
        assert scope is self.cycle.scope
        return self if self.takes else None

    def take(self, body, tell):
        if body == b"no":
            return None
        self.bodies.append(bytes(body))
        self.tells.append(tell)
        return len(self.bodies)

    def first(self, head=HEAD):
        """Take the first request, and store its head."""
        assert self.lane.choose(self.cycle)
        assert self.lane.take(self.cycle, self.cycle.body)
        self.lane.remember(memoryview(head + BODY))
        self.tells[-1]("yes")


def test_a_request_is_a_task_until_it_has_its_answer():
    one = Lane()
    assert one.lane.choose(one.cycle)
    assert one.lane.take(one.cycle, one.cycle.body)
    assert one.tasks == {1}
    one.tells[0]("yes")
    assert one.tasks == set()
    assert one.answers == [(one.cycle, "yes")]
    assert one.cycle.response_complete


def test_without_a_handler_nothing_is_taken():
    one = Lane(takes=False)
    assert not one.lane.choose(one.cycle)
    assert not one.lane.take(one.cycle, one.cycle.body)


def test_the_same_head_is_taken_again():
    one = Lane()
    one.first()
    assert one.lane.take_again(one.cycle, memoryview(HEAD + OTHER))
    assert one.bodies == [BODY, OTHER]
    assert not one.cycle.response_complete
    assert not one.lane.let_go()


@pytest.mark.parametrize(
    "sent", [HEAD + b"longer", HEAD.replace(b"a", b"b") + OTHER, HEAD[1:] + b"other "]
)
def test_another_head_or_length_is_parsed(sent):
    one = Lane()
    one.first()
    assert not one.lane.take_again(one.cycle, memoryview(sent))


@pytest.mark.parametrize("change", ["forgotten", "paused", "unanswered", "first"])
def test_the_same_head_is_parsed_where_it_may_not_be_taken(change):
    one = Lane()
    one.first()
    one.cycle.flow.write_paused = change == "paused"
    one.cycle.response_complete = change != "unanswered"
    if change == "forgotten":
        one.lane.forget_head()
    cycle = None if change == "first" else one.cycle
    assert not one.lane.take_again(cycle, memoryview(HEAD + OTHER))


@pytest.mark.parametrize(
    "head",
    [
        HEAD.replace(b"Host", b"IDEMPOTENCY-key : b\r\nHost"),
        HEAD.replace(b"\r\n\r\n", b"\n\r\n\r\n"),
        HEAD + HEAD,
    ],
)
def test_such_a_head_is_not_stored(head):
    one = Lane()
    one.first(head)
    assert not one.lane.take_again(one.cycle, memoryview(head + OTHER))
    assert one.lane.let_go()


def test_what_its_handler_refuses_goes_elsewhere():
    one = Lane()
    one.cycle.body = bytearray(b"no")
    assert one.lane.choose(one.cycle)
    assert not one.lane.take(one.cycle, one.cycle.body)
    one.lane.remember(memoryview(HEAD + b"no"))
    assert one.lane.let_go()
    assert not one.lane.take(one.cycle, bytearray(BODY))  # its handler is gone


def test_a_body_that_is_not_taken_again_is_overwritten():
    one, seen = Lane(), []
    one.first()
    one.take = lambda body, _: seen.append(body)
    assert not one.lane.take_again(one.cycle, memoryview(HEAD + OTHER))
    assert seen == [bytes(len(OTHER))]

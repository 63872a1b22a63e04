"""Which data of a connection is parsed now, and which waits."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from panprivacy.service.web.connections import Limits
from panprivacy.service.web.reader import Reader

REQUEST = b"GET / HTTP/1.1\r\n\r\n"


class Connection:
    """A connection whose parser ends a request at each empty line, and answers none."""

    timeout_keep_alive_task = None

    def __init__(self, *, is_known=False):
        self.parsed, self.said, self.soon = [], [], []
        self.is_known, self.cycle, self.idle = is_known, None, True
        self.flow = SimpleNamespace(
            write_paused=False,
            hold=lambda: self.said.append("hold"),
            release=lambda: self.said.append("release"),
            await_turn=lambda: self.said.append("await turn"),
            take_turn=None,
        )
        self.head = SimpleNamespace(is_open=False, stop=lambda: None, expect=lambda: None)
        self.lane = SimpleNamespace(
            take_again=lambda *_: False, forget_head=lambda: None, remember=lambda _: None
        )
        queues = {name: SimpleNamespace(add=self.soon.append) for name in ("turns", "pieces")}
        self.server_state = SimpleNamespace(limits=Limits(piece_bytes=1 << 12), **queues)
        self.loop = SimpleNamespace(call_soon=self.soon.append)
        self.transport = SimpleNamespace(is_closing=lambda: False)
        self.reader = Reader(self)

    def data_received(self, data):
        self.parsed.append(bytes(data))
        self.cycle, self.idle = SimpleNamespace(more_body=False), False

    def begin(self):
        pass

    def answer(self):
        self.idle = True
        self.reader.go_on_soon()

    def send(self, data):
        buffer = self.reader.buffer()
        buffer[: len(data)] = data
        self.reader.take(len(data))
        assert not any(buffer[: len(data)])


@pytest.mark.parametrize("is_known", [False, True])
def test_of_pipelined_requests_one_is_parsed_after_the_answer_to_the_one_before(is_known):
    one = Connection(is_known=is_known)
    one.send(REQUEST * 3)
    assert one.parsed == [REQUEST] * is_known  # without a token, none before its turn
    assert one.said == ["hold"]
    while one.reader.ahead:
        assert one.soon
        one.soon.pop()()
        parsed = len(one.parsed)
        one.reader.go_on()
        assert len(one.parsed) == parsed
        one.answer()
    assert one.parsed == [REQUEST] * 3
    assert one.said == ["hold", "release"]


def test_what_waits_is_forgotten():
    one = Connection(is_known=True)
    one.send(REQUEST * 2)
    assert one.reader.ahead == len(REQUEST)
    one.reader.forget()
    one.answer()
    one.reader.go_on()
    assert one.parsed == [REQUEST]


def test_a_deaf_one_parses_nothing():
    one = Connection(is_known=True)
    one.reader.deaf = True
    one.send(REQUEST)
    assert one.parsed == []


@pytest.mark.parametrize(("size", "turns"), [((1 << 12) - 1, 0), (1 << 12, 1)])
def test_after_a_large_piece_others_have_their_turn(size, turns):
    one = Connection(is_known=True)
    one.send(bytes(size))
    assert one.said == ["await turn"] * turns


def test_a_sender_without_a_token_has_a_small_buffer():
    assert [len(Connection(is_known=one).reader.buffer()) for one in (False, True)] == [
        *(1 << 12, 1 << 18)
    ]

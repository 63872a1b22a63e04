"""Bodies are zeros once they were counted or refused, and so is the stack of the thread."""

from __future__ import annotations

import asyncio

import pytest

from panprivacy.errors import InputError
from panprivacy.service.incoming import body_counter
from panprivacy.service.incoming.body_counter import BodyCounter

LINE = b'{"user": "ada"}\n'


class OneStream:
    """Counts, refuses or fails, as a test says."""

    name = "visits"

    class columns:
        group = None

    def __init__(self, outcome):
        self.outcome, self.asked = outcome, 0

    def take_together(self, sent, *, wait):
        self.asked += 1
        if isinstance(self.outcome, InputError):
            return [self.outcome for _ in sent]
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return [True for _ in sent]


OUTCOMES = {"counted": True, "refused": InputError("no"), "failed": MemoryError()}


@pytest.fixture
def wiped(monkeypatch):
    """How often the stack of a thread was wiped."""
    calls = []
    monkeypatch.setattr(body_counter, "wipe_stack", lambda: calls.append(1))
    monkeypatch.setattr(body_counter.Body, "read", lambda body, stream: body_counter.Sent([]))
    return calls


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_body_is_overwritten_whatever_becomes_of_it(outcome, size, wiped):
    async def sent():
        stream = OneStream(OUTCOMES[outcome])
        counter, content = BodyCounter([stream]), bytearray(LINE * size)
        counter.start()
        try:
            await counter.count(stream, "ndjson", content, None)
        except (InputError, MemoryError):
            assert outcome != "counted"
        finally:
            counter.stop()
        return content

    content = asyncio.run(sent())
    assert len(content) == len(LINE * size)
    assert not any(content)
    assert len(wiped) == (size > 1), "a large body is counted by a thread of its own"


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_body_that_nobody_waits_for_any_more_is_told_once(size, wiped):
    async def sent():
        told, stream = [], OneStream(True)
        counter, content = BodyCounter([stream]), bytearray(LINE * size)
        body = counter.put(stream, "ndjson", content, None, told.append)
        body.cancel(msg="the service stops")
        counter.start()
        counter.stop()
        for _ in range(10):
            await asyncio.sleep(0)
        return told, content, stream.asked

    told, content, asked = asyncio.run(sent())
    assert asked == (size == 1), "a small one is counted at once"
    assert [type(one) for one in told] == [asyncio.CancelledError]
    assert not any(content)

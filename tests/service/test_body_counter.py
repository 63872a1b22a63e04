"""Bodies are zeros once they were counted or refused, and so is the stack of the thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from panprivacy.errors import InputError
from panprivacy.intake.sources import BodyReader
from panprivacy.service.incoming import body_counter
from panprivacy.service.incoming.body_counter import BodyCounter
from panprivacy.service.web import app
from tests.service.asking import NUMBERS, UPDATES, all_at_once, refused, wait_for

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
    monkeypatch.setattr(body_counter.Body, "read", lambda body, stream: body_counter.Submission([]))
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


def test_a_body_is_not_overwritten_while_a_thread_reads_it(client, monkeypatch):
    reading, going_on, seen = threading.Event(), threading.Event(), []
    read = BodyReader.read

    def slow(reader, kind, body):
        reading.set()
        going_on.wait(30)
        seen.append(bytes(body))
        seen.append(body)
        return read(reader, kind, body)

    monkeypatch.setattr(BodyReader, "read", slow)
    body = b"\x01" * (body_counter._SMALL["int64"] + 8)

    async def cancelled():
        headers = {"Content-Type": "application/octet-stream"}
        sending = asyncio.create_task(
            client.asking("POST", UPDATES, "ingest", content=body, headers=headers)
        )
        await asyncio.to_thread(reading.wait, 30)
        sending.cancel()
        answer = await sending
        going_on.set()
        return answer

    assert refused(client.runner.run(cancelled()), 503) == app._STOPS
    client.engine.streams["visits"].state()
    wait_for(lambda: len(seen) == 2 and not any(seen[1]))
    assert seen[0] == body


def test_small_bodies_that_come_together_are_counted_in_one_pass(client, monkeypatch):
    stream, passes = client.engine.streams["visits"], []
    take = stream.take_together

    def spied(several, **named):
        passes.append(len(several))
        return take(several, **named)

    monkeypatch.setattr(stream, "take_together", spied)
    answers = client.runner.run(all_at_once(client, [(NUMBERS, {})] * 40))
    assert {answer.status_code for answer in answers} == {202}
    assert len(passes) == -(-40 // body_counter._TOGETHER)
    assert set(passes) == {1}, "they are read as one"


def test_while_a_stream_is_busy_others_are_counted(client, monkeypatch):
    held, going_on = threading.Event(), threading.Event()
    stream = client.engine.streams["visits"]
    checked = stream.reception.check

    def slow(counting, batches):
        held.set()
        going_on.wait(30)
        return checked(counting, batches)

    monkeypatch.setattr(stream.reception, "check", slow)
    large = b"\x01" * (body_counter._SMALL["int64"] + 8)

    async def both():
        headers = {"Content-Type": "application/octet-stream"}
        waiting = []
        for body in (large, NUMBERS, NUMBERS, large):
            request = client.asking("POST", UPDATES, "ingest", content=body, headers=headers)
            waiting.append(asyncio.create_task(request))
            await asyncio.to_thread(held.wait, 30)
        texts = "user,page\n" + "ada,home\n" * 20_000
        path = UPDATES.replace("visits", "pages")
        csv = {"Content-Type": "text/csv"}
        other = await client.asking("POST", path, "ingest", content=texts, headers=csv)
        assert not any(task.done() for task in waiting)
        going_on.set()
        return other, await asyncio.gather(*waiting)

    other, answers = client.runner.run(both())
    assert other.status_code == 202
    assert [answer.status_code for answer in answers] == [202] * 4


def test_bodies_whose_senders_are_gone_are_not_counted(client, monkeypatch, received):
    held, going_on = threading.Event(), threading.Event()
    stream = client.engine.streams["visits"]
    checked, counted = stream.reception.check, []

    def slow(counting, batches):
        counted.append(1)
        held.set()
        going_on.wait(30)
        return checked(counting, batches)

    monkeypatch.setattr(stream.reception, "check", slow)
    large = b"\x01" * (body_counter._SMALL["int64"] + 8)

    async def cancelled():
        headers = {"Content-Type": "application/octet-stream"}
        sending = [
            asyncio.create_task(
                client.asking("POST", UPDATES, "ingest", content=large, headers=headers)
            )
            for _ in range(5)
        ]
        await asyncio.to_thread(held.wait, 30)
        while len(received) < 5:
            await asyncio.sleep(0.01)
        for task in sending:
            task.cancel()
        answers = await asyncio.gather(*sending)
        going_on.set()
        return answers

    for answer in client.runner.run(cancelled()):
        refused(answer, 503)
    client.engine.bodies.stop()
    assert len(counted) <= 2
    assert not any(map(any, received))

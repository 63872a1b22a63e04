"""Answers in pages: in a common limit of memory, and an end for a reader that does not read."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from starlette.requests import ClientDisconnect

from panprivacy.service.incoming.admission import Sender
from panprivacy.service.incoming.problems import Problem
from panprivacy.service.outgoing import reader
from panprivacy.service.outgoing.exports import Piece
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.web import paged
from panprivacy.service.web.paged import PagedAnswers, single_page
from tests.service.asking import client_in, publish
from tests.service.test_protocol import Served, get, received

SLOW, OTHER = Sender("slow", ""), Sender("other", "")
PAGES = [Piece(b"a" * 10, False), Piece(b"b" * 20, False), Piece(b"c" * 30, True)]


class Reader:
    """Takes pieces until it stops."""

    def __init__(self, takes=99, then=None):
        self.messages, self._takes, self._then = [], takes, then

    async def __call__(self, message):
        if len(self.messages) > self._takes:
            await self._then()
        self.messages.append(message)

    @property
    def body(self):
        return b"".join(one["body"] for one in self.messages[1:])


def sent(response, reader, method="GET"):
    return response({"type": "http", "method": method}, None, reader)


async def answers_of(answers, token, pages=PAGES):
    made = answers.made(token.token, iter(pages))
    return await answers.answer(token, made, {"Content-Type": "text/csv"})


def test_all_pieces_are_sent_in_order():
    async def run():
        answers, reader = PagedAnswers(), Reader()
        response = await answers_of(answers, SLOW)
        assert "Content-Length" not in response.headers
        await sent(response, reader)
        assert reader.body == b"a" * 10 + b"b" * 20 + b"c" * 30
        assert [one.get("more_body") for one in reader.messages] == [None, True, True, False]
        one = await answers_of(answers, SLOW, PAGES[2:])
        assert (one.headers["Content-Length"], one.headers["Content-Type"]) == ("30", "text/csv")

    asyncio.run(run())


def test_what_finds_no_room_is_told_to_come_again_before_anything_is_made():
    async def run():
        answers, made = PagedAnswers(6 << 20), []

        async def body():
            made.append(1)
            return b"a"

        held = [await answers.answer(SLOW, single_page(body), {}) for _ in range(2)]
        for _ in range(3):
            with pytest.raises(Problem, match="come again") as error:
                await answers.answer(SLOW, single_page(body), {})
            assert (error.value.status, error.value.headers) == (429, {"Retry-After": "1"})
        assert len(made) == 2
        await sent(await answers.answer(OTHER, single_page(body), {}), Reader())  # there is room
        await sent(held[0], Reader())
        await answers.answer(SLOW, single_page(body), {})

    asyncio.run(run())


def test_a_long_piece_holds_more_room():
    async def run():
        answers = PagedAnswers(12 << 20)

        async def body():
            return bytes(4 << 20)

        held = await answers.answer(SLOW, single_page(body), {})
        with pytest.raises(Problem):
            await answers.answer(SLOW, single_page(body), {})
        await sent(held, Reader())
        await answers.answer(SLOW, single_page(body), {})

    asyncio.run(run())


async def _wait():
    await asyncio.Event().wait()


async def _disconnect():
    raise ClientDisconnect


@pytest.mark.parametrize("then", [_wait, _disconnect])
@pytest.mark.parametrize("takes", [1, 2])
def test_a_reader_that_stops_ends_its_answer_and_holds_nothing(monkeypatch, takes, then):
    monkeypatch.setattr(paged, "_PAGE_SECONDS", 0.05)

    async def run():
        answers, reader = PagedAnswers(), Reader(takes, then)
        await sent(await answers_of(answers, SLOW), reader)
        assert reader.messages[-1].get("more_body") is not False
        assert not answers._room._held

    asyncio.run(run())


def test_a_head_makes_one_page_and_has_no_body():
    async def run():
        answers, reader, left = PagedAnswers(), Reader(), iter(PAGES)
        response = await answers.answer(SLOW, answers.made("slow", left), {})
        await sent(response, reader, "HEAD")
        assert reader.body == b""
        assert [*left] == PAGES[1:]

    asyncio.run(run())


def test_tokens_take_turns():
    order, first = [], threading.Event()

    def pages(token):
        for number in range(3):
            first.wait()
            order.append(f"{token}{number}")
            yield Piece(b"a", number == 2)

    async def run():
        answers = PagedAnswers()
        many = [asyncio.ensure_future(answers_of(answers, SLOW, pages("slow"))) for _ in range(8)]
        await asyncio.sleep(0.05)
        other = asyncio.ensure_future(answers_of(answers, OTHER, pages("other")))
        await asyncio.sleep(0.05)
        first.set()
        for each in await asyncio.gather(other, *many):
            await sent(each, Reader())

    asyncio.run(run())
    assert "other0" in order[:3]


def test_a_store_that_fails_within_an_answer_ends_it(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(reader, "_PAGE_ROWS", 3)
    pages = ReleaseStore.pages

    def failing(self, **asked):
        yield next(pages(self, **asked))
        message = "the database fails: it is gone"
        raise StoreError(message)

    monkeypatch.setattr(ReleaseStore, "pages", failing)
    with Served(tmp_path) as service:
        publish(service, 10)
        with service.connect() as sock:
            sock.sendall(get("/v1/releases", token="read"))
            raw = received(sock)
        service.check_others()
    assert raw.startswith(b"HTTP/1.1 200")
    assert not raw.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_long_answer_is_complete_in_both_versions(tmp_path, monkeypatch, version):
    monkeypatch.setattr(reader, "_PAGE_ROWS", 3)
    with Served(tmp_path) as service:
        publish(service, 100)
        with service.connect() as sock:
            sock.sendall(get("/v1/releases", token="read", close=True, version=version))
            head, _, body = received(sock).partition(b"\r\n\r\n")
    if version == "1.1":
        assert b"transfer-encoding: chunked" in head
        rest, body = body, b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    else:
        assert b"transfer-encoding" not in head
    assert [row["argument"] for row in json.loads(body)] == [*range(100)]


def test_metrics_are_made_once_for_many(tmp_path, monkeypatch):
    made = []
    with client_in(tmp_path) as client:
        monkeypatch.setattr(ReleaseStore, "latest", lambda _: made.append(1) or [])

        async def many():
            return await asyncio.gather(
                *(client.asking("GET", "/metrics", "read") for _ in range(10))
            )

        answers = client.runner.run(many())
    assert {one.status_code for one in answers} == {200}
    assert len(made) == 1

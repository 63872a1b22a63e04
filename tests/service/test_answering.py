"""Answers leave in pieces, and a connection ends in good order."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from starlette.responses import Response

from panprivacy.service.web.answering import answered, join_response


def sent_of(body, more_body):
    """The messages in which an answer with this body leaves."""
    messages = []

    async def send(message):
        messages.append(message)

    async def app(scope, receive, send):
        await Response(body)(scope, receive, send)

    cycle = SimpleNamespace(
        more_body=more_body, keep_alive=True, body=bytearray(b"rest"), disconnected=False
    )
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET",
        "headers": [(b"idempotency-key", b"a")],
    }  # fmt: skip
    asyncio.run(answered(cycle, app, scope, None, send))
    assert cycle.body == b""
    assert scope["headers"] == []
    return cycle, messages


@pytest.mark.parametrize("size", [0, 1, 1 << 14, (1 << 14) + 1, 100_000, 1 << 17])
def test_a_long_answer_leaves_in_pieces(size):
    body = bytes(range(256)) * (size // 256 + 1)
    body = body[:size]
    cycle, (start, *parts) = sent_of(body, more_body=False)
    assert dict(start["headers"])[b"content-length"] == str(size).encode()
    assert b"".join(part["body"] for part in parts) == body
    assert max(len(part["body"]) for part in parts) <= 1 << 14
    assert [part.get("more_body", False) for part in parts] == [True] * (len(parts) - 1) + [False]
    assert cycle.keep_alive


def test_the_connection_ends_if_a_body_was_not_read():
    cycle, _ = sent_of(b"no", more_body=True)
    assert not cycle.keep_alive


def test_a_response_is_joined_with_other_headers():
    joined = join_response(Response(b"a", 202), [(b"date", b"now")], b"connection: close\r\n")
    assert joined == (
        b"HTTP/1.1 202 Accepted\r\ndate: now\r\ncontent-length: 1\r\nconnection: close\r\n\r\na"
    )

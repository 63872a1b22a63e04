"""Asking a service that runs: where it is, what it says, and when nobody knows."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, contextmanager

import pytest

from panprivacy.errors import InputError, PlanError
from panprivacy.service import client
from panprivacy.service.client import UnsureError, announced, new_key

GOOD = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"left": 1}'


@contextmanager
def answering(path, *answers):
    """A service on a socket of the system that gives these answers, one a connection."""
    asked = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def work():
            for answer in answers:
                connection, _ = server.accept()
                with closing(connection):
                    asked.append(connection.recv(1 << 12))
                    connection.sendall(answer)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield f"unix:{path}", asked
        thread.join(10)


def answer(status, body):
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def test_it_is_asked_with_the_token_and_the_key(tmp_path):
    with answering(tmp_path / "s", GOOD) as (url, asked):
        assert announced(url, "visits", "pp_word", "k" * 32) == {"left": 1}
    (request,) = asked
    assert request.startswith(b"POST /v1/streams/visits/announce HTTP/1.1\r\n")
    assert b"Authorization: Bearer pp_word\r\n" in request
    assert b"Idempotency-Key: " + b"k" * 32 in request


def test_what_is_cut_off_is_asked_again_with_the_same_key(tmp_path):
    with answering(tmp_path / "s", b"", b"HTTP/1.1 2", GOOD) as (url, asked):
        assert announced(url, "visits", "pp_word", "key") == {"left": 1}
    assert len(asked) == 3
    assert len({one.split(b"Idempotency-Key: ")[1] for one in asked}) == 1


def test_after_three_tries_nobody_knows(tmp_path):
    with (
        answering(tmp_path / "s", b"", b"", b"") as (url, asked),
        pytest.raises(UnsureError, match="does not answer, so nobody knows whether it was"),
    ):
        announced(url, "visits", "pp_word", "key")
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("reply", "kind", "says"),
    [
        (answer(409, b'{"detail": "none is left"}'), InputError, "^visits: none is left$"),
        (answer(499, b"{}"), InputError, "^visits: HTTP status 499$"),
        (answer(500, b'{"detail": "full"}'), UnsureError, "^visits: full$"),
        (answer(200, b"[]"), PlanError, "this is no panprivacy service"),
        (answer(502, b"<html>"), PlanError, "this is no panprivacy service"),
    ],
)
def test_a_refusal_says_whether_anything_may_have_happened(tmp_path, reply, kind, says):
    with answering(tmp_path / "s", reply) as (url, _), pytest.raises(kind, match=says) as raised:
        announced(url, "visits", "pp_word", "key")
    assert raised.type is kind


@pytest.mark.parametrize("token", ["", "two words", "pp_ä", "pp_a\n", "a\x7f"])
def test_a_token_is_one_word(token):
    with pytest.raises(PlanError, match="a token is one word"):
        announced("unix:/nowhere", "visits", token, "key")


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:80", "ftp://h", "http://", "http://h:99999", "http://h/../p"),
        *("http://h?q", "http://h#f", "http://me@h", "unix:", "unix://host/path"),
    ],
)
def test_a_url_has_a_host_or_a_path_and_nothing_else(url):
    with pytest.raises(PlanError, match="URL must be http://HOST:PORT, https://HOST:PORT or unix"):
        announced(url, "visits", "pp_word", "key")


@pytest.mark.parametrize(
    ("url", "port", "root"),
    [("http://h:81", 81, ""), ("https://h", 443, ""), ("http://h/", 80, ""),
     ("https://h/pp/", 443, "/pp")],
)  # fmt: skip
def test_a_url_leads_to_its_port_and_path(url, port, root):
    made, found = client.connection_to(url)
    assert (made.host, made.port, made.timeout, found) == ("h", port, 60, root)


def test_keys_differ():
    assert len({new_key() for _ in range(9)}) == 9
    assert len(bytes.fromhex(new_key())) == 16

"""Who may enter the dashboard, and what its answers forbid."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time

import httpx
import pytest
from starlette.requests import Request

from panprivacy.service.config.loading import load
from panprivacy.service.config.tokens import Tokens, hash_of
from panprivacy.service.dashboard import guard
from panprivacy.service.dashboard.board import Board
from panprivacy.service.dashboard.guard import COOKIE, Guard, Readers, no_such_page, token_of
from panprivacy.service.dashboard.origins import Origins
from tests.dashboard.rows import HASHES, TOKENS, days, published


@pytest.mark.parametrize("damage", ["answers SET released = 'never'", "ledger SET epsilon = '1/0'"])
def test_a_damaged_row_is_told_and_tokens_are_followed_on(tmp_path, store, file, damage):
    published(store, days(2))
    with contextlib.closing(sqlite3.connect(tmp_path / "releases.sqlite")) as raw, raw:
        raw.execute(f"UPDATE panprivacy_{damage}")
    board = Board(load(file), file)
    board.follow()
    assert "damaged" in board.trouble
    file.write_text(file.read_text().replace(HASHES["board"], hash_of("pp_another")))
    board.follow()
    assert not board.readers.streams(TOKENS["board"])
    board.close()


async def reached(scope, receive, send):
    """What stands behind the guard in tests."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def ask(tokens, method, path, app=reached, origins=(), **given):
    """What the guard answers; a page of its own asks, unless headers are given."""
    made = Guard(app, Readers(tokens, ["shop", "calls"]), Origins(origins))
    given.setdefault("headers", {"origin": "http://board"})

    async def asked():
        transport = httpx.ASGITransport(app=made)
        async with httpx.AsyncClient(transport=transport, base_url="http://board") as client:
            return await client.request(method, path, **given)

    return asyncio.run(asked())


FORWARDED = b"x-forwarded-prefix"


@pytest.fixture
def tokens(file):
    return Tokens(load(file).tokens)


def test_nobody_enters_without_a_token_that_may_read(tokens):
    assert ask(tokens, "GET", "/").status_code == 401
    for path in ("/streams/shop", "/_nicegui/client.js", "/_nicegui_ws/socket.io/"):
        assert ask(tokens, "GET", path).status_code == 401
    for token in ("pp_nobody", TOKENS["web"], "", 'x"; a=b', "é"):
        refused = ask(tokens, "POST", "/enter", data={"token": token})
        assert refused.status_code == 403
        assert "set-cookie" not in refused.headers
        assert ask(tokens, "GET", "/", headers=[(b"cookie", f"{COOKIE}={token}".encode())]
                   ).status_code == 401  # fmt: skip
    assert ask(tokens, "POST", "/enter", content=b"token=" + b"a" * 10_000).status_code == 403


def test_a_token_that_may_read_is_kept_where_no_script_and_no_other_site_sees_it(tokens):
    entered = ask(tokens, "POST", "/enter", data={"token": TOKENS["shop"]})
    cookie = entered.headers["set-cookie"]
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    inside = ask(tokens, "GET", "/", headers={"cookie": cookie.partition(";")[0]})
    assert inside.text == "inside"
    left = ask(tokens, "POST", "/leave")
    assert f'{COOKIE}=""' in left.headers["set-cookie"]


@pytest.mark.parametrize("seen", ["", "/pp"], ids=["left out by the proxy", "handed on"])
def test_behind_a_proxy_all_is_at_its_path(tokens, seen):
    found = []

    async def noting(scope, receive, send):
        found.append((scope["path"], scope["root_path"], dict(scope["headers"]).get(FORWARDED)))
        await reached(scope, receive, send)

    proxied = {"app": noting, "origins": ["http://board/pp"]}
    assert 'action="/pp/enter"' in ask(tokens, "GET", f"{seen}/", **proxied).text
    entered = ask(tokens, "POST", f"{seen}/enter", data={"token": TOKENS["board"]}, **proxied)
    cookie = entered.headers["set-cookie"]
    assert entered.headers["location"] == "/pp/"
    assert "Path=/pp/;" in cookie
    headers = {"cookie": cookie.partition(";")[0], "x-forwarded-prefix": "/evil"}
    for path in ("/", "/ppp", "/streams/pp"):
        ask(tokens, "GET", f"{seen}{path}", headers=headers, **proxied)
        assert found.pop() == (f"/pp{path}", "/pp", None)
    left = ask(tokens, "POST", f"{seen}/leave", **proxied)
    assert left.headers["location"] == "/pp/"
    assert "Path=/pp/;" in left.headers["set-cookie"]


def test_a_browser_that_goes_away_is_no_error_and_all_else_is(tokens):
    async def raising(scope, receive, send):
        await receive()
        raise RuntimeError

    async def ask_once(message):
        async def receive():
            return {"type": message}

        cookie = f"{COOKIE}={TOKENS['board']}".encode()
        headers = [(b"cookie", cookie)]
        scope = {"type": "http", "scheme": "http", "path": "/", "method": "GET", "headers": headers}
        await Guard(raising, Readers(tokens, ["shop"]), Origins())(scope, receive, None)

    asyncio.run(ask_once("http.disconnect"))
    with pytest.raises(RuntimeError):
        asyncio.run(ask_once("http.request"))


def test_every_answer_forbids_what_is_elsewhere(tokens):
    policy = ask(tokens, "GET", "/").headers["content-security-policy"]
    assert policy.startswith("default-src 'self'")
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy


def opened(tokens, *headers):
    """What becomes of a request for a web socket."""
    sent = []

    async def send(message):
        sent.append(message)

    async def inside(scope, receive, send):
        await send({"type": "websocket.accept"})

    own = [(b"host", b"board"), *headers]
    scope = {"type": "websocket", "scheme": "ws", "path": "/", "headers": own}
    asyncio.run(Guard(inside, Readers(tokens, ["shop"]), Origins())(scope, None, send))
    return sent


COOKIES = b"cookie", f"{COOKIE}={TOKENS['board']}".encode()
OWN, FOREIGN = (b"origin", b"http://board"), (b"origin", b"http://evil.example")


def test_a_web_socket_needs_a_token_and_the_origin_of_the_dashboard(tokens):
    assert opened(tokens, COOKIES, OWN) == [{"type": "websocket.accept"}]
    closed = [{"type": "websocket.close", "code": 1008}]
    assert opened(tokens, (b"cookie", b"a=b"), OWN) == closed
    assert opened(tokens, COOKIES, FOREIGN) == closed
    assert opened(tokens, COOKIES, OWN, FOREIGN) == closed
    assert opened(tokens, COOKIES, (b"origin", b"null")) == closed
    assert opened(tokens, COOKIES) == closed


@pytest.mark.parametrize("path", ["/", "/enter", "/leave", "/_nicegui_ws/socket.io/", "/nothing"])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "PUT"])
def test_another_web_site_is_refused_everything(tokens, path, method):
    for origin in ("http://evil.example", "http://board:81", "https://board", "null", ""):
        headers = {"origin": origin, "cookie": f"{COOKIE}={TOKENS['board']}"}
        refused = ask(tokens, method, path, headers=headers, data={"token": TOKENS["board"]})
        assert refused.status_code == 403
        assert "--origin" in refused.text
        assert not {"set-cookie", "access-control-allow-origin"} & {*refused.headers}


@pytest.mark.parametrize("path", ["/enter", "/leave"])
def test_a_request_that_changes_something_names_its_origin(tokens, path):
    refused = ask(tokens, "POST", path, headers={}, data={"token": TOKENS["shop"]})
    assert refused.status_code == 403
    assert ask(tokens, "GET", "/", headers={}).status_code == 401


def test_no_answer_lets_other_web_sites_read_it(tokens):
    async def generous(scope, receive, send):
        headers = [(b"access-control-allow-origin", b"http://board"),
                   (b"Access-Control-Allow-Credentials", b"true")]  # fmt: skip
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"inside"})

    headers = {"cookie": f"{COOKIE}={TOKENS['board']}", "origin": "http://board"}
    answer = ask(tokens, "GET", "/", app=generous, headers=headers)
    assert answer.text == "inside"
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_form_that_does_not_arrive_is_given_up(tokens, monkeypatch):
    monkeypatch.setattr(guard, "_BODY_SECONDS", 0.05)
    sent = []

    async def send(message):
        sent.append(message)

    async def ask_slowly():
        came = iter([{"type": "http.request", "body": b"token=", "more_body": True}])

        async def receive():
            return next(came, None) or await asyncio.Event().wait()

        headers = [(b"host", b"board"), (b"origin", b"http://board")]
        scope = {"type": "http", "scheme": "http", "path": "/enter", "method": "POST",
                 "headers": headers}  # fmt: skip
        await Guard(reached, Readers(tokens, ["shop"]), Origins())(scope, receive, send)

    asyncio.run(asyncio.wait_for(ask_slowly(), 30))
    assert sent[0]["status"] == 403


def test_long_cookies_take_no_time():
    """Python's own reader takes time that grows with the square of their length."""
    cookies = f'{COOKIE}="' + "\\" * 1_000_000
    began = time.thread_time()
    assert token_of(cookies).startswith('"')
    assert time.thread_time() - began < 0.5


def test_a_token_of_one_stream_reads_that_one(tokens):
    readers = Readers(tokens, ["shop", "calls"])
    assert readers.streams(TOKENS["shop"]) == ["shop"]
    assert readers.streams(TOKENS["board"]) == ["shop", "calls"]
    tokens.take_over([])
    assert readers.streams(TOKENS["board"]) == []


def test_a_token_is_found_among_other_cookies():
    assert token_of(f"a=b; {COOKIE}=pp_a-_1;c=d") == "pp_a-_1"
    assert token_of(f"x{COOKIE}=pp_a; {COOKIE}x=pp_b") == ""


@pytest.mark.parametrize("cookies", ["", "a", f"{COOKIE}", "\x00=1", f"{COOKIE}=;;=="])
def test_other_cookies_are_no_token(cookies):
    assert token_of(cookies) == ""


@pytest.mark.parametrize("root", ["", "/board"])
def test_an_address_without_a_page_has_a_link_home(root):
    request = Request({"type": "http", "root_path": root, "headers": []})
    answer = asyncio.run(no_such_page(request, LookupError()))
    assert answer.status_code == 404
    assert f'<a href="{root}/">All streams</a>' in answer.body.decode()
    assert "There is no such page" in answer.body.decode()

"""Guard: admits holders of a token that may read; other requests get a page that asks for one.

The token is in a cookie of the browser session, which no script can read. A request with another
site as its origin is refused, regardless of its token. Nothing is stored here, so a token that is
removed from the configuration is useless at the next request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from html import escape
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from panprivacy.service.config.tokens import AccessError, Role, Tokens
from panprivacy.service.dashboard.origins import Origins

COOKIE: Final = "panprivacy_dashboard"
ENTER, LEAVE = "/enter", "/leave"
_PREFIX: Final = b"x-forwarded-prefix"
_LONGEST_BODY: Final = 4_096
_BODY_SECONDS: Final = 10.0
_REFUSED: Final = 1008
"""Close code of WebSocket: policy violation."""
_FOREIGN: Final = (
    "Another web site asked for this. If it is a proxy in front of the dashboard, start the "
    "dashboard with --origin and what the browser shows: --origin https://numbers.example\n"
)
_FOR_OTHERS: Final = b"access-control-allow-origin", b"access-control-allow-credentials"
"""Headers that let other web sites read an answer: all are removed."""
HEADERS: Final = {
    # whatever a page contains, the browser sends nothing to other sites
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline' "
    "'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'",
    "Referrer-Policy": "same-origin",  # without it, a form of ours would name no origin
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_HEAD: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>panprivacy</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #1f2937; background: #f5f6f8; margin: 0;
  display: grid; place-items: center; min-height: 100vh }
main { background: #fff; border: 1px solid #e5e7eb; border-radius: 12px; padding: 28px;
  max-width: 380px; margin: 16px; box-sizing: border-box }
h1 { font-size: 22px; margin: 0 0 8px } p { margin: 0 0 16px; color: #4b5563 }
label { font-weight: 600; display: block; margin-bottom: 4px }
input { font: inherit; width: 100%; box-sizing: border-box; padding: 10px; border-radius: 8px;
  border: 1px solid #6b7280 }
button { font: inherit; font-weight: 600; margin-top: 14px; width: 100%; padding: 10px;
  border: 0; border-radius: 8px; background: #0072B2; color: #fff }
:focus-visible { outline: 3px solid #E69F00; outline-offset: 2px }
[role=alert] { color: #a33c00; font-weight: 600 }
</style></head><body><main>
"""
_PAGE: Final = """<h1>panprivacy dashboard</h1>
<p>It shows what was released. To enter, give a token that may read.</p>
{problem}<form method="post" action="{enter}">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="off" required autofocus>
<button>Enter</button></form></main>
<script>
const enter = () => {{
  if (!location.hash.startsWith("#pp_")) return;
  document.getElementById("token").value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  document.forms[0].submit();
}};
addEventListener("hashchange", enter);
enter();
</script></body></html>"""
_ABSENT: Final = """<h1>There is no such page</h1>
<p>The dashboard has no page at this address.</p>
<a href="{home}">All streams</a></main></body></html>"""
_PROBLEM: Final = '<p role="alert">{}</p>'


class Readers:
    """Streams that each token may read.

    Args:
        tokens: the tokens of the configuration.
        streams: names of all streams.
    """

    def __init__(self, tokens: Tokens, streams: Iterable[str]) -> None:
        self._tokens, self._streams = tokens, tuple(streams)

    def streams(self, token: str) -> list[str]:
        """Return the streams whose releases a token may read."""
        return [name for name in self._streams if self._may_read(token, name)]

    def _may_read(self, token: str, stream: str) -> bool:
        try:
            self._tokens.check(f"Bearer {token}", Role.read, stream)
        except AccessError:
            return False
        return True


class Guard:
    """ASGI application that guards another one.

    Args:
        app: the guarded application.
        readers: the streams that each token may read.
        origins: the origins whose pages may send requests.
    """

    def __init__(self, app: ASGIApp, readers: Readers, origins: Origins) -> None:
        self.app, self._readers, self._origins = app, readers, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        scope = self._placed(scope)
        if scope["type"] == "http":
            await self._http(scope, receive, _with_headers(send))
        elif scope["type"] != "websocket" or self._may_open(scope):
            await self.app(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": _REFUSED})

    def _placed(self, scope: Scope) -> Scope:
        """Return the scope with the path prefix of a proxy, whether the proxy removed it or not.

        The prefix is the declared one: a prefix in the request is ignored.
        """
        if scope["type"] not in ("http", "websocket"):
            return scope
        root, path = self._origins.path, scope["path"]
        if not path.startswith(f"{root}/"):
            path = root + path
        headers = [pair for pair in scope["headers"] if pair[0] != _PREFIX]
        return {**scope, "root_path": root, "path": path, "headers": headers}

    def _may_open(self, scope: Scope) -> bool:
        """Return whether our own page, with a token that may read, requests a web socket."""
        return self._origins.admits(scope) and self._knows(Headers(scope=scope))

    def _knows(self, headers: Headers) -> bool:
        """Return whether a request has a token that may read something."""
        return bool(self._readers.streams(token_of(headers.get("cookie", ""))))

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        root = self._origins.path
        path, method = scope["path"].removeprefix(root), scope["method"]
        if not self._origins.admits(scope):
            answer: Response = PlainTextResponse(_FOREIGN, 403)
        elif path == LEAVE and method == "POST":
            answer = RedirectResponse(f"{root}/", 303)
            answer.delete_cookie(COOKIE, f"{root}/", httponly=True, samesite="strict")
        elif path == ENTER and method == "POST":
            answer = self._entered(await _field(receive, "token"), scope["scheme"])
        elif self._knows(Headers(scope=scope)):
            await self._inside(scope, receive, send)
            return
        else:
            answer = self._asking("", 401)
        await answer(scope, receive, send)

    async def _inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; ignore that the browser disconnected before its answer."""
        gone = False

        async def receiving() -> Message:
            nonlocal gone
            message = await receive()
            gone |= message["type"] == "http.disconnect"
            return message

        try:
            await self.app(scope, receiving, send)
        except RuntimeError:  # of Starlette: no response returned
            if not gone:
                raise

    def _entered(self, token: str, scheme: str) -> Response:
        if not self._readers.streams(token):
            said = "This is no token that may read. Look for the one named read."
            return self._asking(said, 403)
        path = f"{self._origins.path}/"
        answer, is_secure = RedirectResponse(path, 303), scheme == "https"
        answer.set_cookie(
            COOKIE, token, path=path, httponly=True, samesite="strict", secure=is_secure
        )
        return answer

    def _asking(self, problem: str, status: int) -> Response:
        """Return the page that asks for a token."""
        told = _PROBLEM.format(problem) if problem else ""
        page = _HEAD + _PAGE.format(problem=told, enter=self._origins.path + ENTER)
        return HTMLResponse(page, status, {"Cache-Control": "no-store"})


async def no_such_page(request: Request, _error: Exception) -> Response:
    """Return the page for an address that the dashboard does not have, with a link home."""
    home = f"{request.scope['root_path']}/"
    return HTMLResponse(_HEAD + _ABSENT.format(home=escape(home)), 404)


def token_of(cookies: str) -> str:
    """Return the token in the cookies of a browser; empty if there is none."""
    pairs = [one.strip().partition("=") for one in cookies.split(";")]
    return next((value for name, _, value in pairs if name == COOKIE), "")


async def _field(receive: Receive, name: str) -> str:
    """Return a field of a form; empty if the form has none, is too long, or does not arrive."""
    body, more = b"", True
    with suppress(TimeoutError):
        async with asyncio.timeout(_BODY_SECONDS):
            while more and len(body) <= _LONGEST_BODY:
                message = await receive()
                body += message.get("body", b"")
                more = message.get("more_body", False)
    if more or len(body) > _LONGEST_BODY:
        return ""
    return parse_qs(body.decode("latin-1")).get(name, [""])[0].strip()


def _with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            ours = [pair for pair in message["headers"] if pair[0].lower() not in _FOR_OTHERS]
            headers = MutableHeaders(raw=ours)
            for name, value in HEADERS.items():
                headers[name] = value
            message = {**message, "headers": headers.raw}
        await send(message)

    return sending

"""Which web sites may talk to the dashboard with the cookie of a browser: its own pages.

A browser sends the cookie of 127.0.0.1 along to every port of 127.0.0.1, and opens web sockets to
any host. It names the site that asks in `Origin`, which no script can change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from panprivacy.errors import PlanError
from panprivacy.sources.columns import show

_SCHEMES: Final = {"ws": "http", "wss": "https"}
_PORTS: Final = {"http": 80, "https": 443}
_HARMLESS: Final = frozenset({"GET", "HEAD"})
"""Methods with which browsers name no origin where a page asks its own site."""


class Origins:
    """The origins that may talk to a dashboard.

    Args:
        declared: those of proxies in front of it, such as `https://numbers.example`, besides the
            one at which it is asked.

    Raises:
        PlanError: one is no origin.
    """

    def __init__(self, declared: Iterable[str] = ()) -> None:
        self._declared = frozenset(map(_origin, declared))

    def admits(self, scope: Scope) -> bool:
        """Return whether a request comes from a page of the dashboard.

        Requests that change something, and web sockets, must name their origin; all others may.
        """
        headers = Headers(scope=scope)
        named = headers.getlist("origin")
        if not named:
            return scope["type"] == "http" and scope["method"] in _HARMLESS
        scheme = _SCHEMES.get(scope["scheme"], scope["scheme"])
        own = f"{scheme}://{headers.get('host', '')}".lower()
        return len(named) == 1 and (named[0] == own or named[0] in self._declared)


def _origin(text: str) -> str:
    """Return an origin as browsers write it."""
    message = f"origin must be like https://numbers.example, not {show(text)}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise PlanError(message) from None
    rest = parts.path.strip("/"), parts.query, parts.fragment, parts.username, parts.password
    if parts.scheme not in _PORTS or not parts.hostname or any(rest):
        raise PlanError(message)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown = "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{shown}"

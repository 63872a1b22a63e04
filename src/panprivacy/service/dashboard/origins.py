"""Web sites that may use the cookie of a browser for the dashboard: its own pages.

A browser sends the cookie of 127.0.0.1 to every port of 127.0.0.1, and opens web sockets to any
host. It names the requesting site in `Origin`, which no script can change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from panprivacy.errors import PlanError
from panprivacy.intake.sources.columns import show
from panprivacy.service.config.values import parse_origin

_SCHEMES: Final = {"ws": "http", "wss": "https"}
_HARMLESS: Final = frozenset({"GET", "HEAD"})
"""Methods for which browsers name no origin if a page requests its own site."""


class Origins:
    """The origins that may send requests to a dashboard.

    Args:
        declared: the origins of proxies in front of it, such as `https://numbers.example`, besides
            its own; with their path prefix for it, if that is not `/`.

    Attributes:
        path: the path prefix of the proxies for the dashboard, without a final `/`; empty if it is
            a whole site.

    Raises:
        PlanError: one is no origin, or the path prefixes differ.
    """

    def __init__(self, declared: Iterable[str] = ()) -> None:
        places = [parse_origin(one) for one in declared]
        self._declared = frozenset(origin for origin, _ in places)
        paths = sorted({path for _, path in places}) or [""]
        if len(paths) > 1:
            message = "origins must all have the dashboard at one path: "
            message += f"{show(paths[0] or '/')} and {show(paths[1])} are two"
            raise PlanError(message)
        self.path = paths[0]

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

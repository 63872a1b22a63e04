"""Parsed request: its headers, query and body; repeated values are refused."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from panprivacy.intake.sources import MEDIA_TYPES
from panprivacy.service.incoming.problems import Problem
from panprivacy.service.incoming.unpacking import ENCODINGS
from panprivacy.service.outgoing.exports import WRITERS, preferred

_CHARSET = re.compile(r"(?:^|;)\s*charset=\"?([^\";\s]*)")
_MOST_PARAMETERS = 20
_BATCH_ID = re.compile(r"[\x21-\x7e]{1,256}")


class HttpRequest:
    """A request to an endpoint.

    Args:
        scope: the ASGI scope.
        receive: the ASGI receive function.

    Attributes:
        path: the parameters of the path.
        peer: the address of the other end of the connection; None for a Unix socket.
    """

    __slots__ = ("_headers", "_query_string", "_receive", "path", "peer")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self.path: dict[str, str] = scope["path_params"]
        client = scope.get("client")
        self.peer: str | None = client[0] if client else None
        self._headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            self._headers.setdefault(name, []).append(value)
        self._query_string: bytes = scope["query_string"]

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body, in pieces.

        Raises:
            ClientDisconnect: it ends too early.
        """
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            more = message.get("more_body", False)
            if piece := message.get("body"):
                yield piece

    def header(self, name: str) -> str | None:
        """Return the value of a header that may be given once."""
        given = self._headers.get(name.lower().encode())
        return None if given is None else _only([one.decode("latin-1") for one in given], name)

    def listed(self, name: str) -> str:
        """Return the values of a header that is a list, which may be given in several parts."""
        return b",".join(self._headers.get(name.lower().encode(), [])).decode("latin-1")

    def query(self, name: str) -> str | None:
        """Return the value of a query parameter."""
        return _only(self._query().get(name, []), name)

    def check_query(self, known: Collection[str]) -> None:
        """Refuse unknown query parameters: they may be misspelt."""
        if self._query_string and not self._query().keys() <= {*known}:
            takes = f"takes {', '.join(known)}" if known else "takes none"
            raise Problem(400, f"there is no such query parameter: this path {takes}")

    def _query(self) -> dict[str, list[str]]:
        """Return the values of each query parameter."""
        query = self._query_string.decode("latin-1")
        try:
            return parse_qs(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
        except ValueError:
            raise Problem(400, f"a query has {_MOST_PARAMETERS} parameters at most") from None

    def encoding(self) -> str | None:
        """Return the compression of the body, one of `ENCODINGS`; None if it is not compressed."""
        given = (self.header("Content-Encoding") or "identity").lower()
        if given not in ("identity", *ENCODINGS):
            reason = f"Content-Encoding must be {' or '.join(ENCODINGS)}, or left out"
            raise Problem(415, reason, headers={"Accept-Encoding": ", ".join(ENCODINGS)})
        return None if given == "identity" else given

    def body_format(self, known: Mapping[str, str] = MEDIA_TYPES) -> str:
        """Return the format of the body.

        Args:
            known: the formats, by their media types.
        """
        if (self.header("Transfer-Encoding") or "chunked").lower() != "chunked":
            raise Problem(501, "Transfer-Encoding must be chunked, and nothing else")
        media_type, _, parameters = (self.header("Content-Type") or "").lower().partition(";")
        if media_type.strip() not in known:
            one_of = "one of " if len(known) > 1 else ""
            reason = f"Content-Type must be {one_of}{', '.join(known)}"
            raise Problem(415, reason, headers={"Accept": ", ".join(known)})
        if not {*_CHARSET.findall(parameters)} <= {"utf-8", "us-ascii"}:
            raise Problem(415, "a text must be UTF-8: leave out charset=")
        return known[media_type.strip()]

    def body_length(self) -> int | None:
        """Return the length of the body, if the sender declares it."""
        given = self.header("Content-Length")
        return None if given is None else int(given)

    def batch_id(self) -> bytes | None:
        """Return the sender's id of the batch."""
        given = self.header("Idempotency-Key")
        if given is None:
            return None
        if not _BATCH_ID.fullmatch(given):
            raise Problem(400, "Idempotency-Key must be 1 to 256 visible ASCII characters")
        return given.encode()

    def answer_format(self) -> str:
        """Return the media type of the requested answers."""
        asked = self.query("format")
        if asked is None:
            kind = preferred(self.listed("Accept"), WRITERS)
            if kind is None:
                raise Problem(406, f"Accept must let one of {', '.join(WRITERS)} through")
            return kind
        names = {kind.rpartition("/")[2].rpartition(".")[2]: kind for kind in WRITERS}
        if asked not in names:
            raise Problem(400, f"format must be one of {', '.join(names)}")
        return names[asked]

    def integer(self, name: str, default: int, most: int) -> int:
        """Return a query parameter from 1 to `most`."""
        given = self.query(name)
        if given is None:
            return default
        sound = given.isascii() and given.isdecimal() and len(given) < 10
        if not (sound and 1 <= int(given) <= most):
            raise Problem(400, f"{name} must be a whole number from 1 to {most:,}")
        return int(given)

    def moment(self, name: str) -> datetime | None:
        """Return a query parameter that is a time."""
        given = self.query(name)
        if given is None:
            return None
        try:
            moment = datetime.fromisoformat(given.replace(" ", "+"))  # a + that was not escaped
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            reason = f"{name} must be a time such as 2026-01-31T00:00:00Z"
            raise Problem(400, reason) from None


def _only(values: list[str], name: str) -> str | None:
    """Return the only value; of two, a proxy may have used the other one."""
    if len(values) > 1:
        raise Problem(400, f"{name} is given more than once")
    return values[0] if values else None

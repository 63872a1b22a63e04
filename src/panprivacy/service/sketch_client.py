"""Client that reads the published tables of a running service."""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import quote, urlencode

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.validation import whole_number
from panprivacy.service.client import check_token, connection_to
from panprivacy.statistics.overlaps.sketch import MOST_SKETCH, Sketch
from panprivacy.statistics.release import Label

_MOST_LISTED: Final = 10_000
_LONGEST_LIST: Final = 1 << 24


class SketchClient:
    """Reads the published tables of a service; each call asks anew.

    Args:
        service: its address, `http://127.0.0.1:8642` or `unix:/run/http.sock`, or its URL behind a
            proxy, `https://example.org/pp`.
        token: a token that may read.

    Raises:
        PlanError: the URL or the token is invalid.
    """

    def __init__(self, service: str, token: str) -> None:
        check_token(token)
        connection_to(service)
        self._service, self._headers = service, {"Authorization": f"Bearer {token}"}

    def sketches(
        self,
        stream: str,
        *,
        statistic: str | None = None,
        group: Label | None = None,
        newest: int = 12,
    ) -> list[Sketch]:
        """Return the newest published tables of a series, oldest first, for `overlap`.

        Args:
            stream: name of the stream.
            statistic: name of the statistic; None for that of the newest table.
            group: the group of users; None where users are not counted by group.
            newest: number of tables, at most.

        Raises:
            PlanError: no service answers at the address.
            InputError: the service refuses it, or answers something else.
        """
        count = whole_number(1, _MOST_LISTED, newest=newest)
        listed = self._listed(stream)
        if statistic is None and listed:
            statistic = listed[-1]["statistic"]
        wanted = statistic, None if group is None else str(group)
        series = [one["id"] for one in listed if (one["statistic"], one["group"]) == wanted]
        return [self._sketch(stream, number) for number in series[-count:]]

    def _listed(self, stream: str) -> list[dict[str, Any]]:
        asked = urlencode({"stream": stream, "limit": _MOST_LISTED})
        body = self._body(f"/v1/sketches?{asked}", _LONGEST_LIST)
        try:
            listed = json.loads(body)
            return [
                {"id": int(one["id"]), "statistic": one["statistic"], "group": one["group"]}
                for one in listed
            ]
        except (ValueError, TypeError, KeyError):
            raise _no_service() from None

    def _sketch(self, stream: str, number: int) -> Sketch:
        return Sketch.read(self._body(f"/v1/sketches/{quote(stream)}/{number}", MOST_SKETCH))

    def _body(self, path: str, most: int) -> bytes:
        """Return the body of an answer."""
        connection, root = connection_to(self._service)
        with closing(connection):
            try:
                connection.request("GET", f"{root}{path}", headers=self._headers)
                answer = connection.getresponse()
                status, body = answer.status, answer.read(most)
            except (OSError, HTTPException):
                message = f"no service answers at {self._service}"
                raise PlanError(message) from None
        if status != 200:
            raise _refused(status, body)
        return body


def _refused(status: int, body: bytes) -> PlanError | InputError:
    """Return the error of an answer that is none."""
    try:
        detail = json.loads(body).get("detail", f"HTTP status {status}")
    except (ValueError, AttributeError):
        return _no_service()
    return InputError(f"the service refuses it: {detail}")


def _no_service() -> PlanError:
    return PlanError("this is no panprivacy service, or another program stands before it")

"""Errors of requests, according to RFC 9457: one sentence, and no id."""

from __future__ import annotations

import http
import json

from starlette.responses import Response


class Problem(Exception):  # noqa: N818 - the name of the standard
    """Error that ends a request.

    Args:
        status: the HTTP status.
        detail: what is wrong and what to do, in a sentence.
        retry_after: seconds after which it may work.
        headers: additional headers.
        members: additional members of the document, by name.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        retry_after: int | None = None,
        headers: dict[str, str] | None = None,
        members: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.headers, self._members = dict(headers or {}), dict(members or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(retry_after)

    def response(self) -> Response:
        """Return the response to the request."""
        title = http.HTTPStatus(self.status).phrase
        document = {"title": title, "status": self.status, "detail": self.detail, **self._members}
        return Response(
            json.dumps(document),
            self.status,
            headers=self.headers,
            media_type="application/problem+json",
        )


def check_restored(*, waiting: bool) -> None:
    """Raise `Problem` while a service waits for its checkpoint, whose windows count on."""
    if waiting:
        reason = "the service waits for its checkpoint to be restored"
        raise Problem(503, reason, retry_after=5)

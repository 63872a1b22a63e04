"""The leader's requests to the helper."""

from __future__ import annotations

from typing import Final, Protocol

import httpx
import msgspec

from panprivacy.devices.aggregator.messages import (
    JOB_INIT_REQ,
    JOB_RESP,
    SHARE,
    SHARE_REQ,
    Media,
    base64,
)
from panprivacy.devices.aggregator.problems import PeerError
from panprivacy.devices.federated.task import Task

STRIPPED: Final = "application/vnd.panprivacy.report-shares"
"""A list of DAP's `ReportShare`, each of which holds the leader's row."""
_TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0)
_MOST_ANSWER: Final = 1 << 27
NO_ANSWER: Final = "the helper answers something else than was asked"


class Helping(Protocol):
    """The helper as the leader sees it: `helper.Helper` implements it, `Peer` sends requests."""

    def strip(self, job: bytes, body: bytes) -> bytes:
        """Return the leader's rows of a job, without the helper's layer."""

    def verify(self, job: bytes, body: bytes) -> bytes:
        """Return the result of a job."""

    def share(self, name: bytes, body: bytes) -> bytes:
        """Return the helper's share of the batch."""


class Peer:
    """The helper, over HTTP.

    Args:
        task: which both serve.
        url: address of the helper, such as http://127.0.0.1:8645.
        token: that the helper knows the leader by.
    """

    def __init__(self, task: Task, url: str, token: str) -> None:
        self._client = httpx.Client(
            base_url=f"{url}/tasks/{base64(task.digest)}",
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT,
            trust_env=False,
        )

    def strip(self, job: bytes, body: bytes) -> bytes:
        """Return the leader's rows of a job, without the helper's layer."""
        return self._put(f"/stripped_shares/{base64(job)}", STRIPPED, STRIPPED, body)

    def verify(self, job: bytes, body: bytes) -> bytes:
        """Return the result of a job."""
        return self._put(f"/aggregation_jobs/{base64(job)}", JOB_INIT_REQ, JOB_RESP, body)

    def share(self, name: bytes, body: bytes) -> bytes:
        """Return the helper's share of the batch."""
        return self._put(f"/aggregate_shares/{base64(name)}", SHARE_REQ, SHARE, body)

    def _put(self, path: str, sent: Media | str, expected: Media | str, body: bytes) -> bytes:
        """Return the answer to a request, which may be made again.

        Raises:
            PeerError: there is none.
        """
        headers = {"Content-Type": str(sent), "Accept-Encoding": "identity"}
        found = bytearray()
        try:
            with self._client.stream("PUT", path, content=body, headers=headers) as answer:
                for piece in answer.iter_raw():  # not decompressed: a little may become very much
                    found += piece
                    if len(found) > _MOST_ANSWER:
                        raise PeerError(NO_ANSWER)
        except httpx.HTTPError as error:
            message = f"the helper does not answer: {type(error).__name__}"
            raise PeerError(message) from None
        if answer.status_code != 200:
            message = f"the helper refuses with {answer.status_code} {_detail(found)}".rstrip()
            raise PeerError(message)
        if answer.headers.get("Content-Type") != str(expected):
            raise PeerError(NO_ANSWER)
        return bytes(found)

    def end(self) -> None:
        """Close all connections."""
        self._client.close()


def _detail(body: bytearray) -> str:
    """Return the detail of a problem."""
    try:
        return msgspec.json.decode(body, type=_Problem).detail[:200]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


class _Problem(msgspec.Struct):
    detail: str

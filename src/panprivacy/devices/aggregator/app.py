"""The HTTP side of both servers: DAP's resources, and those that a collector has."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from starlette.responses import Response
from starlette.routing import Route, Router

from panprivacy.devices.aggregator.helper import Helper
from panprivacy.devices.aggregator.helper_store import HelperStore
from panprivacy.devices.aggregator.leader import Leader
from panprivacy.devices.aggregator.leader_store import LeaderStore
from panprivacy.devices.aggregator.messages import (
    ERRORS,
    JOB_ID_BYTES,
    JOB_INIT_REQ,
    JOB_RESP,
    SHARE,
    SHARE_REQ,
    UPLOAD,
    UPLOAD_ERRORS,
    UPLOAD_REQ,
    Media,
    ReportError,
    UploadedReport,
    UploadStatus,
    base64,
)
from panprivacy.devices.aggregator.peer import STRIPPED
from panprivacy.devices.aggregator.presentation import decoded
from panprivacy.devices.aggregator.problems import AbortError, PeerError, Reason
from panprivacy.devices.aggregator.reports import dap_bytes
from panprivacy.devices.collector.serving import (
    GroupCommit,
    Serving,
    body_of,
    for_pages,
    router,
)
from panprivacy.devices.federated.messages import report_bytes
from panprivacy.devices.federated.task import Task
from panprivacy.errors import InputError
from panprivacy.service.config.tokens import Role, Tokens
from panprivacy.service.incoming.problems import Problem
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.web.app import Resource
from panprivacy.service.web.asked import HttpRequest

_MOST_UPLOAD: Final = 1 << 22
_MOST_JOB: Final = 1 << 27
_PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds until the next request to the helper; the last one repeats."""

T = TypeVar("T")


class _Aggregating(Serving):
    """Handling of requests of DAP that both servers share."""

    def __init__(
        self, signed: bytes, task: Task, store: LeaderStore | HelperStore, access: Tokens
    ) -> None:
        super().__init__(signed, store, access)
        self._digest = task.digest

    async def _body(self, asked: HttpRequest, role: Role, media: Media | str, most: int) -> bytes:
        """Return the body of a request for this task, if the sender is allowed to make it.

        Raises:
            Problem: it is another one.
        """
        self._allow(asked, role)
        if asked.path["task"] != base64(self._digest):
            message = "this server knows another task; see /v1/task"
            raise AbortError(Reason.UNRECOGNIZED_TASK, message).problem(self._digest)
        given = (asked.header("Content-Type") or "").replace(" ", "").split(";version=")[0]
        if given.lower() != str(media):
            raise Problem(415, f"Content-Type must be {media}")
        return await body_of(asked, most, f"a body may have {most:,} bytes")

    def _refused(self, error: InputError | AbortError) -> Problem:
        """Return the problem of a request that is refused as a whole."""
        if isinstance(error, InputError):
            error = AbortError(Reason.INVALID_MESSAGE, str(error))
        return error.problem(self._digest)


class LeaderApi(_Aggregating):
    """An API for devices and the collector; requests to the helper run meanwhile.

    Args:
        signed: the file of the task, as devices read it.
        task: the content of the task file.
        leader: handles the requests.
        store: store of the leader.
        access: the tokens that may send and release.
    """

    def __init__(
        self, signed: bytes, task: Task, leader: Leader, store: LeaderStore, access: Tokens
    ) -> None:
        super().__init__(signed, task, store, access)
        self._leader = leader
        self._longest = max(_MOST_UPLOAD, 2 * report_bytes(task))
        self._uploads = replace(UPLOAD, most=self._longest // dap_bytes(task))  # as whole ones fit
        self._together = GroupCommit[UploadedReport, ReportError | None](
            lambda reports: self._stored(partial(leader.take, reports))
        )
        self._verifier = ThreadPoolExecutor(1, thread_name_prefix="panprivacy-verifier")
        self._wake, self._takes = asyncio.Event(), asyncio.Event()
        self._takes.set()
        self._releasing = asyncio.Lock()
        self._alone = False

    async def reports(self, asked: HttpRequest) -> Response:
        """Take reports: 200 once they are on the disk, and which of them are not taken."""
        body = await self._body(asked, Role.ingest, UPLOAD_REQ, self._longest)
        try:
            reports = decoded(self._uploads, body)
        except InputError as error:
            raise self._refused(error) from None
        await self._takes.wait()
        outcomes = await asyncio.gather(*map(self._together.written, reports))
        self._wake.set()
        wrong = tuple(
            UploadStatus(report.metadata.report_id, error)
            for report, error in zip(reports, outcomes, strict=True)
            if error is not None
        )
        if not wrong:
            return Response()
        return Response(ERRORS.write(wrong), headers={"Content-Type": str(UPLOAD_ERRORS)})

    async def release(self, asked: HttpRequest) -> Response:
        """Release the answer from all reports so far; no more are accepted.

        Requests wait until the answer is known.
        """
        self._allow(asked, Role.release)
        async with self._releasing:
            self._takes.clear()
            try:
                answer = await self._verified(self._leader.release)
            except PeerError as error:
                raise Problem(503, f"{error}: come again", retry_after=5) from None
            finally:
                self._takes.set()
        return Response(answer, media_type="application/json")

    async def advance(self) -> None:
        """Verify reports as they arrive, forever; wait where the helper does not answer."""
        failures = 0
        while True:
            try:
                while await self._verified(self._leader.advance):
                    failures = 0
                await self._wake.wait()
                self._wake.clear()
            except Exception as error:  # noqa: BLE001 - reports wait, and are tried again
                if not failures:
                    _tell(error)
                await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
                failures += 1

    async def _verified(self, work: Callable[[], T]) -> T:
        """Open and verify reports serially, in a separate thread."""
        try:
            done = await asyncio.get_running_loop().run_in_executor(self._verifier, work)
        except PeerError:
            self._alone = True
            raise
        self._alone = False
        return done

    async def _looked(self) -> str:
        """Return the status of the store, and of the helper at the last request."""
        return "troubled" if self._alone else await super()._looked()


def _tell(error: Exception) -> None:
    """Tell the operator why reports wait."""
    if isinstance(error, PeerError | StoreError):
        JOURNAL.error(Event.trouble, what="aggregation", reason=str(error))
    else:
        JOURNAL.error(Event.request_failed, error=type(error).__name__)


class HelperApi(_Aggregating):
    """Answers the leader.

    Args:
        signed: the file of the task.
        task: the content of the task file.
        helper: handles the requests.
        store: store of the helper.
        access: by which token the leader is known.
    """

    def __init__(
        self, signed: bytes, task: Task, helper: Helper, store: HelperStore, access: Tokens
    ) -> None:
        super().__init__(signed, task, store, access)
        self._helper = helper

    async def strip(self, asked: HttpRequest) -> Response:
        """Take the helper's layer off rows of the leader."""
        return await self._done(asked, Role.ingest, STRIPPED, STRIPPED, self._helper.strip)

    async def verify(self, asked: HttpRequest) -> Response:
        """Judge the reports of a job."""
        return await self._done(asked, Role.ingest, JOB_INIT_REQ, JOB_RESP, self._helper.verify)

    async def share(self, asked: HttpRequest) -> Response:
        """Give the helper's share of the sums, once."""
        return await self._done(asked, Role.release, SHARE_REQ, SHARE, self._helper.share)

    async def _done(
        self,
        asked: HttpRequest,
        role: Role,
        takes: Media | str,
        gives: Media | str,
        work: Callable[[bytes, bytes], bytes],
    ) -> Response:
        """Return the answer to a request of the leader about something that has a name."""
        body = await self._body(asked, role, takes, _MOST_JOB)
        try:
            answer = await self._stored(partial(work, _name(asked.path["name"]), body))
        except AbortError as error:
            raise self._refused(error) from None
        return Response(answer, headers={"Content-Type": str(gives)})


def _name(text: str) -> bytes:
    """Return an id from a path.

    Raises:
        AbortError: it is none.
    """
    with suppress(ValueError):
        name = urlsafe_b64decode(text + "==")
        if len(name) == JOB_ID_BYTES and base64(name) == text:
            return name
    message = f"an id has {JOB_ID_BYTES} bytes, in Base 64 for URLs without padding"
    raise AbortError(Reason.INVALID_MESSAGE, message)


def leader_application(api: LeaderApi, origins: Sequence[str] = ()) -> Router:
    """Return the ASGI application of a leader, for devices on pages of these origins too."""
    pages = for_pages(origins)

    @asynccontextmanager
    async def lifespan(_: Router) -> AsyncIterator[None]:
        advancing = asyncio.create_task(api.advance(), name="panprivacy-advancing")
        yield
        advancing.cancel()
        with suppress(asyncio.CancelledError):
            await advancing

    routes = [
        Route("/tasks/{task}/reports", Resource("POST", api.reports, []), middleware=pages),
        Route("/v1/release", Resource("POST", api.release, [])),
    ]
    return router(api, routes, pages, lifespan)


def helper_application(api: HelperApi) -> Router:
    """Return the ASGI application of a helper."""
    routes = [
        Route("/tasks/{task}/stripped_shares/{name}", Resource("PUT", api.strip, [])),
        Route("/tasks/{task}/aggregation_jobs/{name}", Resource("PUT", api.verify, [])),
        Route("/tasks/{task}/aggregate_shares/{name}", Resource("PUT", api.share, [])),
    ]
    return router(api, routes, ())

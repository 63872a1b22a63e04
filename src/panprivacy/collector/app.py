"""The HTTP side of a collector."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import Scope

from panprivacy._version import VERSION
from panprivacy.collector.store import ReportStore
from panprivacy.errors import InputError, PanPrivacyError
from panprivacy.federated.collector import Collector, ReplayError
from panprivacy.federated.kind import Decryption
from panprivacy.federated.messages import Report, report_bytes
from panprivacy.federated.task import Task
from panprivacy.service.config.tokens import AccessError, Role, Tokens
from panprivacy.service.incoming.admission import Shared
from panprivacy.service.incoming.problems import Problem
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.web.app import Resource
from panprivacy.service.web.asked import Asked

_TOGETHER: Final = 500
"""Reports of one commit."""

T = TypeVar("T")


class CollectorApi:
    """Answers requests.

    Reports that come while others are written to the disk wait, and are written together.

    Args:
        signed: the file of the task, as devices read it.
        task: what is in it.
        key: the secret key.
        store: keeps reports, and the answer.
        access: who may send and release.
    """

    def __init__(
        self, signed: bytes, task: Task, key: Decryption, store: ReportStore, access: Tokens
    ) -> None:
        self._signed, self._task, self._key, self._store = signed, task, key, store
        self._access = access
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="panprivacy-collector")
        self._asker = ThreadPoolExecutor(1, thread_name_prefix="panprivacy-asker")
        self._status = Shared(self._looked)
        self._longest = report_bytes(task)
        self._waiting: deque[tuple[bytes, asyncio.Future[Exception | None]]] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._fails = False

    def begun(self, scope: Scope, body: bytearray) -> None:
        """Leave each request to the application."""

    @staticmethod
    def answer(done: asyncio.Future[Any]) -> Response:
        """Say what came of a request that was begun, of which there is none."""
        raise NotImplementedError

    async def reports(self, asked: Asked) -> Response:
        """Take a report; 201 if it is new, 200 if it came before. It is on the disk then."""
        self._allow(asked, Role.ingest)
        body = bytearray()
        async for piece in asked.body():
            body += piece
            if len(body) > self._longest:
                reason = f"a report of this task has {self._longest:,} bytes"
                raise Problem(413, reason, headers={"Connection": "close"})
        error = await self._kept(bytes(body))
        if error is None or isinstance(error, ReplayError):
            return Response(status_code=201 if error is None else 200)
        raise error

    async def _kept(self, body: bytes) -> Exception | None:
        """What is wrong with a report; None once it is on the disk."""
        told = asyncio.get_running_loop().create_future()
        self._waiting.append((body, told))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="panprivacy-writing")
        outcome: Exception | None = await told
        return outcome

    async def _write(self) -> None:
        """Write all that wait, many at once."""
        while self._waiting:
            some = [self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))]
            outcomes: Sequence[Exception | None]
            try:
                outcomes = await self._stored(partial(self._take, [body for body, _ in some]))
            except Exception as error:  # noqa: BLE001 - each is told
                outcomes = [error] * len(some)
            for (_, told), outcome in zip(some, outcomes, strict=True):
                if not told.done():  # else who waited was cancelled
                    told.set_result(outcome)

    def _take(self, bodies: Sequence[bytes]) -> list[PanPrivacyError | None]:
        """What is wrong with each report; those with nothing wrong are on the disk."""
        read = [self._read(body) for body in bodies]
        kept = iter(self._store.add([each for each in read if isinstance(each, Report)]))
        return [next(kept) if isinstance(each, Report) else each for each in read]

    def _read(self, body: bytes) -> Report | InputError:
        try:
            report = Report.read(body, self._task)
            self._key.public.check(report.row)
        except InputError as error:
            return error
        return report

    async def release(self, asked: Asked) -> Response:
        """Answer, from all reports that came; no more are taken."""
        self._allow(asked, Role.release)
        answer = await self._stored(lambda: self._store.answer(self._made))
        return Response(answer, media_type="application/json")

    def _made(self, reports: Iterable[bytes]) -> bytes:
        """The answer of some reports."""
        collector = Collector(self._task, self._key)
        try:
            for report in reports:
                collector.add(report)
        except InputError:
            message = "a report in the store is damaged: put the store back as it was"
            raise StoreError(message) from None
        answers = collector.release().rows()
        told = {"reports": len(collector), "guarantee": collector.guarantee, "answers": answers}
        return msgspec.json.encode(told)

    async def task(self, asked: Asked) -> Response:  # noqa: ARG002 - anybody may ask
        """The signed task."""
        return Response(self._signed, media_type="application/json")

    async def health(self, asked: Asked) -> Response:  # noqa: ARG002 - anybody may ask
        """Whether it runs, and its store works."""
        status = await self._status.get()
        document = {"status": status, "version": VERSION}
        return JSONResponse(document, 503 if status == "troubled" else 200)

    async def _looked(self) -> str:
        """What there is to say of the store, which may be read although it cannot be written to."""
        try:
            if self._fails:  # whoever is told so sends nothing, so nothing else would say it works
                await self._asked(self._store.check_writes)
                self._fails = False
            closed = await self._asked(lambda: self._store.closed)
        except StoreError:
            return "troubled"
        return "closed" if closed else "open"

    async def _asked(self, work: Callable[[], T]) -> T:
        """Ask the store, in a thread that waits for no report."""
        return await asyncio.get_running_loop().run_in_executor(self._asker, work)

    def _allow(self, asked: Asked, role: Role) -> None:
        try:
            self._access.check(asked.header("Authorization"), role, None)
        except AccessError as error:
            headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
            reason = str(error).replace(" all streams", "")
            raise Problem(error.status, reason, headers=headers) from None

    async def _stored(self, work: Callable[[], T]) -> T:
        """Do one thing after the other to the store, in a thread that may wait for the disk."""
        try:
            done = await asyncio.get_running_loop().run_in_executor(self._worker, work)
        except StoreError:
            self._fails = True
            raise
        self._fails = False
        return done


def application(api: CollectorApi) -> Router:
    """The ASGI application of a collector."""
    routes = [
        Route("/v1/reports", Resource("POST", api.reports, [])),
        Route("/v1/release", Resource("POST", api.release, [])),
        Route("/v1/task", Resource("GET", api.task, [])),
        Route("/healthz", Resource("GET", api.health)),
    ]
    unknown = Problem(404, "there are /v1/reports, /v1/release, /v1/task and /healthz").response()
    return Router(routes, redirect_slashes=False, default=unknown)

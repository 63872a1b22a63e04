"""The HTTP side of a collector."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import Scope

from panprivacy._version import VERSION
from panprivacy.collector.store import ReportStore
from panprivacy.federated.collector import Collector, ReplayError
from panprivacy.federated.messages import report_bytes
from panprivacy.service.config.tokens import AccessError, Role, Tokens
from panprivacy.service.incoming.problems import Problem
from panprivacy.service.web.app import Resource
from panprivacy.service.web.asked import Asked

T = TypeVar("T")


class CollectorApi:
    """Answers requests.

    Args:
        signed: the file of the task, as devices read it.
        collector: has the reports of the store.
        store: keeps them.
        access: who may send and release.
    """

    def __init__(
        self, signed: bytes, collector: Collector, store: ReportStore, access: Tokens
    ) -> None:
        self._signed, self._collector, self._store = signed, collector, store
        self._access = access
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="panprivacy-collector")
        self._longest = report_bytes(collector.task)

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
        return Response(status_code=await self._in_order(lambda: self._take(bytes(body))))

    def _take(self, body: bytes) -> int:
        try:
            report = self._collector.check(body)
        except ReplayError:
            return 200
        self._store.add(report.name, body)
        self._collector.add(body)
        return 201

    async def release(self, asked: Asked) -> Response:
        """Answer, from all reports that came; no more are taken."""
        self._allow(asked, Role.release)
        return JSONResponse(await self._in_order(self._released))

    def _released(self) -> dict[str, object]:
        self._collector.close()
        self._store.close()
        answers = self._collector.release()
        return {
            "reports": len(self._collector),
            "guarantee": self._collector.guarantee,
            "answers": answers.rows(),
        }

    async def task(self, asked: Asked) -> Response:  # noqa: ARG002 - anybody may ask
        """The signed task."""
        return Response(self._signed, media_type="application/json")

    async def health(self, asked: Asked) -> Response:  # noqa: ARG002 - anybody may ask
        """Whether it runs."""
        closed = self._collector.closed
        return JSONResponse({"status": "closed" if closed else "open", "version": VERSION})

    def _allow(self, asked: Asked, role: Role) -> None:
        try:
            self._access.check(asked.header("Authorization"), role, None)
        except AccessError as error:
            headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
            reason = str(error).replace(" all streams", "")
            raise Problem(error.status, reason, headers=headers) from None

    async def _in_order(self, work: Callable[[], T]) -> T:
        """Do one thing after the other, in a thread that may wait for the disk."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)


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

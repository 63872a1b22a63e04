"""The HTTP side of a collector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec
from starlette.responses import Response
from starlette.routing import Route, Router

from panprivacy.devices.collector.serving import (
    GroupCommit,
    Serving,
    body_of,
    for_pages,
    router,
)
from panprivacy.devices.collector.store import ReportStore
from panprivacy.devices.federated.collector import Collector, ReplayError
from panprivacy.devices.federated.kind import Decryption
from panprivacy.devices.federated.messages import Report, report_bytes
from panprivacy.devices.federated.task import Task
from panprivacy.errors import InputError, PanPrivacyError
from panprivacy.service.config.tokens import Role, Tokens
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.web.app import Resource
from panprivacy.service.web.asked import HttpRequest


class CollectorApi(Serving):
    """Answers requests.

    Args:
        signed: the file of the task, as devices read it.
        task: the content of the task file.
        key: the secret key.
        store: keeps reports, and the answer.
        access: the tokens that may send and release.
    """

    def __init__(
        self, signed: bytes, task: Task, key: Decryption, store: ReportStore, access: Tokens
    ) -> None:
        super().__init__(signed, store, access)
        self._task, self._key, self._reports = task, key, store
        self._longest = report_bytes(task)
        self._together = GroupCommit[bytes, PanPrivacyError | None](
            lambda bodies: self._stored(partial(self._take, bodies))
        )

    async def reports(self, asked: HttpRequest) -> Response:
        """Take a report; 201 if it is new, 200 if it came before. It is on the disk then."""
        self._allow(asked, Role.ingest)
        reason = f"a report of this task has {self._longest:,} bytes"
        error = await self._together.written(await body_of(asked, self._longest, reason))
        if error is None or isinstance(error, ReplayError):
            return Response(status_code=201 if error is None else 200)
        raise error

    def _take(self, bodies: Sequence[bytes]) -> list[PanPrivacyError | None]:
        """Return the error of each report, or None; reports without an error are on the disk."""
        read = [self._read(body) for body in bodies]
        kept = iter(self._reports.add([each for each in read if isinstance(each, Report)]))
        return [next(kept) if isinstance(each, Report) else each for each in read]

    def _read(self, body: bytes) -> Report | InputError:
        try:
            report = Report.read(body, self._task)
            self._key.public.check(report.row)
        except InputError as error:
            return error
        return report

    async def release(self, asked: HttpRequest) -> Response:
        """Release the answer from all reports so far; no more are accepted."""
        self._allow(asked, Role.release)
        answer = await self._stored(lambda: self._reports.answer(self._made))
        return Response(answer, media_type="application/json")

    def _made(self, reports: Iterable[bytes]) -> bytes:
        """Return the answer of some reports."""
        collector = Collector(self._task, self._key)
        try:
            for report in reports:
                collector.add(report)
        except InputError:
            message = "a report in the store is damaged: put the store back as it was"
            raise StoreError(message) from None
        answers = collector.release().rows()
        promise = {"guarantee": collector.guarantee, **self._task.promise.guarantee.document()}
        told = {"reports": len(collector), **promise, "answers": answers}
        return msgspec.json.encode(told)


def application(api: CollectorApi, origins: Sequence[str] = ()) -> Router:
    """Return the ASGI application of a collector, for devices on pages of these origins too."""
    pages = for_pages(origins)
    routes = [
        Route("/v1/reports", Resource("POST", api.reports, []), middleware=pages),
        Route("/v1/release", Resource("POST", api.release, [])),
    ]
    return router(api, routes, pages)

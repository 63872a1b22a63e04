"""The HTTP side: what can be sent, what can be asked, and who may."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from panprivacy._version import VERSION
from panprivacy.errors import BudgetError, InputError, PanPrivacyError, PlanError
from panprivacy.service.engine import Engine
from panprivacy.service.exports import WRITERS
from panprivacy.service.metrics import exposition
from panprivacy.service.openapi import document
from panprivacy.service.problems import Problem
from panprivacy.service.store import StoreError
from panprivacy.service.stream import BusyError, Stream
from panprivacy.service.tokens import AccessError, Role
from panprivacy.sources import MEDIA_TYPES, read_body
from panprivacy.wiping import wipe_traces

_SMALL_BODY = 1 << 18
"""Bytes that are counted faster than they are handed to another thread."""
_BATCH_ID = re.compile(r"[\x21-\x7e]{1,256}")
_MOST_ROWS = 100_000
_COUNTED = Response(b'{"durable":false}', 202, media_type="application/json")
_DURABLE = Response(b'{"durable":true}', 200, media_type="application/json")

Handler = Callable[["Api", Request], Awaitable[Response]]


class Api:
    """Answers requests.

    Args:
        engine: what counts.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._workers = ThreadPoolExecutor(2, thread_name_prefix="panprivacy-worker")

    async def updates(self, request: Request) -> Response:
        """Take in a batch."""
        stream = self._stream(request, Role.ingest)
        kind, durable, batch_id = _kind(request), self._durable(request), _batch_id(request)
        with self.engine.admission.room(_declared(request)):
            body = await self.engine.admission.receive(request.stream())
            try:
                await self._count(stream, kind, body, batch_id)
            finally:
                self.engine.sweeper.soon()
        if not durable:
            return _COUNTED
        trouble = await self.engine.on_disk()
        if trouble is not None:
            reason = f"counted, but not on disk: {trouble}; retry with the same Idempotency-Key"
            raise Problem(503, reason, retry_after=1)
        return _DURABLE

    async def release(self, request: Request) -> Response:
        """Make a release now."""
        stream = self._stream(request, Role.release)
        await self._in_thread(stream.release)
        return JSONResponse({"released": True}, 201)

    async def releases(self, request: Request) -> Response:
        """What was released."""
        name = request.query_params.get("stream")
        self._allow(request, Role.read, name)
        kind, writer = _writer(request)
        if name is not None and name not in self.engine.streams:
            raise Problem(404, "there is no such stream")
        limit = _whole(request, "limit", 1_000, _MOST_ROWS)
        since = _moment(request, "since")
        rows = await self._in_thread(
            lambda: self.engine.store.answers(stream=name, since=since, limit=limit)
        )
        return Response(writer(rows), media_type=kind)

    async def streams(self, request: Request) -> Response:
        """Which streams there are, and what is promised to their users."""
        self._allow(request, Role.read)
        return JSONResponse([one.described() for one in self.engine.streams.values()])

    async def metrics(self, request: Request) -> Response:
        """Releases and health for Prometheus."""
        self._allow(request, Role.read)
        accept = request.headers.get("accept", "")
        body, kind = await self._in_thread(lambda: exposition(self.engine, accept))
        return Response(body, headers={"Content-Type": kind})

    async def health(self, request: Request) -> Response:  # noqa: ARG002 - anybody may ask
        """Whether everything works."""
        troubles = await self._in_thread(self.engine.troubles)
        status = "waiting for restore" if self.engine.waiting else "troubled" if troubles else "ok"
        document = {"status": status, "version": VERSION, "troubles": troubles}
        return JSONResponse(document, 200 if status == "ok" else 503)

    async def openapi(self, request: Request) -> Response:  # noqa: ARG002 - anybody may ask
        """This interface, described."""
        return JSONResponse(document())

    def close(self) -> None:
        """Let the threads end."""
        self._workers.shutdown()

    async def _count(
        self, stream: Stream, kind: str, body: bytes | bytearray, batch_id: bytes | None
    ) -> None:
        """Count a body here if that is quick, else in a thread; then overwrite it."""
        try:
            if len(body) <= _SMALL_BODY:
                try:
                    batches = read_body(kind, body, stream.columns.wanted())
                    stream.take(batches, batch_id, wait=False)
                except BusyError:
                    pass
                else:
                    return
            await self._in_thread(lambda: _take(stream, kind, body, batch_id))
        finally:
            if isinstance(body, bytearray):
                body[:] = bytes(len(body))

    def _stream(self, request: Request, role: Role) -> Stream:
        """The stream of a request whose sender may do this with it."""
        name = request.path_params["name"]
        self._allow(request, role, name)
        if name not in self.engine.streams:
            raise Problem(404, "there is no such stream")
        if self.engine.waiting:
            reason = "the service waits for its checkpoint to be restored"
            raise Problem(503, reason, retry_after=5)
        return self.engine.streams[name]

    def _allow(self, request: Request, role: Role, stream: str | None = None) -> None:
        try:
            self.engine.tokens.check(request.headers.get("authorization"), role, stream)
        except AccessError as error:
            headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
            raise Problem(error.status, str(error), headers=headers) from None

    def _durable(self, request: Request) -> bool:
        """Whether the sender waits until its batch is on disk."""
        asked = request.query_params.get("durable", "0")
        if asked not in ("0", "1"):
            raise Problem(400, "durable must be 0 or 1")
        if asked == "1" and not self.engine.keeper.durable:
            raise Problem(400, "this service keeps no checkpoint: leave out durable=1")
        return asked == "1"

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._workers, work)


def application(engine: Engine) -> Starlette:
    """The ASGI application of a service."""
    api = Api(engine)
    stream = "/v1/streams/{name}"
    routes = [
        _route("POST", f"{stream}/updates", api.updates),
        _route("POST", f"{stream}/release", api.release),
        _route("GET", "/v1/streams", api.streams),
        _route("GET", "/v1/releases", api.releases),
        _route("GET", "/v1/openapi.json", api.openapi),
        _route("GET", "/metrics", api.metrics),
        _route("GET", "/healthz", api.health),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _plain_problem})
    app.router.redirect_slashes = False
    return app


def _route(method: str, path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Problem as problem:
            return problem.response()
        except Exception as error:  # noqa: BLE001 - what is not foreseen may quote an id
            return _problem_of(error).response()

    return Route(path, answered, methods=[method])


def _problem_of(error: Exception) -> Problem:
    """What the sender is told."""
    if isinstance(error, InputError):
        return Problem(400, str(error))
    if isinstance(error, (BudgetError, PlanError)):
        return Problem(409, str(error))
    if isinstance(error, StoreError):
        return Problem(503, str(error), retry_after=5)
    if isinstance(error, PanPrivacyError):
        return Problem(409, str(error))
    return Problem(500, f"failed with {type(error).__name__}; please report it")


async def _plain_problem(_: Request, error: Exception) -> Response:
    """What the router refuses: an unknown path, or another method."""
    status = getattr(error, "status_code", 500)
    detail = {404: "there is nothing at this path; see /v1/openapi.json"}.get(
        status, "this path takes another method; see /v1/openapi.json"
    )
    headers = getattr(error, "headers", None)
    return Problem(status, detail, headers=headers).response()


def _take(stream: Stream, kind: str, body: bytes | bytearray, batch_id: bytes | None) -> None:
    """Read and count a body, in a thread."""
    try:
        stream.take(read_body(kind, body, stream.columns.wanted()), batch_id)
    finally:
        wipe_traces()


def _kind(request: Request) -> str:
    """The format of a body."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem(415, "a body must not be compressed: leave out Content-Encoding")
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in MEDIA_TYPES:
        raise Problem(415, f"Content-Type must be one of {', '.join(MEDIA_TYPES)}")
    return MEDIA_TYPES[media_type]


def _batch_id(request: Request) -> bytes | None:
    """What the sender calls the batch."""
    given = request.headers.get("idempotency-key")
    if given is None:
        return None
    if not _BATCH_ID.fullmatch(given):
        raise Problem(400, "Idempotency-Key must be 1 to 256 visible ASCII characters")
    return given.encode()


def _declared(request: Request) -> int | None:
    """The length of the body, if the sender tells it."""
    given = request.headers.get("content-length")
    return int(given) if given is not None and given.isdecimal() else None


def _writer(request: Request) -> tuple[str, Callable[[Any], bytes]]:
    """The media type that is asked for, and what writes it."""
    asked = request.query_params.get("format")
    names = {kind.rpartition("/")[2].rpartition(".")[2]: kind for kind in WRITERS}
    if asked is not None:
        if asked not in names:
            raise Problem(400, f"format must be one of {', '.join(names)}")
        return names[asked], WRITERS[names[asked]]
    accepted = request.headers.get("accept", "*/*")
    kind = next((kind for kind in WRITERS if kind in accepted), "application/json")
    return kind, WRITERS[kind]


def _whole(request: Request, name: str, default: int, most: int) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and 1 <= int(given[:9]) <= most):
        raise Problem(400, f"{name} must be a whole number from 1 to {most:,}")
    return int(given)


def _moment(request: Request, name: str) -> datetime | None:
    given = request.query_params.get(name)
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        reason = f"{name} must be a time such as 2026-01-31T00:00:00Z"
        raise Problem(400, reason) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

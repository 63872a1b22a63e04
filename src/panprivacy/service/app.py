"""The HTTP side: what can be sent, what can be asked, and who may."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from panprivacy._kernels import wipe_stack
from panprivacy._version import VERSION
from panprivacy.errors import InputError, PanPrivacyError
from panprivacy.service.admission import Shared, overwrite
from panprivacy.service.engine import Engine
from panprivacy.service.exports import WRITERS, preferred
from panprivacy.service.metrics import FORMATS, exposition
from panprivacy.service.openapi import document
from panprivacy.service.problems import Problem
from panprivacy.service.records import StoreError
from panprivacy.service.stream import BusyError, Stream
from panprivacy.service.tokens import AccessError, Role
from panprivacy.sources import MEDIA_TYPES, read_body

_LOG = logging.getLogger("panprivacy.service")
_SMALL = {"int64": 1 << 18, "arrow": 1 << 18}
_SMALL_TEXT = 1 << 14
"""Bytes that are read and counted faster than they are handed to another thread."""
_FEW_ROWS = 1 << 17
"""A small body can hold many more, if it is compressed."""
_CHARSET = re.compile(r"(?:^|;)\s*charset=\"?([^\";\s]*)")
_BATCH_ID = re.compile(r"[\x21-\x7e]{1,256}")
_MOST_ROWS = 100_000
_STOPS = "the service stops, and may have counted this: come again with the same Idempotency-Key"
_IN_MEMORY, _ON_DISK = Response(status_code=202), Response(status_code=200)

T = TypeVar("T")


class Api:
    """Answers requests.

    Args:
        engine: what counts.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._counters = ThreadPoolExecutor(2, thread_name_prefix="panprivacy-counter")
        self._askers = ThreadPoolExecutor(2, thread_name_prefix="panprivacy-asker")
        self._troubles = Shared(lambda: self._ask(engine.troubles))

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
            return _IN_MEMORY
        trouble = await self.engine.on_disk()
        if trouble is not None:
            again = "retry with the same Idempotency-Key" if batch_id else "a retry counts it again"
            reason = f"counted, but not on disk: {trouble}; {again}"
            raise Problem(503, reason, retry_after=1)
        return _ON_DISK

    async def release(self, request: Request) -> Response:
        """Make a release now."""
        stream = self._stream(request, Role.release)
        await self._ask(stream.release)
        where = {"Location": f"/v1/releases?stream={stream.name}"}
        return JSONResponse({"released": True}, 201, where)

    async def releases(self, request: Request) -> Response:
        """What was released."""
        name = _asked(request, "stream")
        self._allow(request, Role.read, name)
        if name is not None and name not in self.engine.streams:
            raise Problem(404, "there is no such stream")
        kind = _format(request)
        since, before = _moment(request, "since"), _moment(request, "before")
        limit = _whole(request, "limit", 1_000, _MOST_ROWS)
        answers = partial(
            self.engine.store.answers, stream=name, since=since, before=before, limit=limit
        )
        file = await self._ask(lambda: WRITERS[kind](answers()))
        return Response(file, headers={"Vary": "Accept"}, media_type=kind)

    async def streams(self, request: Request) -> Response:
        """Which streams there are, and what is promised to their users."""
        self._allow(request, Role.read)
        return JSONResponse([one.described() for one in self.engine.streams.values()])

    async def metrics(self, request: Request) -> Response:
        """Releases and health for Prometheus."""
        self._allow(request, Role.read)
        kind = preferred(",".join(request.headers.getlist("accept")), FORMATS) or "text/plain"
        troubles = await self._troubles.get()
        body = await self._ask(lambda: exposition(self.engine, troubles, kind))
        return Response(body, headers={"Content-Type": FORMATS[kind][1], "Vary": "Accept"})

    async def health(self, request: Request) -> Response:
        """Whether everything works; anybody may ask, and who may read is told why it does not."""
        troubles = await self._troubles.get()
        try:
            self._allow(request, Role.read)
        except Problem:  # the words of a database may name its host
            troubles = dict.fromkeys(troubles, "a token that may read is told more")
        status = "waiting for restore" if self.engine.waiting else "troubled" if troubles else "ok"
        document = {"status": status, "version": VERSION, "troubles": troubles}
        return JSONResponse(document, 200 if status == "ok" else 503)

    async def openapi(self, request: Request) -> Response:  # noqa: ARG002 - anybody may ask
        """This interface, described."""
        return JSONResponse(document())

    async def _count(
        self, stream: Stream, kind: str, body: bytearray, batch_id: bytes | None
    ) -> None:
        """Count a body, here if that is quick, and overwrite it when nobody reads it any more."""
        job = None
        try:
            small = len(body) <= _SMALL.get(kind, _SMALL_TEXT)
            if small and _took(stream, kind, body, batch_id):
                return
            job = self._counters.submit(_take, stream, kind, body, batch_id)
        finally:
            if job is None:
                overwrite(body)
        # not in a finally here: who is cancelled leaves behind a thread that reads the body
        job.add_done_callback(lambda _: overwrite(body))
        await asyncio.wrap_future(job)

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
            self.engine.tokens.check(_header(request, "Authorization"), role, stream)
        except AccessError as error:
            headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
            raise Problem(error.status, str(error), headers=headers) from None

    def _durable(self, request: Request) -> bool:
        """Whether the sender waits until its batch is on disk."""
        asked = _asked(request, "durable")
        if asked not in (None, "0", "1"):
            raise Problem(400, "durable must be 0 or 1")
        if asked == "1" and not self.engine.keeper.durable:
            raise Problem(400, "this service keeps no checkpoint: leave out durable=1")
        return asked == "1"

    async def _ask(self, work: Callable[[], T]) -> T:
        """Do what may wait for a disk or a database, in threads that no batch waits for."""
        return await asyncio.get_running_loop().run_in_executor(self._askers, work)


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
            response = await endpoint(request)
        except Problem as problem:
            response = problem.response()
        except asyncio.CancelledError:  # the service has waited long enough for its requests
            response = Problem(503, _STOPS, retry_after=5).response()
        except Exception as error:  # noqa: BLE001 - what is not foreseen may quote an id
            response = _problem_of(error).response()
        if method == "GET":
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return Route(path, answered, methods=[method])


def _problem_of(error: Exception) -> Problem:
    """What the sender is told."""
    if isinstance(error, InputError):
        return Problem(400, str(error))
    if isinstance(error, StoreError):
        return Problem(503, str(error), retry_after=5)
    if isinstance(error, PanPrivacyError):  # no release is left, or it is made by the clock
        return Problem(409, str(error))
    reason = f"failed with {type(error).__name__}; please report it"
    _LOG.error("a request %s", reason)
    return Problem(500, reason)


async def _plain_problem(_: Request, error: Exception) -> Response:
    """What the router refuses: an unknown path, or another method."""
    status, headers = getattr(error, "status_code", 500), getattr(error, "headers", None) or {}
    if status == 404:
        return Problem(404, "there is nothing at this path; see /v1/openapi.json").response()
    allowed = ", ".join(sorted(headers.get("Allow", "").split(", ")))
    reason = f"this path takes {allowed}; see /v1/openapi.json"
    return Problem(status, reason, headers={"Allow": allowed}).response()


def _took(stream: Stream, kind: str, body: bytearray, batch_id: bytes | None) -> bool:
    """Read and count a body in the thread of the event loop, unless that takes a while."""
    batches = read_body(kind, body, stream.columns.wanted())
    if sum(batch.num_rows for batch in batches) > _FEW_ROWS:
        return False
    try:
        stream.take(batches, batch_id, wait=False)
    except BusyError:
        return False
    return True


def _take(stream: Stream, kind: str, body: bytearray, batch_id: bytes | None) -> None:
    """Read and count a body in a thread of its own."""
    try:
        stream.take(read_body(kind, body, stream.columns.wanted()), batch_id)
    finally:
        wipe_stack()  # that of this thread; the sweeper does the rest


def _kind(request: Request) -> str:
    """The format of a body."""
    if (_header(request, "Content-Encoding") or "identity").lower() != "identity":
        reason = "a body must not be compressed: leave out Content-Encoding"
        raise Problem(415, reason, headers={"Accept-Encoding": "identity"})
    if (_header(request, "Transfer-Encoding") or "chunked").lower() != "chunked":
        raise Problem(501, "Transfer-Encoding must be chunked, and nothing else")
    media_type, _, parameters = (_header(request, "Content-Type") or "").lower().partition(";")
    if media_type.strip() not in MEDIA_TYPES:
        reason = f"Content-Type must be one of {', '.join(MEDIA_TYPES)}"
        raise Problem(415, reason, headers={"Accept": ", ".join(MEDIA_TYPES)})
    charset = _CHARSET.search(parameters)
    if charset and charset[1] not in ("utf-8", "us-ascii"):
        raise Problem(415, "a text must be UTF-8: leave out charset=")
    return MEDIA_TYPES[media_type.strip()]


def _batch_id(request: Request) -> bytes | None:
    """What the sender calls the batch."""
    given = _header(request, "Idempotency-Key")
    if given is None:
        return None
    if not _BATCH_ID.fullmatch(given):
        raise Problem(400, "Idempotency-Key must be 1 to 256 visible ASCII characters")
    return given.encode()


def _declared(request: Request) -> int | None:
    """The length of the body, if the sender tells it."""
    given = _header(request, "Content-Length")
    return None if given is None else int(given)


def _format(request: Request) -> str:
    """The media type that is asked for."""
    asked = _asked(request, "format")
    if asked is None:
        kind = preferred(",".join(request.headers.getlist("accept")), WRITERS)
        if kind is None:
            raise Problem(406, f"Accept must let one of {', '.join(WRITERS)} through")
        return kind
    names = {kind.rpartition("/")[2].rpartition(".")[2]: kind for kind in WRITERS}
    if asked not in names:
        raise Problem(400, f"format must be one of {', '.join(names)}")
    return names[asked]


def _header(request: Request, name: str) -> str | None:
    raw = name.lower().encode()
    given = [value for key, value in request.scope["headers"] if key == raw]
    return _only([value.decode("latin-1") for value in given], name)


def _asked(request: Request, name: str) -> str | None:
    if not request.scope["query_string"]:
        return None
    return _only(request.query_params.getlist(name), name)


def _only(values: list[str], name: str) -> str | None:
    """The value of what may be given once; of two, a proxy may have looked at the other one."""
    if len(values) > 1:
        raise Problem(400, f"{name} is given more than once")
    return values[0] if values else None


def _whole(request: Request, name: str, default: int, most: int) -> int:
    given = _asked(request, name)
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and len(given) < 10 and 1 <= int(given) <= most):
        raise Problem(400, f"{name} must be a whole number from 1 to {most:,}")
    return int(given)


def _moment(request: Request, name: str) -> datetime | None:
    given = _asked(request, name)
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given.replace(" ", "+"))  # a + that was not escaped
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        reason = f"{name} must be a time such as 2026-01-31T00:00:00Z"
        raise Problem(400, reason) from None

"""HTTP interface: endpoints for sending and reading, with permissions."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import Lifespan, Message, Receive, Scope, Send

from panprivacy._version import VERSION
from panprivacy.errors import InputError, PanPrivacyError
from panprivacy.service.batches import Outcome
from panprivacy.service.config.tokens import AccessError, Role
from panprivacy.service.config.values import in_toml
from panprivacy.service.engine import Engine
from panprivacy.service.incoming.admission import Sender, Shared, overwrite
from panprivacy.service.incoming.body_counter import Body
from panprivacy.service.incoming.problems import Problem, check_restored
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.exports import WRITERS, preferred
from panprivacy.service.outgoing.records import DatabaseError, StoreError
from panprivacy.service.served import Served
from panprivacy.service.web.asked import HttpRequest
from panprivacy.service.web.beacons import Beacons
from panprivacy.service.web.compared import OF_OVERLAPS, OF_SKETCHES, ComparedTables
from panprivacy.service.web.metrics import FORMATS, exposition
from panprivacy.service.web.openapi import document
from panprivacy.service.web.paged import PagedAnswers, single_page

_MOST_ROWS = 100_000
_UPDATES = re.compile("/v1/streams/(?P<name>[^/]+)/updates")
_OF_RELEASES = ["stream", "since", "before", "limit", "format"]
_STOPS = "the service stops, and may have counted this: come again with the same Idempotency-Key"
_NO_ROOM = "the service has too little memory now, and nothing of this was counted: come again"
_IN_MEMORY, _ON_DISK = Response(status_code=202), Response(status_code=200)

T = TypeVar("T")


class Api:
    """Endpoints of the service.

    Args:
        engine: the engine of the service.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._askers = ThreadPoolExecutor(2, thread_name_prefix="panprivacy-asker")
        self._exposer = ThreadPoolExecutor(1, thread_name_prefix="panprivacy-metrics")
        self._troubles = Shared(lambda: self._ask(engine.troubles))
        self._metrics = {kind: Shared(partial(self._exposed, kind)) for kind in FORMATS}
        self._answers = PagedAnswers()
        self.tables = ComparedTables(engine, self._allow, self._answers)

    def taker(self, scope: Scope) -> Batches | None:
        """Return the handler of batches with this head; None to leave them to the application."""
        path = _UPDATES.fullmatch(scope["path"])
        if path is None or scope["method"] != "POST" or scope["query_string"]:
            return None
        asked = HttpRequest({**scope, "path_params": path.groupdict()}, _unasked)
        try:
            if asked.encoding() is not None:
                return None
            return Batches(self.engine, *self._update(asked))
        except Exception:  # noqa: BLE001 - the application finds it again, and says so
            return None

    def _update(self, asked: HttpRequest) -> tuple[Served, Sender, str, bytes | None]:
        """Return the stream of a batch, its sender, its format and its id."""
        stream, token = self._stream(asked, Role.ingest)
        return stream, Sender(token, stream.name), asked.body_format(), asked.batch_id()

    async def updates(self, asked: HttpRequest) -> Response:
        """Take in a batch."""
        stream, sender, kind, batch_id = self._update(asked)
        durable = asked.query("durable")
        if durable not in (None, "0", "1"):
            raise Problem(400, "durable must be 0 or 1")
        if durable == "1" and not self.engine.keeper.durable:
            raise Problem(400, "this service keeps no checkpoint: leave out durable=1")
        came, encoding, admission = time.monotonic(), asked.encoding(), self.engine.admission
        with admission.request(sender):
            length, chunks = asked.body_length(), asked.body()
            try:
                async with admission.body(sender, length, chunks) as body:
                    if encoding is None:
                        await self.engine.bodies.count(stream, kind, body, batch_id, sender.token)
                    else:
                        await self._unpack(sender, encoding, body, (stream, kind, batch_id))
            finally:  # also for a body that is incomplete or too long
                self.engine.sweeper.soon()
            return _IN_MEMORY if durable != "1" else await self._on_disk(batch_id, came)

    async def _unpack(
        self,
        sender: Sender,
        encoding: str,
        body: bytearray,
        batch: tuple[Served, str, bytes | None],
    ) -> None:
        """Count the content of a compressed body, limited like a body, and overwrite the body."""
        stream, kind, batch_id = batch
        try:
            pieces = self.engine.unpacker.unpacked(encoding, body, sender.token)
            async with self.engine.admission.body(sender, None, pieces) as plain:
                await self.engine.bodies.count(stream, kind, plain, batch_id, sender.token)
        finally:
            overwrite(body)

    async def release(self, asked: HttpRequest) -> Response:
        """Make a release now."""
        stream, _ = self._stream(asked, Role.release)
        await self._ask(stream.release)
        # relative: a proxy may have the service at another path
        where = {"Location": f"../../releases?stream={stream.name}"}
        return JSONResponse({"released": True}, 201, where)

    async def announce(self, asked: HttpRequest) -> Response:
        """Announce that somebody has seen the memory."""
        stream, _ = self._stream(asked, Role.announce)
        key = asked.batch_id()
        if key is None:
            reason = "an announcement needs an Idempotency-Key, so that a retry is not another one"
            raise Problem(400, reason)
        made = await self._ask(lambda: stream.announce(key))
        began = made.window_began.isoformat()
        told = {"window_began": began, "number": made.number, "left": made.left}
        return JSONResponse({"stream": stream.name, **told})

    async def releases(self, asked: HttpRequest) -> Response:
        """Return published answers."""
        name = asked.query("stream")
        token = self._allow(asked, Role.read, name)
        if name is not None and name not in self.engine.streams:
            raise Problem(404, "there is no such stream")
        kind = asked.answer_format()
        since, before = asked.moment("since"), asked.moment("before")
        limit = asked.integer("limit", 1_000, _MOST_ROWS)
        pages = self.engine.store.pages(stream=name, since=since, before=before, limit=limit)
        pieces = self._answers.made(token, WRITERS[kind](pages))
        headers = {"Content-Type": kind, "Vary": "Accept"}
        return await self._answers.answer(Sender(token, name or ""), pieces, headers)

    async def streams(self, asked: HttpRequest) -> Response:
        """Return the streams, and the guarantees for their users."""
        token = self._allow(asked, Role.read)
        check_restored(waiting=self.engine.waiting)
        headers = {"Content-Type": "application/json"}
        return await self._answers.answer(Sender(token, ""), single_page(self._described), headers)

    async def _described(self) -> bytes:
        """Return the descriptions of all streams."""
        return bytes(JSONResponse([one.described() for one in self.engine.streams.values()]).body)

    async def metrics(self, asked: HttpRequest) -> Response:
        """Return releases and health for Prometheus."""
        token = self._allow(asked, Role.read)
        kind = preferred(asked.listed("Accept"), FORMATS) or "text/plain"
        headers = {"Content-Type": FORMATS[kind][1], "Vary": "Accept"}
        pieces = single_page(self._metrics[kind].get)
        return await self._answers.answer(Sender(token, ""), pieces, headers)

    async def _exposed(self, kind: str) -> bytes:
        """Return all metrics."""
        loop, troubles = asyncio.get_running_loop(), await self._troubles.get()
        return await loop.run_in_executor(
            self._exposer, exposition, self.engine, troubles, kind, self.tables.rates
        )  # it reads all questions: health does not wait for it

    async def health(self, asked: HttpRequest) -> Response:
        """Return whether everything works; the reasons need a token that may read."""
        troubles = await self._troubles.get()
        try:
            self._allow(asked, Role.read)
        except Problem:  # the message of a database may name its host
            troubles = dict.fromkeys(troubles, "a token that may read is told more")
        status = "waiting for restore" if self.engine.waiting else "troubled" if troubles else "ok"
        document = {"status": status, "version": VERSION, "troubles": troubles}
        return JSONResponse(document, 200 if status == "ok" else 503)

    async def openapi(self, asked: HttpRequest) -> Response:  # noqa: ARG002 - anybody may ask
        """Return the description of this interface."""
        return Response(_described(), media_type="application/json")

    async def _on_disk(self, batch_id: bytes | None, came: float) -> Response:
        """Return the answer once the checkpoint contains a batch that was counted."""
        trouble = await self.engine.on_disk(came)
        if trouble is not None:
            again = "retry with the same Idempotency-Key" if batch_id else "a retry counts it again"
            reason = f"counted, but not on disk: {trouble}; {again}"
            raise Problem(503, reason, retry_after=1)
        return _ON_DISK

    def _stream(self, asked: HttpRequest, role: Role) -> tuple[Served, str]:
        """Return the stream of a permitted request, and the name of its token."""
        name = asked.path["name"]
        token = self._allow(asked, role, name)
        if name not in self.engine.streams:
            raise Problem(404, "there is no such stream")
        check_restored(waiting=self.engine.waiting)
        return self.engine.streams[name], token

    def _allow(self, asked: HttpRequest, role: Role, stream: str | None = None) -> str:
        """Check the token of a request, and return its name."""
        try:
            return self.engine.tokens.check(asked.header("Authorization"), role, stream)
        except AccessError as error:
            headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
            raise Problem(error.status, str(error), headers=headers) from None

    async def _ask(self, work: Callable[[], T]) -> T:
        """Run work that may wait for a disk or a database, in threads that no batch waits for."""
        return await asyncio.get_running_loop().run_in_executor(self._askers, work)


class Batches:
    """Handler of the complete batches of one sender, each in a request of its own.

    Args:
        engine: counts them.
        stream: the stream of the batches.
        sender: their sender.
        kind: their format.
        batch_id: the id that their sender gives to each of them.
    """

    __slots__ = ("_allowed", "_batch_id", "_engine", "_kind", "_sender", "_stream")

    def __init__(
        self, engine: Engine, stream: Served, sender: Sender, kind: str, batch_id: bytes | None
    ) -> None:
        self._engine, self._stream, self._sender = engine, stream, sender
        self._kind, self._batch_id = kind, batch_id
        self._allowed = engine.tokens.edition

    def take(self, body: bytearray, tell: Callable[[Response], None]) -> Body | None:
        """Start counting a batch, and pass the outcome to its sender.

        Returns:
            The waiting request; None for a request that the application must answer.
        """
        engine, size = self._engine, len(body)
        if engine.tokens.edition is not self._allowed:
            return None
        try:
            engine.admission.hold_complete(self._sender, size)
        except Problem:
            return None
        engine.sweeper.soon()
        told = partial(self._finish, size, tell)
        token = self._sender.token
        return engine.bodies.put(self._stream, self._kind, body, self._batch_id, told, token)

    def _finish(
        self, size: int, tell: Callable[[Response], None], outcome: Outcome | BaseException | None
    ) -> None:
        self._engine.admission.give_back(self._sender, size)
        tell(response_to(outcome) if isinstance(outcome, BaseException) else _IN_MEMORY)


@cache
def _described() -> bytes:
    """Return the description of this interface, computed once: anybody may request it."""
    return bytes(JSONResponse(document()).body)


async def _unasked() -> Message:
    """Receive for a request whose body is already complete."""
    raise ClientDisconnect


class Application(Router):
    """The ASGI application of a service.

    Attributes:
        api: its endpoints, for a protocol with a fast path.
    """

    api: Api


def application(engine: Engine, lifespan: Lifespan[Router] | None = None) -> Application:
    """Return the ASGI application of a service.

    Args:
        engine: the engine of the service.
        lifespan: runs before its first request, and after its last one.
    """
    api, beacons = Api(engine), Beacons(engine)
    stream = "/v1/streams/{name}"
    routes = [
        Route(f"{stream}/updates", Resource("POST", api.updates, ["durable"])),
        Route(f"{stream}/release", Resource("POST", api.release, [])),
        Route(f"{stream}/announce", Resource("POST", api.announce, [])),
        Route(f"{stream}/beacon.js", Resource("GET", beacons.script)),
        Route(f"{stream}/beacon", Resource("POST", beacons.visit, [])),
        Route("/v1/streams", Resource("GET", api.streams, [])),
        Route("/v1/releases", Resource("GET", api.releases, _OF_RELEASES)),
        Route("/v1/sketches", Resource("GET", api.tables.sketches, OF_SKETCHES)),
        Route("/v1/sketches/{name}/{id}", Resource("GET", api.tables.sketch, [])),
        Route("/v1/overlaps", Resource("GET", api.tables.overlaps, OF_OVERLAPS)),
        Route("/v1/openapi.json", Resource("GET", api.openapi)),
        Route("/metrics", Resource("GET", api.metrics)),
        Route("/healthz", Resource("GET", api.health)),
    ]
    unknown = Problem(404, "there is nothing at this path; see /v1/openapi.json").response()
    app = Application(routes, redirect_slashes=False, default=unknown, lifespan=lifespan)
    app.api = api
    return app


def response_to(error: BaseException) -> Response:
    """Return the response to a failed request; it never quotes unexpected errors."""
    return (error if isinstance(error, Problem) else _problem_of(error)).response()


def _problem_of(error: BaseException) -> Problem:
    """Return what to tell the sender of a failed request."""
    if isinstance(error, asyncio.CancelledError):  # the service has waited long enough
        return Problem(503, _STOPS, retry_after=5)
    if isinstance(error, InputError):
        return Problem(400, in_toml(str(error)))
    if isinstance(error, StoreError):
        reason = str(error)
        if isinstance(error, DatabaseError):  # its message may name its host
            JOURNAL.error(Event.trouble, what="store", reason=reason)
            reason = "the database fails, and the journal says why: come again"
        return Problem(503, reason, retry_after=5)
    if isinstance(error, PanPrivacyError):  # no release is left, or the clock makes it
        return Problem(409, str(error))
    if isinstance(error, MemoryError):
        JOURNAL.error(Event.trouble, what="memory", reason="a request was refused for want of it")
        return Problem(503, _NO_ROOM, retry_after=1)
    kind = type(error).__name__
    JOURNAL.error(Event.request_failed, error=kind)
    return Problem(500, f"failed with {kind}; please report it")


class Resource:
    """Resource at a path.

    Args:
        method: the method that it accepts.
        endpoint: answers requests.
        query: names of the permitted query parameters; None to permit and ignore any.
    """

    def __init__(
        self,
        method: str,
        endpoint: Callable[[HttpRequest], Awaitable[Response]],
        query: Sequence[str] | None = None,
    ) -> None:
        self._endpoint, self._query = endpoint, query
        self.methods = {"GET": ("GET", "HEAD")}.get(method, (method,))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whether it succeeds or fails.

        If it fails after a part of the answer was sent, the connection is closed.
        """
        try:
            response = await self._answer(scope, receive)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - it may quote an id
            response = response_to(error)
        if "GET" in self.methods:
            response.headers.setdefault("Cache-Control", "no-store")
        try:
            await response(scope, receive, send)
        except PanPrivacyError as error:  # of the release store
            _problem_of(error)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        if scope["method"] not in self.methods:
            allowed = ", ".join(self.methods)
            reason = f"this path takes {allowed}"
            raise Problem(405, reason, headers={"Allow": allowed})
        asked = HttpRequest(scope, receive)
        if self._query is not None:
            asked.check_query(self._query)
        return await self._endpoint(asked)

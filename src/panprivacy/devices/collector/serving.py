"""The base class of the servers of a task: serial access to the store, and access control."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Generic, TypeVar

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import Lifespan

from panprivacy._version import VERSION
from panprivacy.devices.collector.task_store import TaskStore
from panprivacy.errors import PlanError
from panprivacy.service.config.tokens import AccessError, Role, Tokens
from panprivacy.service.config.values import parse_origin
from panprivacy.service.incoming.admission import Shared
from panprivacy.service.incoming.problems import Problem
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.web.app import Resource
from panprivacy.service.web.asked import HttpRequest

_BODY_SECONDS: Final = 60.0
_TOGETHER: Final = 500
"""Maximum number of items in one commit."""

T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")


class GroupCommit(Generic[Item, Result]):
    """A group commit: items that arrive during a write to the disk wait, and are written together.

    Args:
        write: writes some, and says what came of each.
    """

    def __init__(self, write: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]]) -> None:
        self._write = write
        self._waiting: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._writing: asyncio.Task[None] | None = None

    def written(self, item: Item) -> asyncio.Future[Result]:
        """Return a future of the outcome of an item, or of the error that all of them share."""
        told = asyncio.get_running_loop().create_future()
        self._waiting.append((item, told))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all(), name="panprivacy-writing")
        return told

    async def _write_all(self) -> None:
        """Write all that wait, many at once."""
        while self._waiting:
            some = [self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))]
            try:
                outcomes = await self._write([item for item, _ in some])
            except Exception as error:  # noqa: BLE001 - each is told
                for _, told in some:
                    if not told.done():  # else who waited was cancelled
                        told.set_exception(error)
                continue
            for (_, told), outcome in zip(some, outcomes, strict=True):
                if not told.done():
                    told.set_result(outcome)


class Serving:
    """A server of one task.

    Args:
        signed: the file of the task, as devices read it.
        store: its store.
        access: the tokens and their roles.
    """

    def __init__(self, signed: bytes, store: TaskStore, access: Tokens) -> None:
        self._signed, self._store, self._access = signed, store, access
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="panprivacy-worker")
        self._asker = ThreadPoolExecutor(1, thread_name_prefix="panprivacy-asker")
        self._status = Shared(self._looked)
        self._fails = False

    def taker(self, scope: Any) -> None:
        """Leave each request to the application."""

    async def task(self, asked: HttpRequest) -> Response:  # noqa: ARG002 - anybody may ask
        """Return the signed task."""
        return Response(self._signed, media_type="application/json")

    async def health(self, asked: HttpRequest) -> Response:  # noqa: ARG002 - anybody may ask
        """Report whether the server runs, and whether its store works."""
        status = await self._status.get()
        document = {"status": status, "version": VERSION}
        return JSONResponse(document, 503 if status == "troubled" else 200)

    async def _looked(self) -> str:
        """Return the status of the store, which may be readable but not writable."""
        try:
            if self._fails:  # a client that reads "troubled" sends nothing, and clears nothing
                await self._in_thread(self._store.check_writes)
                self._fails = False
            closed = await self._in_thread(lambda: self._store.closed)
        except StoreError:
            return "troubled"
        return "closed" if closed else "open"

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Ask the store, in a thread that waits for no report."""
        return await asyncio.get_running_loop().run_in_executor(self._asker, work)

    async def _stored(self, work: Callable[[], T]) -> T:
        """Run work on the store serially, in a thread that may wait for the disk."""
        try:
            done = await asyncio.get_running_loop().run_in_executor(self._worker, work)
        except StoreError:
            self._fails = True
            raise
        self._fails = False
        return done

    def _allow(self, asked: HttpRequest, role: Role) -> None:
        try:
            self._access.check(asked.header("Authorization"), role, None)
        except AccessError as error:
            headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
            reason = str(error).replace(" all streams", "")
            raise Problem(error.status, reason, headers=headers) from None


def for_pages(origins: Sequence[str]) -> list[Middleware]:
    """Return what lets the pages of these origins read a task and send reports; nothing for none.

    Raises:
        PlanError: one is no origin.
    """
    places = [parse_origin(one) for one in origins]
    if any(path for _, path in places):
        message = "origin must be a site such as https://app.example, without a path"
        raise PlanError(message)
    known = [origin for origin, _ in places]
    headers = ["Authorization", "Content-Type"]
    pages = Middleware(
        CORSMiddleware,
        allow_origins=known,
        allow_methods=["GET", "POST"],
        allow_headers=headers,
        expose_headers=["Retry-After"],
    )
    return [pages] if known else []


def router(
    api: Serving,
    routes: Sequence[Route],
    pages: Sequence[Middleware],
    lifespan: Lifespan[Router] | None = None,
) -> Router:
    """Return the ASGI application of a server with these resources and the common ones."""
    every = [
        Route("/v1/task", Resource("GET", api.task, []), middleware=pages),
        Route("/healthz", Resource("GET", api.health)),
    ]
    paths = " and ".join([", ".join(one.path for one in [*routes, every[0]]), "/healthz"])
    unknown = Problem(404, f"there are {paths}").response()
    return Router([*routes, *every], redirect_slashes=False, default=unknown, lifespan=lifespan)


async def body_of(asked: HttpRequest, most: int, reason: str) -> bytes:
    """Return the complete body of a request.

    Raises:
        Problem: it has more bytes than `most`, for this reason, or it does not arrive.
        ClientDisconnect: it ends too early.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for piece in asked.body():
                body += piece
                if len(body) > most:
                    raise Problem(413, reason, headers={"Connection": "close"})
    except TimeoutError:
        slow = f"the body did not arrive within {_BODY_SECONDS:g} seconds"
        raise Problem(408, slow) from None
    return bytes(body)

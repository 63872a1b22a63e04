"""Server: runs a service until it is stopped."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.routing import Router
from starlette.types import ASGIApp, Lifespan
from uvicorn.config import WSProtocolType

from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.service.config.config import Config
from panprivacy.service.engine import Engine, LocalEngine
from panprivacy.service.journal import JOURNAL, Event, write_to_stderr
from panprivacy.service.kept.restoring import DESK, Desk
from panprivacy.service.sockets import Address, http_socket
from panprivacy.service.web.answering import FastPath
from panprivacy.service.web.app import application
from panprivacy.service.web.connections import MOST_CONNECTIONS, Uncounted
from panprivacy.service.web.protocol import GuardedProtocol

_REFUSED_AT = MOST_CONNECTIONS + 200
"""Connections at which uvicorn refuses everyone: more than the protocol admits at once."""

_WAITING = 2_048
"""Connections that the kernel holds until they are accepted."""
_AT_ONCE = 32
"""Connections that are accepted in one turn of the event loop."""

_SWITCH_SECONDS = 0.0005
"""Seconds for which a thread that counts may keep the interpreter from the event loop.

The loop needs it after each system call, and Python's 5 ms are many times what a request takes.
"""

_NO_LEDGER = (
    "there is a checkpoint, but its release store is not there any more: put the store back, or "
    "mend its URL; without it, give the checkpoint up with panprivacy serve --fresh"
)


def serve(config: Config, file: Path | None = None, *, fresh: bool = False) -> None:
    """Run a service in this process until SIGTERM or SIGINT.

    Args:
        config: a configuration that was loaded.
        file: its path; its tokens are followed.
        fresh: give the checkpoint up, and start anew.

    Raises:
        PlanError: it cannot be run like this.
    """
    write_to_stderr()
    directory = Path(config.server.directory)
    beside = directory / "checkpoint.lock"
    if config.checkpoint is not None:  # which may lie in the directory of no service
        sealed = Path(config.checkpoint.path)
        beside = sealed.with_name(f"{sealed.name}.lock")
    with alone(directory / "lock"), alone(beside):
        engine, failures = LocalEngine(config, file), list[PanPrivacyError]()
        engine.warm_up()
        with http_socket(config.server.address) as sock:
            if fresh:  # not before everything else is there
                engine.give_up()
            if engine.waiting and engine.store.is_new:
                raise PlanError(_NO_LEDGER)
            run(engine, sock, lambda _: _restoring(engine, directory, failures))
            for failure in failures:
                raise failure


def run(engine: Engine, sock: socket.socket, lifespan: Lifespan[Router]) -> None:
    """Count until stopped; shut down in good order, whatever the reason.

    Args:
        engine: the engine; it is started here, unless it waits.
        sock: the listening socket.
        lifespan: the lifespan of the application.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    app = application(engine, lifespan)
    server = Server(app, app.api, engine.keeper.hurry, lambda: _say_where(engine, sock))
    server.take_signals()
    try:
        if not engine.waiting:
            engine.begin()
        server.run(sockets=[sock])
    finally:
        engine.end()


class Server(uvicorn.Server):
    """uvicorn's server, whose connections are bounded.

    Args:
        app: answers requests.
        direct: answers the requests that do not need the application.
        hurry: called when it is stopped: requests need not wait for the next checkpoint.
        listens: called when it listens.
        sockets: the protocol of web sockets, as uvicorn calls it.
        patience: seconds that requests have when it stops.
    """

    def __init__(
        self,
        app: ASGIApp,
        direct: FastPath,
        hurry: Callable[[], None],
        listens: Callable[[], None] = lambda: None,
        sockets: WSProtocolType = "none",
        patience: int = 10,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=partial(GuardedProtocol, direct=direct),  # type: ignore[arg-type]
            loop="asyncio",
            ws=sockets,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_REFUSED_AT,
            timeout_graceful_shutdown=patience,
            backlog=_AT_ONCE,  # asyncio accepts as many before it does anything else
        )
        super().__init__(config)
        self._hurry, self._listens = hurry, listens
        self.server_state: Uncounted = Uncounted()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen once all else is ready, so that no client waits for preparations."""
        await super().startup(sockets)
        for sock in sockets or ():
            sock.listen(_WAITING)
        self._listens()

    async def on_tick(self, counter: int) -> bool:
        """Close connections that read nothing."""
        self.server_state.check_readers()
        return await super().on_tick(counter)

    def take_signals(self) -> None:
        """End at SIGTERM and SIGINT in an orderly way, from now on and after `run`.

        uvicorn raises them again when it has stopped: without this, they would end the process
        before it has tidied up.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.handle_exit)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, after the open requests."""
        self._hurry()
        super().handle_exit(sig, frame)


def _uncounted_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **given: Any) -> Any:
    """Return a task with a name: tasks without are numbered, and a request is a task."""
    return asyncio.Task(coroutine, loop=loop, **{**given, "name": given.get("name") or "task"})


@asynccontextmanager
async def uncounted(_: object = None) -> AsyncIterator[None]:
    """Provide the lifespan of an application whose tasks have no numbers."""
    asyncio.get_running_loop().set_task_factory(_uncounted_task)
    yield


@asynccontextmanager
async def _restoring(
    engine: LocalEngine, directory: Path, failures: list[PanPrivacyError]
) -> AsyncIterator[None]:
    """If there is a checkpoint, wait for it to be restored, and begin then."""
    async with uncounted():
        if not engine.waiting:
            yield
            return
        async with _at_desk(engine, directory, failures):
            yield


@asynccontextmanager
async def _at_desk(
    engine: LocalEngine, directory: Path, failures: list[PanPrivacyError]
) -> AsyncIterator[None]:
    """Restore the checkpoint in parallel with the requests."""

    def go_on(states: bytes) -> None:
        engine.restore(states)  # its caller gets the error
        with _ending_for(failures):
            engine.begin()

    async def wait() -> None:
        with suppress(PanPrivacyError), _ending_for(failures):
            await Desk(directory / DESK, engine.most_restored, go_on).wait()

    waiting = asyncio.create_task(wait())
    yield
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting


@contextmanager
def _ending_for(failures: list[PanPrivacyError]) -> Iterator[None]:
    """Stop the service at an error that cannot be mended while it runs."""
    try:
        yield
    except PanPrivacyError as error:
        failures.append(error)
        signal.raise_signal(signal.SIGTERM)
        raise


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Lock a file for one program: two services would overwrite each other's checkpoint."""
    try:
        lock = os.open(file, os.O_CREAT | os.O_RDONLY | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        message = f"cannot write in {file.parent}: {error.strerror}; give this program a directory "
        message += "of its own"
        raise PlanError(message) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another service, cluster, collector or aggregator runs in {file.parent}: "
            message += "stop it, or give this one a directory of its own"
            raise PlanError(message) from None
        yield
    finally:
        os.close(lock)


def _say_where(engine: Engine, sock: socket.socket) -> None:
    name = sock.getsockname()
    address = Address(path=name) if isinstance(name, str) else Address(name[0], name[1])
    JOURNAL.warning(Event.listening, where=address.url("http"))
    if not engine.config.tokens:
        visited = any(one.config.beacon for one in engine.streams.values())
        JOURNAL.warning(Event.visits_alone if visited else Event.nobody_may)
    for stream in engine.streams.values():
        guarantee = str(stream.described()["guarantee"])
        JOURNAL.warning(Event.promise, stream=stream.name, guarantee=guarantee)
        if (begun := stream.begun()) and not engine.waiting:
            JOURNAL.warning(Event.begun_before, stream=stream.name, begun=begun, losses=begun + 1)
    if engine.waiting:
        JOURNAL.warning(Event.waiting)

"""Runs a service until it is told to stop."""

from __future__ import annotations

import asyncio
import fcntl
import logging
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
from starlette.types import ASGIApp

from panprivacy._kernels import compile_kernels
from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.service.config.config import Address, Config
from panprivacy.service.engine import Engine
from panprivacy.service.restoring import DESK, Desk
from panprivacy.service.web.app import application
from panprivacy.service.web.protocol import MOST_CONNECTIONS, GuardedProtocol, Uncounted

_LOG = logging.getLogger("panprivacy.service")
_REFUSED_AT = MOST_CONNECTIONS + 200
"""uvicorn refuses everyone then: more than the protocol lets come together."""
_SOCKET_MODE = 0o660


def serve(config: Config, *, fresh: bool = False) -> None:
    """Run a service in this process until SIGTERM or SIGINT.

    Args:
        config: a configuration that was loaded.
        fresh: give up the checkpoint that is there, and begin anew.

    Raises:
        PlanError: it cannot be run like this.
    """
    _log_to_stderr()
    directory = Path(config.server.directory)
    with _alone(directory / "lock"), _alone(_beside(config)):
        engine = Engine(config)
        compile_kernels()
        with _listening(config.server.address) as sock:
            if fresh:  # not before everything else is there
                engine.give_up()
            _say_where(engine, sock)
            _run(engine, directory, sock)


def _run(engine: Engine, directory: Path, sock: socket.socket) -> None:
    """Count until told to stop; end in good order, however that comes."""
    failures: list[PanPrivacyError] = []
    app = application(engine, lambda _: _lifespan(engine, directory, failures))
    server = _server(app, engine.keeper.hurry)
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again when it has stopped
        signal.signal(number, server.handle_exit)
    try:
        if not engine.waiting:
            engine.begin()
        server.run(sockets=[sock])
    finally:
        engine.end()
    for failure in failures:
        raise failure


class _Server(uvicorn.Server):
    """uvicorn's server; when it is told to stop, requests need not wait for the next checkpoint."""

    def __init__(self, config: uvicorn.Config, hurry: Callable[[], None]) -> None:
        super().__init__(config)
        self._hurry = hurry
        self.server_state = Uncounted()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, after the requests that are there."""
        self._hurry()
        super().handle_exit(sig, frame)


def _uncounted_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **given: Any) -> Any:
    """A task with a name: those without are numbered, and a request is a task."""
    return asyncio.Task(coroutine, loop=loop, **{**given, "name": given.get("name") or "task"})


def _server(app: ASGIApp, hurry: Callable[[], None]) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http=GuardedProtocol,
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_REFUSED_AT,
        timeout_graceful_shutdown=10,
    )
    return _Server(config, hurry)


@asynccontextmanager
async def _lifespan(
    engine: Engine, directory: Path, failures: list[PanPrivacyError]
) -> AsyncIterator[None]:
    """If there is a checkpoint, wait for it to be restored, and begin then."""
    asyncio.get_running_loop().set_task_factory(_uncounted_task)
    if not engine.waiting:
        yield
        return
    resume = partial(_go_on, engine, failures)
    waiting = asyncio.create_task(
        _wait(Desk(directory / DESK, engine.state_bytes, resume), failures)
    )
    yield
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting


async def _wait(desk: Desk, failures: list[PanPrivacyError]) -> None:
    with suppress(PanPrivacyError), _ending_for(failures):
        await desk.wait()


def _go_on(engine: Engine, failures: list[PanPrivacyError], states: bytes) -> None:
    """Begin with the states of a checkpoint; who brings them is told how that went."""
    engine.restore(states)
    with _ending_for(failures):
        engine.begin()


@contextmanager
def _ending_for(failures: list[PanPrivacyError]) -> Iterator[None]:
    """End the service for what cannot be mended while it runs."""
    try:
        yield
    except PanPrivacyError as error:
        failures.append(error)
        signal.raise_signal(signal.SIGTERM)
        raise


def _beside(config: Config) -> Path:
    """A lock beside the checkpoint, which may lie in the directory of no service."""
    if config.checkpoint is None:
        return Path(config.server.directory) / "checkpoint.lock"
    path = Path(config.checkpoint.path)
    return path.with_name(f"{path.name}.lock")


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """One service at a time: two would overwrite each other's checkpoint."""
    try:
        lock = os.open(file, os.O_CREAT | os.O_RDONLY | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        message = f"cannot write in {file.parent}: {error.strerror}; see directory in [server]"
        raise PlanError(message) from None
    try:
        _lock(lock, file.parent)
        yield
    finally:
        os.close(lock)


def _lock(lock: int, directory: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        message = f"another service runs in {directory}: stop it, or give this one a directory"
        raise PlanError(message) from None


@contextmanager
def _listening(address: Address) -> Iterator[socket.socket]:
    """A socket for HTTP."""
    try:
        sock = _unix(address.path) if address.path else _tcp(address)
    except OSError as error:
        where = address.path or f"{address.host}, port {address.port}"
        message = f"cannot listen at {where}: {error.strerror}; see listen in [server]"
        raise PlanError(message) from None
    try:
        yield sock
    finally:
        sock.close()
        if address.path:
            with suppress(OSError):
                Path(address.path).unlink()


def _tcp(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # asyncio has answers leave at once (TCP_NODELAY) if a socket names its protocol.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address.host, address.port))
        sock.listen(1_024)
    except OSError:
        sock.close()
        raise
    return sock


def _unix(path: str) -> socket.socket:
    """In place of one that a dead program left behind: the lock says that it is dead."""
    sock = socket.socket(socket.AF_UNIX)
    before = os.umask(0o777 & ~_SOCKET_MODE)
    try:
        if Path(path).is_socket():
            Path(path).unlink()
        sock.bind(path)
        sock.listen(1_024)
    except OSError:
        sock.close()
        raise
    finally:
        os.umask(before)
    return sock


def _say_where(engine: Engine, sock: socket.socket) -> None:
    name = sock.getsockname()
    where = f"unix:{name}" if isinstance(name, str) else _url(name[0], name[1])
    _LOG.warning("listening at %s", where)
    if not engine.config.tokens:
        _LOG.warning("there are no tokens: over HTTP nobody can send or read anything")
    for stream in engine.streams.values():
        described = stream.described()
        _LOG.warning("stream %s: %s", stream.name, described["guarantee"])
        if (begun := stream.begun()) and not engine.waiting:
            _LOG.warning(
                "stream %s: this window was begun %d times before: who is in all of them loses "
                "%d times epsilon", stream.name, begun, begun + 1,
            )  # fmt: skip
    if engine.waiting:
        _LOG.warning(
            "there is a checkpoint: bring its identity to panprivacy restore, "
            "or give it up with panprivacy serve --fresh"
        )


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _log_to_stderr() -> None:
    """Warnings and worse, a line each; journald adds the time."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="panprivacy: %(message)s", force=True
    )

"""Runs a service until it is told to stop."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.service.app import application
from panprivacy.service.config import Address, Config
from panprivacy.service.engine import Engine
from panprivacy.service.protocol import GuardedProtocol, Uncounted
from panprivacy.service.restoring import DESK, Desk

_LOG = logging.getLogger("panprivacy.service")
_MOST_CONNECTIONS = 2_000
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
    with _alone(directory):
        if fresh and config.checkpoint is not None:
            Path(config.checkpoint.path).unlink(missing_ok=True)
        engine = Engine(config)
        app = application(engine)
        app.router.lifespan_context = lambda _: _lifespan(engine, directory)
        with _listening(config.server.address) as sock:
            _say_where(engine, sock)
            _run(app, sock)


def _run(app: Starlette, sock: socket.socket) -> None:
    config = uvicorn.Config(
        app,
        http=GuardedProtocol,
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=10,
    )
    server = uvicorn.Server(config)
    server.server_state = Uncounted()
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again when it has stopped
        signal.signal(number, lambda *_: None)
    server.run(sockets=[sock])


@asynccontextmanager
async def _lifespan(engine: Engine, directory: Path) -> AsyncIterator[None]:
    """Begin at once, or once the checkpoint is restored; end in good order."""
    desk = Desk(directory / DESK, engine.restore)
    waiting = None
    if engine.waiting:
        waiting = asyncio.create_task(_begin_later(engine, desk))
    else:
        engine.begin()
    yield
    if waiting is not None and not waiting.done():
        waiting.cancel()
        desk.close()
    await asyncio.to_thread(engine.end)


async def _begin_later(engine: Engine, desk: Desk) -> None:
    try:
        await desk.wait()
        engine.begin()
    except PanPrivacyError as error:
        _LOG.critical("%s", error)
        signal.raise_signal(signal.SIGTERM)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One service in a directory at a time: two would overwrite each other's checkpoint."""
    try:
        lock = os.open(directory / "lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        message = f"cannot write in {directory}: {error.strerror}; see directory in [server]"
        raise PlanError(message) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        message = f"another service runs in {directory}: stop it, or give this one a directory"
        raise PlanError(message) from None
    finally:
        os.close(lock)


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
    return socket.create_server((address.host, address.port), family=family, backlog=1_024)


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
    for stream in engine.streams.values():
        described = stream.described()
        _LOG.warning("stream %s: %s", stream.name, described["guarantee"])
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

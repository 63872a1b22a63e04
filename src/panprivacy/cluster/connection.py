"""Connection to NATS for threads, with its own event loop; it reconnects without end."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js import JetStreamContext
from nats.js.errors import APIError, ServiceUnavailableError

from panprivacy.cluster.queues import BrokerError, QueueFullError
from panprivacy.cluster.transport import UNREADABLE, new_client
from panprivacy.errors import InputError, PanPrivacyError

_MOST_PATIENCE: Final = 30.0
_PAUSE: Final = 0.01
_REFUSAL: Final = "Authorization"
ERRORS: Final = (NatsError, asyncio.TimeoutError, OSError, *UNREADABLE)
"""Errors of the client if the broker does not answer, refuses, or sends an invalid answer."""
_NO_ROOM: Final = 10028
_FULL: Final = {10077, 10023}
"""Error codes for a full queue and for a server whose memory is full."""

T = TypeVar("T")


class BrokerConnection:
    """Connection to a broker that may be away; each call waits at most `patience` for it.

    Args:
        servers: `nats://HOST:PORT` or `tls://HOST:PORT`; one, or several of which any will do.
        credentials: path of a credentials file as written by `nsc`; needs `nkeys`.
        patience: seconds to wait for a broker that does not answer, at most 30.
        broke: called in the event loop when a connection has ended.

    Raises:
        InputError: the file or the library for it is missing, or `patience` is out of range.
    """

    answer_seconds: ClassVar[float] = 2.0
    """Seconds that one request waits for its answer."""

    def __init__(
        self,
        servers: str | Sequence[str],
        credentials: str | None,
        patience: float,
        broke: Callable[[], Awaitable[None]],
    ) -> None:
        if not 0 < patience <= _MOST_PATIENCE:
            message = f"patience must be more than 0 and at most {_MOST_PATIENCE:g} seconds"
            raise InputError(message)
        if credentials is not None and not Path(credentials).is_file():
            message = "credentials must be the path of a file as nsc writes it: there is none"
            raise InputError(message)
        if credentials is not None and find_spec("nkeys") is None:
            message = "credentials need a library that has no wheel: run pip install nkeys"
            raise InputError(message)
        self._servers = [servers] if isinstance(servers, str) else list(servers)
        self._credentials, self._broke = credentials, broke
        self.patience = patience
        self._client = new_client()
        self._connecting: asyncio.Task[None] | None = None
        self._problem = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="panprivacy-broker", daemon=True
        )
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the thread of the event loop; its failures become `BrokerError`."""

        async def translated() -> T:
            try:
                return await coroutine
            except PanPrivacyError:
                raise
            except ERRORS as error:
                raise self._refused(error) from None

        if self._loop.is_closed():
            coroutine.close()
            message = "the broker was closed"
            raise BrokerError(message)
        return asyncio.run_coroutine_threadsafe(translated(), self._loop)

    def close(self) -> None:
        """Close the connection; may be called again."""
        if self._loop.is_closed():
            return
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._closed(), self._loop).result(self.patience)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(self.patience)
        if not self._thread.is_alive():
            self._loop.close()

    async def ready(self) -> int:
        """Wait for a connection, starting one if necessary, and return the maximum message size."""
        until = time.monotonic() + self.patience
        while not self._client.is_connected:
            if self._connecting is None or (self._connecting.done() and self._client.is_closed):
                # The client gives up for good if a server refuses something, so it is created
                # again.
                self._connecting = asyncio.create_task(self._connect())
            if time.monotonic() > until:
                raise NatsTimeoutError
            await asyncio.sleep(_PAUSE)
        self._problem = ""
        return self._client.max_payload

    async def account(self) -> None:
        """Wait for a broker that has JetStream."""
        await self.ready()
        await self.jetstream.account_info()

    @property
    def jetstream(self) -> JetStreamContext:
        """The queues of the broker."""
        return self._client.jetstream(timeout=self.answer_seconds)

    async def _connect(self) -> None:
        self._client, self._problem = new_client(), ""
        with suppress(*ERRORS):  # `ready` tries again
            await self._client.connect(
                self._servers,
                name="panprivacy",
                user_credentials=self._credentials,
                error_cb=self._note,
                disconnected_cb=self._broke,
                max_reconnect_attempts=-1,
                reconnect_time_wait=0.2,
                connect_timeout=2,
                ping_interval=2,
            )

    async def _note(self, error: Exception) -> None:
        """Store why there is no connection; a refusal says more than the break that follows it."""
        if _REFUSAL not in self._problem:
            words = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else ""
            said = words or str(error).removeprefix("nats: ")
            self._problem = said or type(error).__name__

    async def _closed(self) -> None:
        with suppress(Exception):  # whatever fails, nothing may continue to wait for an answer
            await self._client.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _refused(self, error: BaseException) -> BrokerError:
        """Build the error that says why the broker does not do what was requested."""
        where = ", ".join(urlsplit(server).netloc.rpartition("@")[2] for server in self._servers)
        reason = error.description if isinstance(error, APIError) else self._problem
        code = error.err_code if isinstance(error, APIError) else None
        if code == _NO_ROOM:
            message = "the server has no room for a queue: raise its max_memory_store, or lower "
            return BrokerError(f"{message}queue_bytes")
        if is_full(error):
            message = "the queue is full: its shard does not keep up, or is gone; come again later"
            return QueueFullError(message)
        if isinstance(error, MaxPayloadError):
            return BrokerError("the message is longer than the broker takes: raise max_payload")
        if isinstance(error, ServiceUnavailableError):
            message = (
                f"the broker at {where} has no JetStream: start nats-server with -js, or with "
            )
            return BrokerError(f"{message}jetstream in its configuration")
        verb = "refuses" if code else "does not answer"
        return BrokerError(f"the broker at {where} {verb}{f': {reason}' if reason else ''}")


def is_full(error: BaseException) -> bool:
    """Return whether a queue, or the memory of a server, is full."""
    return isinstance(error, APIError) and error.err_code in _FULL

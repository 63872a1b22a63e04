"""uvicorn's protocol, for a service that anybody may connect to and that counts no requests."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

_HEAD_SECONDS = 10.0
_HEAD_BYTES = 1 << 19
"""More than asyncio reads at once, of which earlier requests may be a part."""


class Uncounted(ServerState):
    """uvicorn's state without the number of requests: where a request is an event, it counts."""

    total_requests = property(lambda _: 0, lambda _, __: None)


class GuardedProtocol(HttpToolsProtocol):
    """Closes a connection that does not send a whole head, in time and in few bytes.

    uvicorn waits for ever for the rest of a head.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a head."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        self._head_arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in what came, until a head has become too long."""
        super().data_received(data)
        if self._head_timer is not None:  # the head has not ended in this data
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES:
                self._give_up()

    def on_message_begin(self) -> None:
        """Expect the rest of a head."""
        self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Expect a body, which the application times."""
        self._head_arrived()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(_HEAD_SECONDS, self._give_up)

    def _head_arrived(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._head_timer, self._head_bytes = None, 0

    def _give_up(self) -> None:
        transport: Any = self.transport
        if not transport.is_closing():
            transport.close()

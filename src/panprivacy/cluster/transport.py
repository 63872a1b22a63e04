"""Transport of the NATS client: a message is copied once, from the socket's buffer.

The unmodified client copies each message four times before it returns it, and in a hardened
process each copy is also overwritten: that takes longer than to decrypt and count the message.
Everything else, from the handshake to the lines of the protocol, is the client's own; but an
invalid input ends the connection, not the client, and TLS that was requested is never skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from ssl import SSLContext
from typing import Any, Final

import nats
import numpy as np
from nats.aio.transport import Transport
from nats.errors import ProtocolError, SecureConnRequiredError
from nats.protocol.parser import AWAITING_CONTROL_LINE, MAX_CONTROL_LINE_SIZE, Parser

_BUFFER_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 64 << 20
"""Maximum size of a message: no server of NATS takes more."""
_MOST_LINE: Final = 1 << 20
"""Maximum size of a line: the line of a large cluster names all its servers."""
_END_BYTES: Final = 2
"""Size of the end of a message."""
_FROM_QUEUE: Final = b"$JS.ACK."
"""Prefix of the reply subject of messages from a queue."""


UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError)
"""Errors of the client if it cannot read the data of a server."""


def new_client() -> nats.NATS:
    """Return a client with this transport, to be connected like any other."""
    client = _Client()
    client._ps = parser = MessageParser(client)  # noqa: SLF001 - there is no other way to give one
    client._transport = Connection(parser)  # noqa: SLF001
    return client


@contextmanager
def _read_or_refused() -> Iterator[None]:
    """Convert unreadable data to an error of the server, after which the client reconnects."""
    try:
        yield
    except UNREADABLE:
        message = "nats: a server says what cannot be read"
        raise ProtocolError(message) from None


class _Client(nats.NATS):  # type: ignore[misc]
    """The library's client, which would otherwise not retry after an unreadable handshake."""

    async def _process_connect_init(self) -> None:
        with _read_or_refused():
            await super()._process_connect_init()

    def _connect_command(self) -> bytes:
        """Return the next command, which may contain a password; refuse to send it without TLS."""
        if self._current_server.uri.scheme == "tls" and not self._transport.secure:
            raise SecureConnRequiredError
        said: bytes = super()._connect_command()
        return said


class Connection(Transport):  # type: ignore[misc]
    """Connection with or without TLS, read into one buffer.

    Args:
        parser: parses the data; it may be in the middle of a message when the connection breaks.

    Attributes:
        secure: whether the connection uses TLS.
    """

    secure = False

    def __init__(self, parser: Parser) -> None:
        self._parser, self._incoming = parser, _Incoming()

    async def connect(self, uri: Any, buffer_size: int, connect_timeout: int) -> None:  # noqa: ARG002
        """Connect without TLS."""
        self.secure = False
        loop, self._incoming = asyncio.get_running_loop(), _Incoming()
        made = loop.create_connection(lambda: self._incoming, uri.hostname, uri.port)
        await asyncio.wait_for(made, connect_timeout)
        self._parser.reset()

    async def connect_tls(
        self,
        uri: Any,
        ssl_context: SSLContext,
        buffer_size: int,  # noqa: ARG002
        connect_timeout: int,
    ) -> None:
        """Upgrade the connection to TLS."""
        before, self._incoming = self._incoming, _Incoming()
        made = asyncio.get_running_loop().start_tls(
            before.source,
            self._incoming,
            ssl_context,
            server_hostname=uri if isinstance(uri, str) else uri.hostname,
        )
        self._incoming.connection_made(await asyncio.wait_for(made, connect_timeout))
        self.secure = True

    async def read(self, buffer_size: int) -> memoryview:  # noqa: ARG002
        """Return the data received, valid until the next call; empty at the end."""
        return await self._incoming.read()

    async def readline(self) -> bytes:
        """Return a line of the handshake; data after it is read next."""
        line = b""
        while not line.endswith(b"\n") and (more := bytes(await self._incoming.read())):
            end = more.find(b"\n") + 1 or len(more)
            line += more[:end]
            _check_line(len(line))
            self._incoming.give_back(len(more) - end)
        return line

    def at_eof(self) -> bool:
        """Return whether no more data will come."""
        return self._incoming.at_eof()

    def write(self, payload: bytes) -> None:
        """Send data."""
        self._incoming.source.write(payload)

    def writelines(self, payload: list[bytes]) -> None:
        """Send several pieces of data."""
        self._incoming.source.writelines(payload)

    async def drain(self) -> None:
        """Wait while too much data has not been sent."""
        await self._incoming.drained()

    def close(self) -> None:
        """Begin to close."""
        if self._incoming.source is not None:
            self._incoming.source.close()

    async def wait_closed(self) -> None:
        """Wait until it is closed."""
        if self._incoming.source is not None:
            await self._incoming.lost.wait()

    def __bool__(self) -> bool:
        """Return true: the client creates its own transport if there is none."""
        return True


class _Incoming(asyncio.BufferedProtocol):
    """A buffer that a connection fills; it is reused once all of it has been read."""

    def __init__(self) -> None:
        self.source: Any = None
        self.lost = asyncio.Event()
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._read = self._filled = 0
        self._came, self._may_write = asyncio.Event(), asyncio.Event()
        self._error: Exception | None = None

    def connection_made(self, transport: Any) -> None:
        self.source = transport
        self._may_write.set()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._buffer[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if self._filled == len(self._buffer):
            self.source.pause_reading()
        self._came.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._error = exc
        for event in (self.lost, self._came, self._may_write):
            event.set()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    async def read(self) -> memoryview:
        """Return all data since the last call, whose memory is reused."""
        if self._read == len(self._buffer) and not self.lost.is_set():
            self.source.resume_reading()
        if self._read == self._filled:
            self._read = self._filled = 0
        while self._read == self._filled and not self.lost.is_set():
            self._came.clear()
            await self._came.wait()
        if self._error is not None:
            raise self._error
        start, self._read = self._read, self._filled
        return self._buffer[start : self._filled]

    def give_back(self, count: int) -> None:
        """Unread the last `count` bytes."""
        self._read -= count

    def at_eof(self) -> bool:
        """Return whether all data has been read, and no more will come."""
        return self.lost.is_set() and self._read == self._filled

    async def drained(self) -> None:
        """Wait until there is room to write."""
        await self._may_write.wait()
        if self.lost.is_set():
            message = "the connection was lost"
            raise ConnectionResetError(message)


class MessageParser(Parser):  # type: ignore[misc]
    """The library's parser of lines; messages are written to their final memory."""

    header_needed: int

    def reset(self) -> None:
        """Reset for a new connection."""
        super().reset()
        self._message: memoryview | None = None
        self._filled = 0

    async def parse(self, data: bytes | memoryview = b"") -> None:
        """Parse data, and have the client process it."""
        rest = memoryview(data)
        while rest:
            if self.state == AWAITING_CONTROL_LINE:
                front = bytes(rest[:MAX_CONTROL_LINE_SIZE])
                line = front[: front.find(b"\n") + 1 or len(front)]
                with _read_or_refused():
                    await super().parse(line)
                _check_line(len(self.buf))
                rest = rest[len(line) :]
                continue
            if self._message is None:
                if not self.header_needed <= self.needed <= _MOST_BYTES:
                    message = "nats: a message that no server takes"
                    raise ProtocolError(message)
                room = np.empty(self.needed + _END_BYTES, np.uint8)  # not zeroed, unlike others
                self._message, self._filled = memoryview(room.data), 0
            piece = rest[: len(self._message) - self._filled]
            rest = rest[len(piece) :]
            self._message[self._filled : self._filled + len(piece)] = piece
            self._filled += len(piece)
            if self._filled == len(self._message):
                await self._hand_out(self._message.toreadonly())

    async def _hand_out(self, message: memoryview) -> None:
        subscription, subject, reply = (self.msg_arg[name] for name in ("sid", "subject", "reply"))
        headers = bytes(message[: self.header_needed]) or None
        view = message[self.header_needed : self.needed]
        # Messages from elsewhere than a queue are read by the client itself.
        content = view if reply.startswith(_FROM_QUEUE) else bytes(view)
        self._message, self.header_needed = None, 0
        self.state = AWAITING_CONTROL_LINE
        with _read_or_refused():
            await self.nc._process_msg(subscription, subject, reply, content, headers)  # noqa: SLF001


def _check_line(length: int) -> None:
    if length > _MOST_LINE:
        message = "nats: a line that does not end"
        raise ProtocolError(message)

"""Log lines that nginx and Apache send by syslog: datagrams, over UDP or a Unix socket.

Waiting datagrams are received into one block of memory, line after line, and counted together:
counting a block takes little longer than counting a line. The block is overwritten before the event
loop continues, so that a program whose socket is silent holds no line. Nothing here counts lines or
datagrams: a running count is state that an intruder could read.

The kernel silently drops datagrams if the queue is full. The queue of a Unix socket is short,
sysctl `net.unix.max_dgram_qlen` when the socket is opened; that of UDP has the size of the receive
buffer.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

from panprivacy.errors import InputError
from panprivacy.ground.kernels import wipe_stack
from panprivacy.service.config.values import in_toml

DATAGRAM_BYTES = 1 << 16
"""Maximum size of a received datagram; UDP has no longer ones."""

_BLOCK_BYTES = 1 << 20
_LAST_START = _BLOCK_BYTES - DATAGRAM_BYTES - 1
"""Last position at which a datagram, and the newline after it, has room."""
_MOST_DATAGRAMS = 4096
_ZEROS = memoryview(bytes(_BLOCK_BYTES))
_QUIET_SECONDS = 60.0

_LF, _SPACE = b"\n "
_PADDING = b"\n\0"
# Every repetition is possessive, or has branches that begin with different bytes: matching takes
# time proportional to the datagram, for any content.
_WORD = rb"[^ ]{1,255}+"
_STAMP = rb"\d{4}-\d\d-\d\dT[^ ]{5,40}+"
_ELEMENT = rb'\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\]'
_RFC_5424 = (
    rb"\d{1,2} (?:-|" + _STAMP + rb") " + 4 * (_WORD + b" ")
    + rb"(?:-|(?:" + _ELEMENT + rb")+)(?: |\Z)(?:\xef\xbb\xbf)?"
)  # fmt: skip
_RFC_3164 = (
    rb"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|" + _STAMP + rb") "
    + rb"(?:(?:" + _WORD + rb"(?<!:) )?" + _WORD + rb"(?<=:)(?: |\Z))?"
)  # fmt: skip
_HEADER = re.compile(rb"<\d{1,3}>(?:" + _RFC_5424 + b"|" + _RFC_3164 + b")?", re.DOTALL)
"""A priority, and the fields after it in one of the two standards.

In RFC 3164 the host may be missing, as nginx and `logger` omit it: the first word that ends in a
colon is the tag, and a host has none at its end. rsyslog forwards with the time of RFC 5424.
"""


class Listener:
    """Receiver of the data of a socket, which passes it on as lines, and overwrites it.

    Of its memory only the times of the last reports depend on the received data. `take` must
    overwrite its own copies, and `wipe_traces` NumPy's small blocks, which takes milliseconds: call
    it when the socket falls silent.

    Args:
        sock: a datagram socket that does not block; `close` closes it.
        take: counts some lines, each with a newline at its end, or raises InputError and has
            counted none of them. The memory is overwritten when it returns.
        report: gets a human-readable reason when lines are refused, without their content, at
            most once a minute for each reason.
        clock: in seconds; never goes back.
    """

    __slots__ = ("_block", "_clock", "_report", "_sock", "_take", "_told", "_view")

    def __init__(
        self,
        sock: socket.socket,
        take: Callable[[memoryview], None],
        report: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sock, self._take, self._report, self._clock = sock, take, report, clock
        self._block = bytearray(_BLOCK_BYTES)
        self._view = memoryview(self._block)
        self._told: dict[str, float] = {}

    def drain(self) -> None:
        """Take the waiting data, or its first part: call it again while the socket is readable.

        Refused lines are left out, and the rest is counted. Any other error of `take` ends the
        call, and the lines that were not counted are lost.
        """
        touched = _BLOCK_BYTES
        try:
            end = self._receive()
            touched = end + DATAGRAM_BYTES
            if end:
                self._count(0, end)
        finally:
            self._view[:touched] = _ZEROS[:touched]
            wipe_stack()

    def close(self) -> None:
        """Close the socket and remove its file; may be called again."""
        if self._sock.fileno() < 0:
            return
        name = self._sock.getsockname() if self._sock.family == socket.AF_UNIX else ""
        if isinstance(name, str) and name:
            Path(name).unlink(missing_ok=True)
        self._sock.close()

    def _receive(self) -> int:
        """Fill the block with lines; return their end."""
        at = 0
        for _ in range(_MOST_DATAGRAMS):
            if at > _LAST_START:
                break
            try:
                size = self._sock.recv_into(self._view[at:], DATAGRAM_BYTES, socket.MSG_TRUNC)
            except BlockingIOError:
                break
            if size > DATAGRAM_BYTES:  # the flag makes the kernel report the complete length
                self._refuse(f"a datagram is longer than {DATAGRAM_BYTES:,} bytes")
                continue
            start, stop = _bounds(self._block, at, at + size)
            end = at + stop - start
            if end == at:  # as if it had not come
                continue
            self._view[at:end] = self._view[start:stop]
            _join_lines(self._block, at, end)
            self._block[end] = _LF
            at = end + 1
        return at

    def _count(self, start: int, end: int) -> None:
        """Count lines; refused ones are halved until the bad lines are alone."""
        try:
            self._take(self._view[start:end].toreadonly())
        except InputError as error:
            reason = error.reason
        else:
            return
        half = (start + end) // 2
        found = self._block.find(_LF, half, end - 1)
        if found < 0:
            found = self._block.rfind(_LF, start, half)
        if found < 0:  # there is only one line
            self._refuse(reason)
            return
        self._count(start, found + 1)
        self._count(found + 1, end)

    def _refuse(self, reason: str) -> None:
        """Report a reason, unless it was reported recently."""
        now = self._clock()
        self._told = {r: told for r, told in self._told.items() if now - told < _QUIET_SECONDS}
        if reason not in self._told:
            self._told[reason] = now
            self._report(in_toml(reason))


def _bounds(text: bytearray, start: int, end: int) -> tuple[int, int]:
    """Return start and end of the message in a datagram."""
    while end > start and text[end - 1] in _PADDING:
        end -= 1
    header = _HEADER.match(text, start, end)
    return start if header is None else header.end(), end


def _join_lines(text: bytearray, start: int, end: int) -> None:
    """Make one line of a message, in place."""
    while (start := text.find(_LF, start, end)) >= 0:
        text[start] = _SPACE

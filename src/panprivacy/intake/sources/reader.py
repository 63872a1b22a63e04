"""Reading ahead in a thread, so that parsing and counting overlap and a silent pipe still ticks.

The thread parses into a queue of two batches; the consumer takes them, or is notified that its
deadline has passed. Memory holds a few batches, however long the input is.

Errors in the thread are raised again in the consumer, as a reason and a row. The thread's own
exception is dropped: its traceback keeps frames alive that contain raw input, and the messages of
pyarrow quote it. For the same reason every loop drops its item before it waits for the next: a
program that is seized while its pipe is silent must not hold the last block.
"""

from __future__ import annotations

import codecs
import fcntl
import io
import os
import queue
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from threading import Thread
from typing import Any, BinaryIO, Protocol, Self, TypeAlias

import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.ground.hygiene.wiping import wipe_traces
from panprivacy.intake.sources.compressed import DAMAGE, START_BYTES, Packing, packing_of
from panprivacy.intake.sources.unreadable import Skips

BATCH_ROWS = 1 << 18
_READ_BYTES = 1 << 20
_QUEUED_BATCHES = 2


class _Mark(Enum):
    """Items of the queue other than batches."""

    woken = "woken"


@dataclass(frozen=True)
class FileStart:
    """Marker before the batches of a file.

    Args:
        name: name of the file, if there are several; else None.
        counted: whether its rows are counted; rows of a pipe are not.
    """

    name: str | None
    counted: bool


_Item: TypeAlias = pa.RecordBatch | FileStart | _Mark | Exception | None
"""Item of the queue; None at the end."""


class Stopped(Exception):  # noqa: N818 - nobody wants more input, which is no error
    """Stop of the reading thread, raised from within a read."""


class Stop:
    """Stop signal for reads that wait, from another thread or a signal handler."""

    def __init__(self) -> None:
        self.given = self.closed = False
        self.woken, self._wake = os.pipe()

    def give(self) -> None:
        """End a read that waits, and all later ones."""
        self.given = True  # no lock: a handler that interrupts its holder would wait forever
        if not self.closed:
            os.write(self._wake, b"\0")

    def close(self) -> None:
        """Close the descriptors."""
        if not self.closed:
            self.closed = True
            os.close(self.woken)
            os.close(self._wake)


class Feed:
    """Byte stream for the parsers.

    Args:
        raw: a binary stream, for a reader that seeks.
        size: in bytes; None if it cannot be sought in, and its rows are not counted.

    Attributes:
        position: bytes read so far; a reader that seeks sets its own estimate. For a stream without
            a size nothing is counted: the count would be state that an intruder could read.
        closed: required by pyarrow.
        skips: counts rows that cannot be read; None if the first one ends the input.
        packing: format of a compressed file, in which no reader can seek.
    """

    packing: Packing | None = None

    def __init__(self, raw: BinaryIO, size: int | None) -> None:
        self.raw = raw
        self.size = size
        self.position = 0
        self.closed = False
        self.skips: Skips | None = None
        self._ahead = b""
        self._decoder: codecs.IncrementalDecoder | None = None

    def push_back(self, ahead: bytes) -> None:
        """Insert bytes to be read again, before the rest."""
        self._ahead = ahead + self._ahead

    def read_as_utf_16(self, start: bytes) -> None:
        """Return UTF-8 from now on.

        Args:
            start: the part read so far, with its byte order mark.
        """
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._ahead = self._recoded(start + self._ahead)

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer only at the end."""
        parts = []
        while size > 0 and (part := self.read_some(min(size, _READ_BYTES))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def read_some(self, most: int) -> bytes:
        """Return up to `most` bytes that have arrived; empty only at the end."""
        if self._ahead:
            part, self._ahead = self._ahead[:most], self._ahead[most:]
            return part
        while part := self._arrived(most):
            if self.size is not None:
                self.position += len(part)
            if part := self._recoded(part):
                break
        return part or self._recoded(b"")

    def _recoded(self, part: bytes) -> bytes:
        """Return a part of UTF-16 as UTF-8; the last part is empty."""
        if self._decoder is None:
            return part
        try:
            return self._decoder.decode(part, final=not part).encode()
        except UnicodeDecodeError:
            message = "this begins as UTF-16 and does not go on so"
        raise InputError(message)  # outside the handler: the error holds the text

    def _arrived(self, most: int) -> bytes:
        return self.raw.read(most) or b""


class Input(Feed):
    """The bytes of a file or pipe; another thread can stop a read that waits.

    A read raises `Stopped` after the stop was given. The descriptor is read directly: Python's own
    standard input holds a lock while it waits, and an interpreter that exits in the meantime
    aborts.

    Args:
        raw: an unbuffered binary stream.
        descriptor: the descriptor to wait on; None for a stream in memory, which never waits.
        stop: ends a read that waits.
    """

    def __init__(self, raw: BinaryIO, descriptor: int | None, stop: Stop) -> None:
        status = None if descriptor is None else os.fstat(descriptor)
        super().__init__(raw, status.st_size if status and stat.S_ISREG(status.st_mode) else None)
        self._stop = stop
        self._ready = select.poll()
        self._ready.register(stop.woken, select.POLLIN)
        if descriptor is not None:
            with suppress(
                OSError
            ):  # no pipe, or the system allows less; larger blocks parse faster
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _READ_BYTES)
            self._ready.register(descriptor, select.POLLIN)
        self._longest_wait = 0 if descriptor is None else None

    @classmethod
    def open(cls, path: str, stop: Stop) -> Input:
        """Open a path, or standard input for "-".

        Raises:
            InputError: nothing can be read there.
        """
        try:
            if path != "-":
                raw = io.FileIO(path)
                packing = _packing(raw)
                if packing is not None:
                    return Unpacked(raw, packing, stop)
                return cls(raw, raw.fileno(), stop)
            try:
                descriptor = os.dup(sys.stdin.fileno())
            except io.UnsupportedOperation:
                return cls(io.BytesIO(sys.stdin.buffer.read()), None, stop)
            return cls(io.FileIO(descriptor), descriptor, stop)
        except (OSError, ValueError, AttributeError) as error:
            reason = getattr(error, "strerror", None) or "it is closed, or no file"
            message = f"cannot read {path}: {reason}"
            raise InputError(message) from None

    def _arrived(self, most: int) -> bytes:
        self._ready.poll(self._longest_wait)
        if self._stop.given:
            raise Stopped
        return super()._arrived(most)

    def close(self) -> None:
        """Close the descriptor."""
        if not self.closed:
            self.closed = True
            self.raw.close()


class Unpacked(Input):
    """Content of a compressed file; positions are those in the file."""

    def __init__(self, raw: io.FileIO, packing: Packing, stop: Stop) -> None:
        super().__init__(raw, raw.fileno(), stop)
        self.packing: Packing = packing
        self._plain: Any = None

    def read_some(self, most: int) -> bytes:
        """Return up to `most` bytes that have arrived; empty only at the end."""
        part = super().read_some(most)
        self.position = self.raw.tell()
        return part

    def _arrived(self, most: int) -> bytes:
        if self._stop.given:
            raise Stopped
        try:
            if self._plain is None:
                self._plain = self.packing.open(self.raw)
            part = self._plain.read(most)
        except InputError:
            raise
        except DAMAGE:
            message = f"this {self.packing.name} file is truncated, damaged or encrypted"
        else:
            if not part:  # the decompressor holds its last output
                self._plain = io.BytesIO()
            return part
        raise InputError(message)

    def close(self) -> None:
        """Close the descriptors, and drop the buffer of the decompressor."""
        self._plain = None
        super().close()


def _packing(raw: io.FileIO) -> Packing | None:
    """Return the compression of a regular file, if any; a pipe is not read."""
    if not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return None
    return packing_of(os.pread(raw.fileno(), START_BYTES, 0))


class OpenedFiles(Protocol):
    """The files of a source."""

    stop: Stop

    @property
    def size(self) -> int | None:
        """Total size in bytes; None if unknown."""

    @property
    def position(self) -> int:
        """Bytes read so far."""

    def close(self) -> None:
        """Close the files."""


class Source:
    """Arrow record batches of the wanted columns, as the input arrives; a context manager.

    The input is parsed in a thread of its own, and closed on leaving.

    Args:
        files: the files, in reading order.
        batches: the batches of all files, those of each file after its `FileStart`.
        skips: counts rows that cannot be read; None if the first one ends the input.
        line_of: finds the line on which a row of a file begins; None if it is unknown.

    Attributes:
        name: the file of the last batch, if there are several.
        counted: whether its rows are counted; rows of a pipe are not.
    """

    def __init__(
        self,
        files: OpenedFiles,
        batches: Iterator[pa.RecordBatch | FileStart],
        *,
        skips: Skips | None = None,
        line_of: Callable[[str | None, int], int | None] = lambda *_: None,
    ) -> None:
        self._files, self._batches = files, batches
        self.skips, self._line_of = skips, line_of
        self.name: str | None = None
        self.counted = files.size is not None
        self._queue: queue.Queue[_Item] = queue.Queue(_QUEUED_BATCHES)
        self._thread = Thread(target=self._read_ahead, name="panprivacy-source", daemon=True)
        self._ended = False

    @property
    def size(self) -> int | None:
        """Total size of all files in bytes; None if unknown, as for a pipe."""
        return self._files.size

    @property
    def position(self) -> int:
        """Bytes read so far; for Parquet and Arrow files the same share of `size` as of rows."""
        return self._files.position

    @property
    def stopped(self) -> bool:
        """Whether the input was ended before its end."""
        return self._files.stop.given

    def line_of(self, row: int) -> int | None:
        """Return the line on which a row of the current file begins; None if unknown."""
        return self._line_of(self.name, row) if self.counted else None

    def stop(self) -> None:
        """Stop reading: batches already read are still yielded.

        An incomplete record is left out. Safe in a signal handler.
        """
        self._files.stop.give()

    def wake(self) -> None:
        """Make `batches_or_ticks` yield None soon. Safe in a signal handler.

        The interrupted code may hold the lock of the queue, so another thread waits for that.
        """
        Thread(target=self._queue.put, args=(_Mark.woken,), daemon=True).start()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the wanted columns in their requested order, once.

        Nulls are preserved. A column has one type throughout, except that an NDJSON column is of
        Arrow's null type until its first value arrives.

        Yields:
            Record batches of at most 262,144 rows.

        Raises:
            InputError: the input cannot be used. All rows before the bad one were yielded.
        """
        return filter(lambda batch: batch is not None, self.batches_or_ticks(lambda: None))

    def batches_or_ticks(
        self, deadline: Callable[[], float | None]
    ) -> Iterator[pa.RecordBatch | None]:
        """Yield the batches, and None once each time a deadline has passed.

        Args:
            deadline: returns the next deadline on the clock of `time.monotonic`, in seconds; called
                before every wait; None for no deadline.

        Yields:
            A record batch; or None when the deadline has passed, whether or not input waits, and
            once for each `wake`.

        Raises:
            InputError: see `batches`.
        """
        if not self._ended and self._thread.ident is None:
            self._thread.start()
        told = None
        while not self._ended:
            due = deadline()
            try:
                batch = self._take(None if due == told else due)
            except queue.Empty:
                told = due
                yield None
                continue
            if batch is _Mark.woken:
                yield None
            elif isinstance(batch, FileStart):
                self.name, self.counted = batch.name, batch.counted
            elif batch is not None:
                yield batch
            del batch

    def _take(self, due: float | None) -> pa.RecordBatch | FileStart | _Mark | None:
        """Return the next batch or mark, None at the end; raise `queue.Empty` at the deadline."""
        left = None if due is None else due - time.monotonic()
        if left is not None and left <= 0:
            raise queue.Empty
        item = self._queue.get(timeout=left)
        self._queue.task_done()  # else the queue counts the batches of the stream
        self._ended = item is None or isinstance(item, Exception)
        if isinstance(item, Exception):
            raise item
        return item

    def _read_ahead(self) -> None:
        """Queue every batch, then None or the error; runs in the thread."""
        outcome = None
        try:
            for batch in self._batches:
                self._queue.put(batch)
                del batch
                wipe_traces()
                if self._ended:
                    return
        except Stopped:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, the consumer must hear of it
            outcome = anew(error)
        self._queue.put(outcome)

    def close(self) -> None:
        """Stop reading and close the input; may be called again."""
        if self._files.stop.closed:
            return
        self._ended = True
        self._files.stop.give()
        while self._thread.is_alive():
            with suppress(queue.Empty):  # make room for what it is about to queue
                self._queue.get_nowait()
            self._thread.join(timeout=0.01)
        self._files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def anew(error: Exception) -> Exception:
    """Return the same error without its frames; for an unexpected error, only its type."""
    if isinstance(error, InputError):
        return type(error)(error.reason, row=error.row)
    if isinstance(error, MemoryError):
        return MemoryError()
    if isinstance(error, OSError) and error.errno:
        return InputError(f"reading failed: {os.strerror(error.errno)}")
    return RuntimeError(f"reading failed with {type(error).__name__}; please report it")

"""A thread that reads ahead, so that parsing and counting overlap and a silent pipe still ticks.

The thread parses into a queue of two batches; the consumer takes them, or is told that its
deadline has passed. Memory holds a few batches, however long the input is.

What goes wrong in the thread is raised anew in the consumer, as a reason and a row. The thread's
own exception is dropped: its traceback keeps frames alive that hold raw input, and the texts of
pyarrow quote it. For the same reason every loop lets go of its item before it waits for the next: a
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
from enum import Enum
from threading import Thread
from typing import Any, BinaryIO, Self, TypeAlias

import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.hygiene.wiping import wipe_traces
from panprivacy.sources.compressed import DAMAGE, START_BYTES, Packing, packing_of
from panprivacy.sources.unreadable import Skips

BATCH_ROWS = 1 << 18
_READ_BYTES = 1 << 20
_QUEUED_BATCHES = 2


class _Mark(Enum):
    """What stands in the queue beside batches."""

    woken = "woken"


_Item: TypeAlias = pa.RecordBatch | _Mark | Exception | None
"""What stands in the queue; None at the end."""


class Stopped(Exception):  # noqa: N818 - nobody wants more input, which is no error
    """Ends the reading thread from within a read."""


class Feed:
    """Bytes in order, as the parsers take them.

    Args:
        raw: a binary stream, for a reader that seeks.
        size: in bytes; None means that it cannot be sought in, and that its rows are not counted.

    Attributes:
        position: bytes read so far; a reader that seeks sets its own estimate. Of a stream without
            a size nothing is counted: the count would be state that an intruder could read.
        closed: pyarrow asks for it.
        skips: counts rows that cannot be read; None if the first one ends the input.
        packing: of a compressed file, in which no reader can seek.
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
        """Have bytes read again, before what follows."""
        self._ahead = ahead + self._ahead

    def read_as_utf_16(self, start: bytes) -> None:
        """Hand out UTF-8 from now on.

        Args:
            start: what was read of it, with its byte order mark.
        """
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._ahead = self._recoded(start + self._ahead)

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end."""
        parts = []
        while size > 0 and (part := self.read_some(min(size, _READ_BYTES))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def read_some(self, most: int) -> bytes:
        """What has arrived of `most` bytes; empty only at the end."""
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
        """A part of UTF-16 as UTF-8; the last one is empty."""
        if self._decoder is None:
            return part
        try:
            return self._decoder.decode(part, final=not part).encode()
        except UnicodeDecodeError:
            message = "this begins as UTF-16 and does not go on so"
        raise InputError(message)  # outside of the handler: the error holds the text

    def _arrived(self, most: int) -> bytes:
        return self.raw.read(most) or b""


class Input(Feed):
    """The bytes of a file or pipe; another thread can stop a read that waits.

    A read raises `Stopped` once `stop` was called. The descriptor is read directly: Python's own
    standard input holds a lock while it waits, and an interpreter that exits meanwhile aborts.

    Args:
        raw: an unbuffered binary stream.
        descriptor: what to wait on; None for a stream in memory, which never waits.
    """

    def __init__(self, raw: BinaryIO, descriptor: int | None) -> None:
        status = None if descriptor is None else os.fstat(descriptor)
        super().__init__(raw, status.st_size if status and stat.S_ISREG(status.st_mode) else None)
        self.stopped = False
        self._woken, self._wake = os.pipe()
        self._ready = select.poll()
        self._ready.register(self._woken, select.POLLIN)
        if descriptor is not None:
            with suppress(
                OSError
            ):  # no pipe, or the system allows less; larger blocks parse faster
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _READ_BYTES)
            self._ready.register(descriptor, select.POLLIN)
        self._longest_wait = 0 if descriptor is None else None

    @classmethod
    def open(cls, path: str) -> Input:
        """Open a path, or standard input for "-".

        Raises:
            InputError: nothing can be read there.
        """
        try:
            if path != "-":
                raw = io.FileIO(path)
                packing = _packing(raw)
                return cls(raw, raw.fileno()) if packing is None else Unpacked(raw, packing)
            try:
                descriptor = os.dup(sys.stdin.fileno())
            except io.UnsupportedOperation:
                return cls(io.BytesIO(sys.stdin.buffer.read()), None)
            return cls(io.FileIO(descriptor), descriptor)
        except (OSError, ValueError, AttributeError) as error:
            reason = getattr(error, "strerror", None) or "it is closed, or no file"
            message = f"cannot read {path}: {reason}"
            raise InputError(message) from None

    def _arrived(self, most: int) -> bytes:
        self._ready.poll(self._longest_wait)
        if self.stopped:
            raise Stopped
        return super()._arrived(most)

    def stop(self) -> None:
        """End a read that waits, and all later ones; from another thread or a signal handler."""
        self.stopped = True  # no lock: a handler that interrupts its holder would wait forever
        if not self.closed:
            os.write(self._wake, b"\0")

    def close(self) -> None:
        """Let go of the descriptors."""
        if not self.closed:
            self.closed = True
            self.raw.close()
            os.close(self._woken)
            os.close(self._wake)


class Unpacked(Input):
    """What is in a compressed file; positions are those in the file."""

    def __init__(self, raw: io.FileIO, packing: Packing) -> None:
        super().__init__(raw, raw.fileno())
        self.packing: Packing = packing
        self._plain: Any = None

    def read_some(self, most: int) -> bytes:
        """What has arrived of `most` bytes; empty only at the end."""
        part = super().read_some(most)
        self.position = self.raw.tell()
        return part

    def _arrived(self, most: int) -> bytes:
        if self.stopped:
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
            if not part:  # the decompressor holds what it unpacked last
                self._plain = io.BytesIO()
            return part
        raise InputError(message)

    def close(self) -> None:
        """Let go of the descriptors, and of what the decompressor holds."""
        self._plain = None
        super().close()


def _packing(raw: io.FileIO) -> Packing | None:
    """How a file is compressed, if it is one and is; a pipe is left alone."""
    if not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return None
    return packing_of(os.pread(raw.fileno(), START_BYTES, 0))


class Source:
    """Arrow record batches of the wanted columns, as the input arrives; a context manager.

    The input is parsed in a thread of its own, and closed on leaving.
    """

    def __init__(self, file: Input, batches: Iterator[pa.RecordBatch]) -> None:
        self._file = file
        self._batches = batches
        self._queue: queue.Queue[_Item] = queue.Queue(_QUEUED_BATCHES)
        self._thread = Thread(target=self._read_ahead, name="panprivacy-source", daemon=True)
        self._ended = False

    @property
    def size(self) -> int | None:
        """Bytes of the file; None when unknown, as for a pipe."""
        return self._file.size

    @property
    def position(self) -> int:
        """Bytes read so far; for Parquet and Arrow files the same share of `size` as of rows."""
        return self._file.position

    @property
    def skips(self) -> Skips | None:
        """Counts rows that cannot be read; None if the first one ends the input."""
        return self._file.skips

    @property
    def stopped(self) -> bool:
        """Whether the input was ended before its end."""
        return self._file.stopped

    def stop(self) -> None:
        """End the input here: what has been read is handed out, and no more is read.

        A record of which only a part has come is left out. Safe in a signal handler.
        """
        self._file.stop()

    def wake(self) -> None:
        """Have `batches_or_ticks` hand out None soon. Safe in a signal handler.

        What it interrupts may hold the lock of the queue, so another thread waits for that.
        """
        Thread(target=self._queue.put, args=(_Mark.woken,), daemon=True).start()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Hand out the wanted columns, in the order they were asked for, once.

        Nulls are kept. A column has one type throughout, except that an NDJSON column is of
        Arrow's null type until its first value arrives.

        Yields:
            Record batches of at most 262,144 rows.

        Raises:
            InputError: the input cannot be used. All rows before the bad one were handed out.
        """
        return filter(lambda batch: batch is not None, self.batches_or_ticks(lambda: None))

    def batches_or_ticks(
        self, deadline: Callable[[], float | None]
    ) -> Iterator[pa.RecordBatch | None]:
        """Hand out what `batches` does, and None once each time a deadline has passed.

        Args:
            deadline: the next deadline on the clock of `time.monotonic`, in seconds; asked anew
                before every wait; None for no deadline.

        Yields:
            A record batch; or None when the deadline has passed, whether or not input waits, and
            once for each `wake`.

        Raises:
            InputError: as for `batches`.
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
            elif batch is not None:
                yield batch
            del batch

    def _take(self, due: float | None) -> pa.RecordBatch | _Mark | None:
        """The next batch or mark, None at the end; raises `queue.Empty` at the deadline."""
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
        """The thread: queue every batch, then None or what went wrong."""
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
        if self._file.closed:
            return
        self._ended = True
        self._file.stop()
        while self._thread.is_alive():
            with suppress(queue.Empty):  # make room for what it is about to queue
                self._queue.get_nowait()
            self._thread.join(timeout=0.01)
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def anew(error: Exception) -> Exception:
    """The same error without its frames; of one that nobody foresaw, only its type."""
    if isinstance(error, InputError):
        return type(error)(error.reason, row=error.row)
    if isinstance(error, OSError) and error.errno:
        return InputError(f"reading failed: {os.strerror(error.errno)}")
    return RuntimeError(f"reading failed with {type(error).__name__}; please report it")

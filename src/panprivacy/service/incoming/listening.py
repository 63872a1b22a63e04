"""Threads for input that does not come by HTTP: datagrams, and standard input."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable

import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.ground.hygiene.wiping import wipe_traces
from panprivacy.intake.sources import BodyReader, Column, Prefixes, Skips, open_source
from panprivacy.intake.sources.log_lines import only_wanted_groups
from panprivacy.intake.sources.unreadable import halves_of_batch, readable
from panprivacy.service.config.stream import SyslogConfig
from panprivacy.service.config.values import in_toml
from panprivacy.service.incoming.datagrams import Listener
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.served import Served
from panprivacy.service.sockets import datagram_socket

_SILENCE = 0.05
"""Seconds without a datagram after which traces are overwritten."""
_LONGEST_WAIT = 0.5
_PAUSE = 0.5
_SAMPLE = b'::1 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"\n'


class DatagramThread:
    """Thread that takes the data of the datagram sockets of all streams.

    It is a separate thread, because the kernel drops datagrams if the queue is full.
    """

    def __init__(self, streams: Iterable[Served]) -> None:
        self._streams = list(streams)
        self._stopping = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._listeners: list[Listener] = []
        self._thread = threading.Thread(target=self._run, name="panprivacy-datagrams", daemon=True)

    def start(self) -> None:
        """Open the sockets, and take their data.

        The parsers are compiled before: code compiled while lines wait would keep pieces of them.

        Raises:
            PlanError: a socket cannot be opened.
        """
        for stream in self._streams:
            for syslog in stream.config.syslog:
                sock = datagram_socket(syslog.address, syslog.mode)
                listener = _listener(sock, stream, syslog, self._stopping)
                self._listeners.append(listener)
                self._selector.register(sock, selectors.EVENT_READ, listener)
        if self._listeners:
            BodyReader([Column("remote_addr", address=Prefixes())]).read("combined", _SAMPLE)
            self._thread.start()

    def stop(self) -> None:
        """Take the waiting data, and close the sockets."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        for listener in self._listeners:
            _drain(listener)
            listener.close()
        self._selector.close()

    def _run(self) -> None:
        touched = False
        while not self._stopping.is_set():
            ready = self._selector.select(_SILENCE if touched else _LONGEST_WAIT)
            for key, _ in ready:
                _drain(key.data)
            if touched and not ready:
                wipe_traces()
            touched = bool(ready)


class InputThread:
    """Thread that reads standard input, if a stream uses it."""

    def __init__(self, streams: Iterable[Served]) -> None:
        self._stream = next((one for one in streams if one.config.stdin is not None), None)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="panprivacy-input", daemon=True)
        self._close: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start to read."""
        if self._stream is not None:
            self._thread.start()

    def stop(self) -> None:
        """Stop reading."""
        self._stopping.set()
        self._close()
        if self._thread.ident is not None:
            self._thread.join()

    def _take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._stream is not None:
            _take([batch], self._stream, self._stopping)
        return batch

    def _run(self) -> None:
        stream = self._stream
        stdin = stream.config.stdin if stream else None
        if stream is None or stdin is None:
            return
        try:
            columns = stream.columns.wanted()
            skips = Skips() if stdin.skip_unreadable else None
            source = open_source(
                "-",
                columns=columns,
                format=stdin.format,
                pattern=stdin.pattern,
                delimiter=stdin.delimiter,
                comment=stdin.comment,
                skips=skips,
            )
            self._close = source.close
            for batch in source.batches():
                for part in readable(batch, halves_of_batch, self._take, source.skips):
                    del part
                del batch
                wipe_traces()
            if source.skips is not None:
                JOURNAL.warning(Event.input_ended, stream=stream.name, reason=str(source.skips))
        except InputError as error:
            stream.mark_incomplete()
            JOURNAL.error(Event.input_ended, stream=stream.name, reason=in_toml(str(error)))
        except Exception as error:  # noqa: BLE001 - its text may quote an id
            stream.mark_incomplete()
            JOURNAL.error(Event.input_ended, stream=stream.name, error=type(error).__name__)


def _listener(
    sock: socket.socket, stream: Served, syslog: SyslogConfig, stopping: threading.Event
) -> Listener:
    """Return a listener that counts the log lines of a socket in a stream."""
    reader, pattern = stream.columns.body_reader, syslog.pattern
    if pattern is not None:
        pattern = only_wanted_groups(pattern, stream.columns.wanted())

    def take(lines: memoryview) -> None:
        _take(reader.read(syslog.format, lines, pattern=pattern), stream, stopping)

    def report(reason: str) -> None:
        JOURNAL.warning(Event.refused_lines, stream=stream.name, reason=reason)

    return Listener(sock, take, report)


def _take(batches: list[pa.RecordBatch], stream: Served, stopping: threading.Event) -> None:
    """Count batches whose sender does not retry: wait for a window that cannot be closed."""
    batch_id = stream.new_batch_id()
    while True:
        try:
            stream.take(batches, batch_id)
        except StoreError:
            if stopping.is_set():
                raise
            time.sleep(_PAUSE)
        else:
            return


def _drain(listener: Listener) -> None:
    try:
        listener.drain()
    except Exception as error:  # noqa: BLE001 - the others go on, and its text may quote an id
        JOURNAL.error(Event.lost_lines, error=type(error).__name__)

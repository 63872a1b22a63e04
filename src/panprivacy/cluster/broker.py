"""The broker: a queue for each shard of a stream, in the memory of NATS JetStream.

A queue is a log. Who reads it goes on from a position, and removes what it has on disk; nobody else
does. NATS has it in the memory of one server: once that is gone, the queue is born anew, and its
positions tell so. A queue is a JetStream stream whose name ends with the time of its birth, so that
each acknowledgement says which birth a message went to, and no request reaches another birth.

What the broker sees is in `docs/guarantees/envelopes.md`.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from nats.errors import MaxPayloadError, NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, DiscardPolicy, StorageType
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from panprivacy.cluster.connection import ERRORS, BrokerConnection, is_full
from panprivacy.cluster.envelopes import Sealed
from panprivacy.cluster.queues import BrokerError, LostError, Position, Queue, checked

_MOST_BYTES: Final = 256 << 20
_HEADER_BYTES: Final = 512
"""For the headers of a message, which count as a part of it."""
_MOST_TRIED: Final = 10_000
"""Messages that may be published again; those of far more than `patience`."""
_REMEMBERED_SECONDS: Final = 120.0
"""For so long the broker knows a message that is published again; longer than anybody tries."""
_IDLE_SECONDS: Final = 60.0
"""After which the broker forgets a reader that has gone."""
_PAUSE: Final = 0.01
_WRONG_STREAM, _OVERLAP = 10060, 10065
"""Codes of the broker."""


@dataclass(slots=True)
class _Reader:
    """A consumer of the broker, which knows how far it is.

    Args:
        born: of the queue.
        name: by which the broker knows it.
        messages: fetches them.
        after: what it has handed out.
        expects_next: whether no message can be missing before the next one.
    """

    born: int
    name: str
    messages: Any
    after: int
    expects_next: bool


class Broker:
    """Queues in NATS, for threads; it connects again by itself, for ever.

    What is called waits at most `patience` for a broker that is away.

    Args:
        servers: `nats://HOST:PORT`, or `tls://`; any of them will do.
        credentials: the path of a file of credentials, as `nsc` writes it; needs `nkeys`. A user
            and a password can stand in the URL of a server.
        most_bytes: a queue holds at most so many; then it takes no more.
        patience: seconds to wait for a broker that does not answer, at most 30.

    Raises:
        InputError: there is no such file, or no library for it, or the patience is none.
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        *,
        credentials: str | None = None,
        most_bytes: int = _MOST_BYTES,
        patience: float = 5.0,
    ) -> None:
        self._most_bytes = most_bytes
        self._opened: set[Queue] = set()
        self._births: dict[Queue, int] = {}
        self._tried: dict[tuple[Queue, str], int] = {}  # the birth where a message is, or may be
        self._latest: dict[Queue, int] = {}
        self._readers: dict[Queue, _Reader] = {}
        self._connection = BrokerConnection(servers, credentials, patience, self._forget)

    def wait(self) -> None:
        """Wait for a broker that has JetStream.

        Raises:
            BrokerError: it does not answer, or has none.
        """
        self._connection.call(self._connection.account()).result()

    @property
    def most_message(self) -> int:
        """How many bytes a message may have."""
        return self._connection.call(self._connection.ready()).result() - _HEADER_BYTES

    def open(self, queue: Queue) -> Position:
        """Create a queue if it is missing, now and whenever it is missing later.

        Returns:
            Behind its last message.

        Raises:
            BrokerError: the broker does not answer, or refuses the queue.
        """
        self._opened.add(queue)
        self._births.pop(queue, None)
        return self._connection.call(self._last(queue)).result()

    def publish(self, messages: Sequence[tuple[Queue, bytes]]) -> list[Position]:
        """Put messages into queues, at once.

        The same messages can be published again after an error: those that are there already are
        not added again, for two minutes.

        Returns:
            Where each of them is; all are in the memory of the broker.

        Raises:
            QueueFullError: of a queue that is full; those for others may be in the broker.
            LostError: it was there, or may have been, and the queue was born anew since.
            BrokerError: it does not answer, or refuses. Some may be in the broker.
        """
        return self._connection.call(self._publish(messages)).result()

    def pull(
        self, queue: Queue, after: Position, most: int, seconds: float
    ) -> list[tuple[Position, Sealed]]:
        """The messages behind a position, in order; of a queue that was born anew, from its start.

        One thread reads a queue. Numbers follow each other, but where messages were removed.

        Args:
            queue: which.
            after: behind which message.
            most: how many are handed out at most.
            seconds: how long to wait for the first.

        Returns:
            Each with where it is; none if none came.

        Raises:
            BrokerError: the broker does not answer.
        """
        return self._connection.call(self._pull(queue, after, most, seconds)).result()

    def last(self, queue: Queue) -> Position:
        """Behind the last message of a queue.

        Raises:
            BrokerError: the broker does not answer, or has no such queue.
        """
        return self._connection.call(self._last(queue)).result()

    def remove(self, queue: Queue, through: Position) -> None:
        """Remove all messages through a position; those of another birth stay.

        Raises:
            BrokerError: the broker does not answer.
        """
        self._connection.call(self._remove(queue, through)).result()

    def delete(self, queue: Queue) -> None:
        """Remove a queue, with all that it holds.

        Raises:
            BrokerError: the broker does not answer.
        """
        self._opened.discard(queue)
        self._connection.call(self._delete(queue)).result()

    def tell(self, name: str, stream: str, content: bytes) -> None:
        """Put up what all may read about a stream, in place of what was there.

        Args:
            name: of the cluster.
            stream: which.
            content: public.

        Raises:
            BrokerError: the broker does not answer, or refuses.
        """
        self._connection.call(self._tell(checked(name), checked(stream), content)).result()

    def told(self, name: str, stream: str) -> bytes | None:
        """What was put up about a stream, if the broker still has it.

        Raises:
            BrokerError: the broker does not answer.
        """
        return self._connection.call(self._told(checked(name), checked(stream))).result()

    def close(self) -> None:
        """Let go of the connection; may be called again."""
        self._connection.close()

    async def _forget(self) -> None:
        """What was known of the queues: a server that comes again may have lost them."""
        self._births.clear()
        for queue in list(self._readers):
            await self._drop(queue)

    # Queues

    async def _born(self, queue: Queue) -> int:
        """When a queue was born; it is created if it was opened and is missing."""
        await self._connection.ready()
        while queue not in self._births:
            try:
                name = await self._connection.jetstream.find_stream_name_by_subject(queue.subject)
            except NotFoundError:
                if queue not in self._opened:
                    message = "the broker has no such queue: no cluster of that name, stream and "
                    message += "number of shards runs there"
                    raise BrokerError(message) from None
                await self._create(queue)
                continue
            born = name.removeprefix(f"{_prefix(queue)}-")
            if not born.isdecimal():
                message = f"another stream of JetStream takes the subject {queue.subject}: remove "
                message += "it, or call the cluster by another name"
                raise BrokerError(message)
            self._births[queue] = int(born)
            self._latest[queue] = max(int(born), self._latest.get(queue, 0))
        return self._births[queue]

    async def _create(self, queue: Queue) -> None:
        # Later than the last one, though the clock was set back: else its messages were counted.
        born = self._latest[queue] = max(time.time_ns(), self._latest.get(queue, 0) + 1)
        try:
            await self._connection.jetstream.add_stream(
                name=_stream_name(queue, born),
                subjects=[queue.subject],
                storage=StorageType.MEMORY,
                discard=DiscardPolicy.NEW,
                max_bytes=self._most_bytes,
                duplicate_window=_REMEMBERED_SECONDS,
            )
        except APIError as error:
            if error.err_code != _OVERLAP:  # else another process was faster
                raise

    async def _last(self, queue: Queue) -> Position:
        until = time.monotonic() + self._connection.patience
        while True:
            born = await self._born(queue)
            try:
                told = await self._connection.jetstream.stream_info(_stream_name(queue, born))
                return Position(born, told.state.last_seq)
            except NotFoundError:  # it has been lost meanwhile
                self._births.pop(queue, None)
                if time.monotonic() > until:
                    raise

    async def _publish(self, messages: Sequence[tuple[Queue, bytes]]) -> list[Position]:
        names = [(queue, hashlib.sha256(message).hexdigest()) for queue, message in messages]
        each = [
            self._publish_one(name, message)
            for name, (_, message) in zip(names, messages, strict=True)
        ]
        outcomes = await asyncio.gather(*each, return_exceptions=True)
        wrong = [one for one in outcomes if isinstance(one, BaseException)]
        if wrong:  # that a queue is full is told only if that is all
            while len(self._tried) > _MOST_TRIED:
                del self._tried[next(iter(self._tried))]
            raise min(wrong, key=is_full)
        for name in names:
            self._tried.pop(name, None)
        return [one for one in outcomes if isinstance(one, Position)]

    async def _publish_one(self, name: tuple[Queue, str], message: bytes) -> Position:
        """Publish until the broker says that it has it, and in one birth of the queue only."""
        queue, headers = name[0], {"Nats-Msg-Id": name[1]}
        until = time.monotonic() + self._connection.patience
        while True:
            born: int | None = None
            try:
                born = await self._born(queue)
                if self._tried.get(name, born) != born:
                    reason = "the broker has lost its memory: nobody knows whether what was sent "
                    reason += "last was counted; send it again under the same Idempotency-Key"
                    raise LostError(reason)
                done = await self._connection.jetstream.publish(
                    queue.subject,
                    message,
                    timeout=self._connection.answer_seconds,
                    stream=_stream_name(queue, born),
                    headers=headers,
                )
                self._tried[name] = born
                return Position(born, done.seq)
            except APIError as error:
                # It is not there; of another birth, or before the server has begun, it may be soon.
                if error.err_code not in {_WRONG_STREAM, None}:
                    raise
                wrong: Exception = error
            except (NoStreamResponseError, NoRespondersError) as error:
                wrong = error
            except MaxPayloadError:
                raise
            except ERRORS as error:
                wrong = error
                if born is not None:
                    self._tried[name] = born
            self._births.pop(queue, None)
            if time.monotonic() > until:
                raise wrong
            await asyncio.sleep(_PAUSE)

    async def _pull(
        self, queue: Queue, after: Position, most: int, seconds: float
    ) -> list[tuple[Position, Sealed]]:
        reader = await self._reader(queue, after)
        try:
            fetched = await reader.messages.fetch(most, timeout=seconds)
            numbers = [message.metadata.sequence.stream for message in fetched]
        except (TimeoutError, NatsTimeoutError):
            await self._check(queue, reader)
            return []
        except ERRORS:  # the reader or the queue is gone: the next call finds out
            await self._drop(queue)
            return []
        found = []
        for number, message in zip(numbers, fetched, strict=True):
            if reader.expects_next and number != reader.after + 1:
                # What was under way when the connection broke is lost to this reader.
                await self._drop(queue)
                break
            reader.after, reader.expects_next = number, True
            found.append((Position(reader.born, number), message.data))
        return found

    async def _reader(self, queue: Queue, after: Position) -> _Reader:
        """The reader that goes on behind a position."""
        born = await self._born(queue)
        wanted = after.sequence if after.born == born else 0
        reader = self._readers.get(queue)
        if reader is not None and (reader.born, reader.after) == (born, wanted):
            return reader
        await self._drop(queue)
        last = await self._last(queue)
        if last.born == after.born and last.sequence < after.sequence:
            # A cluster of servers may give a queue back under its name, without what it held.
            await self._delete(queue)
            last = await self._last(queue)
        start = wanted if last.born == born else 0
        name = _stream_name(queue, last.born)
        consumer = await self._connection.jetstream.add_consumer(
            name,
            ConsumerConfig(
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=start + 1,
                ack_policy=AckPolicy.NONE,
                inactive_threshold=_IDLE_SECONDS,
            ),
        )
        messages = await self._connection.jetstream.pull_subscribe_bind(
            consumer=consumer.name, stream=name
        )
        reader = _Reader(last.born, consumer.name, messages, start, expects_next=False)
        self._readers[queue] = reader
        return reader

    async def _check(self, queue: Queue, reader: _Reader) -> None:
        """Drop a reader that the broker has forgotten."""
        await self._connection.ready()
        try:
            await self._connection.jetstream.consumer_info(
                _stream_name(queue, reader.born), reader.name
            )
        except NotFoundError:
            await self._drop(queue)

    async def _drop(self, queue: Queue) -> None:
        """Begin to read anew with the next call."""
        self._births.pop(queue, None)
        reader = self._readers.pop(queue, None)
        if reader is not None:
            with suppress(*ERRORS):
                await reader.messages.unsubscribe()

    async def _remove(self, queue: Queue, through: Position) -> None:
        await self._connection.ready()
        name = _stream_name(queue, through.born)
        with suppress(NotFoundError):  # of another birth
            told = await self._connection.jetstream.stream_info(name)
            # Up to 1 would be all that there is; beyond the last, numbers would be left out.
            if 0 < through.sequence <= told.state.last_seq:
                await self._connection.jetstream.purge_stream(name, seq=through.sequence + 1)

    async def _delete(self, queue: Queue) -> None:
        await self._connection.ready()
        await self._drop(queue)
        with suppress(NotFoundError):
            name = await self._connection.jetstream.find_stream_name_by_subject(queue.subject)
            await self._connection.jetstream.delete_stream(name)

    # The directory

    async def _tell(self, name: str, stream: str, content: bytes) -> None:
        await self._connection.ready()
        subject = f"{name}.directory.{stream}"
        try:
            await self._connection.jetstream.publish(
                subject, content, timeout=self._connection.answer_seconds
            )
        except (NoStreamResponseError, NoRespondersError):
            await self._connection.jetstream.add_stream(
                name=f"{name}-directory",
                subjects=[f"{name}.directory.*"],
                storage=StorageType.MEMORY,
                max_msgs_per_subject=1,
            )
            await self._connection.jetstream.publish(
                subject, content, timeout=self._connection.answer_seconds
            )

    async def _told(self, name: str, stream: str) -> bytes | None:
        await self._connection.ready()
        with suppress(NotFoundError):
            found = await self._connection.jetstream.get_last_msg(
                f"{name}-directory", f"{name}.directory.{stream}"
            )
            return found.data or b""
        return None


def _prefix(queue: Queue) -> str:
    return queue.subject.replace(".", "-")


def _stream_name(queue: Queue, born: int) -> str:
    """What JetStream calls a queue that was born at that time."""
    return f"{_prefix(queue)}-{born}"

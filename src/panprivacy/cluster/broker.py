"""The broker: one queue in the memory of NATS JetStream for each shard of a stream.

A queue is a log. Its only reader continues from a position, and is the only one that removes
messages, once they are on its disk. NATS has the queue in the memory of one server: once that is
gone, the queue is created again, and its positions show that. A queue is a JetStream stream whose
name ends with its creation time, so that each acknowledgement identifies the creation, and no
request reaches a queue of another creation.

The broker's view is described in `docs/guarantees/envelopes.md`.
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
"""Upper bound of the headers of a message, which count towards its size."""
_MOST_TRIED: Final = 10_000
"""Maximum number of messages that may be published again; those of far more than `patience`."""
_REMEMBERED_SECONDS: Final = 120.0
"""Seconds for which the broker recognises a repeated message; longer than anybody retries."""
_IDLE_SECONDS: Final = 60.0
"""Seconds after which the broker forgets a reader that has gone."""
_PAUSE: Final = 0.01
_WRONG_STREAM, _OVERLAP = 10060, 10065
"""Error codes of the broker."""


@dataclass(slots=True)
class _Consumer:
    """A consumer of the broker, with its position.

    Args:
        born: creation time of the queue.
        name: the broker's name of the consumer.
        messages: fetches the messages.
        after: number of the last message it has returned.
        expects_next: whether no message can be missing before the next one.
    """

    born: int
    name: str
    messages: Any
    after: int
    expects_next: bool


class Broker:
    """Queues in NATS, for threads; it reconnects by itself, without end.

    Each call waits at most `patience` for a broker that is away.

    Args:
        servers: `nats://HOST:PORT` or `tls://HOST:PORT`; one, or several of which any will do.
        credentials: path of a credentials file as written by `nsc`; needs `nkeys`. The URL of a
            server may include a user and a password.
        most_bytes: maximum size of a queue; a full queue takes no more.
        patience: seconds to wait for a broker that does not answer, at most 30.

    Raises:
        InputError: the file or the library for it is missing, or `patience` is out of range.
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
        # creation of the queue that has, or may have, it
        self._tried: dict[tuple[Queue, str], int] = {}
        self._latest: dict[Queue, int] = {}
        self._readers: dict[Queue, _Consumer] = {}
        self._connection = BrokerConnection(servers, credentials, patience, self._forget)
        self._directory = _Directory(self._connection)

    def wait(self) -> None:
        """Wait for a broker that has JetStream.

        Raises:
            BrokerError: the broker does not answer, or has no JetStream.
        """
        self._connection.call(self._connection.account()).result()

    @property
    def most_message(self) -> int:
        """Maximum size of a message in bytes."""
        return self._connection.call(self._connection.ready()).result() - _HEADER_BYTES

    def open(self, queue: Queue) -> Position:
        """Create a queue if it is missing, now and whenever it is missing later.

        Returns:
            The position after its last message.

        Raises:
            BrokerError: the broker does not answer, or refuses the queue.
        """
        self._opened.add(queue)
        self._births.pop(queue, None)
        return self._connection.call(self._last(queue)).result()

    def publish(self, messages: Sequence[tuple[Queue, bytes]]) -> list[Position]:
        """Publish messages to queues, all at once.

        After an error the same messages can be published again: for two minutes, messages that are
        already there are not added again.

        Returns:
            The position of each message; all are in the memory of the broker.

        Raises:
            QueueFullError: a queue is full; the messages for other queues may be in the broker.
            LostError: a message was, or may have been, there, and the queue was created again
                since.
            BrokerError: the broker does not answer, or refuses. Some messages may be in the broker.
        """
        return self._connection.call(self._publish(messages)).result()

    def pull(
        self, queue: Queue, after: Position, most: int, seconds: float
    ) -> list[tuple[Position, Sealed]]:
        """Return the messages after a position, in order; all if the queue was created again.

        Only one thread reads a queue. Numbers are consecutive except where messages were removed.

        Args:
            queue: the queue to read.
            after: position of the last message already read.
            most: maximum number of messages to return.
            seconds: how long to wait for the first message.

        Returns:
            Each message with its position; empty if none came.

        Raises:
            BrokerError: the broker does not answer.
        """
        return self._connection.call(self._pull(queue, after, most, seconds)).result()

    def last(self, queue: Queue) -> Position:
        """Return the position after the last message of a queue.

        Raises:
            BrokerError: the broker does not answer, or has no such queue.
        """
        return self._connection.call(self._last(queue)).result()

    def remove(self, queue: Queue, through: Position) -> None:
        """Remove all messages through a position; those of another creation of the queue stay.

        Raises:
            BrokerError: the broker does not answer.
        """
        self._connection.call(self._remove(queue, through)).result()

    def delete(self, queue: Queue) -> None:
        """Remove a queue with all its messages.

        Raises:
            BrokerError: the broker does not answer.
        """
        self._opened.discard(queue)
        self._connection.call(self._delete(queue)).result()

    def tell(self, name: str, stream: str, content: bytes) -> None:
        """Publish the directory entry of a stream, in place of the earlier one.

        Args:
            name: the name of the cluster.
            stream: the name of the stream.
            content: the entry, which is public.

        Raises:
            BrokerError: the broker does not answer, or refuses.
        """
        self._connection.call(
            self._directory.tell(checked(name), checked(stream), content)
        ).result()

    def directory_entry(self, name: str, stream: str) -> bytes | None:
        """Return the directory entry of a stream; None if the broker has none.

        Raises:
            BrokerError: the broker does not answer.
        """
        return self._connection.call(self._directory.entry(checked(name), checked(stream))).result()

    def close(self) -> None:
        """Close the connection; may be called again."""
        self._connection.close()

    async def _forget(self) -> None:
        """Forget all positions and readers: a server that comes back may have lost its queues."""
        self._births.clear()
        for queue in list(self._readers):
            await self._drop(queue)

    # Queues

    async def _created(self, queue: Queue) -> int:
        """Return the creation time of a queue; create it if it was opened and is missing."""
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
        # Later than the last creation even if the clock was set back: else messages count as
        # processed.
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
            born = await self._created(queue)
            try:
                told = await self._connection.jetstream.stream_info(_stream_name(queue, born))
                return Position(born, told.state.last_seq)
            except NotFoundError:  # it has been lost in the meantime
                self._births.pop(queue, None)
                if time.monotonic() > until:
                    raise

    async def _publish(self, messages: Sequence[tuple[Queue, bytes]]) -> list[Position]:
        names = [(queue, hashlib.sha256(message).hexdigest()) for queue, message in messages]
        each = [
            self._publish_until_acknowledged(name, message)
            for name, (_, message) in zip(names, messages, strict=True)
        ]
        outcomes = await asyncio.gather(*each, return_exceptions=True)
        wrong = [one for one in outcomes if isinstance(one, BaseException)]
        if wrong:  # a full queue is reported only if nothing else is wrong
            while len(self._tried) > _MOST_TRIED:
                del self._tried[next(iter(self._tried))]
            raise min(wrong, key=is_full)
        for name in names:
            self._tried.pop(name, None)
        return [one for one in outcomes if isinstance(one, Position)]

    async def _publish_until_acknowledged(
        self, name: tuple[Queue, str], message: bytes
    ) -> Position:
        """Publish until the broker acknowledges the message, to one creation of the queue only."""
        queue, headers = name[0], {"Nats-Msg-Id": name[1]}
        until = time.monotonic() + self._connection.patience
        while True:
            born: int | None = None
            try:
                born = await self._created(queue)
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
                # It is not there. It may be soon, in a new creation of the queue or once the server
                # is ready.
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
        except ERRORS:  # the reader or the queue is gone: the next call detects it
            await self._drop(queue)
            return []
        found = []
        for number, message in zip(numbers, fetched, strict=True):
            if reader.expects_next and number != reader.after + 1:
                # Messages in transit when the connection broke are lost to this reader.
                await self._drop(queue)
                break
            reader.after, reader.expects_next = number, True
            found.append((Position(reader.born, number), message.data))
        return found

    async def _reader(self, queue: Queue, after: Position) -> _Consumer:
        """Return the reader that continues after a position."""
        born = await self._created(queue)
        wanted = after.sequence if after.born == born else 0
        reader = self._readers.get(queue)
        if reader is not None and (reader.born, reader.after) == (born, wanted):
            return reader
        await self._drop(queue)
        last = await self._last(queue)
        if last.born == after.born and last.sequence < after.sequence:
            # A cluster of servers may restore a queue under its name, without its messages.
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
        reader = _Consumer(last.born, consumer.name, messages, start, expects_next=False)
        self._readers[queue] = reader
        return reader

    async def _check(self, queue: Queue, reader: _Consumer) -> None:
        """Drop a reader that the broker has forgotten."""
        await self._connection.ready()
        try:
            await self._connection.jetstream.consumer_info(
                _stream_name(queue, reader.born), reader.name
            )
        except NotFoundError:
            await self._drop(queue)

    async def _drop(self, queue: Queue) -> None:
        """Drop the reader; the next call creates a new one."""
        self._births.pop(queue, None)
        reader = self._readers.pop(queue, None)
        if reader is not None:
            with suppress(*ERRORS):
                await reader.messages.unsubscribe()

    async def _remove(self, queue: Queue, through: Position) -> None:
        await self._connection.ready()
        name = _stream_name(queue, through.born)
        with suppress(NotFoundError):  # of another creation of the queue
            told = await self._connection.jetstream.stream_info(name)
            # Up to 1 would purge everything; beyond the last message, numbers would be skipped.
            if 0 < through.sequence <= told.state.last_seq:
                await self._connection.jetstream.purge_stream(name, seq=through.sequence + 1)

    async def _delete(self, queue: Queue) -> None:
        await self._connection.ready()
        await self._drop(queue)
        with suppress(NotFoundError):
            name = await self._connection.jetstream.find_stream_name_by_subject(queue.subject)
            await self._connection.jetstream.delete_stream(name)


class _Directory:
    """The directory of streams in the broker: the newest entry of each, in one JetStream stream.

    Args:
        connection: to the broker.
    """

    __slots__ = ("_connection",)

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection

    async def tell(self, name: str, stream: str, content: bytes) -> None:
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

    async def entry(self, name: str, stream: str) -> bytes | None:
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
    """Return the JetStream name of a queue that was created at that time."""
    return f"{_prefix(queue)}-{born}"

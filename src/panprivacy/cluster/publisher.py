"""Publisher for Python programs: sends to a cluster without a gateway, sealed before sending."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, Self

import msgspec
import pyarrow as pa

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.directory import COLUMNS, USER, Directory
from panprivacy.cluster.queues import BrokerError
from panprivacy.cluster.rounds import Rounds
from panprivacy.errors import InputError
from panprivacy.intake.sources.addresses import read_addresses
from panprivacy.intake.sources.columns import Prefixes
from panprivacy.tables.ids import Labels, WholeNumbers, as_column, read_deltas, read_ids

_FRESH_SECONDS: Final = 5.0
_GOOD_SECONDS: Final = 60.0
"""Seconds for which keys are used if the directory cannot be read; shards store them longer."""


class Publisher:
    """Publisher of rows of one stream to the shards of a cluster; a context manager.

    Each row is sealed here to the shard that counts it, with a hash in place of its id: so the
    broker and the network see neither, and no shard has an id. Some 45 times a second all shards
    get a message of one length, even if there is nothing to send, so an observer of the broker does
    not see which shard counts what.

    Guarantee: `docs/guarantees/envelopes.md`. It depends on the directory in the broker, which
    contains the keys: let only the coordinator write it.

    Args:
        servers: the servers of the broker, `nats://HOST:PORT` or `tls://HOST:PORT`; one, or several
            of which any will do.
        stream: the name of the stream in the configuration.
        name: the name of the cluster.
        credentials: path of a credentials file for the broker.

    Raises:
        BrokerError: the broker does not answer, or no cluster of that name counts that stream.
        InputError: a name is invalid.
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        stream: str,
        *,
        name: str = "panprivacy",
        credentials: str | None = None,
    ) -> None:
        self._name, self._stream = name, stream
        self._broker = Broker(servers, credentials=credentials)
        try:
            self._directory = Directory.read(self._broker, name, stream)
            self._read = time.monotonic()
            self._rounds = Rounds(
                self._broker,
                self._directory.queues(name, stream),
                self._directory.router(),
                COLUMNS.index(USER),
                self._publics,
            )
        except BaseException:
            self._broker.close()
            raise
        self._rounds.start()

    def send(
        self,
        users: Labels,
        deltas: WholeNumbers | None = None,
        groups: Labels | None = None,
        sides: Labels | None = None,
        *,
        batch_id: str | None = None,
    ) -> None:
        """Send rows; when it returns, the broker has all of them.

        Args:
            users: the id of each row: a NumPy or Arrow array, a pandas or Polars series, or a
                sequence; whole numbers or texts, where 7 and "7" are one user. IP addresses are
                texts, and are cut to the configured prefix. Leave out arguments that the stream
                does not read.
            deltas: the change of the state of each row's user.
            groups: the group of each row.
            sides: the side of each row: which of two streams it belongs to.
            batch_id: name of this batch. Rows with the same name are counted once, however often
                they are sent, while the name is among the last ones that shards store.

        Raises:
            InputError: a row cannot be sent; then none was. A delta or group that the stream does
                not take is detected only by the shard, which leaves out all rows of this batch that
                it has.
            BrokerError: some rows may have been sent: send them again under the same batch_id.
        """
        self.begin_sending(users, deltas, groups, sides, batch_id=batch_id).result()

    def begin_sending(
        self,
        users: Labels,
        deltas: WholeNumbers | None = None,
        groups: Labels | None = None,
        sides: Labels | None = None,
        *,
        batch_id: str | None = None,
    ) -> Future[None]:
        """Send rows without waiting; the arguments must not change until the future is done."""
        given = dict(zip(COLUMNS, (users, deltas, groups, sides), strict=True))
        there = tuple(name for name in COLUMNS if given[name] is not None)
        if there != self._directory.columns:
            wanted = ", ".join(f"{one}s" for one in self._directory.columns)
            message = f"the stream {self._stream} reads {wanted}: give that, and nothing else"
            raise InputError(message)
        name = None if batch_id is None else batch_id.encode()
        batches = _batches(given, there)
        if self._directory.addresses is not None:
            batches = [_with_addresses(one, self._directory.addresses) for one in batches]
        return self._rounds.put(batches, name)

    def close(self) -> None:
        """Send what is pending, and close the connection; may be called again."""
        self._rounds.stop()
        self._broker.close()

    def _publics(self) -> Sequence[bytes]:
        """Return the current public keys, for the thread that makes rounds."""
        age = time.monotonic() - self._read
        if age < _FRESH_SECONDS:
            return self._directory.publics
        try:
            found = Directory.read(self._broker, self._name, self._stream)
        except BrokerError:
            if age > _GOOD_SECONDS:
                raise
            return self._directory.publics
        known = self._directory
        if msgspec.structs.replace(found, publics=known.publics) != known or (
            len(found.publics) != len(known.publics)
        ):
            message = f"the cluster has begun anew, with other shards of {self._stream}: make a "
            message += "new Publisher"
            raise BrokerError(message)
        self._directory, self._read = found, time.monotonic()
        return found.publics

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _batches(given: Mapping[str, Any], names: Sequence[str]) -> list[pa.RecordBatch]:
    """Return the arguments as batches, checked as far as possible here."""
    read_ids(given[USER])
    columns = [as_column(given[name], f"{name}s must be a column") for name in names]
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            message = f"there must be as many {name}s as {names[0]}s: {len(columns[0]):,}, "
            message += f"not {len(column):,}"
            raise InputError(message)
    if "delta" in names:
        read_deltas(given["delta"], len(columns[0]))
    # A repeated batch in other chunks is cut and named as before.
    whole = pa.table(columns, names=list(names)).combine_chunks()
    batches: list[pa.RecordBatch] = whole.to_batches()
    return batches


def _with_addresses(batch: pa.RecordBatch, prefixes: Prefixes) -> pa.RecordBatch:
    """Cut addresses as the gateway does: else each address of a prefix would be a separate user."""
    return batch.set_column(0, batch.schema.names[0], read_addresses(batch.column(0), prefixes))

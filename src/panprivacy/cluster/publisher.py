"""Sends to a cluster from a Python program, without a gateway: sealed before anything leaves it."""

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
from panprivacy.ids import Labels, WholeNumbers, as_column, read_deltas, read_ids
from panprivacy.sources.addresses import read_addresses
from panprivacy.sources.columns import Prefixes

_FRESH_SECONDS: Final = 5.0
_GOOD_SECONDS: Final = 60.0
"""So long keys are used where the directory cannot be read; shards keep them for longer."""


class Publisher:
    """Sends rows of one stream to the shards of a cluster; a context manager.

    Each row is sealed here to the shard that counts it, with a hash in place of its id: so neither
    the broker nor the network has either, and no shard has an id. Some 45 times a second all
    shards get a message of one length, whether or not there is anything to send, so who watches
    the broker does not see which shard counts what.

    Guarantee: `docs/guarantees/envelopes.md`. It rests on the directory in the broker, which names
    the keys: let nobody but the coordinator write it.

    Args:
        servers: of the broker, `nats://HOST:PORT` or `tls://HOST:PORT`; one, or several of which
            any will do.
        stream: as the configuration calls it.
        name: of the cluster.
        credentials: the path of a file of credentials for the broker.

    Raises:
        BrokerError: the broker does not answer, or no such cluster counts that stream.
        InputError: a name cannot be one.
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
            users: an id for each row: a NumPy or Arrow array, a pandas or Polars series, or a
                sequence; whole numbers or texts, where 7 and "7" are one user. IP
                addresses are texts, and are cut to what counts of them. Leave out what
                the stream does not read.
            deltas: by how much the state of each user changes.
            groups: the group of each row.
            sides: which of two streams each row is of.
            batch_id: what this is called. Under the same name the same rows are counted once,
                however often they are sent, while it is among the last names that shards keep.

        Raises:
            InputError: a row cannot be sent; then none was. A delta or a group that the stream does
                not take shows only at the shard, which leaves out all of this that it has.
            BrokerError: some of it may have been sent: send it again under the same batch_id.
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
        """The same for who does not wait; what is given must stay as it is until it is done."""
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
        """Send what is there, and let go of the connection; may be called again."""
        self._rounds.stop()
        self._broker.close()

    def _publics(self) -> Sequence[bytes]:
        """The keys of now, for the thread that makes rounds."""
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
    """What was given, checked as far as it can be here."""
    read_ids(given[USER])
    columns = [as_column(given[name], f"{name}s must be a column") for name in names]
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            message = f"there must be as many {name}s as {names[0]}s: {len(columns[0]):,}, "
            message += f"not {len(column):,}"
            raise InputError(message)
    if "delta" in names:
        read_deltas(given["delta"], len(columns[0]))
    # What comes again in other chunks is cut, and named, as it was.
    whole = pa.table(columns, names=list(names)).combine_chunks()
    batches: list[pa.RecordBatch] = whole.to_batches()
    return batches


def _with_addresses(batch: pa.RecordBatch, prefixes: Prefixes) -> pa.RecordBatch:
    """Users as the gateway has them: else each address of a prefix would be a user of its own."""
    return batch.set_column(0, batch.schema.names[0], read_addresses(batch.column(0), prefixes))

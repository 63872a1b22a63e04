"""The database that both servers have; each step of a job is one transaction.

An acknowledged report is on the disk, and counts once, whatever is killed when: a job names its
reports before anything is sent, the helper stores its answers, and the contribution of a job to the
sums is added in the transaction that ends it. Of shares, a server stores only sums, and a digest of
each payload that it opened; a report stays encrypted until it is added up, and is removed then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from sqlalchemy import Table, insert, select
from sqlalchemy.engine import Connection

from panprivacy.devices.aggregator.batch import BatchBucket
from panprivacy.devices.collector.task_store import TaskStore
from panprivacy.devices.federated.task import Task

_PAYLOAD_DIGEST_BYTES: Final = 16
_MOST_VARIABLES: Final = 10_000
"""Maximum number of variables of one statement; SQLite takes about three times as many."""


class OpenedRow(NamedTuple):
    """The content of a server's row of a report.

    Args:
        payloads: each that could be opened.
        whole: whether all entries were readable.
    """

    payloads: tuple[bytes, ...]
    whole: bool


class SharesStore(TaskStore):
    """The part of both stores: the batch, and digests of the opened payloads.

    It belongs to one verification key: the same shares verified under two keys would tell more.
    """

    _payloads: Table
    _role: ClassVar[bytes]
    _about_task: ClassVar[Table]
    _foreign = (
        "the store was begun for another task or under another verification key: start with the "
        "secrets that it began with, or give this task a store of its own"
    )

    def __init__(
        self, url: str, task: Task, verify_key: bytes, mark: Path, *, fresh: bool = False
    ) -> None:
        self._task = task
        self._empty = bytes(BatchBucket.empty(task.kind.answers))
        identity = sha256(self._role + task.digest + verify_key).digest()
        super().__init__(url, identity, self._about_task, mark, fresh=fresh)

    def _new(self, connection: Connection, opened: Mapping[bytes, OpenedRow]) -> set[bytes]:
        """Return the ids of the reports that are complete and have a new payload.

        All payloads are known from then on.
        """
        digests = {
            name: [sha256(one).digest()[:_PAYLOAD_DIGEST_BYTES] for one in found.payloads]
            for name, found in opened.items()
        }
        column = self._payloads.c.digest
        named = [one for each in digests.values() for one in each]
        seen = set[bytes]()
        for some in _pieces(named):
            seen.update(connection.scalars(select(column).where(column.in_(some))))
        known, new = set(seen), set()
        for name, each in digests.items():
            if opened[name].whole and len(set(each) - seen) == len(each):
                new.add(name)
            seen.update(each)
        for some in _pieces(sorted(seen - known)):
            connection.execute(insert(self._payloads), [{"digest": one} for one in some])
        return new

    def _batch(self, kept: bytes | None) -> BatchBucket:
        return BatchBucket.read(kept or self._empty)


def _pieces(values: Sequence[bytes]) -> list[Sequence[bytes]]:
    return [values[at : at + _MOST_VARIABLES] for at in range(0, len(values), _MOST_VARIABLES)]

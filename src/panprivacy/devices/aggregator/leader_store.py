"""The store of the leader: waiting reports, its share of the sums, and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Boolean,
    Column,
    LargeBinary,
    MetaData,
    Table,
    bindparam,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.engine import Connection

from panprivacy.devices.aggregator.batch import BatchBucket
from panprivacy.devices.aggregator.messages import (
    JOB_ID_BYTES,
    REPORT,
    REPORT_ID,
    ReportError,
    UploadedReport,
)
from panprivacy.devices.aggregator.presentation import decoded
from panprivacy.devices.aggregator.reports import servers_of
from panprivacy.devices.aggregator.shares_store import OpenedRow, SharesStore
from panprivacy.devices.collector.task_store import task_table
from panprivacy.errors import PanPrivacyError
from panprivacy.privacy.coins import SystemCoins

_LEADER: Final = MetaData()
_LEADER_TASK: Final = task_table(
    _LEADER,
    Column("batch", LargeBinary),
    Column("closed", Boolean, nullable=False, default=False),
)
_REPORTS: Final = Table(
    "panprivacy_reports",
    _LEADER,
    Column("name", LargeBinary, primary_key=True),
    Column("ciphertexts", LargeBinary, nullable=False, unique=True),
    Column("report", LargeBinary),  # until it is added up
    Column("job", LargeBinary, index=True),
    Column("shares", LargeBinary),  # once they were opened: a digest; empty if they are refused
)
_LEADER_PAYLOADS: Final = Table(
    "panprivacy_payloads", _LEADER, Column("digest", LargeBinary, primary_key=True)
)


class Job(NamedTuple):
    """Reports that are verified together.

    Args:
        name: name of the job, 16 random bytes.
        reports: in the order of their ids.
    """

    name: bytes
    reports: tuple[UploadedReport, ...]


class LeaderStore(SharesStore):
    """The reports that came to the leader, its jobs, its share of the sums, and the answer.

    Guarantee: that of `TaskStore`. Each report is in one job, and each job is added up once.
    [docs/two-servers.md, tests/service/test_leader_store.py]

    Args:
        url: URL of a database.
        task: whose reports it keeps.
        verify_key: key that both servers have; another one is refused.
        mark: the file that says which store this is.
        fresh: take any in place of the one that it says.
    """

    _payloads = _LEADER_PAYLOADS
    _role, _about_task = b"leader", _LEADER_TASK

    def _sample(self) -> tuple[Table, Mapping[str, Any]]:
        draw, size = SystemCoins().key, self._task.kind.answers * self._task.entry_bytes
        row = {"name": draw(REPORT_ID.size), "ciphertexts": draw(32), "report": draw(size)}
        return _REPORTS, row

    @property
    def closed(self) -> bool:
        """Whether the batch is closed, after which no report is accepted."""
        with self._writing(writes=False) as connection:
            return bool(connection.scalar(select(_LEADER_TASK.c.closed)))

    def add(self, reports: Sequence[UploadedReport]) -> list[ReportError | None]:
        """Keep those reports that are new; they are on the disk when this returns.

        Returns:
            Why each is not taken; None for one that is there now, or was there already.
        """
        names = [report.metadata.report_id for report in reports]
        digests = [sha256(b"".join([*one.leader[1:], *one.helper[1:]])).digest() for one in reports]
        with self._alone() as (connection, task):
            held, seen = self._known(connection, _REPORTS, names, digests)
            fresh, outcomes = [], list[ReportError | None]()
            for report, name, digest in zip(reports, names, digests, strict=True):
                if held.get(name) == digest:
                    outcomes.append(None)
                elif task.closed:
                    outcomes.append(ReportError.BATCH_COLLECTED)
                elif name in held or digest in seen:
                    outcomes.append(ReportError.REPORT_REPLAYED)
                else:
                    held[name] = digest
                    seen.add(digest)
                    row = {"name": name, "ciphertexts": digest, "report": REPORT.write(report)}
                    fresh.append(row)
                    outcomes.append(None)
            if fresh:
                connection.execute(insert(_REPORTS), fresh)
        return outcomes

    def job(self, most: int) -> Job | None:
        """Return the unfinished job, or one of waiting reports; None if there are none.

        Args:
            most: maximum number of reports in a new job.
        """
        columns = _REPORTS.c
        waits = columns.report.is_not(None)
        begun = select(columns.job).where(waits & columns.job.is_not(None)).limit(1)
        with self._alone() as (connection, _):
            name = connection.scalar(begun)
            if name is None:
                chosen = select(columns.name).where(waits & columns.job.is_(None)).limit(most)
                names = connection.scalars(chosen).all()
                if not names:
                    return None
                name = SystemCoins().key(JOB_ID_BYTES)
                those = update(_REPORTS).where(columns.name.in_(names))
                connection.execute(those.values(job=name))
            mine = select(columns.report).where(columns.job == name).order_by(columns.name)
            reports = tuple(decoded(REPORT, one) for one in connection.scalars(mine))
        return Job(name, reports)

    def judge(self, job: bytes, opened: Mapping[bytes, OpenedRow]) -> set[bytes]:
        """Return the reports of a job that may be verified: they are complete, with a new payload.

        The result is found once for a job, and is on the disk before any part of the job is sent.
        When a job is opened again, only the same shares may be verified: a helper that removes its
        layer from other rows then would receive the value of a share at two points.
        """
        columns = _REPORTS.c
        mine = columns.job == job
        digests = {
            name: sha256(b"".join(found.payloads)).digest() for name, found in opened.items()
        }
        with self._alone() as (connection, _):
            found = connection.execute(select(columns.name, columns.shares).where(mine))
            known = dict[bytes, bytes | None](found.all())
            if None in known.values():
                new = self._new(connection, opened)
                connection.execute(update(_REPORTS).where(mine).values(shares=b""))
                each = update(_REPORTS).where(columns.name == bindparam("one"))
                rows = [{"one": name, "digest": digests[name]} for name in new]
                if rows:
                    connection.execute(each.values(shares=bindparam("digest")), rows)
                return new
        return {name for name, digest in digests.items() if known.get(name) == digest}

    def finish(self, job: bytes, added: BatchBucket) -> None:
        """Add what a job gave to the batch, and remove its reports; once for each job."""
        mine = _REPORTS.c.job == job
        with self._alone() as (connection, task):
            over = update(_REPORTS).where(mine).values(report=None, job=None, shares=None)
            ended = connection.execute(over)
            if ended.rowcount:
                batch = self._batch(task.batch).combined(added)
                connection.execute(update(_LEADER_TASK).values(batch=bytes(batch)))

    def close(self) -> bool:
        """Take no more reports, unless some still wait for their job.

        Returns:
            Whether none does, so that it is closed.

        Raises:
            PanPrivacyError: fewer reports came than a release needs; nothing was changed.
        """
        least = servers_of(self._task).batch
        with self._alone() as (connection, task):
            if task.closed:
                return True
            came = _count(connection, _REPORTS)
            if came < least:
                message = f"{came:,} reports have come, and a release takes {least:,} or more: "
                message += "wait for more"
                raise PanPrivacyError(message)
            waits = select(_REPORTS.c.name).where(_REPORTS.c.report.is_not(None)).limit(1)
            if connection.scalar(waits) is not None:
                return False
            connection.execute(update(_LEADER_TASK).values(closed=True))
        return True

    def batch(self) -> tuple[BatchBucket, int]:
        """Return the batch so far, and the number of reports received."""
        with self._writing(writes=False) as connection:
            kept = connection.scalar(select(_LEADER_TASK.c.batch))
            return self._batch(kept), _count(connection, _REPORTS)

    def stored_answer(self) -> bytes | None:
        """Return the answer that was given."""
        with self._writing(writes=False) as connection:
            answer: bytes | None = connection.scalar(select(_LEADER_TASK.c.answer))
        return answer

    def answer(self, answer: bytes) -> bytes:
        """Store an answer, unless there is one; the stored one is then on the disk."""
        return self._answered(lambda *_: answer)


def _count(connection: Connection, table: Table) -> int:
    return int(connection.scalar(select(func.count()).select_from(table)) or 0)

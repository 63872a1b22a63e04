"""What each of two servers keeps, in a database; each step of a job is one transaction.

A report that is told to be there is there, and counts once, whatever is killed when: a job names
its reports before anything is sent, the helper keeps what it answered, and what a job adds to the
sums is added in the transaction that ends it. Of shares, a server keeps sums alone, and a
digest of each payload that it opened; a report stays encrypted until it is added up, and is
removed then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

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

from panprivacy.aggregator.batch import BatchBucket
from panprivacy.aggregator.messages import (
    JOB_ID_BYTES,
    REPORT,
    REPORT_ID,
    Report,
    ReportError,
)
from panprivacy.aggregator.presentation import decoded
from panprivacy.aggregator.problems import AbortError, Reason
from panprivacy.aggregator.reports import servers_of
from panprivacy.coins import SystemCoins
from panprivacy.collector.task_store import TaskStore, task_table
from panprivacy.errors import PanPrivacyError
from panprivacy.federated.task import Task

_PAYLOAD_DIGEST_BYTES: Final = 16


class OpenedRow(NamedTuple):
    """What a server found in its row of a report.

    Args:
        payloads: each that could be opened.
        whole: whether all could.
    """

    payloads: tuple[bytes, ...]
    whole: bool


class _SharesStore(TaskStore):
    """What both servers keep: the batch, and digests of the payloads that they opened.

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
        """The ids of those reports that are whole and have no payload that came before.

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


_MOST_VARIABLES: Final = 10_000
"""Of one statement; SQLite takes some three times as many."""


def _pieces(values: Sequence[bytes]) -> list[Sequence[bytes]]:
    return [values[at : at + _MOST_VARIABLES] for at in range(0, len(values), _MOST_VARIABLES)]


# The leader

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
        name: of the job, 16 random bytes.
        reports: in the order of their ids.
    """

    name: bytes
    reports: tuple[Report, ...]


class LeaderStore(_SharesStore):
    """The reports that came to the leader, its jobs, its share of the sums, and the answer.

    Guarantee: that of `TaskStore`. Each report is in one job, and each job is added up once.
    [docs/two-servers.md, tests/service/test_aggregator.py]

    Args:
        url: of a database.
        task: whose reports it keeps.
        verify_key: which both servers have; another one is refused.
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
        """Whether the batch is closed, after which no report is taken."""
        with self._writing(writes=False) as connection:
            return bool(connection.scalar(select(_LEADER_TASK.c.closed)))

    def add(self, reports: Sequence[Report]) -> list[ReportError | None]:
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
        """The job that was begun and not ended, or one of reports that wait; None if none does.

        Args:
            most: so many reports a new one has.
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
        """Which reports of a job may be verified: they are whole, and no payload came before.

        It is found once for a job, and is on the disk before anything of it leaves. Of a job that
        is opened again, only the same shares may be: a helper that strips other rows then would be
        sent what a share is at two points.
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
                batch = self._batch(task.batch).joined(added)
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
        """What was added up, and how many reports came."""
        with self._writing(writes=False) as connection:
            kept = connection.scalar(select(_LEADER_TASK.c.batch))
            return self._batch(kept), _count(connection, _REPORTS)

    def given(self) -> bytes | None:
        """The answer that was given."""
        with self._writing(writes=False) as connection:
            answer: bytes | None = connection.scalar(select(_LEADER_TASK.c.answer))
        return answer

    def answer(self, answer: bytes) -> bytes:
        """Keep an answer, unless there is one; the one that is kept is on the disk then."""
        return self._answered(lambda *_: answer)


def _count(connection: Connection, table: Table) -> int:
    return int(connection.scalar(select(func.count()).select_from(table)) or 0)


# The helper

_HELPER: Final = MetaData()
_HELPER_TASK: Final = task_table(
    _HELPER,
    Column("batch", LargeBinary),
    Column("request", LargeBinary),  # to which the answer was given
)
_SHARES: Final = Table(
    "panprivacy_shares",
    _HELPER,
    Column("name", LargeBinary, primary_key=True),
    Column("stripped", LargeBinary),  # the digest of the leader's row
    Column("judged", Boolean, nullable=False, default=False),
)
_JOBS: Final = Table(
    "panprivacy_jobs",
    _HELPER,
    Column("name", LargeBinary, primary_key=True),
    Column("request", LargeBinary, nullable=False),
    Column("response", LargeBinary, nullable=False),
)
_HELPER_PAYLOADS: Final = Table(
    "panprivacy_payloads", _HELPER, Column("digest", LargeBinary, primary_key=True)
)


class Verdict(NamedTuple):
    """What came of a job.

    Args:
        response: to the leader.
        added: to the batch.
    """

    response: bytes
    added: BatchBucket


class HelperStore(_SharesStore):
    """What the helper knows of reports, what it answered, and its share of the sums.

    Guarantee: that of `TaskStore`. A job is answered by the same bytes whenever it is asked for,
    and is added up once; each report is judged once. [tests/service/test_aggregator.py]

    Args:
        url: of a database.
        task: whose reports it judges.
        verify_key: which both servers have; another one is refused.
        mark: the file that says which store this is.
        fresh: take any in place of the one that it says.
    """

    _payloads = _HELPER_PAYLOADS
    _role, _about_task = b"helper", _HELPER_TASK

    def _sample(self) -> tuple[Table, Mapping[str, Any]]:
        draw = SystemCoins().key
        row = {"name": draw(JOB_ID_BYTES), "request": draw(32), "response": draw(1 << 12)}
        return _JOBS, row

    def strips(self, rows: Mapping[bytes, bytes]) -> set[bytes]:
        """The ids of those reports whose leader's row is the first that came, which is kept."""
        columns = _SHARES.c
        allowed = set()
        with self._alone() as (connection, task):
            named = select(columns.name, columns.stripped).where(columns.name.in_(rows))
            held = dict[bytes, bytes | None](connection.execute(named).all())
            fresh = []
            for name, row in rows.items():
                digest = sha256(row).digest()
                if name not in held and task.answer is None:
                    fresh.append({"name": name, "stripped": digest})
                    allowed.add(name)
                elif held.get(name) == digest:
                    allowed.add(name)
            if fresh:
                connection.execute(insert(_SHARES), fresh)
        return allowed

    def response(self, job: bytes, request: bytes) -> bytes | None:
        """What was answered to a job; None if it is new.

        Args:
            job: its id.
            request: a digest of what is asked.

        Raises:
            AbortError: something else was asked by this id.
        """
        with self._writing(writes=False) as connection:
            return _response(connection, job, request)

    def judge(
        self,
        job: bytes,
        request: bytes,
        opened: Mapping[bytes, OpenedRow],
        verdict: Callable[[Mapping[bytes, ReportError]], Verdict],
    ) -> bytes:
        """The response to a job; it is made if there is none, and on the disk then.

        Args:
            job: its id.
            request: a digest of what is asked.
            opened: what is in the reports, by id.
            verdict: says what comes of them, given what is wrong with some already.

        Raises:
            AbortError: something else was asked by this id.
        """
        columns = _SHARES.c
        with self._alone() as (connection, task):
            known = _response(connection, job, request)
            if known is not None:
                return known
            if task.answer is not None:
                wrong = dict.fromkeys(opened, ReportError.BATCH_COLLECTED)
            else:
                wrong = self._wrong(connection, opened)
            made = verdict(wrong)
            batch = self._batch(task.batch).joined(made.added)
            connection.execute(update(_HELPER_TASK).values(batch=bytes(batch)))
            row = {"name": job, "request": request, "response": made.response}
            connection.execute(insert(_JOBS), row)
            if task.answer is None:
                named = select(columns.name).where(columns.name.in_(opened))
                held = set(connection.scalars(named))
                connection.execute(
                    update(_SHARES).where(columns.name.in_(held)).values(judged=True)
                )
                fresh = [{"name": name, "judged": True} for name in opened if name not in held]
                if fresh:
                    connection.execute(insert(_SHARES), fresh)
        return made.response

    def _wrong(
        self, connection: Connection, opened: Mapping[bytes, OpenedRow]
    ) -> dict[bytes, ReportError]:
        """What is wrong with reports before they are verified; their payloads are known then."""
        columns = _SHARES.c
        judged = select(columns.name).where(columns.name.in_(opened) & columns.judged)
        again = set(connection.scalars(judged))
        others = {name: found for name, found in opened.items() if name not in again}
        new = self._new(connection, others)
        unread = {name for name, found in others.items() if not found.whole}
        return {
            name: ReportError.HPKE_DECRYPT_ERROR if name in unread else ReportError.REPORT_REPLAYED
            for name in opened
            if name not in new
        }

    def share(self, request: bytes, make: Callable[[BatchBucket, int], bytes]) -> bytes:
        """The answer to who asks for the share of the batch, after which no report is judged.

        Args:
            request: a digest of what is asked.
            make: makes it of the batch, and of how many reports came. If it raises, nothing was
                changed.

        Raises:
            AbortError: it was given to another request.
        """
        judged = select(func.count()).select_from(_SHARES).where(_SHARES.c.judged)

        def first(connection: Connection, task: Any) -> bytes:
            answer = make(self._batch(task.batch), int(connection.scalar(judged) or 0))
            connection.execute(update(_HELPER_TASK).values(request=request))
            return answer

        answer = self._answered(first)
        with self._writing(writes=False) as connection:
            if connection.scalar(select(_HELPER_TASK.c.request)) != request:
                message = "the share of the batch was given to another request"
                raise AbortError(Reason.BATCH_OVERLAP, message)
        return answer


def _response(connection: Connection, job: bytes, request: bytes) -> bytes | None:
    found = connection.execute(select(_JOBS).where(_JOBS.c.name == job)).one_or_none()
    if found is None:
        return None
    if found.request != request:
        message = "another request came for this job: a job keeps its reports"
        raise AbortError(Reason.INVALID_MESSAGE, message)
    response: bytes = found.response
    return response

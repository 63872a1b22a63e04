"""The store of the helper: judged reports, given answers, and its share of the sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

from sqlalchemy import Boolean, Column, LargeBinary, MetaData, Table, func, insert, select, update
from sqlalchemy.engine import Connection

from panprivacy.devices.aggregator.batch import BatchBucket
from panprivacy.devices.aggregator.messages import JOB_ID_BYTES, ReportError
from panprivacy.devices.aggregator.problems import AbortError, Reason
from panprivacy.devices.aggregator.shares_store import OpenedRow, SharesStore
from panprivacy.devices.collector.task_store import task_table
from panprivacy.privacy.coins import SystemCoins

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
    """The result of a job.

    Args:
        response: to the leader.
        added: to the batch.
    """

    response: bytes
    added: BatchBucket


class HelperStore(SharesStore):
    """The helper's digests of reports, its answers, and its share of the sums.

    Guarantee: that of `TaskStore`. A job is answered by the same bytes whenever it is asked for,
    and is added up once; each report is judged once. [tests/service/test_helper_store.py]

    Args:
        url: URL of a database.
        task: whose reports it judges.
        verify_key: key that both servers have; another one is refused.
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
        """Return the ids of the reports whose leader's row came first; its digest is stored."""
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
        """Return the answer given to a job; None if it is new.

        Args:
            job: its id.
            request: a digest of the request.

        Raises:
            AbortError: the id belongs to another request.
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
        """Return the response to a job; it is made if there is none, and on the disk then.

        Args:
            job: its id.
            request: a digest of the request.
            opened: content of the reports, by id.
            verdict: says what comes of them, given what is wrong with some already.

        Raises:
            AbortError: the id belongs to another request.
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
            batch = self._batch(task.batch).combined(made.added)
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
        """Return the errors of reports found before verification; their payloads are known then."""
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
        """Return the share of the batch; afterwards no report is judged.

        Args:
            request: a digest of the request.
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

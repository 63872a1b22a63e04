"""The reports of a collector, in a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Column, LargeBinary, MetaData, Table, insert, select

from panprivacy.devices.collector.task_store import TaskStore, task_table
from panprivacy.devices.federated.collector import check_new
from panprivacy.devices.federated.messages import REPORT_ID_BYTES, Report, report_bytes
from panprivacy.devices.federated.task import Task
from panprivacy.errors import PanPrivacyError
from panprivacy.privacy.coins import SystemCoins

_TABLES: Final = MetaData()
_TASK: Final = task_table(_TABLES)
_REPORTS: Final = Table(
    "panprivacy_reports",
    _TABLES,
    Column("name", LargeBinary, primary_key=True),
    Column("ciphertexts", LargeBinary, nullable=False, unique=True),
    Column("report", LargeBinary, nullable=False),
)


class ReportStore(TaskStore):
    """The reports of one task, and its answer.

    Nothing in it is secret: without the key nobody can open a report.

    Guarantee: that of `TaskStore`, and a report counts once.
    [docs/guarantees/devices.md, tests/service/test_report_store.py]

    Args:
        url: URL of a database.
        task: of which it has reports.
        mark: the file that says which store this is.
        fresh: take any in place of the one that it says.

    Raises:
        PlanError: as `TaskStore` does.
        StoreError: likewise.
    """

    def __init__(self, url: str, task: Task, mark: Path, *, fresh: bool = False) -> None:
        self._task = task
        super().__init__(url, task.digest, _TASK, mark, fresh=fresh)

    def _sample(self) -> tuple[Table, Mapping[str, Any]]:
        draw = SystemCoins().key
        name, digest, content = draw(REPORT_ID_BYTES), draw(32), draw(report_bytes(self._task))
        return _REPORTS, {"name": name, "ciphertexts": digest, "report": content}

    def add(self, reports: Sequence[Report]) -> list[PanPrivacyError | None]:
        """Keep those reports that are new; they are on the disk when this returns.

        Args:
            reports: of the task, whose ciphertexts are some.

        Returns:
            The error of each report, as from `check_new`, or None.

        Raises:
            StoreError: the store does not work. It is not known whether they were kept; a report
                that comes again counts once.
        """
        digests = [sha256(report.row).digest() for report in reports]
        names = [report.name for report in reports]
        with self._alone() as (connection, task):
            held, seen = self._known(connection, _REPORTS, names, digests)
            fresh, outcomes = [], list[PanPrivacyError | None]()
            for report, digest in zip(reports, digests, strict=True):
                try:
                    check_new(held.get(report.name), digest, seen, closed=task.answer is not None)
                except PanPrivacyError as error:
                    outcomes.append(error)
                    continue
                held[report.name] = digest
                seen.add(digest)
                content = report.to_bytes(self._task)
                fresh.append({"name": report.name, "ciphertexts": digest, "report": content})
                outcomes.append(None)
            if fresh:
                connection.execute(insert(_REPORTS), fresh)
        return outcomes

    def answer(self, make: Callable[[Iterator[bytes]], bytes]) -> bytes:
        """Return the answer, from all reports; it is made if there is none, and on the disk then.

        Args:
            make: makes it of all reports. If it raises, nothing was changed.

        Raises:
            StoreError: the store does not work. It is not known whether there is an answer now; it
                has not left, and will be the one that does.
        """
        return self._answered(
            lambda connection, _: make(iter(connection.scalars(select(_REPORTS.c.report))))
        )

"""Reports in a database, and the answer that was made of them.

What is acknowledged is on the disk. There is one answer: it is written in the transaction that ends
the taking of reports, and whoever asks later, from any process, gets those bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    Column,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    Table,
    delete,
    func,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from panprivacy.coins import SystemCoins
from panprivacy.collector.mark import REMEDY, Mark
from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.federated.collector import check_new
from panprivacy.federated.messages import REPORT_ID_BYTES, Report, report_bytes
from panprivacy.federated.task import Task
from panprivacy.service.outgoing.databases import (
    CREATING,
    checked,
    create_file,
    is_whole,
    sqlite_file,
    told,
    writing_engine,
)
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.tables import IDENTITY_BYTES

_VERSION: Final = 1
"""Of the tables; whoever changes them counts on."""
_TABLES: Final = MetaData()
_TASK: Final = Table(
    "panprivacy_task",
    _TABLES,
    Column("digest", LargeBinary, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("identity", LargeBinary, nullable=False),
    Column("answer", LargeBinary),
)
_REPORTS: Final = Table(
    "panprivacy_reports",
    _TABLES,
    Column("name", LargeBinary, primary_key=True),
    Column("ciphertexts", LargeBinary, nullable=False, unique=True),
    Column("report", LargeBinary, nullable=False),
)


class ReportStore:
    """The reports of one task, and its answer.

    Nothing in it is secret: whoever lacks the key can open no report.

    Guarantee: there is one answer, whatever is killed, and however many processes share the store;
    it is on the disk before it leaves. A report counts once. A store that was deleted, cut short or
    replaced by another one or by an older copy is noticed as long as the mark is there.
    [docs/guarantees/devices.md, tests/service/test_report_store.py]

    Args:
        url: of a database, `sqlite:////folder/file` or `postgresql+psycopg://...`.
        task: of which it has reports.
        mark: the file that says which store this is; without it, any store of the task is taken.
        fresh: take any in place of the one that it says.

    Raises:
        PlanError: it is no such URL, the database has reports of another task, or it is not the
            store of the mark. Nothing was changed.
        StoreError: the database does not work.
    """

    def __init__(self, url: str, task: Task, mark: Path, *, fresh: bool = False) -> None:
        place = checked(url)
        self._task = task
        self._mark = Mark(mark, fresh=fresh)
        file = sqlite_file(place)
        if self._mark.is_there and file is not None and not (file.exists() and file.stat().st_size):
            raise PlanError(_GONE)
        self._engine, _ = writing_engine(place)
        try:
            create_file(place)
        except OSError as error:
            message = f"cannot make the store: {error.strerror}"
            raise PlanError(message) from None
        try:
            self._open()
        except BaseException:
            self.end()
            raise

    def _open(self) -> None:
        """Make the tables, unless they are there, and look whether they are the right ones."""
        with self._writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(CREATING)))
            if not inspect(connection).has_table(_TASK.name):
                if self._mark.is_there:
                    raise PlanError(_GONE)
                _TABLES.create_all(connection)
                identity = SystemCoins().key(IDENTITY_BYTES)
                row = {"digest": self._task.digest, "version": _VERSION, "identity": identity}
                connection.execute(insert(_TASK).values(**row))
            whole = is_whole(connection)
            found = connection.execute(select(_TASK)).one()
        if not whole:
            message = f"the file of the store is damaged or cut short: {REMEDY}"
            raise PlanError(message)
        if found.version != _VERSION:
            message = f"the tables of the store have version {found.version}, this program needs "
            message += f"{_VERSION}: use the program that made them"
            raise PlanError(message)
        if found.digest != self._task.digest:
            message = "the store has the reports of another task: give this one its own"
            raise PlanError(message)
        if not self._mark.fits(found.identity, found.answer):
            raise PlanError(_OTHER)
        self._mark.note(found.identity, found.answer)

    @property
    def closed(self) -> bool:
        """Whether there is an answer, after which no report is taken.

        Raises:
            StoreError: the store does not work.
        """
        with self._writing(writes=False) as connection:
            return connection.scalar(select(_TASK.c.answer)) is not None

    def check_writes(self) -> None:
        """Write what a report takes, and remove it in the same transaction.

        A full disk may still have room for less.

        Raises:
            StoreError: the store does not work.
        """
        draw = SystemCoins().key
        name, digest, content = draw(REPORT_ID_BYTES), draw(32), draw(report_bytes(self._task))
        with self._alone() as (connection, _):
            row = {"name": name, "ciphertexts": digest, "report": content}
            connection.execute(insert(_REPORTS), row)
            connection.execute(delete(_REPORTS).where(_REPORTS.c.name == name))

    def add(self, reports: Sequence[Report]) -> list[PanPrivacyError | None]:
        """Keep those reports that are new; they are on the disk when this returns.

        Args:
            reports: of the task, whose ciphertexts are some.

        Returns:
            What is wrong with each, as `check_new` says it, or None.

        Raises:
            StoreError: the store does not work. It is not known whether they were kept; a report
                that comes again counts once.
        """
        digests = [sha256(report.row).digest() for report in reports]
        names = [report.name for report in reports]
        with self._alone() as (connection, task):
            columns = _REPORTS.c
            named = select(columns.name, columns.ciphertexts).where(columns.name.in_(names))
            held = dict[bytes, bytes](connection.execute(named).all())
            same = select(columns.ciphertexts).where(columns.ciphertexts.in_(digests))
            seen = set(connection.scalars(same))
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
        """The answer, from all reports; it is made if there is none, and on the disk then.

        Args:
            make: makes it of all reports. If it raises, nothing was changed.

        Raises:
            StoreError: the store does not work. It is not known whether there is an answer now; it
                has not left, and will be the one that does.
        """
        with self._alone() as (connection, task):
            answer: bytes | None = task.answer
            if answer is None:
                answer = make(iter(connection.scalars(select(_REPORTS.c.report))))
                connection.execute(update(_TASK).values(answer=answer))
        self._mark.note(task.identity, answer)
        return answer

    def end(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _alone(self) -> Iterator[tuple[Connection, Row[Any]]]:
        """A transaction during which no other writes, and what the store says of its task."""
        with self._writing() as connection:
            found = connection.execute(select(_TASK).with_for_update()).one_or_none()
            if found is None or not self._mark.fits(found.identity, found.answer):
                message = "another store, or an older copy, is in the place of the one that was "
                message += "opened, so nothing is taken or released: put it back"
                raise StoreError(message)
            yield connection, found

    @contextmanager
    def _writing(self, *, writes: bool = True) -> Iterator[Connection]:
        """One transaction; what the database says is told in one line."""
        try:
            with self._engine.execution_options(writes=writes).begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise told(error) from None


_GONE: Final = f"the store of this collector is not there any more: {REMEDY}"
_OTHER: Final = (
    "the store is another one than this collector had, or an older copy without the answer that "
    f"was given: {REMEDY}"
)

"""The database of a server of a task, and the answer that it gave.

Everything acknowledged is on the disk. There is one answer: it is written in the transaction that
ends the acceptance of reports, and every later request, from any process, gets those bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

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

from panprivacy.devices.collector.mark import REMEDY, Mark
from panprivacy.errors import PlanError
from panprivacy.privacy.coins import SystemCoins
from panprivacy.service.outgoing.databases import (
    CREATING,
    checked,
    create_file,
    database_error,
    is_intact,
    sqlite_file,
    writing_engine,
)
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.tables import IDENTITY_BYTES

_VERSION: Final = 1
"""Version of the tables; increase it with each change of them."""


def task_table(tables: MetaData, *more: Column[Any]) -> Table:
    """Return the table of one row that says of which task a store is, and what was answered.

    Args:
        tables: tables of the store.
        more: columns that it has besides, with a default.
    """
    return Table(
        "panprivacy_task",
        tables,
        Column("digest", LargeBinary, primary_key=True),
        Column("version", Integer, nullable=False),
        Column("identity", LargeBinary, nullable=False),
        Column("answer", LargeBinary),
        *more,
    )


class TaskStore:
    """A store of one task; each kind says which tables it has.

    Guarantee: there is one answer, whatever is killed, and however many processes share the store;
    it is on the disk before it leaves. A store that was deleted, cut short or replaced by another
    one, or by an older copy without the answer that was given, is noticed as long as the mark is
    there. An older copy from before the answer is not: what came since is lost.
    [docs/guarantees/devices.md, tests/service/test_report_store.py]

    Args:
        url: URL of a database, `sqlite:////folder/file` or `postgresql+psycopg://...`.
        task: by which the store knows what it is for, 32 bytes.
        about: the table of the task, beside all others.
        mark: the file that says which store this is; without it, any store of the task is taken.
        fresh: take any in place of the one that it says.

    Raises:
        PlanError: it is no such URL, the database has reports of another task, or it is not the
            store of the mark. Nothing was changed.
        StoreError: the database does not work.
    """

    _foreign: ClassVar[str] = "the store has the reports of another task: give this one its own"

    def __init__(self, url: str, task: bytes, about: Table, mark: Path, *, fresh: bool) -> None:
        place = checked(url)
        self._about = about
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
            self._open(task)
        except BaseException:
            self.end()
            raise

    def _open(self, task: bytes) -> None:
        """Make the tables, unless they exist, and check that they are the right ones."""
        with self._writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(CREATING)))
            if not inspect(connection).has_table(self._about.name):
                if self._mark.is_there:
                    raise PlanError(_GONE)
                self._about.metadata.create_all(connection)
                identity = SystemCoins().key(IDENTITY_BYTES)
                row = {"digest": task, "version": _VERSION, "identity": identity}
                connection.execute(insert(self._about).values(**row))
            whole = is_intact(connection)
            columns = self._about.c
            known = select(columns.digest, columns.version, columns.identity, columns.answer)
            found = connection.execute(known).one()
        if not whole:
            message = f"the file of the store is damaged or cut short: {REMEDY}"
            raise PlanError(message)
        if found.version != _VERSION:
            message = f"the tables of the store have version {found.version}, this program needs "
            message += f"{_VERSION}: use the program that made them"
            raise PlanError(message)
        if found.digest != task:
            raise PlanError(self._foreign)
        if not self._mark.fits(found.identity, found.answer):
            raise PlanError(_OTHER)
        self._mark.note(found.identity, found.answer)

    @property
    def closed(self) -> bool:
        """Whether there is an answer, after which no report is accepted.

        Raises:
            StoreError: the store does not work.
        """
        with self._writing(writes=False) as connection:
            return connection.scalar(select(self._about.c.answer)) is not None

    def check_writes(self) -> None:
        """Write what a report takes, and remove it in the same transaction.

        A full disk may still have room for less.

        Raises:
            StoreError: the store does not work.
        """
        table, row = self._sample()
        (key,) = table.primary_key
        with self._alone() as (connection, _):
            connection.execute(insert(table), row)
            connection.execute(delete(table).where(key == row[key.name]))

    def _sample(self) -> tuple[Table, Mapping[str, Any]]:
        """Return a row that takes as much as a report does, and its table."""
        raise NotImplementedError

    def _answered(self, make: Callable[[Connection, Row[Any]], bytes]) -> bytes:
        """Return the answer; it is made if there is none, and on the disk then.

        Args:
            make: makes it of what is in the store. If it raises, nothing was changed.

        Raises:
            StoreError: the store does not work. It is not known whether there is an answer now; it
                has not left, and will be the one that does.
        """
        with self._alone() as (connection, task):
            answer: bytes | None = task.answer
            if answer is None:
                answer = make(connection, task)
                connection.execute(update(self._about).values(answer=answer))
        self._mark.note(task.identity, answer)
        return answer

    def end(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _alone(self) -> Iterator[tuple[Connection, Row[Any]]]:
        """Open an exclusive write transaction, with the store's record of its task."""
        with self._writing() as connection:
            found = connection.execute(select(self._about).with_for_update()).one_or_none()
            if found is None or not self._mark.fits(found.identity, found.answer):
                message = "another store, or an older copy, is in the place of the one that was "
                message += "opened, so nothing is taken or released: put it back"
                raise StoreError(message)
            yield connection, found

    @staticmethod
    def _known(
        connection: Connection, reports: Table, names: Sequence[bytes], digests: Sequence[bytes]
    ) -> tuple[dict[bytes, bytes], set[bytes]]:
        """Return the stored digests of these ids, and which of these digests are stored at all."""
        columns = reports.c
        named = select(columns.name, columns.ciphertexts).where(columns.name.in_(names))
        same = select(columns.ciphertexts).where(columns.ciphertexts.in_(digests))
        held = dict[bytes, bytes](connection.execute(named).all())
        return held, set(connection.scalars(same))

    @contextmanager
    def _writing(self, *, writes: bool = True) -> Iterator[Connection]:
        """Run one transaction; a database error becomes an error of one line."""
        try:
            with self._engine.execution_options(writes=writes).begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise database_error(error) from None


_GONE: Final = f"the store of this task is not there any more: {REMEDY}"
_OTHER: Final = (
    "the store is another one than this task had, or an older copy without the answer that "
    f"was given: {REMEDY}"
)

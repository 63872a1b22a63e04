"""Ledger and published answers, in SQLite or PostgreSQL.

A release and its line of the ledger are written together or not at all: no number is unpaid, even
after a crash. Everything in here is public: no state, and no id of a user.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Table, delete, insert, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from panprivacy.errors import BudgetError, PanPrivacyError
from panprivacy.service.outgoing.databases import checked, create_file, writing_engine
from panprivacy.service.outgoing.reader import ReleaseReader
from panprivacy.service.outgoing.records import (
    Announcement,
    Entry,
    Promised,
    Published,
    SketchRow,
    StoreError,
)
from panprivacy.service.outgoing.tables import (
    ANNOUNCEMENTS,
    ANSWERS,
    LEDGER,
    PROMISES,
    SCHEMA,
    SKETCHES,
    create_tables,
)

_PROBE: Final = bytes(8_192)
"""More data than a page of SQLite, so that a full disk is noticed."""
_REPLACED: Final = "another release store is in the place of the one that was opened: put it back"

_Record = Announcement | Entry | Promised | Published | SketchRow


class ReleaseStore(ReleaseReader):
    """The ledger and the answers, in a file of SQLite or in a database of PostgreSQL.

    >>> store = ReleaseStore("sqlite:////var/lib/panprivacy/releases.db")  # doctest: +SKIP

    Guarantee: data that `spend` and `settle` wrote is on the disk when they return, no line is
    spent twice, and no answer is published without its line. A server of PostgreSQL provides that
    with fsync on, as it is by default. [tests/service/test_store.py]

    Threads may share a store. It reads like a `ReleaseReader`. It creates missing tables, with
    names that begin with `panprivacy_`. A new file of SQLite can be read only by its owner.

    Args:
        url: `sqlite:////folder/file` or `postgresql+psycopg://user:password@host/database`.

    Raises:
        PlanError: the URL is none of these, the database cannot be opened, or its tables are of
            another version. No message shows the password.
    """

    __slots__ = ("_file", "_identity", "_is_new")

    def __init__(self, url: str) -> None:
        self._identity, self._is_new = "", False
        engine, self._file = writing_engine(checked(url))
        self._open(engine, self._create, "write")

    @property
    def identity(self) -> bytes:
        """A random number that is unique to this store."""
        return bytes.fromhex(self._identity)

    @property
    def is_new(self) -> bool:
        """Whether its tables did not exist before it was opened."""
        return self._is_new

    def spend(self, entries: Sequence[Entry], promise: Promised | None = None) -> None:
        """Write lines of the ledger, all or none; they are durable when this returns.

        Args:
            entries: the lines to be paid, before anything is released.
            promise: the promise to the users of the window, with its first line; None with later
                ones.

        Raises:
            BudgetError: a line of the same stream, start and number exists; nothing was spent.
            StoreError: the database failed. It is unknown whether they were spent; `released` shows
                it.
            InputError: a time without a time zone; nothing was spent.
        """
        message = "a release is paid for once, and one of these is in the ledger; nothing was spent"
        promises = [] if promise is None else [promise]
        self._insert(BudgetError(message), (LEDGER, entries), (PROMISES, promises))

    def announce(self, line: Announcement) -> None:
        """Write an announced intrusion; it is durable when this returns.

        Args:
            line: the announcement; it takes effect after that.

        Raises:
            StoreError: the database failed, or another service wrote that line first. It is unknown
                whether the line is there; `announcement` shows it.
            InputError: a time without a time zone; nothing was written.
        """
        message = "another service with this release store has announced one as well; come again"
        self._insert(StoreError(message), (ANNOUNCEMENTS, [line]))

    def publish(self, answers: Sequence[Published]) -> None:
        """Write answers, all or none.

        Args:
            answers: answers of releases that were spent.

        Raises:
            PanPrivacyError: one has no line in the ledger, or was published before; nothing was
                published.
            StoreError: the database failed. Publishing them again is harmless.
            InputError: a time without a time zone; nothing was published.
        """
        message = "an answer is published once, and after it was spent; nothing was published"
        self._insert(PanPrivacyError(message), (ANSWERS, answers))

    def settle(
        self,
        entries: Sequence[Entry],
        answers: Sequence[Published],
        promise: Promised | None = None,
        sketches: Sequence[SketchRow] = (),
    ) -> bool:
        """Write the lines of one release and its answers in one transaction, unless they are there.

        Call it again with the same payer after an error: committed lines are not written again.

        Args:
            entries: the lines of the release, of one payer; its own line is the last.
            answers: the answers of the release; empty if they follow in another call.
            promise: see `spend`.
            sketches: the tables that it publishes, with its answers.

        Returns:
            Whether the line of the ledger is of this payer. If not, nothing was written.

        Raises:
            PanPrivacyError: a constraint forbids an answer; nothing was written.
            StoreError: the database failed. It is unknown whether everything or nothing was
                written.
            InputError: a time without a time zone; nothing was written.
        """
        promises = [] if promise is None else [promise]
        paid: list[tuple[Table, Sequence[_Record]]] = [(LEDGER, entries), (PROMISES, promises)]
        told: list[tuple[Table, Sequence[_Record]]] = [(ANSWERS, answers), (SKETCHES, sketches)]
        try:
            return self._settle(entries[-1], paid, told)
        except IntegrityError:  # another process wrote the line in between
            pass
        try:
            return self._settle(entries[-1], paid, told)
        except IntegrityError:
            message = "two answers of a release have one name, or no line; nothing was written"
            raise PanPrivacyError(message) from None

    def _settle(
        self,
        line: Entry,
        paid: Sequence[tuple[Table, Sequence[_Record]]],
        told: Sequence[tuple[Table, Sequence[_Record]]],
    ) -> bool:
        with self._writing() as connection:
            payer = connection.scalar(select(LEDGER.c.payer).where(*_of(line, LEDGER.c)))
            if payer is None:
                _write(connection, *paid)
            elif payer != line.payer:
                return False
            there = select(ANSWERS.c.id).where(*_of(line, ANSWERS.c)).limit(1)
            if connection.scalar(there) is None:
                _write(connection, *told)
            return True

    def discard_sketches(self, stream: str, before: datetime) -> None:
        """Delete the published tables of a stream whose window ended before a moment.

        Raises:
            StoreError: the database failed; call it again.
        """
        old = SKETCHES.c.stream == stream, SKETCHES.c.end < before
        with self._writing() as connection:
            if connection.scalar(select(SKETCHES.c.id).where(*old).limit(1)) is not None:
                connection.execute(delete(SKETCHES).where(*old))

    def check_file(self) -> None:
        """Check that a file of SQLite is still there, without waiting.

        Raises:
            StoreError: it was deleted, cut short or replaced.
        """
        if self._file is not None:
            self._file.check()

    def check(self) -> None:
        """Write to the disk and undo it at once; a healthy store takes milliseconds.

        Raises:
            StoreError: the store cannot be written to now.
        """
        with self._transaction(writes=True) as connection:
            connection.execute(update(SCHEMA).values(probe=_PROBE))
            connection.execute(update(SCHEMA).values(probe=None))

    def _create(self) -> None:
        create_file(self._engine.url)
        with self._transaction(writes=True) as connection:
            self._is_new = create_tables(connection)
            self._identity = str(connection.scalar(select(SCHEMA.c.identity)))

    def _insert(self, refusal: PanPrivacyError, *written: tuple[Table, Sequence[_Record]]) -> None:
        """Insert all records or none; raise `refusal` if a constraint forbids one."""
        if not any(records for _, records in written):
            return
        try:
            with self._writing() as connection:
                _write(connection, *written)
        except IntegrityError:
            raise refusal from None

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Open a transaction that writes, only in the store that was opened."""
        with self._transaction(writes=True) as connection:
            if connection.scalar(select(SCHEMA.c.identity)) != self._identity:
                raise StoreError(_REPLACED)
            yield connection


def _of(line: Entry, columns: Any) -> tuple[Any, ...]:
    """Return the conditions that a row is of the release of a line."""
    return (
        columns.stream == line.stream, columns.start == line.start, columns.number == line.number
    )  # fmt: skip


def _write(connection: Connection, *written: tuple[Table, Sequence[_Record]]) -> None:
    """Insert records."""
    for table, records in written:
        rows = [
            {one.name: getattr(record, one.name) for one in fields(record)} for record in records
        ]
        if rows:
            connection.execute(insert(table), rows)

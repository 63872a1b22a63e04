"""What was spent and what was published, in SQLite or PostgreSQL.

The ledger is durable before a number leaves: who crashes between the two loses the release, never
the budget. Everything in here is public: no state, and no id of a user.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, TypeVar

from sqlalchemy import Select, Table, func, insert, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from panprivacy.errors import BudgetError, InputError, PanPrivacyError, PlanError
from panprivacy.service.outgoing.databases import checked, create_file, open_engine, shown, told
from panprivacy.service.outgoing.records import Entry, Published, StoreError
from panprivacy.service.outgoing.tables import ANSWERS, ASKED, LEDGER, SCHEMA, create_tables

_PROBE: Final = bytes(8_192)
"""More than fits on a page of SQLite, so that a full disk is noticed."""

R = TypeVar("R", Entry, Published)


class ReleaseStore:
    """The ledger and the answers, in a file of SQLite or in a database of PostgreSQL.

    >>> store = ReleaseStore("sqlite:////var/lib/panprivacy/releases.db")  # doctest: +SKIP

    Guarantee: what `spend` wrote is on the disk when it returns, no line is spent twice, and no
    answer is published without its line. A server of PostgreSQL keeps that promise with fsync on,
    as it is by default. [tests/service/test_store.py]

    Threads may share a store. It creates its tables, whose names begin with `panprivacy_`, where
    there are none. A new file of SQLite can be read by its owner alone.

    Args:
        url: `sqlite:////folder/file` or `postgresql+psycopg://user:password@host/database`.

    Raises:
        PlanError: the URL is none of these, the database cannot be opened, or its tables are of
            another version. No message shows the password.
    """

    __slots__ = ("_engine",)

    def __init__(self, url: str) -> None:
        self._engine = open_engine(checked(url))
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def spend(self, entries: Sequence[Entry]) -> None:
        """Write lines of the ledger, all or none; they are durable when this returns.

        Args:
            entries: what is paid for, before it is released.

        Raises:
            BudgetError: a line of the same stream, start and number is there; nothing was spent.
            StoreError: the database failed. Whether they were spent is not known; `released` tells.
            InputError: a time without a time zone; nothing was spent.
        """
        message = "a release is paid for once, and one of these is in the ledger; nothing was spent"
        self._insert(LEDGER, entries, BudgetError(message))

    def publish(self, answers: Sequence[Published]) -> None:
        """Write answers, all or none.

        Args:
            answers: of releases that were spent.

        Raises:
            PanPrivacyError: one has no line in the ledger, or was published before; nothing was
                published.
            StoreError: the database failed. Publishing them again does no harm.
            InputError: a time without a time zone; nothing was published.
        """
        message = "an answer is published once, and after it was spent; nothing was published"
        self._insert(ANSWERS, answers, PanPrivacyError(message))

    def released(self, stream: str, start: datetime) -> int:
        """How many releases of a window were spent: the highest number, 0 if there is none."""
        highest = select(func.max(LEDGER.c.number)).where(
            LEDGER.c.stream == stream, LEDGER.c.start == start
        )
        with self._transaction() as connection:
            return connection.scalar(highest) or 0

    def starts(self, stream: str, end: datetime) -> set[datetime]:
        """When the windows began that are in the ledger and end at some moment."""
        began = select(LEDGER.c.start).where(LEDGER.c.stream == stream, LEDGER.c.end == end)
        with self._transaction() as connection:
            return set(connection.scalars(began))

    def payer(self, stream: str, start: datetime, number: int) -> str | None:
        """Who wrote a line of the ledger; None if it is not there."""
        written = select(LEDGER.c.payer).where(
            LEDGER.c.stream == stream, LEDGER.c.start == start, LEDGER.c.number == number
        )
        with self._transaction() as connection:
            return connection.scalar(written)

    def answers(
        self,
        *,
        stream: str | None = None,
        since: datetime | None = None,
        before: datetime | None = None,
        limit: int = 1_000,
    ) -> list[Published]:
        """The newest answers, oldest first.

        What was published at one moment is not cut in two, even if that makes more than `limit`.
        The page before this one therefore begins `before=page[0].released`, with nothing twice and
        nothing left out; `since=page[-1].released` gives that last moment again and what followed.

        Args:
            stream: of one stream; None for all.
            since: published at this moment or later.
            before: published before this moment.
            limit: so many answers, and those published at the same moment as the oldest of them.

        Raises:
            StoreError: the database failed.
            InputError: a limit below 1, or a time without a time zone.
        """
        if limit < 1:
            message = "limit must be 1 or more answers"
            raise InputError(message)
        moment = ANSWERS.c.released
        asked = []
        if stream is not None:
            asked.append(ANSWERS.c.stream == stream)
        if since is not None:
            asked.append(moment >= since)
        if before is not None:
            asked.append(moment < before)
        newest = select(moment).where(*asked).order_by(moment.desc()).limit(limit).subquery()
        oldest = select(func.min(newest.c.released)).scalar_subquery()
        ordered = _all(ANSWERS, Published).where(*asked, moment >= oldest)
        return self._read(ordered.order_by(moment, ANSWERS.c.id), Published)

    def latest(self) -> list[Published]:
        """The newest answer to each question: of each stream, statistic, group, kind and state.

        Raises:
            StoreError: the database failed.
        """
        newest = select(func.max(ANSWERS.c.id)).group_by(*ASKED)
        rows = _all(ANSWERS, Published).where(ANSWERS.c.id.in_(newest))
        return self._read(rows.order_by(ANSWERS.c.id), Published)

    def ledger(self, stream: str | None = None) -> list[Entry]:
        """What was spent, by stream, window and number.

        Args:
            stream: of one stream; None for all.

        Raises:
            StoreError: the database failed.
        """
        lines = _all(LEDGER, Entry).order_by(*LEDGER.primary_key)
        return self._read(
            lines if stream is None else lines.where(LEDGER.c.stream == stream), Entry
        )

    def check(self) -> None:
        """Write to the disk and take it back at once; a healthy store does it in milliseconds.

        Raises:
            StoreError: the store cannot be written to now.
        """
        with self._transaction(writes=True) as connection:
            connection.execute(update(SCHEMA).values(probe=_PROBE))
            connection.execute(update(SCHEMA).values(probe=None))

    def close(self) -> None:
        """Close all connections, when no thread uses the store any more."""
        self._engine.dispose()

    def _open(self) -> None:
        try:
            create_file(self._engine.url)
            with self._transaction(writes=True) as connection:
                create_tables(connection)
        except OSError as error:
            reason = error.strerror
        except StoreError as error:
            reason = str(error)
        else:
            return
        message = f"{shown(self._engine.url)} cannot be opened: {reason}; "
        message += "mend the URL, or what it names: folder or server, and who may write there"
        raise PlanError(message)

    def _insert(self, table: Table, records: Sequence[R], refusal: PanPrivacyError) -> None:
        """Insert all records or none; a refusal says that a constraint forbids one."""
        if not records:
            return
        rows = [_row(record) for record in records]
        try:
            with self._transaction(writes=True) as connection:
                connection.execute(insert(table), rows)
        except IntegrityError:
            raise refusal from None

    def _read(self, rows: Select[Any], record: type[R]) -> list[R]:
        with self._transaction() as connection:
            return [record(*row) for row in connection.execute(rows)]

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[Connection]:
        """A transaction; what fails in it is told without the statement and its parameters."""
        try:
            with self._engine.execution_options(writes=writes).begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise told(error) from None


def _row(record: Entry | Published) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _all(table: Table, record: type[R]) -> Select[Any]:
    """Every row, its columns in the order of the fields."""
    return select(*(table.c[field.name] for field in fields(record)))

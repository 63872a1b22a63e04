"""Read-only access to published answers and the ledger, for programs such as a dashboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, Final, TypeVar

from sqlalchemy import Column, ColumnElement, Select, Table, case, func, or_, select
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from panprivacy.errors import InputError, PlanError
from panprivacy.privacy.guarantee import Guarantee, PrivacyLoss
from panprivacy.service.outgoing.databases import (
    checked,
    database_error,
    file_fault,
    read_only_engine,
    sanitised,
)
from panprivacy.service.outgoing.records import (
    Announcement,
    Begun,
    Entry,
    ListedSketch,
    Page,
    Published,
    StoreError,
)
from panprivacy.service.outgoing.tables import (
    ANNOUNCEMENTS,
    ANSWERS,
    ASKED,
    LEDGER,
    PROMISES,
    SKETCHES,
    check_tables,
)

_PAGE_ROWS: Final = 1_000

R = TypeVar("R", Announcement, Entry, ListedSketch, Published)


class ReleaseReader:
    """Reader of the ledger and the answers, beside the service that writes them.

    >>> reader = ReleaseReader("sqlite:////var/lib/panprivacy/releases.db")  # doctest: +SKIP

    Guarantee: it changes nothing. It creates no file and no table, and the database refuses every
    write. Data that a service has committed is there at the next call.
    [tests/service/test_store.py]

    Threads may share a reader. It needs the right to read the file of SQLite and those beside it
    that end in -wal and -shm, which inherit the rights of the file; or `SELECT` on the tables.

    Args:
        url: `sqlite:////folder/file` or `postgresql+psycopg://user:password@host/database`.

    Raises:
        PlanError: the URL is none of these, the database cannot be opened, or its tables are
            missing or of another version. No message shows the password.
    """

    __slots__ = ("_engine",)

    def __init__(self, url: str) -> None:
        self._open(read_only_engine(checked(url)), self._check, "read")

    def released(self, stream: str, start: datetime) -> int:
        """Return the highest number of a spent release of a window; 0 if there is none."""
        lines = LEDGER.c
        return self._highest(lines.number, lines.stream == stream, lines.start == start)

    def released_since(self, stream: str, start: datetime) -> int:
        """Return the highest release number of all windows since `start`; 0 if there is none."""
        lines = LEDGER.c
        return self._highest(lines.number, lines.stream == stream, lines.start >= start)

    def announced(self, stream: str, start: datetime) -> int:
        """Return the highest number of an intrusion announced to a window; 0 if there is none."""
        lines = ANNOUNCEMENTS.c
        return self._highest(lines.number, lines.stream == stream, lines.start == start)

    def announced_since(self, stream: str, start: datetime) -> int:
        """Return the highest number of an intrusion announced since `start`; 0 if there is none."""
        lines = ANNOUNCEMENTS.c
        return self._highest(lines.number, lines.stream == stream, lines.start >= start)

    def seen_since(self, stream: str, start: datetime) -> set[datetime]:
        """Return the starts of the windows since `start` with an announced look at the state."""
        lines = ANNOUNCEMENTS.c
        began = select(lines.start).where(lines.stream == stream, lines.start >= start)
        with self._transaction() as connection:
            return set(connection.scalars(began))

    def announcement(self, stream: str, key: str) -> Announcement | None:
        """Return the announced intrusion of a key; None if there is none."""
        lines = ANNOUNCEMENTS.c
        found = _all(ANNOUNCEMENTS, Announcement).where(lines.stream == stream, lines.key == key)
        return next(iter(self._read(found, Announcement)), None)

    def starts(self, stream: str, end: datetime) -> set[datetime]:
        """Return the starts of the windows in the ledger that end at `end`."""
        began = select(LEDGER.c.start).where(LEDGER.c.stream == stream, LEDGER.c.end == end)
        with self._transaction() as connection:
            return set(connection.scalars(began))

    def unused_from(self, stream: str) -> datetime | None:
        """The first moment after the windows that have a line; None if none has.

        That is the end of the last answer of the last one, and in any case after its start.
        """
        lines, rows = LEDGER.c, ANSWERS.c
        with self._transaction() as connection:
            last = connection.scalar(select(func.max(lines.start)).where(lines.stream == stream))
            if last is None:
                return None
            of_it = rows.stream == stream, rows.start == last
            ended = connection.scalar(select(func.max(rows.end)).where(*of_it))
        return max(last + timedelta(microseconds=1), ended or last)

    def answered(self, stream: str, start: datetime, end: datetime) -> bool:
        """Return whether a window has an answer of its end."""
        found = select(ANSWERS.c.id).where(
            ANSWERS.c.stream == stream, ANSWERS.c.start == start, ANSWERS.c.end == end
        )
        with self._transaction() as connection:
            return connection.scalar(found.limit(1)) is not None

    def has_answers(self, stream: str, start: datetime, number: int) -> bool:
        """Return whether a release has answers."""
        found = select(ANSWERS.c.id).where(
            ANSWERS.c.stream == stream, ANSWERS.c.start == start, ANSWERS.c.number == number
        )
        with self._transaction() as connection:
            return connection.scalar(found.limit(1)) is not None

    def payer(self, stream: str, start: datetime, number: int) -> str | None:
        """Return the payer of a line of the ledger; None if there is no such line."""
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
        """Return the newest answers, oldest first.

        Answers of one moment are not separated, even if that makes more than `limit`. The page
        before this one therefore begins `before=page[0].released`, with nothing twice and nothing
        missing; `since=page[-1].released` returns that last moment again and later answers.

        Args:
            stream: only answers of this stream; None for all.
            since: published at this moment or later.
            before: published before this moment.
            limit: number of answers, plus those published at the same moment as the oldest of them.

        Raises:
            StoreError: the database failed.
            InputError: a limit below 1, or a time without a time zone.
        """
        if limit < 1:
            message = "limit must be 1 or more answers"
            raise InputError(message)
        moment, asked = ANSWERS.c.released, _conditions(ANSWERS, stream, since, before)
        oldest = _oldest(asked, limit).scalar_subquery()
        ordered = _all(ANSWERS, Published).where(*asked, moment >= oldest)
        return self._read(ordered.order_by(moment, ANSWERS.c.id), Published)

    def pages(
        self,
        *,
        stream: str | None = None,
        since: datetime | None = None,
        before: datetime | None = None,
        limit: int = 1_000,
    ) -> Iterator[Page]:
        """Yield the answers that `answers` returns when this is started, 1,000 at a time.

        No transaction is open between two pages, so that a slow reader holds up no other.

        Args:
            stream: see `answers`, as the others.
            since: see `answers`.
            before: see `answers`.
            limit: see `answers`; 1 or more.

        Returns:
            At least one page; the last one may be empty.

        Raises:
            StoreError: the database failed.
        """
        moment, number = ANSWERS.c.released, ANSWERS.c.id
        asked = _conditions(ANSWERS, stream, since, before)
        with self._transaction() as connection:
            reached, last = connection.scalar(_oldest(asked, limit)), 0
            newest = connection.scalar(select(func.max(number))) or 0
        is_last = False
        while not is_last:
            rows: list[Any] = []
            if reached is not None:
                after = (moment >= reached, or_(moment > reached, number > last), number <= newest)
                found = select(number, *_columns(ANSWERS, Published)).where(*asked, *after)
                with self._transaction() as connection:
                    rows.extend(
                        connection.execute(found.order_by(moment, number).limit(_PAGE_ROWS + 1))
                    )
            is_last = len(rows) <= _PAGE_ROWS
            del rows[_PAGE_ROWS:]
            if rows:
                reached, last = rows[-1].released, rows[-1].id
            yield Page([Published(*row[1:]) for row in rows], is_last)

    def latest(self) -> list[Published]:
        """Return the newest answer to each question: of each stream, statistic, question and group.

        Raises:
            StoreError: the database failed.
        """
        newest = select(func.max(ANSWERS.c.id)).group_by(*ASKED)
        rows = _all(ANSWERS, Published).where(ANSWERS.c.id.in_(newest))
        return self._read(rows.order_by(ANSWERS.c.id), Published)

    def sketches(
        self,
        *,
        stream: str | None = None,
        since: datetime | None = None,
        before: datetime | None = None,
        of: tuple[str, str | None] | None = None,
        limit: int = 1_000,
    ) -> list[ListedSketch]:
        """Return the newest published tables without their bytes, oldest first.

        Args:
            stream: only tables of this stream; None for all.
            since: published at this moment or later.
            before: published before this moment.
            of: only of this statistic and group; None for all.
            limit: maximum number of tables; 1 or more.

        Raises:
            StoreError: the database failed.
            InputError: a time without a time zone.
        """
        table = SKETCHES.c
        newest = _all(SKETCHES, ListedSketch).order_by(table.id.desc()).limit(limit)
        newest = newest.where(*_conditions(SKETCHES, stream, since, before))
        if of is not None:
            newest = newest.where(table.statistic == of[0], table.group.is_not_distinct_from(of[1]))
        return self._read(newest, ListedSketch)[::-1]

    def sketch(self, stream: str, number: int) -> bytes | None:
        """Return the bytes of a published table by its number in the store; None if it is gone.

        Args:
            stream: name of its stream.
            number: of the table, as `sketches` lists it.

        Raises:
            StoreError: the database failed.
        """
        wanted = SKETCHES.c.id == number, SKETCHES.c.stream == stream
        with self._transaction() as connection:
            return connection.scalar(select(SKETCHES.c.sketch).where(*wanted))

    def ledger(self, stream: str | None = None, since: datetime | None = None) -> list[Entry]:
        """Return the ledger, by stream, window and number.

        Args:
            stream: only lines of this stream; None for all.
            since: only windows that began at this moment or later; None for all.

        Raises:
            StoreError: the database failed.
        """
        lines = _all(LEDGER, Entry).order_by(*LEDGER.primary_key)
        if stream is not None:
            lines = lines.where(LEDGER.c.stream == stream)
        if since is not None:
            lines = lines.where(LEDGER.c.start >= since)
        return self._read(lines, Entry)

    def begun(self, stream: str, since: datetime) -> list[Begun]:
        """Return windows that began at `since` or later, grouped by equal promises.

        Raises:
            StoreError: the database failed.
        """
        promise, line = PROMISES.c, ANNOUNCEMENTS.c
        seen = select(line.start).where(line.stream == stream, line.start >= since)
        is_seen = func.sum(case((promise.start.in_(seen), 1), else_=0))
        same = promise.epsilon, promise.delta, promise.unseen
        each = (
            select(func.count(), is_seen, *same)
            .where(promise.stream == stream, promise.start >= since)
            .group_by(*same)
        )
        with self._transaction() as connection:
            return [
                Begun(windows, looks, Guarantee(epsilon, delta=delta, unseen=unseen))
                for windows, looks, epsilon, delta, unseen in connection.execute(each)
            ] + _without_promise(connection, stream, since)

    def close(self) -> None:
        """Close all connections, once no thread uses the store any more."""
        self._engine.dispose()

    def _open(self, engine: Engine, prepare: Callable[[], None], act: str) -> None:
        """Set the engine; close it if the database cannot be used.

        Args:
            engine: the engine of the database.
            prepare: checks or creates the tables, or raises.
            act: the right that the caller needs.
        """
        self._engine = engine
        try:
            prepare()
        except OSError as error:
            reason = error.strerror or type(error).__name__
        except StoreError as error:
            reason = str(error)
        except BaseException:
            self.close()
            raise
        else:
            return
        self.close()
        fault = file_fault(engine.url) if act == "read" else None
        if isinstance(fault, PermissionError):  # SQLite does not say so
            reason = "permission denied; let this user read the file, and enter its folder"
        elif isinstance(fault, FileNotFoundError):
            reason += "; `panprivacy serve` makes it, so start it first, or mend the URL"
        else:
            reason += f"; mend the URL, or what it names: folder or server, and who may {act} there"
        message = f"{sanitised(engine.url)} cannot be opened: {reason}"
        raise PlanError(message)

    def _check(self) -> None:
        with self._transaction() as connection:
            check_tables(connection)

    def _highest(self, number: Column[int], *wanted: ColumnElement[bool]) -> int:
        """Return the highest number of the matching lines; 0 if there is none."""
        with self._transaction() as connection:
            return connection.scalar(select(func.max(number)).where(*wanted)) or 0

    def _read(self, rows: Select[Any], record: type[R]) -> list[R]:
        with self._transaction() as connection:
            return [record(*row) for row in connection.execute(rows)]

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[Connection]:
        """Open a transaction; its errors do not show the statement and its parameters."""
        try:
            with self._engine.execution_options(writes=writes).begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise database_error(error) from None


def _all(table: Table, record: type[R]) -> Select[Any]:
    """Select every row, with columns in the order of the fields."""
    return select(*_columns(table, record))


def _columns(table: Table, record: type[R]) -> list[Column[Any]]:
    """Return the columns of a record, in the order of its fields."""
    return [table.c[field.name] for field in fields(record)]


def _conditions(
    table: Table, stream: str | None, since: datetime | None, before: datetime | None
) -> list[ColumnElement[bool]]:
    """Return the conditions for what a stream published between two moments."""
    asked: list[ColumnElement[bool]] = []
    if stream is not None:
        asked.append(table.c.stream == stream)
    if since is not None:
        asked.append(table.c.released >= since)
    if before is not None:
        asked.append(table.c.released < before)
    return asked


def _oldest(asked: Sequence[ColumnElement[bool]], limit: int) -> Select[tuple[datetime]]:
    """Select the moment of the oldest of the newest answers."""
    moment = ANSWERS.c.released
    newest = select(moment).where(*asked).order_by(moment.desc()).limit(limit).subquery()
    return select(func.min(newest.c.released))


def _without_promise(connection: Connection, stream: str, since: datetime) -> list[Begun]:
    """Return windows without a promise in the ledger: each loses everything it paid for."""
    line, promise = LEDGER.c, PROMISES.c
    promised = select(promise.start).where(promise.stream == stream, promise.start >= since)
    paid = select(line.start, line.epsilon).where(
        line.stream == stream, line.start >= since, line.start.not_in(promised)
    )
    spent: dict[datetime, PrivacyLoss] = {}
    for start, epsilon in connection.execute(paid):
        spent[start] = spent.get(start, PrivacyLoss(Fraction(0))) + PrivacyLoss(epsilon)
    return [Begun(1, 0, Guarantee(each.epsilon)) for each in spent.values()]

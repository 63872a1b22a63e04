"""What was spent and what was published, in SQLite or PostgreSQL.

The ledger is durable before a number leaves: who crashes between the two loses the release, never
the budget. Everything in here is public: no state, and no id of a user.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from sqlite3 import Connection as SQLiteConnection
from sqlite3 import OperationalError
from typing import Any, Final, TypeVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    create_engine,
    event,
    func,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, SQLAlchemyError, StatementError
from sqlalchemy.types import TypeDecorator

from panprivacy.errors import BudgetError, InputError, PanPrivacyError, PlanError

_VERSION: Final = 1
"""Of the tables; whoever changes them counts on."""
_DRIVERS: Final = {"sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg"}
_SQLITE_PATIENCE: Final = {"timeout": 10}
"""So many seconds a statement waits while another program writes."""
_SERVER_PATIENCE: Final = {"connect_timeout": 10, "tcp_user_timeout": 10_000}
"""So long PostgreSQL may not answer, in seconds and in milliseconds."""
_PROBE: Final = bytes(8_192)
"""More than fits on a page of SQLite, so that a full disk is noticed."""
_CREATING: Final = 0x70616E70
"""The advisory lock under which one process at a time creates tables on PostgreSQL."""
_BEGIN: Final = {
    # the driver begins on its own, but not before tables are created, and without the lock that
    # a second program then waits for
    ("sqlite", True): "BEGIN IMMEDIATE",
    # a server or role may be set to acknowledge commits that are not on the disk
    ("postgresql", True): "SET LOCAL synchronous_commit TO on",
}

R = TypeVar("R", "Entry", "Published")


class StoreError(PanPrivacyError):
    """The database cannot be used now, as when its disk is full or its server is gone.

    The store works again when the database does. Where this comes out of `spend`, the entries may
    be in the ledger or not; nothing of theirs may be published.
    """


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger: a state or a release that was paid for.

    Args:
        stream: name of the stream.
        start: when the count of the window began, in UTC.
        end: when the window ends; None if the stream is not cut by a clock.
        number: 0 for the state itself, k for the k-th release of the window.
        epsilon: what this line costs, in nats.
        payer: a random text by which whoever wrote the line knows it again.
    """

    stream: str
    start: datetime
    end: datetime | None
    number: int
    epsilon: Fraction
    payer: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """One answer of a release, as everyone may read it.

    Args:
        stream: name of the stream.
        start: when the count of the window began, in UTC.
        end: when the counting that is released ended; None if no clock cuts the stream.
        complete: whether a whole window was counted.
        number: of the release within its window, from 1.
        statistic: name of the statistic.
        group: of which users; None for all.
        kind: what is asked of an incidence count, as "exactly"; None for other statistics.
        state: the number that belongs to the kind.
        value: the answer; None if it is lost, and then so are both ends.
        low: lower end of the interval.
        high: upper end of the interval; it may be infinite.
        confidence: of the interval.
        epsilon: the loss of a user, in nats.
        released: when it was published, in UTC.
    """

    stream: str
    start: datetime
    end: datetime | None
    complete: bool
    number: int
    statistic: str
    group: str | None
    kind: str | None
    state: int | None
    value: float | None
    low: float | None
    high: float | None
    confidence: float
    epsilon: float
    released: datetime


class _Moment(TypeDecorator[datetime]):
    """A moment in UTC to the microsecond; SQLite keeps it as text without a zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is not None and value.tzinfo is None:
            message = "a time needs a time zone, as in 2026-01-31T12:00:00Z"
            raise InputError(message)
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        aware = value and (value if value.tzinfo else value.replace(tzinfo=UTC))
        return aware and aware.astimezone(UTC)


class _Exact(TypeDecorator[Fraction]):
    """A fraction as text, like 1/3."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Fraction | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Fraction | None:  # noqa: ARG002
        return None if value is None else Fraction(value)


_TABLES: Final = MetaData()
_SCHEMA: Final = Table(
    "panprivacy_schema",
    _TABLES,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("probe", LargeBinary),
)
_LEDGER: Final = Table(
    "panprivacy_ledger",
    _TABLES,
    Column("stream", Text, primary_key=True),
    Column("start", _Moment, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("end", _Moment),
    Column("epsilon", _Exact, nullable=False),
    Column("payer", Text, nullable=False),
)
_ANSWERS: Final = Table(
    "panprivacy_answers",
    _TABLES,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("stream", Text, nullable=False),
    Column("start", _Moment, nullable=False),
    Column("end", _Moment),
    Column("complete", Boolean, nullable=False),
    Column("number", Integer, nullable=False),
    Column("statistic", Text, nullable=False),
    Column("group", Text),
    Column("kind", Text),
    Column("state", BigInteger),
    Column("value", Double),
    Column("low", Double),
    Column("high", Double),
    Column("confidence", Double, nullable=False),
    Column("epsilon", Double, nullable=False),
    Column("released", _Moment, nullable=False),
    ForeignKeyConstraint(
        ["stream", "start", "number"],
        [_LEDGER.c.stream, _LEDGER.c.start, _LEDGER.c.number],
        name="panprivacy_answers_are_paid_for",
    ),
    CheckConstraint("number > 0", name="panprivacy_answers_are_of_releases"),
)
_ASKED: Final = [_ANSWERS.c[name] for name in ("stream", "statistic", "group", "kind", "state")]
Index(
    "panprivacy_answers_are_given_once",
    _ANSWERS.c.stream,
    _ANSWERS.c.start,
    _ANSWERS.c.number,
    _ANSWERS.c.statistic,
    # two NULLs count as different
    func.coalesce(_ANSWERS.c.group, ""),
    func.coalesce(_ANSWERS.c.kind, ""),
    func.coalesce(_ANSWERS.c.state, -1),
    unique=True,
)
Index("panprivacy_answers_by_question", *_ASKED, _ANSWERS.c.id)
Index("panprivacy_answers_by_time", _ANSWERS.c.released)
Index("panprivacy_answers_by_stream_and_time", _ANSWERS.c.stream, _ANSWERS.c.released)


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
        self._engine = _engine(_checked(url))
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
        self._insert(_LEDGER, entries, BudgetError(message))

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
        self._insert(_ANSWERS, answers, PanPrivacyError(message))

    def released(self, stream: str, start: datetime) -> int:
        """How many releases of a window were spent: the highest number, 0 if there is none."""
        highest = select(func.max(_LEDGER.c.number)).where(
            _LEDGER.c.stream == stream, _LEDGER.c.start == start
        )
        with self._transaction() as connection:
            return connection.scalar(highest) or 0

    def payer(self, stream: str, start: datetime, number: int) -> str | None:
        """Who wrote a line of the ledger; None if it is not there."""
        written = select(_LEDGER.c.payer).where(
            _LEDGER.c.stream == stream, _LEDGER.c.start == start, _LEDGER.c.number == number
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
        moment = _ANSWERS.c.released
        asked = []
        if stream is not None:
            asked.append(_ANSWERS.c.stream == stream)
        if since is not None:
            asked.append(moment >= since)
        if before is not None:
            asked.append(moment < before)
        newest = select(moment).where(*asked).order_by(moment.desc()).limit(limit).subquery()
        oldest = select(func.min(newest.c.released)).scalar_subquery()
        ordered = _all(_ANSWERS, Published).where(*asked, moment >= oldest)
        return self._read(ordered.order_by(moment, _ANSWERS.c.id), Published)

    def latest(self) -> list[Published]:
        """The newest answer to each question: of each stream, statistic, group, kind and state.

        Raises:
            StoreError: the database failed.
        """
        newest = select(func.max(_ANSWERS.c.id)).group_by(*_ASKED)
        rows = _all(_ANSWERS, Published).where(_ANSWERS.c.id.in_(newest))
        return self._read(rows.order_by(_ANSWERS.c.id), Published)

    def ledger(self, stream: str | None = None) -> list[Entry]:
        """What was spent, by stream, window and number.

        Args:
            stream: of one stream; None for all.

        Raises:
            StoreError: the database failed.
        """
        lines = _all(_LEDGER, Entry).order_by(*_LEDGER.primary_key)
        return self._read(
            lines if stream is None else lines.where(_LEDGER.c.stream == stream), Entry
        )

    def check(self) -> None:
        """Write to the disk and take it back at once; a healthy store does it in milliseconds.

        Raises:
            StoreError: the store cannot be written to now.
        """
        with self._transaction(writes=True) as connection:
            connection.execute(update(_SCHEMA).values(probe=_PROBE))
            connection.execute(update(_SCHEMA).values(probe=None))

    def close(self) -> None:
        """Close all connections, when no thread uses the store any more."""
        self._engine.dispose()

    def _open(self) -> None:
        try:
            _create_file(self._engine.url)
            with self._transaction(writes=True) as connection:
                _create_tables(connection)
        except OSError as error:
            reason = error.strerror
        except StoreError as error:
            reason = str(error)
        else:
            return
        message = f"{_shown(self._engine.url)} cannot be opened: {reason}; "
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
            raise _told(error) from None


def _told(error: SQLAlchemyError) -> PanPrivacyError:
    """One line about an error; further lines of a server may show values."""
    cause = error.orig if isinstance(error, StatementError) else error
    if isinstance(cause, PanPrivacyError):
        return cause
    line, *_ = str(cause).strip().splitlines() or [type(cause).__name__]
    return StoreError(f"the database fails: {line}")


def _row(record: Entry | Published) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _all(table: Table, record: type[R]) -> Select[Any]:
    """Every row, its columns in the order of the fields."""
    return select(*(table.c[field.name] for field in fields(record)))


def _checked(url: str) -> URL:
    """The parts of a URL; where they are not what they seem, they are not shown."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.drivername not in _DRIVERS:
        message = "the store must be sqlite:////folder/file or "
        message += "postgresql+psycopg://user:password@host/database"
        raise PlanError(message)
    if _is_sqlite(parsed):
        _check_path(parsed)
    elif url.count("@") > 1:
        message = "in the URL of the store, an @ of a user or password must be written %40"
        raise PlanError(message)
    return parsed


def _check_path(url: URL) -> None:
    """Raise `PlanError` if this is not the path of a file: what is in memory is not durable."""
    is_path = url.database and not url.database.startswith((":", "file:"))
    if not is_path or url.host or url.username or url.query:
        message = "a store of SQLite needs the path of a file alone: sqlite:////folder/file"
        raise PlanError(message)


def _is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _shown(url: URL) -> str:
    """The URL without anything that may be secret."""
    public = URL.create(url.drivername, host=url.host, port=url.port, database=url.database)
    return public.render_as_string()


def _engine(url: URL) -> Engine:
    patience = _SQLITE_PATIENCE if _is_sqlite(url) else _SERVER_PATIENCE
    arguments = {name: most for name, most in patience.items() if name not in url.query}
    try:
        engine = create_engine(
            url, connect_args=arguments, pool_pre_ping=True, hide_parameters=True
        )
    except ImportError:
        message = "PostgreSQL needs psycopg: pip install 'panprivacy[postgresql]'"
        raise PlanError(message) from None
    event.listen(engine, "begin", _begin)
    if _is_sqlite(url):
        event.listen(engine, "connect", _set_up)
    return engine


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    statement = _BEGIN.get((connection.dialect.name, writes))
    if statement:
        connection.exec_driver_sql(statement)


def _set_up(connection: SQLiteConnection, _record: object) -> None:
    """Let a commit of SQLite mean that it is on the disk, and a foreign key that it is checked."""
    try:
        with suppress(OperationalError):  # of two programs that set it at once, one does
            connection.execute("PRAGMA journal_mode=WAL").close()
        connection.execute("PRAGMA synchronous=FULL").close()
        connection.execute("PRAGMA foreign_keys=ON").close()
    except BaseException:
        connection.close()
        raise


def _create_file(url: URL) -> None:
    """Create a file of SQLite that its owner alone can read; SQLite's other files follow it."""
    if _is_sqlite(url):
        with suppress(FileExistsError):
            Path(str(url.database)).touch(mode=0o600, exist_ok=False)


def _create_tables(connection: Connection) -> None:
    """Create the tables, unless they are there.

    Raises:
        PlanError: they are there in another version.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_CREATING)))
    if inspect(connection).has_table(_SCHEMA.name):
        _check_version(connection.scalar(select(_SCHEMA.c.version)))
        return
    _TABLES.create_all(connection)
    connection.execute(insert(_SCHEMA).values(version=_VERSION))


def _check_version(found: int | None) -> None:
    if found != _VERSION:
        message = f"the tables of the store have version {found}, this program needs {_VERSION}: "
        message += "use the program that made them, or another database"
        raise PlanError(message)

"""The tables of the release store, and their version."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import Final

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
    Table,
    Text,
    UniqueConstraint,
    func,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.engine import Connection
from sqlalchemy.schema import CreateColumn
from sqlalchemy.types import TypeDecorator

from panprivacy.errors import InputError, PlanError
from panprivacy.privacy.coins import SystemCoins
from panprivacy.service.outgoing.databases import CREATING

_VERSION: Final = 6
"""Version of the tables; increment it with each change."""
_MEASURED: Final = 5
"""First version with these columns of answers; the first one with published tables is 6."""
_ADDED: Final = "estimate", "standard_error", "bias"
IDENTITY_BYTES: Final = 16
"""Size of the random number that identifies a store."""


class _Moment(TypeDecorator[datetime]):
    """Moment in UTC to the microsecond; SQLite stores it as text without a zone."""

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
    """Fraction stored as text, like 1/3."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Fraction | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Fraction | None:  # noqa: ARG002
        return None if value is None else Fraction(value)


_TABLES: Final = MetaData()
SCHEMA: Final = Table(
    "panprivacy_schema",
    _TABLES,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("identity", Text, nullable=False),
    Column("probe", LargeBinary),
)
LEDGER: Final = Table(
    "panprivacy_ledger",
    _TABLES,
    Column("stream", Text, primary_key=True),
    Column("start", _Moment, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("end", _Moment),
    Column("epsilon", _Exact, nullable=False),
    Column("payer", Text, nullable=False),
)
PROMISES: Final = Table(
    "panprivacy_promises",
    _TABLES,
    Column("stream", Text, primary_key=True),
    Column("start", _Moment, primary_key=True),
    Column("epsilon", _Exact, nullable=False),
    Column("delta", _Exact, nullable=False),
    Column("unseen", _Exact, nullable=False),
)
ANNOUNCEMENTS: Final = Table(
    "panprivacy_announcements",
    _TABLES,
    Column("stream", Text, primary_key=True),
    Column("start", _Moment, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
    Column("announced", _Moment, nullable=False),
    UniqueConstraint("stream", "key", name="panprivacy_announcements_are_made_once"),
)
ANSWERS: Final = Table(
    "panprivacy_answers",
    _TABLES,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("stream", Text, nullable=False),
    Column("start", _Moment, nullable=False),
    Column("end", _Moment),
    Column("complete", Boolean, nullable=False),
    Column("number", Integer, nullable=False),
    Column("statistic", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("argument", BigInteger),
    Column("arguments", Text, nullable=False),
    Column("group", Text),
    Column("value", Double),
    Column("low", Double),
    Column("high", Double),
    Column("estimate", Double),
    Column("standard_error", Double),
    Column("bias", Double),
    Column("confidence", Double, nullable=False),
    Column("epsilon", Double, nullable=False),
    Column("note", Text),
    Column("released", _Moment, nullable=False),
    ForeignKeyConstraint(
        ["stream", "start", "number"],
        [LEDGER.c.stream, LEDGER.c.start, LEDGER.c.number],
        name="panprivacy_answers_are_paid_for",
    ),
    CheckConstraint("number > 0", name="panprivacy_answers_are_of_releases"),
)
SKETCHES: Final = Table(
    "panprivacy_sketches",
    _TABLES,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("stream", Text, nullable=False),
    Column("start", _Moment, nullable=False),
    Column("end", _Moment, nullable=False),
    Column("complete", Boolean, nullable=False),
    Column("number", Integer, nullable=False),
    Column("statistic", Text, nullable=False),
    Column("group", Text),
    Column("released", _Moment, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sketch", LargeBinary, nullable=False),
    ForeignKeyConstraint(
        ["stream", "start", "number"],
        [LEDGER.c.stream, LEDGER.c.start, LEDGER.c.number],
        name="panprivacy_sketches_are_paid_for",
    ),
    CheckConstraint("number > 0", name="panprivacy_sketches_are_of_releases"),
    sqlite_autoincrement=True,  # the number of a table that was deleted is not given again
)
Index(
    "panprivacy_sketches_are_published_once",
    SKETCHES.c.stream,
    SKETCHES.c.start,
    SKETCHES.c.number,
    SKETCHES.c.statistic,
    func.coalesce(SKETCHES.c.group, ""),
    unique=True,
)
Index("panprivacy_sketches_by_time", SKETCHES.c.stream, SKETCHES.c.end)
ASKED: Final = [
    ANSWERS.c[name] for name in ("stream", "statistic", "question", "arguments", "group")
]
Index(
    "panprivacy_answers_are_given_once",
    ANSWERS.c.stream,
    ANSWERS.c.start,
    ANSWERS.c.number,
    ANSWERS.c.statistic,
    ANSWERS.c.question,
    ANSWERS.c.arguments,
    func.coalesce(ANSWERS.c.group, ""),  # two NULLs count as different
    unique=True,
)
Index("panprivacy_answers_by_question", *ASKED, ANSWERS.c.id)
Index("panprivacy_answers_by_time", ANSWERS.c.released)
Index("panprivacy_answers_by_stream_and_time", ANSWERS.c.stream, ANSWERS.c.released)


def create_tables(connection: Connection) -> bool:
    """Create the tables, or bring existing ones up to date; return whether they are new.

    Raises:
        PlanError: they exist in another version.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(CREATING)))
    if inspect(connection).has_table(SCHEMA.name):
        _upgrade(connection)
        check_tables(connection)
        return False
    _TABLES.create_all(connection)
    identity = SystemCoins().key(IDENTITY_BYTES).hex()
    connection.execute(insert(SCHEMA).values(version=_VERSION, identity=identity))
    return True


def _upgrade(connection: Connection) -> None:
    """Add what tables of the two versions before lack; old answers have no numbers there.

    This is part of the transaction that opens the store, so it is done completely or not at all.
    """
    found = connection.scalar(select(SCHEMA.c.version))
    if found not in {_MEASURED - 1, _MEASURED}:
        return
    for name in _ADDED if found < _MEASURED else ():
        column = CreateColumn(ANSWERS.c[name]).compile(dialect=connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {ANSWERS.name} ADD COLUMN {column}")
    SKETCHES.create(connection)
    connection.execute(update(SCHEMA).values(version=_VERSION))


def check_tables(connection: Connection) -> None:
    """Check that the tables exist, in the version of this program; raise `PlanError` if not."""
    if not inspect(connection).has_table(SCHEMA.name):
        message = "this database has no tables of a release store: `panprivacy serve` makes them, "
        message += "so start it first, or mend the URL"
        raise PlanError(message)
    found = connection.scalar(select(SCHEMA.c.version))
    if found != _VERSION:
        message = f"the tables of the store have version {found}, this program needs {_VERSION}: "
        message += "use the program that made them, or from the end of the current windows on "
        message += "another database"
        raise PlanError(message)

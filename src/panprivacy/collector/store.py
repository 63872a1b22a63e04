"""Reports in a database: what is acknowledged is on the disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Column, LargeBinary, MetaData, Table, insert, inspect, select
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from panprivacy.errors import PlanError
from panprivacy.service.outgoing.databases import checked, create_file, told, writing_engine

_TABLES: Final = MetaData()
_TASK: Final = Table("panprivacy_task", _TABLES, Column("digest", LargeBinary, primary_key=True))
_CLOSED: Final = Table(
    "panprivacy_closed", _TABLES, Column("digest", LargeBinary, primary_key=True)
)
_REPORTS: Final = Table(
    "panprivacy_reports",
    _TABLES,
    Column("name", LargeBinary, primary_key=True),
    Column("report", LargeBinary, nullable=False),
)


class ReportStore:
    """The reports of one task. Nothing in it is secret: whoever lacks the key can open none.

    Args:
        url: of a database, `sqlite:////folder/file` or `postgresql+psycopg://...`.
        digest: of the task.

    Raises:
        PlanError: it is no such URL, or the database has reports of another task.
        StoreError: the database does not work.
    """

    def __init__(self, url: str, digest: bytes) -> None:
        place = checked(url)
        self._digest = digest
        self._engine, _ = writing_engine(place)
        try:
            create_file(place)
        except OSError as error:
            message = f"cannot make the store: {error.strerror}"
            raise PlanError(message) from None
        with self._writing() as connection:
            if not inspect(connection).has_table(_TASK.name):
                _TABLES.create_all(connection)
                connection.execute(insert(_TASK).values(digest=digest))
            if connection.scalar(select(_TASK.c.digest)) != digest:
                message = "the store has the reports of another task: give this one its own"
                raise PlanError(message)

    @property
    def closed(self) -> bool:
        """Whether the answer was given."""
        with self._writing() as connection:
            return connection.scalar(select(_CLOSED.c.digest)) is not None

    def reports(self) -> list[bytes]:
        """All reports that were taken."""
        with self._writing() as connection:
            return list(connection.scalars(select(_REPORTS.c.report)))

    def add(self, name: bytes, report: bytes) -> None:
        """Keep a report; it is on the disk when this returns."""
        self._insert(_REPORTS, {"name": name, "report": report})

    def close(self) -> None:
        """Note that no more reports are taken."""
        if not self.closed:
            self._insert(_CLOSED, {"digest": self._digest})

    def end(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _insert(self, table: Table, values: Mapping[str, Any]) -> None:
        with self._writing() as connection:
            connection.execute(insert(table).values(**values))

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """One transaction; what the database says is told in one line."""
        try:
            with self._engine.execution_options(writes=True).begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise told(error) from None

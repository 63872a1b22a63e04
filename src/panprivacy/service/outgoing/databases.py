"""Databases of a release store: a file of SQLite, or a server of PostgreSQL."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from sqlite3 import Connection as SQLiteConnection
from sqlite3 import OperationalError, connect
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError, StatementError
from sqlalchemy.pool import NullPool

from panprivacy.errors import PanPrivacyError, PlanError, install
from panprivacy.service.outgoing.records import DatabaseError, StoreError

_DRIVERS: Final = {"sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg"}
_SQLITE_PATIENCE: Final = {"timeout": 10}
"""Seconds that a statement waits while another program writes."""
_SERVER_PATIENCE: Final = {"connect_timeout": 10, "tcp_user_timeout": 10_000}
"""Maximum time without an answer of PostgreSQL, in seconds and in milliseconds."""
CREATING: Final = 0x70616E70
"""The advisory lock under which one process at a time creates tables on PostgreSQL."""
_BEGIN: Final = {
    # the driver begins on its own, but not before tables are created, and without the lock that
    # a second program then waits for
    ("sqlite", True): "BEGIN IMMEDIATE",
    # a server or role may be set to acknowledge commits that are not on the disk
    ("postgresql", True): "SET LOCAL synchronous_commit TO on",
}


def checked(url: str) -> URL:
    """Parse a URL, and check its parts; invalid parts are not shown."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.drivername not in _DRIVERS:
        message = "the store must be sqlite:////folder/file or "
        message += "postgresql+psycopg://user:password@host/database"
        raise PlanError(message)
    if _is_sqlite(parsed):
        # memory is not durable
        is_path = parsed.database and not parsed.database.startswith((":", "file:"))
        if not is_path or parsed.host or parsed.username or parsed.query:
            message = "a store of SQLite needs the path of a file alone: sqlite:////folder/file"
            raise PlanError(message)
    elif url.count("@") > 1:
        message = "in the URL of the store, an @ of a user or password must be written %40"
        raise PlanError(message)
    return parsed


def _is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def sqlite_file(url: URL) -> Path | None:
    """Return the file of a database; None for a server."""
    return Path(str(url.database)) if _is_sqlite(url) else None


def sanitised(url: URL) -> str:
    """Return the URL without anything that may be secret."""
    public = URL.create(url.drivername, host=url.host, port=url.port, database=url.database)
    return public.render_as_string()


def writing_engine(url: URL) -> tuple[Engine, OpenFile | None]:
    """Return connections to a database, opened on demand, and its file, if any.

    Raises:
        PlanError: the driver is not installed.
    """
    engine, path = _engine(url), sqlite_file(url)
    event.listen(engine, "begin", _begin)
    if path is None:
        return engine, None
    file = OpenFile(path)
    event.listen(engine, "begin", file.check)
    event.listen(engine, "connect", _set_up)
    return engine, file


def read_only_engine(url: URL) -> Engine:
    """Return connections that can write nothing; raise `PlanError` without the driver."""
    path = sqlite_file(url)
    if path is not None:
        creator = partial(_connected_to_read, path.absolute())
        return _engine(url, creator=creator, poolclass=NullPool)
    return _engine(url, execution_options={"postgresql_readonly": True})


def _engine(url: URL, **given: Any) -> Engine:
    patience = _SQLITE_PATIENCE if _is_sqlite(url) else _SERVER_PATIENCE
    arguments = {name: most for name, most in patience.items() if name not in url.query}
    try:
        return create_engine(
            url, connect_args=arguments, pool_pre_ping=True, hide_parameters=True, **given
        )
    except ImportError:
        message = f"PostgreSQL needs psycopg: {install('postgresql')}"
        raise PlanError(message) from None


def _connected_to_read(path: Path) -> SQLiteConnection:
    """Open a connection of one transaction to a file of SQLite.

    If the log of changes is missing, SQLite creates one even to read. That would belong to the
    reader, and could lock the writer out. But then nobody writes: the file is read as it is.
    """
    mode = "mode=ro"
    with suppress(OSError):
        # If there is a log, another process has the file open. Then its header is not read: closing
        # a file releases the locks that other connections of this process hold on it.
        if not path.with_name(f"{path.name}-wal").exists():
            with path.open("rb") as file:
                if file.read(20)[18:] == b"\2\2":
                    mode += "&immutable=1"
    return connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=_SQLITE_PATIENCE["timeout"])


class OpenFile:
    """Watcher that notices if a file of SQLite is no longer the one that was opened.

    A file that was deleted, or was replaced by another, can be written to as before, but nobody
    finds the written data again.

    Args:
        path: path of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._log = path, path.with_name(f"{path.name}-wal")
        self._known: _StoredFile | None = None

    def check(self, connection: Connection | None = None) -> None:
        """Check the file, and the log of changes that a connection has open.

        Raises:
            StoreError: it was deleted, cut short or replaced.
        """
        # in this order: another thread may do the same
        known, found = self._known, _find(self._path)
        missing = known is not None and (found is None or found.file != known.file)
        cut = known is not None and found is not None and found.size < known.size
        if connection is not None:
            log, found_log = connection.info.get("log"), _find(self._log)
            missing |= log is not None and (found_log is None or found_log.file != log.file)
            connection.info["log"] = log or found_log
        if missing or cut:
            message = "the file of the store was deleted, cut short or replaced while it was in "
            message += "use, so nothing is written to it or released: put it back"
            raise StoreError(message)
        self._known = found


@dataclass(frozen=True, slots=True)
class _StoredFile:
    """A file by device and number, and its size."""

    file: tuple[int, int]
    size: int


def _find(path: Path) -> _StoredFile | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return _StoredFile((status.st_dev, status.st_ino), status.st_size)


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    statement = _BEGIN.get((connection.dialect.name, writes))
    if statement:
        connection.exec_driver_sql(statement)


def _set_up(connection: SQLiteConnection, _record: object) -> None:
    """Configure commits of SQLite to be durable, and foreign keys to be checked."""
    try:
        with suppress(OperationalError):  # if two programs set it at once, one fails
            connection.execute("PRAGMA journal_mode=WAL").close()
        connection.execute("PRAGMA synchronous=FULL").close()
        connection.execute("PRAGMA foreign_keys=ON").close()
    except BaseException:
        connection.close()
        raise


def create_file(url: URL) -> None:
    """Create a file of SQLite that only its owner can read; SQLite's other files follow it."""
    path = sqlite_file(url)
    if path is not None:
        with suppress(FileExistsError):
            path.touch(mode=0o600, exist_ok=False)


def is_intact(connection: Connection) -> bool:
    """Return whether a file of SQLite is complete and consistent; a server is trusted."""
    if connection.dialect.name != "sqlite":
        return True
    return bool(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar() == "ok")


def file_fault(url: URL) -> OSError | None:
    """Return why a file of SQLite cannot be read; None if it can, or on a server."""
    path = sqlite_file(url)
    try:
        if path is not None:
            path.open("rb").close()
    except OSError as error:
        return error
    return None


def database_error(error: SQLAlchemyError) -> PanPrivacyError:
    """Return one line about an error; more lines of a server may show values."""
    cause = error.orig if isinstance(error, StatementError) else error
    if isinstance(cause, PanPrivacyError):
        return cause
    line, *_ = str(cause).strip().splitlines() or [type(cause).__name__]
    return DatabaseError(f"the database fails: {line}")

"""Databases and their URLs."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import traceback

import pytest
from sqlalchemy.engine import make_url

from panprivacy.errors import PlanError
from panprivacy.service.outgoing import databases
from panprivacy.service.outgoing import store as module
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from tests.service.test_store import ENTRY


@pytest.fixture
def store(url):
    with contextlib.closing(ReleaseStore(url)) as store:
        yield store


@pytest.mark.long
def test_a_commit_of_postgresql_is_on_the_disk_whatever_the_default(postgres):
    url = postgres.database()
    name = make_url(url).database
    postgres.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with contextlib.closing(ReleaseStore(url)) as store:
        for writes, setting in ((True, "on"), (False, "off")):
            with store._transaction(writes=writes) as connection:
                found = connection.exec_driver_sql("SHOW synchronous_commit").scalar()
            assert found == setting


def test_a_file_that_is_read_while_its_journal_is_set_opens(tmp_path, monkeypatch):
    """As when a second program opens it at the same time: SQLite does not wait for that."""
    monkeypatch.setattr(databases, "_SQLITE_PATIENCE", {"timeout": 0.1})
    path = tmp_path / "releases.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE notes (note TEXT)")
        other.execute("BEGIN")
        other.execute("SELECT * FROM notes").fetchall()
        create = module.create_tables
        with monkeypatch.context() as patched:
            patched.setattr(
                module, "create_tables", lambda found: (other.execute("ROLLBACK"), create(found))
            )
            ReleaseStore(f"sqlite:///{path}").close()
        with contextlib.closing(ReleaseStore(f"sqlite:///{path}")) as store:
            store.spend([ENTRY])
    with contextlib.closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode").fetchall() == [("wal",)]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "releases.db",
        "mysql://panprivacy:hunter2@localhost/x",
        "postgres://panprivacy:hunter2@localhost/x",
        "postgresql+asyncpg://panprivacy:hunter2@localhost/x",
        "postgresql://panprivacy:hun@ter2@localhost/x",
        "postgresql://panprivacy:hun@ter:2@localhost/x",
        "postgresql://panprivacy@localhost:hunter2/x",
        "postgresql://panprivacy:hunter2@localhost:1/x",
        "postgresql://panprivacy:hunter2@localhost/x?colour=hunter2",
        "postgresql://panprivacy@/x?host=/nowhere&password=hunter2",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file::memory:?uri=true",
        "sqlite:////nowhere/releases.db",
        "sqlite:////tmp/releases.db?timeout=1",
        "sqlite://panprivacy:hunter2@/releases.db",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_in_one_line_without_its_password(url):
    with pytest.raises(PlanError) as refused:
        ReleaseStore(url)
    (line,) = str(refused.value).splitlines()
    told = "".join(traceback.format_exception(refused.value))
    assert not any(part in text for text in (line, told) for part in ("hun", "ter2"))
    assert "must" in line or "needs" in line or "mend the URL" in line


def test_without_psycopg_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(PlanError, match=r"panprivacy\[postgresql\]"):
        ReleaseStore("postgresql+psycopg://localhost/x")


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "note.txt").write_text("This is not a database. " * 100)
    with pytest.raises(PlanError, match="file is not a database"):
        ReleaseStore(f"sqlite:///{tmp_path}/note.txt")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(PlanError, match="unable to open database file"):
        ReleaseStore(f"sqlite:///{tmp_path}")


@contextlib.contextmanager
def as_nobody():
    """Without the rights of root, whom no mode of a folder stops."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_an_unwritable_folder_is_refused(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    with as_nobody(), pytest.raises(PlanError, match="Permission denied; mend"):
        ReleaseStore(f"sqlite:///{folder}/releases.db")
    assert list(folder.iterdir()) == []


@pytest.mark.long
def test_a_store_that_another_program_locks_waits_and_then_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(databases, "_SQLITE_PATIENCE", {"timeout": 0.2})
    path = tmp_path / "releases.db"
    with (
        contextlib.closing(ReleaseStore(f"sqlite:///{path}")) as store,
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        for act in (lambda: store.spend([ENTRY]), store.check):
            with pytest.raises(StoreError, match="database is locked"):
                act()
        assert store.ledger() == []
        other.execute("ROLLBACK")
        store.spend([ENTRY])
        assert store.ledger() == [ENTRY]

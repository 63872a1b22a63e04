"""A real server of PostgreSQL on a Unix socket in a temporary folder.

Take the fixture `postgres`, which conftest.py knows.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

ROLE = "panprivacy"


class Server:
    """It answers on a socket alone, trusts whoever can open it, and can be stopped and started."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        self._user = _user()
        self._numbers = itertools.count()
        if self._user:
            shutil.chown(folder, self._user)
        self._run("initdb", "--auth=trust", f"--username={ROLE}", "--encoding=UTF8", "--no-locale")
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-k {self._folder} -c listen_addresses= -c shared_buffers=16MB"
        self._run("pg_ctl", "start", "--wait", f"--log={self._folder}/log", f"--options={options}")

    def stop(self, mode: str = "fast") -> None:
        """Stop it, whoever is connected; immediately is as if the machine stopped."""
        self._run("pg_ctl", "stop", "--wait", f"--mode={mode}")

    def url(self) -> str:
        """The URL of a new schema, which is as good as a database, and faster."""
        name = f"test{next(self._numbers)}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self._url('postgres')}&options=-csearch_path%3D{name}"

    def database(self) -> str:
        """The URL of a new database, for who needs one with settings or connections of its own."""
        name = f"test{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self._url(name)

    def execute(self, *statements: str, database: str = "postgres") -> list[tuple]:
        """Run statements of SQL; the rows of the last one, if it has any."""
        with psycopg.connect(
            host=str(self._folder), user=ROLE, dbname=database, autocommit=True
        ) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _url(self, database: str) -> str:
        return f"postgresql+psycopg://{ROLE}@/{database}?host={quote(str(self._folder), safe='')}"

    def _run(self, program: str, *arguments: str) -> None:
        # the server would keep a pipe open, so what is printed goes to a file
        with tempfile.TemporaryFile() as printed:
            done = subprocess.run(
                [self._programs / program, *arguments, f"--pgdata={self._folder}/data"],
                user=self._user,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                check=False,
            )
            printed.seek(0)
            if done.returncode:
                raise RuntimeError(f"{program} failed: {printed.read().decode()}")


@pytest.fixture(scope="session")
def postgres():
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: no initdb in /usr/lib/postgresql or the PATH")
    # a socket's path has room for some hundred bytes, which those of pytest can exceed
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        server = Server(programs, Path(folder))
        yield server
        server.stop("immediate")


def _programs() -> Path | None:
    """Where initdb and pg_ctl are, of the newest version."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(path.parts[-3]) if path.parts[-3].isdigit() else 0,
    )
    named = shutil.which("initdb")
    if found:
        return found[-1].parent
    return Path(named).resolve().parent if named else None


def _user() -> str | None:
    """Whom to run as: initdb refuses root."""
    if os.geteuid():
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"

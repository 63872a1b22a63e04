"""Run a collector until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

from starlette.routing import Router

from panprivacy.devices.collector.app import CollectorApi, application
from panprivacy.devices.collector.secrets import Secrets
from panprivacy.devices.collector.store import ReportStore
from panprivacy.devices.federated.collector import Collector
from panprivacy.devices.federated.task import MOST_TASK, Task
from panprivacy.ground.files import read_at_most
from panprivacy.service.journal import JOURNAL, Event, write_to_stderr
from panprivacy.service.server import Server, alone
from panprivacy.service.sockets import Address, http_address, http_socket
from panprivacy.service.web.answering import FastPath


def collect(
    file: Path,
    secrets: Secrets,
    store: str,
    listen: str,
    *,
    fresh: bool = False,
    origins: Sequence[str] = (),
) -> None:
    """Collect the reports of a task in this process until SIGTERM or SIGINT.

    Args:
        file: file of the task.
        secrets: the secrets of the task.
        store: URL of the database.
        listen: where, such as 127.0.0.1:8646.
        fresh: give up the store that the collector had before.
        origins: sites whose pages may send reports, such as https://app.example.

    Raises:
        InputError: the file is no task.
        PlanError: it cannot be run like this.
        StoreError: the database does not work.
    """
    write_to_stderr()
    signed, key, access = read_at_most(file, MOST_TASK), secrets.key, secrets.access
    task = Task.unverified(signed)
    Collector(task, key)  # refuses the key of another task
    mark = file.with_name(f"{file.name}.mark")
    with (
        alone(file.with_name(f"{file.name}.lock")),
        http_socket(http_address(listen, 8646)) as sock,
    ):
        kept = ReportStore(store, task, mark, fresh=fresh)
        try:
            api = CollectorApi(signed, task, key, kept, access)
            run(application(api, origins), api, sock)
        finally:
            kept.end()


def run(app: Router, direct: FastPath, sock: socket.socket) -> None:
    """Serve a socket until SIGTERM or SIGINT."""

    def say_where() -> None:
        name = sock.getsockname()
        at = Address(path=name) if isinstance(name, str) else Address(name[0], name[1])
        JOURNAL.warning(Event.listening, where=at.url("http"))

    server = Server(app, direct, lambda: None, say_where)
    server.take_signals()
    server.run(sockets=[sock])

"""Runs a collector until it is told to stop."""

from __future__ import annotations

import signal
from pathlib import Path

from panprivacy.collector.app import CollectorApi, application
from panprivacy.collector.secrets import Secrets
from panprivacy.collector.store import ReportStore
from panprivacy.federated.collector import Collector
from panprivacy.federated.task import Task
from panprivacy.service.journal import JOURNAL, Event, write_to_stderr
from panprivacy.service.server import Server, alone
from panprivacy.service.sockets import Address, http_address, http_socket


def collect(file: Path, secrets: Secrets, store: str, listen: str) -> None:
    """Collect the reports of a task in this process until SIGTERM or SIGINT.

    Args:
        file: of the task.
        secrets: that belong to it.
        store: URL of the database.
        listen: where, such as 127.0.0.1:8643.

    Raises:
        InputError: the file is no task.
        PlanError: it cannot be run like this.
        StoreError: the database does not work.
    """
    write_to_stderr()
    signed = file.read_bytes()
    collector = Collector(Task.unverified(signed), secrets.key)
    with alone(file.with_name(f"{file.name}.lock")), http_socket(http_address(listen)) as sock:
        kept = ReportStore(store, collector.task.digest)
        try:
            for report in kept.reports():
                collector.add(report)
            if kept.closed:
                collector.close()
            api = CollectorApi(signed, collector, kept, secrets.access)

            def say_where() -> None:
                name = sock.getsockname()
                at = Address(path=name) if isinstance(name, str) else Address(name[0], name[1])
                JOURNAL.warning(Event.listening, where=at.url("http"))

            server = Server(application(api), api, lambda: None, say_where)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, server.handle_exit)
            server.run(sockets=[sock])
        finally:
            kept.end()

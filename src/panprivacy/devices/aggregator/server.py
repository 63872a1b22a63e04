"""Run one of two servers until it is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import NamedTuple

from panprivacy.devices.aggregator.app import (
    HelperApi,
    LeaderApi,
    helper_application,
    leader_application,
)
from panprivacy.devices.aggregator.helper import Helper
from panprivacy.devices.aggregator.helper_store import HelperStore
from panprivacy.devices.aggregator.leader import Leader
from panprivacy.devices.aggregator.leader_store import LeaderStore
from panprivacy.devices.aggregator.peer import Peer
from panprivacy.devices.aggregator.reports import servers_of
from panprivacy.devices.aggregator.secrets import HelperSecrets, LeaderSecrets, verify_key_of
from panprivacy.devices.collector.server import run
from panprivacy.devices.federated.task import MOST_TASK, Task
from panprivacy.ground.files import read_at_most
from panprivacy.service.journal import write_to_stderr
from panprivacy.service.server import alone
from panprivacy.service.sockets import http_address, http_socket


class Location(NamedTuple):
    """The directory and the address of a server.

    Args:
        file: file of the task; the mark and the lock of the role are beside it.
        store: URL of the database.
        listen: such as 127.0.0.1:8644.
        fresh: give up the store that it had before.
        origins: sites whose pages may send reports to the leader, such as https://app.example.
    """

    file: Path
    store: str
    listen: str
    fresh: bool = False
    origins: tuple[str, ...] = ()

    def beside(self, role: str, what: str) -> Path:
        """Return a file of one role beside the task."""
        return self.file.with_name(f"{self.file.name}.{role}.{what}")


def lead(place: Location, secrets: LeaderSecrets, helper: str) -> None:
    """Be the leader of a task in this process until SIGTERM or SIGINT.

    Args:
        place: where.
        secrets: the secrets of the task.
        helper: the URL of the other server.

    Raises:
        InputError: the file is no task.
        PlanError: it cannot be run like this.
        StoreError: the database does not work.
    """
    with _started(place, "leader") as (signed, task, sock):
        verify_key, mark = verify_key_of(secrets), place.beside("leader", "mark")
        store = LeaderStore(place.store, task, verify_key, mark, fresh=place.fresh)
        peer = Peer(task, helper, secrets.peer_token)
        try:
            leader = Leader(task, secrets.key, verify_key, store, peer)
            api = LeaderApi(signed, task, leader, store, secrets.access)
            run(leader_application(api, place.origins), api, sock)
        finally:
            peer.end()
            store.end()


def help_leader(place: Location, secrets: HelperSecrets) -> None:
    """Be the helper of a task in this process until SIGTERM or SIGINT.

    Args:
        place: where.
        secrets: the secrets of the task.

    Raises:
        InputError: the file is no task.
        PlanError: it cannot be run like this.
        StoreError: the database does not work.
    """
    with _started(place, "helper") as (signed, task, sock):
        verify_key, mark = verify_key_of(secrets), place.beside("helper", "mark")
        store = HelperStore(place.store, task, verify_key, mark, fresh=place.fresh)
        try:
            helper = Helper(task, secrets.key, verify_key, store)
            api = HelperApi(signed, task, helper, store, secrets.access)
            run(helper_application(api), api, sock)
        finally:
            store.end()


@contextmanager
def _started(place: Location, role: str) -> Iterator[tuple[bytes, Task, socket]]:
    """Open the task, for one process of a role at a time, and the socket on which it listens."""
    write_to_stderr()
    signed = read_at_most(place.file, MOST_TASK)
    task = Task.unverified(signed)
    servers_of(task)
    with alone(place.beside(role, "lock")), http_socket(http_address(place.listen, 8644)) as sock:
        yield signed, task, sock

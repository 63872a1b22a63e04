"""A service that runs out of memory: what it acknowledged is counted, once, whatever becomes of it.

A limit on the address space makes allocations fail, and a request gets 503. A limit on a container
has the system end the process, and another one goes on from the checkpoint.
"""

from __future__ import annotations

import os
import re
import resource
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import httpx
import pytest

from tests.service.running import Service, wait_until

pytestmark = pytest.mark.long

UNIVERSE = 200_000
STREAM = f"""
[streams.visits]
epsilon = 200
window = "1d"
releases = 2
ids = "integers"
[[streams.visits.stat]]
name = "incidence"
universe = {UNIVERSE}
bound = 3
exactly = "1:3"
"""
CONTAINERS = Path("/sys/fs/cgroup/memory")
ROWS = 2_000
PAD = "x" * 500
"""With it, a body is longer than a MiB: reading it needs new memory."""


class Sender:
    """Sends bodies, each under a name, until all are taken; no user comes in two of them."""

    def __init__(self, service):
        self._service, self._names = service, count()
        self.taken, self.refused = set(), {}

    def send(self):
        """Send a new body; return the status, or None without an answer."""
        return self._sent(next(self._names))

    def send_again(self):
        """Send all that was not taken."""
        for name in list(self.refused):
            assert self._sent(name) == 200

    def _sent(self, name):
        users = range(name * ROWS, (name + 1) * ROWS)
        assert users[-1] < UNIVERSE
        body = "".join(f'{{"user": {user}, "pad": "{PAD}"}}\n' for user in users)
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"{name}"}
        url, status = self._service.url("/v1/streams/visits/updates"), None
        with suppress(httpx.TransportError):
            answer = self._service.client.post(
                url,
                params={"durable": 1},
                content=body,
                headers={**self._service.headers("ingest"), **headers},
            )
            status = answer.status_code
        self.refused.pop(name, None)
        if status == 200:
            self.taken.add(name)
        else:
            self.refused[name] = status
        return status


def mapped(pid, field="VmSize"):
    """Bytes that a process has mapped."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{field}:\s+(\d+)", status, re.MULTILINE)[1]) << 10


def counted(service):
    """How many users came once, twice, and three times, by an exact answer."""
    assert service.release().status_code == 201
    last = {row["arguments"]: round(row["value"]) for row in service.releases()}
    return [last[f"state={state}"] for state in (1, 2, 3)]


@pytest.fixture
def service(tmp_path):
    with Service(tmp_path, STREAM) as running:
        yield running.start()


def test_allocations_that_fail_are_refused_and_lose_nothing(service):
    sender = Sender(service)
    assert sender.send() == 200
    for room in (0, 1 << 20, 9 << 20, 12 << 20):
        resource.prlimit(service.pid, resource.RLIMIT_AS, (mapped(service.pid) + room, -1))
        assert {sender.send() for _ in range(3)} <= {200, 503}
    assert 503 in sender.refused.values()
    assert "what=memory" in service.said
    resource.prlimit(service.pid, resource.RLIMIT_AS, (-1, -1))
    assert sender.send() == 200
    sender.send_again()
    service.kill()
    service.begin()
    assert counted(service) == [ROWS * len(sender.taken), 0, 0]


@contextmanager
def container(pid, size):
    """A limit on the memory of a process, at which the system ends it."""
    try:
        folder = CONTAINERS / f"panprivacy-{os.getpid()}"
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(f"{size}")
    except OSError:
        pytest.skip("no memory controller that this user may set up")
    try:
        (folder / "cgroup.procs").write_text(f"{pid}")
        yield
    finally:
        with suppress(OSError):
            for one in (folder / "cgroup.procs").read_text().split():
                (CONTAINERS / "cgroup.procs").write_text(one)
        wait_until(lambda: not (folder / "cgroup.procs").read_text())
        folder.rmdir()


def test_a_service_that_the_system_ends_goes_on_with_all_that_was_acknowledged(service):
    sender = Sender(service)
    assert sender.send() == 200
    ended = lambda: service.exit_code is not None  # noqa: E731
    with container(service.pid, 2 << 20):  # of what it takes from now on
        for _ in range(20):
            if sender.send() is None:
                break
        wait_until(ended)
    assert service.exit_code == -9
    assert sender.refused
    service.begin()
    sender.send_again()
    assert counted(service) == [ROWS * len(sender.taken), 0, 0]

"""Fixtures that several modules take."""

from __future__ import annotations

import pytest

from panprivacy.cluster import asking
from panprivacy.cluster.broker import Broker
from tests.cluster.nats import NatsServer, found_nats
from tests.service.doubles import Clock

QUEUE_BYTES = 4 << 20
"""JetStream sets so many aside for each queue."""


@pytest.fixture(scope="session")
def shared_nats():
    """A NATS server that nobody stops."""
    with NatsServer(found_nats()) as server:
        yield server


@pytest.fixture
def nats(tmp_path):
    """A NATS server of a test's own, to be killed and started again."""
    with NatsServer(found_nats()) as server:
        yield server


@pytest.fixture
def broker(shared_nats):
    """A connection to the shared server."""
    found = Broker(shared_nats.url, most_bytes=QUEUE_BYTES)
    yield found
    found.close()


@pytest.fixture
def clock():
    """What a coordinator takes for the time."""
    return Clock()


@pytest.fixture
def asks_again_at_once(monkeypatch):
    """Asks a shard again sooner than a program does."""
    monkeypatch.setattr(asking, "_AGAIN", 0.0)

"""Fixtures that several modules take."""

from __future__ import annotations

import contextlib
import logging
import threading

import pytest

from panprivacy.service.config.loading import load
from panprivacy.service.outgoing.store import ReleaseStore
from tests.service.asking import client_in
from tests.service.doubles import Clock, Store
from tests.service.postgres import postgres
from tests.service.two_servers import world

__all__ = ["postgres", "world"]


@pytest.fixture(autouse=True)
def development(monkeypatch):
    """Has the journal refuse what is not on its list; a service that runs leaves it out."""
    monkeypatch.setattr(logging, "raiseExceptions", True)


@pytest.fixture(autouse=True)
def no_thread_left():
    """One that nobody ends may turn on a closed socket, and take a processor from all tests."""
    before = {*threading.enumerate()}
    yield
    left = {*threading.enumerate()} - before
    assert not [one for one in left if one.name.startswith("Thread-") and not one.daemon]


@pytest.fixture
def clock():
    """What a stream takes for the time."""
    return Clock()


@pytest.fixture
def store(tmp_path):
    """A release store that fails where a test says."""
    found = Store(f"sqlite:///{tmp_path}/releases.sqlite")
    yield found
    found.close()


@pytest.fixture
def write(tmp_path):
    """Write a configuration; its path."""

    def written(text):
        path = tmp_path / "config.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


@pytest.fixture
def read(write):
    """Write a configuration and load it."""
    return lambda text: load(write(text))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A service that all tests of a module ask."""
    with client_in(tmp_path_factory.mktemp("service")) as client:
        yield client


@pytest.fixture
def client(tmp_path):
    """A service to ask."""
    with client_in(tmp_path) as client:
        yield client


@pytest.fixture
def received(client, monkeypatch):
    """The bodies that are received, as they are."""
    bodies = []
    receive = client.engine.admission._receive

    async def spied(sender, chunks, body):
        await receive(sender, chunks, body)
        bodies.append(body)

    monkeypatch.setattr(client.engine.admission, "_receive", spied)
    return bodies


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/releases.db"
    return request.getfixturevalue("postgres").url()


@pytest.fixture
def file_store(tmp_path):
    """A store in a file."""
    with contextlib.closing(ReleaseStore(f"sqlite:///{tmp_path}/releases.db")) as store:
        yield store

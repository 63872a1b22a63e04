"""Fixtures that several modules take."""

from __future__ import annotations

import logging

import pytest

from tests.service.doubles import Clock, Store
from tests.service.postgres import postgres

__all__ = ["postgres"]


@pytest.fixture(autouse=True)
def development(monkeypatch):
    """Has the journal refuse what is not on its list; a service that runs leaves it out."""
    monkeypatch.setattr(logging, "raiseExceptions", True)


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

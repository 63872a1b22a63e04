"""Fixtures that several modules take."""

from __future__ import annotations

import logging

import pytest

from tests.service.postgres import postgres

__all__ = ["postgres"]


@pytest.fixture(autouse=True)
def development(monkeypatch):
    """Has the journal refuse what is not on its list; a service that runs leaves it out."""
    monkeypatch.setattr(logging, "raiseExceptions", True)

"""Fixtures that several modules take."""

from __future__ import annotations

from tests.service.postgres import postgres

__all__ = ["postgres"]

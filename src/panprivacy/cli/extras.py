"""Extras that commands need besides the package itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from panprivacy.errors import PlanError


class Extra(StrEnum):
    """An extra of the package, with the part that needs it."""

    service = "the service needs"
    dashboard = "the dashboard needs"
    cluster = "a cluster needs"
    federated = "devices and collectors need"


@contextmanager
def installed(extra: Extra) -> Iterator[None]:
    """Explain how to install an extra if an import fails."""
    try:
        yield
    except ImportError as error:
        needed = error.name or f"the extra {extra.name}"
        message = f"{extra} {needed}: pip install 'panprivacy[{extra.name}]'"
        raise PlanError(message) from None

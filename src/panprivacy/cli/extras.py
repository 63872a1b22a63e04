"""Extras that commands need besides the package itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

from panprivacy.errors import PlanError, install


class Extra(StrEnum):
    """An extra of the package, with the part that needs it."""

    service = "the service needs"
    dashboard = "the dashboard needs"
    cluster = "a cluster needs"
    federated = "devices and collectors need"


PACKAGES: Final = {
    "matplotlib": "plot",
    "httptools": "service",
    "prometheus_client": "service",
    "sqlalchemy": "service",
    "starlette": "service",
    "structlog": "service",
    "uvicorn": "service",
    "fastapi": "dashboard",  # comes with nicegui
    "nicegui": "dashboard",
    "psycopg": "postgresql",
    "coincurve": "federated",
    "httpx": "federated",
    "Crypto": "federated",
    "nats": "cluster",
    "ray": "cluster",
    "scipy": "published",
}
"""The extra of each package that is imported, by its name in Python."""


@contextmanager
def installed(extra: Extra) -> Iterator[None]:
    """Explain how to install an extra if one of its packages is not there."""
    try:
        yield
    except ImportError as error:
        raise PlanError(import_failed(error, extra)) from None


def import_failed(error: ImportError, extra: Extra | None = None) -> str:
    """Return what is to be installed, if a package of an extra is not there; else what failed.

    Args:
        error: of the import.
        extra: the extra that was to be imported; None for that of the package.
    """
    found = PACKAGES.get(error.name or "")
    if found is not None and isinstance(error, ModuleNotFoundError):
        needs, name = (extra, extra.name) if extra else ("this command needs", found)
        return f"{needs} {error.name}: {install(name)}"
    says = " ".join(str(error).split())
    if error.name is None and says:  # a sentence of the package itself
        return says
    return f"cannot import {error.name or 'a module'}: {says or type(error).__name__}"

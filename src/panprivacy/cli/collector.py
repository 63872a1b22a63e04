"""`panprivacy collector`: gathers the reports of devices over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from panprivacy.errors import PlanError


def collector(
    task: Annotated[Path, typer.Argument(metavar="TASK.json", help="See panprivacy task.")],
    identity: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The private key of age, if the secrets are sealed."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Of the database; TASK.sqlite beside the task if not."),
    ] = None,
    listen: Annotated[str, typer.Option(metavar="PLACE", help="Where to listen.")] = (
        "127.0.0.1:8643"
    ),
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Give up the store that it had before; see TASK.json.mark."),
    ] = False,
) -> None:
    """Collect the reports of devices over HTTP, and answer once."""
    with federated_installed():
        from panprivacy.collector.secrets import Secrets  # noqa: PLC0415 - an extra
        from panprivacy.collector.server import collect  # noqa: PLC0415
    secrets = Secrets.load(task.with_suffix(".secret"), identity)
    url = store or f"sqlite:///{task.absolute().with_suffix('.sqlite')}"
    collect(task, secrets, url, listen, fresh=fresh)


@contextmanager
def federated_installed() -> Iterator[None]:
    """Say how to install what devices and collectors need besides."""
    try:
        yield
    except ImportError as error:
        needed = error.name or "the extra"
        message = f"devices and collectors need {needed}: pip install 'panprivacy[federated]'"
        raise PlanError(message) from None

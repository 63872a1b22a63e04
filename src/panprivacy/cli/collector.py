"""`panprivacy collector`: gathers the reports of devices over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from panprivacy.cli.extras import Extra, installed

Identity = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The private key of age, if the secrets are sealed."),
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Give up the store that it had before; see TASK.json.mark."),
]
Origin = Annotated[
    list[str] | None,
    typer.Option(metavar="SITE", help="Pages of it may send reports; may be repeated."),
]


def collector(
    task: Annotated[Path, typer.Argument(metavar="TASK.json", help="See panprivacy task.")],
    identity: Identity = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Of the database; TASK.sqlite beside the task if not."),
    ] = None,
    listen: Annotated[str, typer.Option(metavar="PLACE", help="Where to listen.")] = (
        "127.0.0.1:8646"
    ),
    origin: Origin = None,
    fresh: Fresh = False,
) -> None:
    """Collect the reports of devices over HTTP, and answer once."""
    with installed(Extra.federated):
        from panprivacy.devices.collector.secrets import Secrets  # noqa: PLC0415 - an extra
        from panprivacy.devices.collector.server import collect  # noqa: PLC0415
    secrets = Secrets.load(task.with_suffix(".secret"), identity)
    url = store or f"sqlite:///{task.absolute().with_suffix('.sqlite')}"
    collect(task, secrets, url, listen, fresh=fresh, origins=origin or ())

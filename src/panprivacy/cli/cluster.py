"""`panprivacy cluster`: the coordinator and the gateway of several machines."""

from __future__ import annotations

from typing import Annotated

import typer

from panprivacy.cli.extras import Extra, installed
from panprivacy.cli.serve import ConfigFile


def cluster(
    config: ConfigFile,
    shards: Annotated[
        int, typer.Option(metavar="N", help="How many there are; each counts a slice of the users.")
    ],
    address: Annotated[
        str | None,
        typer.Option(metavar="ray://HOST:PORT", help="Of a cluster of Ray; without it, here."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Give up the sealed states that are there; begin anew.")
    ] = False,
) -> None:
    """Count streams with several machines, each with a slice, until told to stop."""
    with installed(Extra.cluster):
        from panprivacy.cluster.server import serve_cluster  # noqa: PLC0415 - an extra, and slow to import
        from panprivacy.service.config.loading import load  # noqa: PLC0415
    serve_cluster(load(config), shards, config.absolute(), address=address, fresh=fresh)

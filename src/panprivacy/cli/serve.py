"""`panprivacy serve` and `panprivacy restore`: the daemon, and its restoring from a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from panprivacy.cli.extras import Extra, installed
from panprivacy.errors import PlanError
from panprivacy.statistics.checkpoint import Checkpoint

ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="See panprivacy init.")]


def serve(
    config: ConfigFile,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Give up the checkpoint that is there; begin anew.")
    ] = False,
) -> None:
    """Count streams and serve what is released, until told to stop."""
    with installed(Extra.service):
        from panprivacy.service.config.loading import load  # noqa: PLC0415 - an extra, and slow to import
        from panprivacy.service.server import serve as run_service  # noqa: PLC0415
    run_service(load(config), config.absolute(), fresh=fresh)


def restore(
    config: ConfigFile,
    identity: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The private key of age; /dev/stdin takes it from a pipe."
        ),
    ],
) -> None:
    """Resume a waiting service from its sealed checkpoint."""
    with installed(Extra.service):
        from panprivacy.service.config.loading import load  # noqa: PLC0415
        from panprivacy.service.kept.restoring import DESK, hand_over  # noqa: PLC0415
    loaded = load(config)
    if not identity.exists():
        message = f"there is no file {identity}: --identity names the private key of age"
        raise PlanError(message)
    if loaded.checkpoint is None:
        message = f"{config} has no [checkpoint]: there is nothing to restore"
        raise PlanError(message)
    sealed = Checkpoint(loaded.checkpoint.path, recipient=loaded.checkpoint.recipient)
    hand_over(Path(loaded.server.directory) / DESK, sealed.unsealed(identity))
    typer.echo(f"The service goes on: {', '.join(loaded.streams)}.")

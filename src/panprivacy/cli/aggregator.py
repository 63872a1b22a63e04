"""`panprivacy aggregator`: one of two servers that sum reports which neither can read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from panprivacy.cli.collector import Fresh, Identity, Origin
from panprivacy.cli.extras import Extra, installed
from panprivacy.errors import PlanError


class ServerRole(StrEnum):
    """Role of a server, of two."""

    leader = "leader"
    helper = "helper"


_PORTS = {ServerRole.leader: 8644, ServerRole.helper: 8645}


def aggregator(
    role: Annotated[
        ServerRole, typer.Option(help="Devices send to the leader; it asks the helper.")
    ],
    task: Annotated[Path, typer.Option(metavar="TASK.json", help="See panprivacy task.")],
    helper: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="For the leader: where the helper listens; on this machine if not."
        ),
    ] = None,
    identity: Identity = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Of the database; TASK.ROLE.sqlite beside the task if not."
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE", help="Where to listen; 127.0.0.1:8644 or, as helper, 8645 if not."
        ),
    ] = None,
    origin: Origin = None,
    fresh: Fresh = False,
) -> None:
    """Be one of two servers that add up reports of which neither can read one."""
    with installed(Extra.federated):
        from panprivacy.devices.aggregator.secrets import (  # noqa: PLC0415 - an extra
            HelperSecrets,
            LeaderSecrets,
        )
        from panprivacy.devices.aggregator.server import Location, help_leader, lead  # noqa: PLC0415
    if helper is not None and role is ServerRole.helper:
        message = "--helper is for the leader: the helper asks nobody"
        raise PlanError(message)
    if origin and role is ServerRole.helper:
        message = "--origin is for the leader: devices send nothing to the helper"
        raise PlanError(message)
    asked = f"http://127.0.0.1:{_PORTS[ServerRole.helper]}" if helper is None else helper
    if not asked.startswith(("http://", "https://")):
        message = "--helper must be a URL such as http://127.0.0.1:8645"
        raise PlanError(message)
    if not task.is_file():
        message = f"there is no task {task}: panprivacy task --servers 2 writes one"
        raise PlanError(message)
    secrets = task.with_suffix(f".{role}.secret")
    url = store or f"sqlite:///{task.absolute().with_suffix(f'.{role}.sqlite')}"
    place = Location(task, url, listen or f"127.0.0.1:{_PORTS[role]}", fresh, tuple(origin or ()))
    if role is ServerRole.leader:
        lead(place, LeaderSecrets.load(secrets, identity), asked.rstrip("/"))
    else:
        help_leader(place, HelperSecrets.load(secrets, identity))

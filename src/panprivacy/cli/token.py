"""`panprivacy token`: an additional token for a service, or a replacement."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from panprivacy.cli.extras import Extra, installed
from panprivacy.cli.options import check_output
from panprivacy.errors import PlanError
from panprivacy.ground.files import in_turn, replace_file


def token(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What it is called in the configuration.")
    ],
    may: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE",
            help="What a new one is good for: ingest, read, release, announce; several times.",
        ),
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="For this stream only; may be repeated."),
    ] = None,
    config: Annotated[
        Path, typer.Option(metavar="CONFIG.toml", help="The configuration of the service.")
    ] = Path("panprivacy.toml"),
) -> None:
    """Add a token to a configuration, or change one; a service that runs takes it over."""
    with installed(Extra.service):
        from panprivacy.service.config.loading import load  # noqa: PLC0415 - an extra
        from panprivacy.service.config.tokens import hash_of, new_token  # noqa: PLC0415
    check_output("token")
    if not config.exists():
        message = f"there is no configuration {config}: name the one of the service with --config, "
        message += "or write one with panprivacy init"
        raise PlanError(message)
    load(config)  # reports errors in it, or in its folder
    path = config.resolve()
    with in_turn(path.parent):
        old = {one.name: one for one in load(config).tokens}.get(name)
        text = config.read_bytes().decode()
        drawn = new_token()
        digest = hash_of(drawn)
        if old is None:
            text = f"{text.rstrip()}\n\n{_table(name, may, digest, stream)}"
        elif may or stream:
            message = f"there is a token {name}: leave out --may and --stream to change it for a "
            message += f"new one that may do the same, or edit {config.name}"
            raise PlanError(message)
        else:
            text = text.replace(old.sha256, digest)

        def check(fresh: Path) -> None:
            _take_over(fresh, path, name, digest)
            # Before the file exists: an unreadable new token must not replace the old one.
            print(f"The token {name}, for Authorization: Bearer TOKEN. It is shown this once:\n")
            print(f"    {drawn}\n", flush=True)

        replace_file(path, text.encode(), check)
    print("A service that runs takes it over within a few seconds", end="")
    print("." if old is None else "; the old one is good for nothing then.")


def _table(name: str, may: list[str] | None, digest: str, stream: list[str] | None) -> str:
    """Return the lines of a new token."""
    from panprivacy.service.config.template import token_table  # noqa: PLC0415 - an extra

    if not may:
        message = f"there is no token {name} yet: say what it may do, as in --may ingest"
        raise PlanError(message)
    return token_table(name, may, digest, stream or ())


def _take_over(fresh: Path, path: Path, name: str, digest: str) -> None:
    """Check that a new file can be loaded and has the token; give it the owner of the old one."""
    from panprivacy.service.config.loading import load  # noqa: PLC0415 - an extra

    try:
        found = {one.name: one.sha256 for one in load(fresh).tokens}
    except PlanError as error:  # about lines that the file does not have yet, from options
        reason = str(error).removeprefix(f"{fresh.name}, ")
        reason = re.sub(r"^line \d+: (tokens(\.\d+)?: )?", "", reason)
        message = f"this token cannot be added to {path.name}: {reason}"
        raise PlanError(message) from None
    if found.get(name) != digest:
        message = f"{path.name} does not have the sha256 of {name} in one piece: write it so"
        raise PlanError(message)
    status = path.stat()
    os.chown(fresh, status.st_uid, status.st_gid)
    fresh.chmod(status.st_mode & 0o7777)

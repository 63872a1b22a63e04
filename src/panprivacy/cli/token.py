"""`panprivacy token`: one more token for a service, or a new one in place of an old one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from panprivacy.cli.extras import Extra, installed
from panprivacy.cli.options import check_output
from panprivacy.errors import PlanError
from panprivacy.files import replace_file


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
    load(config)  # says what is wrong with it, or with its folder
    path = config.resolve()
    with _in_turn(path.parent):
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
            # Before the file is there: whoever cannot read the token must not lose the old one.
            print(f"The token {name}, for Authorization: Bearer TOKEN. It is shown this once:\n")
            print(f"    {drawn}\n", flush=True)

        replace_file(path, text.encode(), check)
    print("A service that runs takes it over within a few seconds", end="")
    print("." if old is None else "; the old one is good for nothing then.")


def _table(name: str, may: list[str] | None, digest: str, stream: list[str] | None) -> str:
    """The lines of a new token."""
    from panprivacy.service.config.template import token_table  # noqa: PLC0415 - an extra

    if not may:
        message = f"there is no token {name} yet: say what it may do, as in --may ingest"
        raise PlanError(message)
    return token_table(name, may, digest, stream or ())


def _take_over(fresh: Path, path: Path, name: str, digest: str) -> None:
    """Have a new file belong to whom the old one does; it can be loaded, and has the token."""
    from panprivacy.service.config.loading import load  # noqa: PLC0415 - an extra

    try:
        found = {one.name: one.sha256 for one in load(fresh).tokens}
    except PlanError as error:
        raise PlanError(str(error).replace(fresh.name, path.name)) from None
    if found.get(name) != digest:
        message = f"{path.name} does not have the sha256 of {name} in one piece: write it so"
        raise PlanError(message)
    status = path.stat()
    os.chown(fresh, status.st_uid, status.st_gid)
    fresh.chmod(status.st_mode & 0o7777)


@contextmanager
def _in_turn(folder: Path) -> Iterator[None]:
    """Keep others that change the same configuration waiting."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)

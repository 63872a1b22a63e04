"""`panprivacy announce`: tell a service that runs that somebody has seen its memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.files import read_at_most
from panprivacy.service.client import UnsureError, announced, new_key

_MOST_TOKEN = 1 << 12
_NAME = re.compile(r"[\x21-\x7e]{1,256}")


def announce(
    service: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="Where it listens: http://127.0.0.1:8642, or unix:/run/http.sock."
        ),
    ],
    streams: Annotated[
        list[str], typer.Argument(metavar="STREAM...", help="Those whose state was seen.")
    ],
    token: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="One that may announce; /dev/stdin takes it from a pipe.",
        ),
    ],
    key: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What this look is called, to ask again where it is not known whether it was "
            "announced; drawn unless given.",
        ),
    ] = None,
) -> None:
    """Tell a service that somebody has seen its memory: it may be seen once more then.

    Who sees the memory sees all streams: name each. Until this command ends well, the state may
    not be seen again.
    """
    name = new_key() if key is None else key
    if not _NAME.fullmatch(name):
        message = "--key must be 1 to 256 visible ASCII characters"
        raise PlanError(message)
    bearer = _read(token)
    for stream in streams:
        try:
            told = announced(service, stream, bearer, name)
        except UnsureError as error:
            message = f"{error.reason}; repeat this with --key {name}, which announces it once"
            raise InputError(message) from None
        typer.echo(
            f"{stream}: announced, number {told['number']:,} of the window that began "
            f"{told['window_began']}; {told['left']:,} left."
        )


def _read(token: Path) -> str:
    """Return the token in a file."""
    try:
        text = read_at_most(token, _MOST_TOKEN).decode().strip()
    except UnicodeDecodeError:
        text = ""
    if not (text.isascii() and text.isprintable() and text):
        message = "--token must name a file with a token, pp_..., and nothing else"
        raise PlanError(message)
    return text

"""`panprivacy dashboard`: pages of published answers."""

from __future__ import annotations

from typing import Annotated

import typer

from panprivacy.cli.extras import Extra, installed
from panprivacy.cli.serve import ConfigFile


def dashboard(
    config: ConfigFile,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the pages are; or unix:/PATH.")
    ] = "127.0.0.1:8643",
    service: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the service listens, to announce looks; as in the configuration unless "
            "given.",
        ),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="What a browser shows of a proxy in front, such as https://numbers.example. "
            "Repeat it for more.",
        ),
    ] = None,
) -> None:
    """Show what was released on pages, until told to stop; it can change nothing."""
    with installed(Extra.service):
        from panprivacy.service.config.loading import load  # noqa: PLC0415 - an extra
    loaded = load(config)
    with installed(Extra.dashboard):
        from panprivacy.service.dashboard.server import serve  # noqa: PLC0415 - an extra, and slow
    serve(loaded, config.absolute(), listen, service, origin or ())

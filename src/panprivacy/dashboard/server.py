"""Runs the dashboard until it is told to stop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from nicegui import app as pages_app
from nicegui import run, ui

from panprivacy.dashboard.board import Board
from panprivacy.dashboard.guard import Guard
from panprivacy.dashboard.origins import Origins
from panprivacy.dashboard.pages import Pages
from panprivacy.service.config.config import Config
from panprivacy.service.config.tokens import Role
from panprivacy.service.journal import write_to_stderr
from panprivacy.service.server import Server
from panprivacy.service.sockets import Address, http_address, http_socket

_PAUSE: Final = 1.0
"""Seconds between two looks at the release store."""
_NOBODY: Final = "no token may read, so nobody can enter: panprivacy token board --may read"


def serve(
    config: Config, file: Path, listen: str, service: str | None, origins: Sequence[str] = ()
) -> None:
    """Show a release store in this process until SIGTERM or SIGINT.

    Args:
        config: a configuration that was loaded.
        file: where it is; its tokens are followed.
        listen: where the pages are served.
        service: where the service listens; None for what the configuration says.
        origins: of proxies in front of it, such as `https://numbers.example`.

    Raises:
        PlanError: an origin is none, the release store cannot be opened, or nothing can listen.
    """
    write_to_stderr()
    admitted = Origins(origins)
    board = Board(config, file)
    try:
        with http_socket(http_address(listen)) as sock:
            asked = service or config.server.address.url("http")
            app = Guard(_pages(board, asked), board.readers, admitted)
            name = sock.getsockname()
            where = Address(path=name) if isinstance(name, str) else Address(name[0], name[1])
            said = f"panprivacy: the dashboard is at {where.url('http')}\n"
            if not any(Role.read in token.may for token in config.tokens):
                said += f"panprivacy: {_NOBODY}\n"
            _Server(app, said).run(sockets=[sock])
    finally:
        board.close()


def _pages(board: Board, service: str) -> FastAPI:
    """Return the application that draws the pages."""
    outer = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    Pages(board, service)
    pages_app.on_startup(lambda: asyncio.create_task(_follow(board), name="follow"))
    ui.run_with(
        outer,
        title="panprivacy",
        tailwind=False,
        dark=False,
        language="en-US",
        binding_refresh_interval=None,
        show_welcome_message=False,
    )
    return outer


async def _follow(board: Board) -> None:
    """Keep what is shown up to date."""
    with suppress(asyncio.CancelledError):
        while True:
            await run.io_bound(board.follow)
            await asyncio.sleep(_PAUSE)


class _Pages:
    """Leaves each request to the application."""

    def taker(self, scope: object) -> None:
        """Take nothing."""


class _Server(Server):
    """A server whose connections are bounded, and which says where it listens once it does.

    Args:
        app: answers requests.
        said: what it says then.
    """

    def __init__(self, app: Guard, said: str) -> None:
        super().__init__(
            app,
            _Pages(),
            hurry=lambda: None,
            listens=partial(print, said, end="", file=sys.stderr, flush=True),
            sockets="websockets-sansio",
            patience=2,
        )

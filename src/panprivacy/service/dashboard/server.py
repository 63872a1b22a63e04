"""Server of the dashboard, until it is stopped."""

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

from panprivacy.service.config.config import Config
from panprivacy.service.config.tokens import Role
from panprivacy.service.dashboard.board import Board
from panprivacy.service.dashboard.guard import Guard, no_such_page
from panprivacy.service.dashboard.origins import Origins
from panprivacy.service.dashboard.pages import Pages
from panprivacy.service.journal import write_to_stderr
from panprivacy.service.server import Server
from panprivacy.service.sockets import Address, http_address, http_socket

_PAUSE: Final = 1.0
"""Seconds between two readings of the release store."""
_NOBODY: Final = "no token may read, so nobody can enter: panprivacy token board --may read"


def serve(
    config: Config, file: Path, listen: str, service: str | None, origins: Sequence[str] = ()
) -> None:
    """Serve the pages of a release store in this process until SIGTERM or SIGINT.

    Args:
        config: a configuration that was loaded.
        file: path of the configuration; its tokens are followed.
        listen: address of the pages.
        service: address of the service; None for that of the configuration.
        origins: origins of proxies in front of it, such as `https://numbers.example`.

    Raises:
        PlanError: an origin is invalid, the release store cannot be opened, or nothing can listen.
    """
    write_to_stderr()
    admitted = Origins(origins)
    board = Board(config, file)
    try:
        with http_socket(http_address(listen, 8643)) as sock:
            asked = service or config.server.address.url("http")
            app = Guard(_pages(board, asked), board.readers, admitted)
            name = sock.getsockname()
            where = Address(path=name) if isinstance(name, str) else Address(name[0], name[1])
            said = f"panprivacy: the dashboard is at {where.url('http')}\n"
            if not any(Role.read in token.may for token in config.tokens):
                said += f"panprivacy: {_NOBODY}\n"
            server = _Server(app, said)
            server.take_signals()
            server.run(sockets=[sock])
    finally:
        board.close()


def _pages(board: Board, service: str) -> FastAPI:
    """Return the application that draws the pages."""
    outer = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    Pages(board, service)
    pages_app.add_exception_handler(404, no_such_page)
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
    """Keep the displayed data up to date."""
    with suppress(asyncio.CancelledError):
        while True:
            await run.io_bound(board.follow)
            await asyncio.sleep(_PAUSE)


class _Pages:
    """Pages of the application itself: all requests are passed to it."""

    def taker(self, scope: object) -> None:
        """Return None: no request is handled without the application."""


class _Server(Server):
    """Server with a bounded number of connections, which reports its address once it listens.

    Args:
        app: answers requests.
        said: the report.
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

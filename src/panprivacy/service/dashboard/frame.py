"""The frame of all pages: links to the other pages, the age of the data, and updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from nicegui import ui

from panprivacy.service.dashboard.announcing import announcing
from panprivacy.service.dashboard.board import Board, Look
from panprivacy.service.dashboard.elements import at, link, tag
from panprivacy.service.dashboard.guard import LEAVE, token_of

_STYLE: Final = Path(__file__).with_name("style.css").read_text()
_SECONDS: Final = 1.0

Live = list[tuple[Look, Callable[[], None]]]
"""Functions that redraw when their stream has changed."""


@contextmanager
def framed(board: Board, service: str, name: str) -> Iterator[tuple[dict[str, Look], Live]]:
    """Build a page with its frame; yield the streams to display, and the list of redraws.

    Args:
        board: the data.
        service: the address of the service, for announced intrusions.
        name: name of the stream of the page; empty if there is none.
    """
    ui.add_head_html(f"<style>{_STYLE}</style>")
    ui.page_title(f"{name} · panprivacy" if name else "panprivacy")
    request = ui.context.client.request
    token = token_of(request.headers.get("cookie", "") if request else "")
    names = board.readers.streams(token)
    looks = {one: board.looks[one] for one in names}
    live: Live = []
    tag("a", "Skip to the numbers", "skip", href="#numbers")
    with tag("header", style="top"), tag("div"):
        link("panprivacy", "/", "brand")
        with tag("nav", aria_label="Streams"):
            for one in names:
                entry = link(one, f"/streams/{one}")
                if one == name:
                    entry.props["aria-current"] = "page"
        status = tag("span", "reading", "status", role="status")
        announcing(looks, service)
        with tag("form", method="post", action=at(LEAVE)):
            tag("button", "Leave", "plain")
    with tag("div", style="page", id="numbers", tabindex="-1"):
        alert = tag("div", " ", "alert hidden", role="alert")
        yield looks, live
    drawn = dict[int, int]()

    def tick() -> None:
        if board.readers.streams(token) != names:
            ui.navigate.to("/")
            ui.context.client.content.clear()  # a client that stays anyway gets no more data
            return
        _tell_status(status, alert, board, looks)
        for place, (look, draw) in enumerate(live):
            if drawn.get(place) != look.version:
                drawn[place] = look.version
                draw()

    tick()
    ui.timer(_SECONDS, tick)


def _tell_status(status: Any, alert: Any, board: Board, looks: Mapping[str, Look]) -> None:
    """Display the age of the data, and any trouble that prevents newer data."""
    newest = [
        look.history.known.newest[0].released
        for look in looks.values()
        if look.history.known.newest
    ]
    said = "live, nothing was released yet"
    if newest:
        said = f"live, newest answer {_ago(datetime.now(UTC) - max(newest))}"
    if board.trouble is not None:
        said = "not live"
        since = f"{board.seen:%Y-%m-%d %H:%M:%S} UTC" if board.seen else "before"
        text = f"The release store cannot be read: {board.trouble}. "
        alert.set_text(text + f"What is shown is what was known at {since}.")
    if board.seen is None and board.trouble is None:
        said = "reading"
    status.set_text(said)
    status.classes(**{"remove" if board.trouble is None else "add": "troubled"})
    alert.classes(**{"add" if board.trouble is None else "remove": "hidden"})


def _ago(span: timedelta) -> str:
    seconds = max(int(span.total_seconds()), 0)
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"

"""The button that announces an intrusion to the service, after two confirmations.

The dashboard has no token that may announce. The operator enters one, it is used for this one look,
and forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicegui import run, ui

from panprivacy.errors import PanPrivacyError
from panprivacy.service.client import UnsureError, announced, new_key
from panprivacy.service.dashboard.board import Look
from panprivacy.service.dashboard.elements import Check, SecretField, button, tag


def announcing(looks: Mapping[str, Look], service: str) -> None:
    """Build the button, if any stream plans for announced intrusions.

    Args:
        looks: the streams that may be displayed.
        service: the address of the service.
    """
    planned = {name: bool(look.promise.guarantee.intrusions) for name, look in looks.items()}
    if any(planned.values()):
        _Announcing(planned, service)


class _Announcing:
    """A button and its two confirmations.

    Args:
        streams: whether each stream plans for announcements.
        service: the address of the service.
    """

    def __init__(self, streams: Mapping[str, bool], service: str) -> None:
        self._service, self._key = service, new_key()
        self._button = button("The memory was seen…", self._open, "plain alarm")
        with ui.dialog() as self._dialog, tag("div", style="dialog", role="document"):
            with tag("div", style="dialog-step") as self._first:
                self._build_first(streams)
            with tag("div", style="dialog-step hidden") as self._second:
                self._build_second()
            self._said = tag("div", style="said", role="status")

    def _build_first(self, streams: Mapping[str, bool]) -> None:
        tag("h2", "Has somebody seen the memory of the service?")
        tag(
            "p",
            "Then announce it: the service adds fresh noise to its state, so that it may be seen "
            "once more. Whoever sees the memory sees all streams. This uses up one of the looks "
            "that were planned for, and makes answers of the window less exact.",
        )
        self._streams = {name: Check(name) for name, planned in streams.items() if planned}
        others = [name for name, planned in streams.items() if not planned]
        if others:
            tag(
                "p",
                f"No look is planned for in {', '.join(others)}: keep that from being seen again.",
                "small",
            )
        self._token = SecretField("A token that may announce")
        tag("p", "The dashboard holds none; it uses yours for this look, and forgets it.", "small")
        with tag("div", style="buttons"):
            button("Cancel", self._close)
            button("Go on", self._ask_again, "plain danger")

    def _build_second(self) -> None:
        tag("h2", "Announce it now?")
        self._asked = tag("p", " ")
        with tag("div", style="buttons"):
            button("No, go back", self._go_back)
            button("Yes, announce it", self._announce, "plain danger")

    def _open(self) -> None:
        self._said.clear()
        self._go_back()
        self._dialog.open()

    def _close(self) -> None:
        self._token.empty()
        self._dialog.close()

    def _go_back(self) -> None:
        self._first.classes(remove="hidden")
        self._second.classes(add="hidden")

    def _ask_again(self) -> None:
        self._said.clear()
        if not self._wanted:
            self._say("Choose at least one stream.")
        elif not self._token.value:
            self._say("Give a token that may announce.")
        else:
            self._asked.set_text(
                f"One look at {', '.join(self._wanted)} is announced. This cannot be taken back."
            )
            self._first.classes(add="hidden")
            self._second.classes(remove="hidden")

    @property
    def _wanted(self) -> list[str]:
        return [name for name, check in self._streams.items() if check.wanted]

    async def _announce(self) -> None:
        self._said.clear()
        token = self._token.value
        self._go_back()
        for stream in self._wanted:
            try:
                told = await run.io_bound(announced, self._service, stream, token, self._key)
            except UnsureError as error:
                self._say(f"{error}. Go on once more: it is announced once, however often you ask.")
                return
            except PanPrivacyError as error:
                self._say(str(error))
                return
            if told is not None:
                self._say(_made(stream, told))
        self._key = new_key()
        self._token.empty()

    def _say(self, text: str) -> None:
        with self._said:
            tag("p", text)


def _made(stream: str, told: Mapping[str, Any]) -> str:
    return (
        f"{stream}: announced, number {told['number']:,} of the window that began "
        f"{told['window_began']}; {told['left']:,} left."
    )

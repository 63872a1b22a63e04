"""Endpoints of published tables: their list, their bytes, and what they have in common."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Final

from starlette.responses import Response

from panprivacy.service.config.tokens import Role
from panprivacy.service.engine import Engine
from panprivacy.service.incoming.admission import Sender
from panprivacy.service.incoming.problems import Problem
from panprivacy.service.outgoing.exports import Piece
from panprivacy.service.outgoing.records import ListedSketch
from panprivacy.service.outgoing.returns import MOST_WINDOWS, ReturnRates, Series, series_of
from panprivacy.service.web.asked import HttpRequest
from panprivacy.service.web.paged import PagedAnswers

OF_SKETCHES: Final = ["stream", "since", "before", "limit"]
OF_OVERLAPS: Final = ["stream", "statistic", "group", "windows"]
_MOST_LISTED: Final = 10_000
_JSON: Final = {"Content-Type": "application/json"}
_BYTES: Final = {"Content-Type": "application/octet-stream"}

Allow = Callable[[HttpRequest, Role, str | None], str]


class ComparedTables:
    """Endpoints of published tables.

    Args:
        engine: the engine of the service.
        allow: checks the token of a request, and returns its name.
        answers: makes and limits answers.

    Attributes:
        rates: what was compared.
    """

    def __init__(self, engine: Engine, allow: Allow, answers: PagedAnswers) -> None:
        self._engine, self._allow, self._answers = engine, allow, answers
        self.rates = ReturnRates(engine.store)

    async def sketches(self, asked: HttpRequest) -> Response:
        """Return the list of published tables."""
        name = asked.query("stream")
        token = self._allowed(asked, name)
        since, before = asked.moment("since"), asked.moment("before")
        limit = asked.integer("limit", 1_000, _MOST_LISTED)

        def listed() -> Iterator[Piece]:
            store = self._engine.store
            found = store.sketches(stream=name, since=since, before=before, limit=limit)
            yield Piece(json.dumps([_plain(one) for one in found]).encode(), is_last=True)

        pieces = self._answers.made(token, listed())
        return await self._answers.answer(Sender(token, name or ""), pieces, _JSON)

    async def sketch(self, asked: HttpRequest) -> Response:
        """Return the bytes of a published table."""
        name, text = asked.path["name"], asked.path["id"]
        token = self._allowed(asked, name)
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
        read = self._engine.store.sketch
        data = await asyncio.to_thread(read, name, number)
        if data is None:
            raise Problem(404, "there is no such table, or it is not kept any more")
        pieces = self._answers.made(token, iter([Piece(data, is_last=True)]))
        return await self._answers.answer(Sender(token, name), pieces, _BYTES)

    async def overlaps(self, asked: HttpRequest) -> Response:
        """Return return rates and intersections of all pairs of the newest windows."""
        name = asked.query("stream")
        token = self._allowed(asked, name)
        if name is None:
            raise Problem(400, "stream must say whose windows are compared")
        most = asked.integer("windows", 12, MOST_WINDOWS)
        series = self._series(name, asked.query("statistic"), asked.query("group"))

        def compared() -> Iterator[Piece]:
            yield from self.rates.as_json(self.rates.windows(name, series, most))

        pieces = self._answers.made(token, compared())
        return await self._answers.answer(Sender(token, name), pieces, _JSON)

    def _allowed(self, asked: HttpRequest, name: str | None) -> str:
        """Check token and stream of a request, and return the name of the token."""
        token = self._allow(asked, Role.read, name)
        if name is not None and name not in self._engine.streams:
            raise Problem(404, "there is no such stream")
        return token

    def _series(self, name: str, statistic: str | None, group: str | None) -> Series:
        """Return the series that a request asks for."""
        there = series_of(self._engine.streams[name].config)
        if not there:
            raise Problem(404, "this stream publishes no tables: its statistic must be overlap")
        wanted = there[0][0] if statistic is None else statistic
        if wanted not in {label for label, _ in there}:
            raise Problem(404, "statistic must be one of those that publish tables")
        if (wanted, group) not in there:
            reason = "group must be one of the groups of the stream"
            if group is None:
                raise Problem(400, reason)
            raise Problem(404, f"{reason}, or left out without groups")
        return wanted, group


def _plain(one: ListedSketch) -> dict[str, object]:
    """Return a row of the list as JSON has it."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(one).items()
    }

"""The page of one stream."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Final

import numpy as np
from nicegui import run, ui

from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.service.dashboard import charts
from panprivacy.service.dashboard.board import Look
from panprivacy.service.dashboard.cohorts import CohortTriangle
from panprivacy.service.dashboard.distribution import DistributionCards, of_group
from panprivacy.service.dashboard.elements import Choice, PageElement, button, link, tag
from panprivacy.service.dashboard.frame import Live
from panprivacy.service.dashboard.parts import (
    chart,
    gauges,
    newest_table,
    sentence,
    show,
    tiles,
    when,
)
from panprivacy.service.dashboard.series import ChartPoints, SeriesName, by_group, histograms
from panprivacy.service.outgoing.records import Published
from panprivacy.statistics.plan import Plan

_SPANS: Final = {
    "everything": None,
    "1 hour": 3_600,
    "1 day": 86_400,
    "7 days": 7 * 86_400,
    "30 days": 30 * 86_400,
    "1 year": 365 * 86_400,
}
_MOST_TILES: Final = 8


class StreamPage:
    """The parts of the page of a stream.

    Args:
        look: the data about the stream.
        live: the list of redraws.
        drawing: held while a picture of a state is drawn, which takes memory.
    """

    def __init__(self, look: Look, live: Live, drawing: asyncio.Lock) -> None:
        self._look, self._drawing, self._drawn = look, drawing, False
        self._zone = look.promise.config.zone
        with tag("section", style="card"):
            with tag("div", style="head"):
                tag("h2", "Now")
                self._group = Choice("Group", self.draw)
                self._when = tag("span", " ", "small")
            self._tiles = tag("div", style="tiles")
        with tag("section", style="card"):
            with tag("div", style="head"):
                tag("h2", "Over time")
                with tag("div", style="controls"):
                    self._question = Choice("Question", self._draw_line)
                    self._span = Choice("Show", self._draw_line, list(_SPANS))
            self._line = chart()
            self._line_says = tag("p", " ", "small")
        self._distribution = DistributionCards(look)
        promise = look.promise
        self._cohorts = CohortTriangle(promise.config, promise.guarantee, look.cohorts)
        self._bars = tag("section", style="card hidden")
        with self._bars:
            tag("h2", "Activity")
            self._bars_question = Choice("Question", self._draw_bars)
            self._bars_chart = chart()
        self._groups = tag("section", style="card hidden")
        with self._groups:
            tag("h2", "By group")
            self._groups_question = Choice("Question", self._draw_groups)
            self._groups_chart = chart()
            self._groups_says = tag("p", " ", "small")
        with tag("section", style="card"):
            self._gauges = self._build_spent()
        self._intruder = tag("section", style="card")
        with self._intruder:
            self._build_intruder()
        with tag("section", style="card"):
            tag("h2", "The newest answers")
            self._table = tag("div", style="scroll")
        live.append((look, self.draw))

    def _build_spent(self) -> PageElement:
        """Build the card of the budget; return the place of its gauges."""
        promise = self._look.promise
        tag("h2", "Privacy that is spent")
        place = tag("div", style="gauges two")
        tag("p", sentence(f"{promise.guarantee}."), "small")
        link("What a seized state can tell about a person", f"/streams/{promise.name}/explain")
        return place

    def draw(self) -> None:
        """Display the current data."""
        known = self._look.history.known
        self._group.offer(
            list(dict.fromkeys(row.group for row in known.newest if row.group is not None))
        )
        self._when.set_text(when(known.newest, self._look))
        self._tiles.clear()
        with self._tiles:
            tiles(self._of_group(known.newest), self._look, _MOST_TILES)
        self._draw_line()
        self._distribution.draw(self._group.chosen)
        self._cohorts.draw()
        self._draw_bars()
        self._draw_groups()
        self._gauges.clear()
        with self._gauges:
            gauges(self._look)
        self._table.clear()
        with self._table:
            newest_table(known.newest, self._look)
        if known.newest and not self._drawn:
            self._drawn = True
            ui.timer(0, self._draw_states, once=True)

    def _of_group(self, rows: Sequence[Published]) -> list[Published]:
        return of_group(rows, self._group.chosen)

    def _draw_line(self) -> None:
        found: dict[str, tuple[SeriesName, ChartPoints]] = {}
        for asked, points in self._look.history.known.points.items():
            if asked.group in (None, self._group.chosen):
                found[str(asked)] = asked, points
        others = {name: one for name, one in found.items() if not one[0].is_bin}
        found = others or found
        self._question.offer(list(found))
        self._line.classes(**{"remove" if found else "add": "hidden"})
        if not found:
            self._line_says.set_text("Nothing was released yet.")
            return
        asked, points = found[self._question.chosen]
        span = _SPANS[self._span.chosen]
        if span is not None:
            points = points[points["at"] >= points["at"][-1] - span]
        unit = self._look.unit(asked.statistic, asked.question)
        show(self._line, charts.over_time(points, unit, self._zone))
        many = "1 answer" if len(points) == 1 else f"{len(points):,} answers"
        says = f"{many}; the band is their interval; times of {self._zone}."
        if not points["complete"].all():
            says += " A diamond is not a whole window."
        if lost := int(np.isnan(points["value"]).sum()):
            says += f" {lost:,} answers are lost, and leave a gap."
        self._line_says.set_text(says)

    def _draw_bars(self) -> None:
        found = histograms(self._of_group(self._look.history.known.newest))
        by_name = {str(asked): (asked, bars) for asked, bars in found.items()}
        self._bars.classes(**{"remove" if found else "add": "hidden"})
        self._bars_question.offer(list(by_name))
        if found:
            asked, bars = by_name[self._bars_question.chosen]
            show(
                self._bars_chart,
                charts.by_number(bars, self._look.unit(asked.statistic, asked.question)),
            )

    def _draw_groups(self) -> None:
        found = by_group(self._look.history.known.newest)
        by_name = {str(asked): (asked, bars) for asked, bars in found.items()}
        self._groups.classes(**{"remove" if found else "add": "hidden"})
        self._groups_question.offer(list(by_name))
        if found:
            asked, bars = by_name[self._groups_question.chosen]
            show(
                self._groups_chart,
                charts.by_label(bars, self._look.unit(asked.statistic, asked.question)),
            )
            height = 60 + 34 * min(len(bars), charts.MOST_BARS)
            self._groups_chart.style(f"height: {height}px")
            rest = len(bars) - charts.MOST_BARS
            self._groups_says.set_text(f"And {rest:,} smaller groups." if rest > 0 else " ")

    def _build_intruder(self) -> None:
        tag("h2", "What an intruder sees")
        pictured = list(self._look.promise.pictured)
        told = (
            "Left, what an ordinary program keeps; right, what this one keeps. Both are throw-away "
            "tables, drawn with fresh coins and filled with made-up users, as many as the newest "
            "answer says. Nothing of the service's own memory is in them."
            if pictured
            else "What goes on from step to step is not drawn. What it tells is on the page above."
        )
        tag("p", told, "lead")
        self._statistic = Choice("Statistic", self._redraw, pictured)
        self._seen = tag("div", style="seen")
        if pictured:
            button("Draw again, with fresh coins", self._redraw)

    def _redraw(self) -> None:
        ui.timer(0, self._draw_states, once=True)

    async def _draw_states(self) -> None:
        label = self._statistic.chosen
        plan = self._look.promise.pictured.get(label)
        if plan is None:
            return
        rows = self._of_group(self._look.history.known.newest)
        rows = [row for row in rows if row.statistic == label]
        async with self._drawing:
            try:
                drawn = await run.io_bound(_pictures, rows, plan)
            except PanPrivacyError as error:
                self._seen.clear()
                with self._seen:
                    tag("p", f"It cannot be drawn: {error}", "small")
                return
        if drawn is None:
            return
        self._seen.clear()
        says = (
            "A plain table of the same made-up users: what everyone did can be read in it.",
            "A state of this program with the same made-up users: noise.",
        )
        with self._seen:
            for picture, words in zip(drawn, says, strict=True):
                tag("img", alt=words, src=_data_url(picture))


def _pictures(rows: Sequence[Published], plan: Plan) -> tuple[bytes, bytes]:
    """Return both pictures; raise `PlanError` if Matplotlib cannot be loaded, which says why."""
    try:
        from panprivacy.service.dashboard.seized import pictures  # noqa: PLC0415 - its Matplotlib
    except (ImportError, OSError) as error:  # it writes a cache when it is loaded
        message = f"Matplotlib cannot be loaded: {' '.join(str(error).split())}"
        raise PlanError(message) from None
    return pictures(rows, plan)


def _data_url(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"

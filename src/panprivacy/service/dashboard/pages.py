"""The pages: an overview, a page for each stream, and the information in a seized state."""

from __future__ import annotations

import asyncio
from typing import Final

from nicegui import ui

from panprivacy.service.dashboard import charts
from panprivacy.service.dashboard.board import Board, Look
from panprivacy.service.dashboard.densities import ValueDensity
from panprivacy.service.dashboard.elements import link, tag
from panprivacy.service.dashboard.frame import Live, framed
from panprivacy.service.dashboard.history import Known
from panprivacy.service.dashboard.parts import (
    chart,
    explanation,
    gauges,
    sentence,
    show,
    tiles,
    when,
)
from panprivacy.service.dashboard.series import SeriesName, by_group, histograms
from panprivacy.service.dashboard.stream_page import StreamPage
from panprivacy.service.outgoing.histograms import published_bins
from panprivacy.statistics.explain.sentences import NAMED, explained

_MOST_ON_A_CARD: Final = 4
_SOURCES: Final = (
    "It was computed from the configuration and the release store; the state of the service is out "
    "of reach from here."
)


class Pages:
    """Builder of the pages.

    Args:
        board: the data.
        service: the address of the service, for announced intrusions.
    """

    def __init__(self, board: Board, service: str) -> None:
        self._board, self._service = board, service
        self._drawing = asyncio.Lock()
        ui.page("/")(self.overview)
        ui.page("/streams/{name}")(self.stream)
        ui.page("/streams/{name}/explain")(self.explanation)

    def overview(self) -> None:
        """Build the overview of all streams that the token may read."""
        with framed(self._board, self._service, "") as (looks, live):
            with tag("div"):
                tag("h1", "What was released")
                tag(
                    "p",
                    "Each number is noised before it leaves. Beside it stands the interval that "
                    "holds the truth, as often as it says.",
                    "lead",
                )
            for look in looks.values():
                _card(look, live)

    def stream(self, name: str) -> None:
        """Build the page of one stream."""
        with framed(self._board, self._service, name) as (looks, live):
            if name not in looks:
                tag("h1", "There is no such stream")
                return
            look = looks[name]
            with tag("div"):
                tag("h1", name)
                for plan in look.promise.plans.values():
                    tag("p", sentence(plan.question), "lead")
            StreamPage(look, live, self._drawing)

    def explanation(self, name: str) -> None:
        """Build the page about the information in a seized state of a stream."""
        with framed(self._board, self._service, name) as (looks, live):
            if name not in looks:
                tag("h1", "There is no such stream")
                return
            look = looks[name]
            tag("h1", f"What a seized state of {name} can tell")
            link(f"Back to {name}", f"/streams/{name}")
            place = tag("div", style="explained")

            def draw() -> None:
                place.clear()
                with place:
                    for section in explained(look.promise.states(look.spent), [_SOURCES, NAMED]):
                        with tag("section", style="card"):
                            if section.title:
                                tag("h2", section.title)
                            for part in section.parts:
                                explanation(part)

            live.append((look, draw))


def _card(look: Look, live: Live) -> None:
    """Build the card of a stream on the overview."""
    name = look.promise.name
    with tag("section", style="card"):
        with tag("div", style="head"):
            with tag("h2"):
                link(name, f"/streams/{name}")
            ends = tag("span", " ", "small")
        with tag("div", style="two"):
            with tag("div", style="side"):
                numbers = tag("div", style="tiles")
                budget = tag("div", style="gauges")
            drawn = chart()

    def draw() -> None:
        known = look.history.known
        ends.set_text(when(known.newest, look))
        numbers.clear()
        with numbers:
            tiles(known.newest, look, _MOST_ON_A_CARD)
        budget.clear()
        with budget:
            gauges(look)
        if known.newest:
            show(drawn, _first_chart(known, look))

    live.append((look, draw))


def _first_chart(known: Known, look: Look) -> charts.Options:
    """Return the chart of a stream if there is room for only one."""
    for found, drawn in ((by_group, charts.by_label), (histograms, charts.by_number)):
        for asked, bars in found(known.newest).items():
            return drawn(bars, look.unit(asked.statistic, asked.question))
    for bins in published_bins(known.newest):
        return charts.density(ValueDensity.of(bins))
    asked = SeriesName.of(known.newest[0])
    zone = look.promise.config.zone
    return charts.over_time(known.points[asked], look.unit(asked.statistic, asked.question), zone)

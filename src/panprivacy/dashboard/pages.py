"""The pages: an overview, a page a stream, and what a seized state can tell."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
from nicegui import run, ui

from panprivacy.dashboard import charts
from panprivacy.dashboard.announcing import announcing
from panprivacy.dashboard.board import Board, Look
from panprivacy.dashboard.elements import Choice, button, tag
from panprivacy.dashboard.guard import LEAVE, token_of
from panprivacy.dashboard.history import Known
from panprivacy.dashboard.seized import pictures
from panprivacy.dashboard.series import Asked, Points, by_group, histograms
from panprivacy.errors import PanPrivacyError
from panprivacy.explain.bounds import Bound
from panprivacy.explain.sentences import BELIEFS, NAMED, Part, explained
from panprivacy.guarantee import rounded_up
from panprivacy.service.outgoing.records import Published
from panprivacy.statistics.grid import time_zone
from panprivacy.statistics.release import shown_number

_STYLE: Final = Path(__file__).with_name("style.css").read_text()
_SECONDS: Final = 1.0
_SPANS: Final = {
    "everything": None,
    "1 hour": 3_600,
    "1 day": 86_400,
    "7 days": 7 * 86_400,
    "30 days": 30 * 86_400,
    "1 year": 365 * 86_400,
}
_MOST_TILES: Final = 8
_MOST_ON_A_CARD: Final = 4
_MOST_ROWS: Final = 60
_SOURCES: Final = (
    "It was computed from the configuration and the release store; the state of the service is out "
    "of reach from here."
)


class Pages:
    """Builds the pages.

    Args:
        board: what they show.
        service: where the service listens, for announced intrusions.
    """

    def __init__(self, board: Board, service: str) -> None:
        self._board, self._service = board, service
        self._drawing = asyncio.Lock()
        ui.page("/")(self.overview)
        ui.page("/streams/{name}")(self.stream)
        ui.page("/streams/{name}/explain")(self.explanation)

    def overview(self) -> None:
        """All streams that the token may read."""
        with self._page("") as (looks, live):
            with tag("div"):
                tag("h1", "What was released")
                tag(
                    "p",
                    "Each number is noised before it leaves. Beside it stands the interval that "
                    "holds the truth, as often as it says.",
                    "lead",
                )
            for look in looks.values():
                _card_of_stream(look, live)

    def stream(self, name: str) -> None:
        """One stream."""
        with self._page(name) as (looks, live):
            if name not in looks:
                tag("h1", "There is no such stream")
                return
            look = looks[name]
            with tag("div"):
                tag("h1", name)
                for plan in look.promise.plans.values():
                    tag("p", _sentence(plan.question), "lead")
            _StreamPage(look, live, self._drawing)

    def explanation(self, name: str) -> None:
        """What a seized state of a stream can tell about anybody."""
        with self._page(name) as (looks, live):
            if name not in looks:
                tag("h1", "There is no such stream")
                return
            look = looks[name]
            tag("h1", f"What a seized state of {name} can tell")
            tag("a", f"Back to {name}", href=f"/streams/{name}")
            place = tag("div", style="explained")

            def draw() -> None:
                place.clear()
                with place:
                    for section in explained(look.promise.states(look.spent), [_SOURCES, NAMED]):
                        with tag("section", style="card"):
                            if section.title:
                                tag("h2", section.title)
                            for part in section.parts:
                                _part(part)

            live.append(draw)

    @contextmanager
    def _page(self, name: str) -> Iterator[tuple[dict[str, Look], list[Callable[[], None]]]]:
        """A page with what all have; gives the streams to show, and what to call when they change.

        Args:
            name: of the stream that it is about; empty for none.
        """
        ui.add_head_html(f"<style>{_STYLE}</style>")
        ui.page_title(f"{name} · panprivacy" if name else "panprivacy")
        request = ui.context.client.request
        token = token_of(request.headers.get("cookie", "") if request else "")
        names = self._board.readers.streams(token)
        looks = {one: self._board.looks[one] for one in names}
        live: list[Callable[[], None]] = []
        tag("a", "Skip to the numbers", "skip", href="#numbers")
        with tag("header", style="top"), tag("div"):
            tag("a", "panprivacy", "brand", href="/")
            with tag("nav", aria_label="Streams"):
                for one in names:
                    link = tag("a", one, href=f"/streams/{one}")
                    if one == name:
                        link.props["aria-current"] = "page"
            status = tag("span", "reading", "status", role="status")
            announcing(looks, self._service)
            with tag("form", method="post", action=LEAVE):
                tag("button", "Leave", "plain")
        with tag("div", style="page", id="numbers", tabindex="-1"):
            alert = tag("div", " ", "alert hidden", role="alert")
            yield looks, live
        drawn = -1

        def tick() -> None:
            nonlocal drawn
            if self._board.readers.streams(token) != names:
                ui.navigate.to("/")
                return
            _tell_status(status, alert, self._board, looks)
            if drawn != self._board.version:
                drawn = self._board.version
                for draw in live:
                    draw()

        tick()
        ui.timer(_SECONDS, tick)


def _tell_status(status: Any, alert: Any, board: Board, looks: dict[str, Look]) -> None:
    """How new what is shown is, and whether anything keeps it from being newer."""
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


def _ago(span: Any) -> str:
    seconds = max(int(span.total_seconds()), 0)
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def _sentence(question: str) -> str:
    return question[:1].upper() + question[1:]


def _card_of_stream(look: Look, live: list[Callable[[], None]]) -> None:
    """A stream on the overview."""
    name = look.promise.name
    with tag("section", style="card"):
        with tag("div", style="head"):
            with tag("h2"):
                tag("a", name, href=f"/streams/{name}")
            ends = tag("span", " ", "small")
        with tag("div", style="two"):
            with tag("div", style="side"):
                tiles = tag("div", style="tiles")
                gauges = tag("div", style="gauges")
            chart = _chart()

    def draw() -> None:
        known = look.history.known
        ends.set_text(_when(known.newest, look))
        tiles.clear()
        with tiles:
            _tiles(known.newest, look, _MOST_ON_A_CARD)
        gauges.clear()
        with gauges:
            _gauges(look)
        if known.newest:
            _show(chart, _first_chart(known, look))

    live.append(draw)


def _first_chart(known: Known, look: Look) -> charts.Options:
    """What is drawn of a stream where there is room for one chart."""
    for found, drawn in ((by_group, charts.by_label), (histograms, charts.by_number)):
        for asked, bars in found(known.newest).items():
            return drawn(bars, look.unit(asked.statistic))
    asked = Asked.of(known.newest[0])
    zone = look.promise.config.zone
    return charts.over_time(known.points[asked], look.unit(asked.statistic), zone)


def _when(newest: Sequence[Published], look: Look) -> str:
    """Of which window the newest release is."""
    if not newest:
        return "nothing was released yet"
    one = newest[0]
    zone = look.promise.config.zone
    end = (one.end or one.released).astimezone(time_zone(zone))
    whole = "" if one.complete else ", not a whole window"
    return f"newest answer: up to {end:%Y-%m-%d %H:%M:%S} {zone}{whole}"


def _tiles(rows: Sequence[Published], look: Look, most: int) -> None:
    """The newest numbers; where there are others, without those that are drawn as bars."""
    drawn = histograms(rows)
    others = [row for row in rows if Asked.of(row)._replace(arguments="") not in drawn]
    told = others or rows
    for row in told[:most]:
        with tag("div", style="tile"):
            group = "" if row.group is None else f" · {row.group}"
            tag("div", f"{Asked.of(row)}{group}", "name")
            value, low, high = _shown(row, look)
            tag("div", value, "value")
            if row.value is None:
                tag("div", "more users came than were planned for", "note")
            else:
                tag("div", f"{low} to {high}, {100 * row.confidence:g} %", "ends")
            if row.note:
                tag("div", row.note, "note")
    if len(told) > most:
        tag("div", f"and {len(told) - most:,} more", "small")
    if not rows:
        tag("p", "The first answer comes at the end of the window.", "small")


def _shown(row: Published, look: Look) -> tuple[str, ...]:
    """The value and both ends for people."""
    told = []
    for number in (row.value, row.low, row.high):
        text = "lost" if number is None else shown_number(number, look.unit(row.statistic))
        told.append("no limit" if text == "inf" else text)
    return tuple(told)


def _gauges(look: Look) -> None:
    """How much of the budget is spent, of a window and of a year."""
    spent, year, guarantee = look.spent, look.year, look.promise.guarantee
    if spent is None or year is None:
        return
    made = f"{spent.releases.made:,} of {spent.releases.planned:,} answers made"
    if spent.announced.planned:
        made += f", {spent.announced.made} of {spent.announced.planned} looks announced"
    if spent.begun > 1:
        made += f"; begun {spent.begun} times, and who is in all of them loses as often"
    _gauge(
        "Whole life" if look.promise.lasting else "This window",
        f"epsilon {_epsilon(spent.epsilon)} of {_epsilon(guarantee.epsilon)} for one "
        f"{guarantee.adjacency}, whose odds change {_odds(guarantee.epsilon)} at most",
        spent.epsilon / guarantee.epsilon,
        made,
    )
    if not look.promise.lasting:
        _gauge(
            "Somebody who is in every window for a year",
            f"epsilon {_epsilon(year.loss)} of {_epsilon(year.whole_loss)}, if one is seized",
            year.loss / year.whole_loss,
            f"{year.windows:,} of {year.all_windows:,} windows of 365 days",
        )


def _epsilon(epsilon: Fraction) -> str:
    return f"{rounded_up(epsilon, 3):,f}" if epsilon else "0"


def _odds(epsilon: Fraction) -> str:
    odds = Bound(epsilon).odds
    return "beyond measure" if odds is None else f"{rounded_up(odds, 3):,f} times"


def _gauge(name: str, says: str, share: Fraction, more: str) -> None:
    percent = min(100 * float(share), 100.0)
    with tag("div", style="gauge"):
        tag("div", name, "name")
        with tag(
            "div", style="meter", role="meter", aria_label=f"{name}: {says}",
            aria_valuemin="0", aria_valuemax="100", aria_valuenow=f"{percent:.0f}",
        ):  # fmt: skip
            tag("div", style="full" if share > 1 else "").style(f"width: {percent:.2f}%")
        tag("div", says)
        tag("div", more, "small")


class _StreamPage:
    """The parts of the page of a stream.

    Args:
        look: what is known of it.
        live: what is called when that changes.
        drawing: held while a picture of a state is drawn, which takes memory.
    """

    def __init__(self, look: Look, live: list[Callable[[], None]], drawing: asyncio.Lock) -> None:
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
            self._line = _chart()
            self._line_says = tag("p", " ", "small")
        self._bars = tag("section", style="card hidden")
        with self._bars:
            tag("h2", "Activity")
            self._bars_question = Choice("Question", self._draw_bars)
            self._bars_chart = _chart()
        self._groups = tag("section", style="card hidden")
        with self._groups:
            tag("h2", "By group")
            self._groups_question = Choice("Question", self._draw_groups)
            self._groups_chart = _chart()
            self._groups_says = tag("p", " ", "small")
        with tag("section", style="card"):
            tag("h2", "Privacy that is spent")
            self._gauges = tag("div", style="gauges two")
            tag("p", _sentence(f"{look.promise.guarantee}."), "small")
            name = look.promise.name
            tag("a", "What a seized state can tell about a person", href=f"/streams/{name}/explain")
        self._intruder = tag("section", style="card")
        with self._intruder:
            self._build_intruder()
        with tag("section", style="card"):
            tag("h2", "The newest answers")
            self._table = tag("div", style="scroll")
        live.append(self.draw)

    def draw(self) -> None:
        """Show what is known now."""
        known = self._look.history.known
        self._group.offer(sorted({row.group for row in known.newest if row.group is not None}))
        self._when.set_text(_when(known.newest, self._look))
        self._tiles.clear()
        with self._tiles:
            _tiles(self._of_group(known.newest), self._look, _MOST_TILES)
        self._draw_line()
        self._draw_bars()
        self._draw_groups()
        self._gauges.clear()
        with self._gauges:
            _gauges(self._look)
        self._table.clear()
        with self._table:
            _table(known.newest, self._look)
        if known.newest and not self._drawn:
            self._drawn = True
            ui.timer(0, self._draw_states, once=True)

    def _of_group(self, rows: Sequence[Published]) -> list[Published]:
        group = self._group.chosen
        return [row for row in rows if row.group is None or row.group == group]

    def _draw_line(self) -> None:
        found: dict[str, tuple[Asked, Points]] = {}
        for asked, points in self._look.history.known.points.items():
            if asked.group in (None, self._group.chosen):
                found[str(asked)] = asked, points
        self._question.offer(list(found))
        self._line.classes(**{"remove" if found else "add": "hidden"})
        if not found:
            self._line_says.set_text("Nothing was released yet.")
            return
        asked, points = found[self._question.chosen]
        span = _SPANS[self._span.chosen]
        if span is not None:
            points = points[points["at"] >= points["at"][-1] - span]
        unit = self._look.unit(asked.statistic)
        _show(self._line, charts.over_time(points, unit, self._zone))
        says = f"{len(points):,} answers; the band is their interval; times of {self._zone}."
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
            _show(self._bars_chart, charts.by_number(bars, self._look.unit(asked.statistic)))

    def _draw_groups(self) -> None:
        found = by_group(self._look.history.known.newest)
        by_name = {str(asked): (asked, bars) for asked, bars in found.items()}
        self._groups.classes(**{"remove" if found else "add": "hidden"})
        self._groups_question.offer(list(by_name))
        if found:
            asked, bars = by_name[self._groups_question.chosen]
            _show(self._groups_chart, charts.by_label(bars, self._look.unit(asked.statistic)))
            height = 60 + 34 * min(len(bars), charts.MOST_BARS)
            self._groups_chart.style(f"height: {height}px")
            rest = len(bars) - charts.MOST_BARS
            self._groups_says.set_text(f"And {rest:,} smaller groups." if rest > 0 else " ")

    def _build_intruder(self) -> None:
        tag("h2", "What an intruder sees")
        tag(
            "p",
            "Left, what an ordinary program keeps; right, what this one keeps. Both are throw-away "
            "tables, drawn with fresh coins and filled with made-up users, as many as the newest "
            "answer says. Nothing of the service's own memory is in them.",
            "lead",
        )
        pictured = list(self._look.promise.pictured)
        self._statistic = Choice("Statistic", self._redraw, pictured)
        self._seen = tag("div", style="seen")
        if pictured:
            button("Draw again, with fresh coins", self._redraw)
        else:
            with self._seen:
                tag("p", "What goes on from step to step has no table to draw.", "small")

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
                drawn = await run.io_bound(pictures, rows, plan)
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


def _chart() -> Any:
    return ui.echart({}, renderer="svg").classes("chart")


def _show(chart: Any, options: charts.Options) -> None:
    chart.options.clear()
    chart.options.update(options)
    chart.update()


def _data_url(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _table(rows: Sequence[Published], look: Look) -> None:
    """The rows of a release."""
    if not rows:
        tag("p", "Nothing was released yet.", "small")
        return
    with tag("table"):
        with tag("thead"), tag("tr"):
            tag("th", "answer", scope="col")
            for head in ("value", "low", "high"):
                tag("th", head, "number", scope="col")
        with tag("tbody"):
            for row in rows[:_MOST_ROWS]:
                with tag("tr"):
                    with tag("td"):
                        group = "" if row.group is None else f" · {row.group}"
                        tag("div", f"{Asked.of(row)}{group}")
                        if row.note:
                            tag("div", row.note, "note")
                    for text in _shown(row, look):
                        tag("td", text, "number")
    if len(rows) > _MOST_ROWS:
        tag("p", f"And {len(rows) - _MOST_ROWS:,} more, in /v1/releases.", "small")


def _part(part: Part) -> None:
    """A part of an explanation."""
    tag("h3", part.heading)
    if part.facts:
        with tag("dl"):
            for name, says in part.facts.items():
                tag("dt", name)
                tag("dd", says)
    for sentence in part.sentences:
        tag("p", sentence)
    if part.beliefs:
        with tag("div", style="scroll"), tag("table"):
            with tag("thead"), tag("tr"):
                for head in BELIEFS:
                    tag("th", head, "number", scope="col")
            with tag("tbody"):
                for row in part.beliefs:
                    with tag("tr"):
                        for cell in row:
                            tag("td", cell, "number")
    for sentence in part.after:
        tag("p", sentence)

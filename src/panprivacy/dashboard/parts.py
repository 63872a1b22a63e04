"""Parts of which several pages are made."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from nicegui import ui

from panprivacy.dashboard import charts
from panprivacy.dashboard.board import Look
from panprivacy.dashboard.elements import tag
from panprivacy.dashboard.series import SeriesName, histograms
from panprivacy.explain.sentences import BELIEFS, Part
from panprivacy.guarantee import PrivacyLoss, shown
from panprivacy.service.outgoing.records import Published
from panprivacy.statistics.grid import time_zone
from panprivacy.statistics.notes import shown_number

_MOST_ROWS: Final = 60


def chart() -> Any:
    """A chart, empty as yet."""
    return ui.echart({}, renderer="svg").classes("chart")


def show(chart: Any, options: charts.Options) -> None:
    """Draw something else on a chart."""
    chart.options.clear()
    chart.options.update(options)
    chart.update()


def sentence(question: str) -> str:
    """The same with a capital letter."""
    return question[:1].upper() + question[1:]


def when(newest: Sequence[Published], look: Look) -> str:
    """Of which window the newest release is."""
    if not newest:
        return "nothing was released yet"
    one = newest[0]
    zone = look.promise.config.zone
    end = (one.end or one.released).astimezone(time_zone(zone))
    whole = "" if one.complete else ", not a whole window"
    return f"newest answer: up to {end:%Y-%m-%d %H:%M:%S} {zone}{whole}"


def tiles(rows: Sequence[Published], look: Look, most: int) -> None:
    """The newest numbers; where there are others, without those that are drawn as bars."""
    drawn = histograms(rows)
    others = [row for row in rows if SeriesName.of(row)._replace(arguments="") not in drawn]
    told = others or rows
    for row in told[:most]:
        with tag("div", style="tile"):
            tag("div", _called(row), "name")
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


def newest_table(rows: Sequence[Published], look: Look) -> None:
    """The rows of a release."""
    if not rows:
        tag("p", "Nothing was released yet.", "small")
        return
    with tag("table"):
        with tag("thead"), tag("tr"):
            tag("th", "answer", scope="col")
            for head in ("value", "low", "high", "uncut estimate", "standard error"):
                tag("th", head, "number", scope="col")
        with tag("tbody"):
            for row in rows[:_MOST_ROWS]:
                with tag("tr"):
                    with tag("td"):
                        tag("div", _called(row))
                        if row.note:
                            tag("div", row.note, "note")
                    for text in (*_shown(row, look), *_measured(row, look)):
                        tag("td", text, "number")
    if len(rows) > _MOST_ROWS:
        tag("p", f"And {len(rows) - _MOST_ROWS:,} more, in /v1/releases.", "small")


def _shown(row: Published, look: Look) -> tuple[str, ...]:
    """The value and both ends for people."""
    told = []
    for number in (row.value, row.low, row.high):
        text = "lost" if number is None else shown_number(number, look.unit(row.statistic))
        told.append("no limit" if text == "inf" else text)
    return tuple(told)


def _measured(row: Published, look: Look) -> tuple[str, ...]:
    """The estimate before it is cut and its standard error; empty where they are not known."""
    unit = look.unit(row.statistic)
    numbers = row.estimate, row.standard_error
    return tuple("" if number is None else shown_number(number, unit) for number in numbers)


def _called(row: Published) -> str:
    """What an answer is called, with its group."""
    return f"{SeriesName.of(row)}{'' if row.group is None else f' · {row.group}'}"


def gauges(look: Look) -> None:
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
        f"{_loss(spent.loss)} of {_numbers(guarantee.loss)} for one {guarantee.adjacency}, whose "
        f"odds change {_odds(guarantee.loss)}",
        spent.loss.share_of(guarantee.loss),
        made,
    )
    if not look.promise.lasting:
        seized = f"{year.announced:,} announced as seen and" if year.announced else "with"
        _gauge(
            "Somebody who is in every window for a year",
            f"{_loss(year.loss)} of {_numbers(year.whole_loss)}, {seized} one seized",
            year.loss.share_of(year.whole_loss),
            f"{year.windows:,} of {year.all_windows:,} windows of 365 days",
        )


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


def _loss(loss: PrivacyLoss) -> str:
    return f"epsilon {_numbers(loss)}"


def _numbers(loss: PrivacyLoss) -> str:
    delta = f" and delta {shown(loss.delta, 3)}" if loss.delta else ""
    return f"{shown(loss.epsilon, 3)}{delta}"


def _odds(loss: PrivacyLoss) -> str:
    if loss.odds is None:
        return "beyond measure"
    rarely = f", but for outcomes of probability {shown(loss.exceptions, 3)}" if loss.delta else ""
    return f"{shown(loss.odds, 3)} times at most{rarely}"


def explanation(part: Part) -> None:
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

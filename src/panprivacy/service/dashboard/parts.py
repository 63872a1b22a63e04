"""Parts that several pages use."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from nicegui import ui

from panprivacy.service.dashboard import charts
from panprivacy.service.dashboard.board import Look
from panprivacy.service.dashboard.elements import tag
from panprivacy.service.dashboard.promise import Year
from panprivacy.service.dashboard.series import SeriesName, histograms
from panprivacy.service.outgoing.histograms import is_bin
from panprivacy.service.outgoing.records import Published
from panprivacy.statistics.explain.sentences import BELIEFS, TitledPart
from panprivacy.statistics.grid import time_zone
from panprivacy.statistics.notes import format_number

_MOST_ROWS: Final = 60
_DIGITS: Final = 3
_ENDLESS: Final = "-inf", "no limit"


def chart() -> Any:
    """Return an empty chart."""
    return ui.echart({}, renderer="svg").classes("chart")


def show(chart: Any, options: charts.Options) -> None:
    """Replace the content of a chart."""
    chart.options.clear()
    chart.options.update(options)
    chart.update()


def sentence(question: str) -> str:
    """Return the text with a capital first letter."""
    return question[:1].upper() + question[1:]


def when(newest: Sequence[Published], look: Look) -> str:
    """Return a description of the window of the newest release."""
    if not newest:
        return "nothing was released yet"
    one = newest[0]
    zone = look.promise.config.zone
    end = (one.end or one.released).astimezone(time_zone(zone))
    whole = "" if one.complete else ", not a whole window"
    return f"newest answer: up to {end:%Y-%m-%d %H:%M:%S} {zone}{whole}"


def tiles(rows: Sequence[Published], look: Look, most: int) -> None:
    """Build the newest numbers; those drawn as bars only if there are no others."""
    drawn = histograms(rows)
    others = [row for row in rows if SeriesName.of(row)._replace(arguments="") not in drawn]
    told = [row for row in others if not is_bin(row)] or rows
    for row in told[:most]:
        with tag("div", style="tile"):
            tag("div", _called(row), "name")
            value, low, high = _formatted(row, look)
            tag("div", value, "value")
            if row.value is None:
                tag("div", "more users came than were planned for", "note")
            else:
                ends = "any value" if (low, high) == _ENDLESS else f"{low} to {high}"
                tag("div", f"{ends}, {100 * row.confidence:g} %", "ends")
            if row.note:
                tag("div", row.note, "note")
    if len(told) > most:
        tag("div", f"and {len(told) - most:,} more", "small")
    if not rows:
        tag("p", "The first answer comes at the end of the window.", "small")


def newest_table(rows: Sequence[Published], look: Look) -> None:
    """Build a table of the rows of a release, but for bins, which are drawn."""
    if not rows:
        tag("p", "Nothing was released yet.", "small")
        return
    bins = sum(map(is_bin, rows))
    if bins:
        tag("p", f"{bins:,} bins of histograms are drawn above; /v1/releases has them.", "small")
    _table([row for row in rows if not is_bin(row)], look)


def _table(rows: Sequence[Published], look: Look) -> None:
    """Build a table of rows, if there are any."""
    if not rows:
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
                    for text in (*_formatted(row, look), *_measured(row, look)):
                        tag("td", text, "number")
    if len(rows) > _MOST_ROWS:
        tag("p", f"And {len(rows) - _MOST_ROWS:,} more, in /v1/releases.", "small")


def _formatted(row: Published, look: Look) -> tuple[str, ...]:
    """Return the value and both ends, formatted."""
    told = []
    for number in (row.value, row.low, row.high):
        text = (
            "lost"
            if number is None
            else format_number(number, look.unit(row.statistic, row.question))
        )
        told.append("no limit" if text == "inf" else text)
    return tuple(told)


def _measured(row: Published, look: Look) -> tuple[str, ...]:
    """Return the estimate before it is clamped and its standard error; empty if unknown."""
    unit = look.unit(row.statistic, row.question)
    numbers = row.estimate, row.standard_error
    return tuple("" if number is None else format_number(number, unit) for number in numbers)


def _called(row: Published) -> str:
    """Return the displayed name of an answer, with its group."""
    return f"{SeriesName.of(row)}{'' if row.group is None else f' · {row.group}'}"


def gauges(look: Look) -> None:
    """Build the gauges of the spent budget, of a window and of a year."""
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
        f"epsilon {spent.loss.text(_DIGITS)} of {guarantee.loss.text(_DIGITS)} for one "
        f"{guarantee.adjacency}, whose odds change by at most "
        f"{guarantee.loss.says_of_odds(_DIGITS)}",
        spent.loss.share_of(guarantee.loss),
        made,
    )
    if not look.promise.lasting:
        seized = f"{year.announced:,} announced as seen and" if year.announced else "with"
        seized = f"{seized} one seized" if guarantee.looks else guarantee.says_of_look
        _gauge(
            "Somebody who is in every window for a year",
            _says_of_year(year, seized),
            year.loss.share_of(year.whole_loss),
            f"{year.windows:,} of {year.all_windows:,} windows of 365 days",
        )


def _says_of_year(year: Year, seized: str) -> str:
    """Return the loss of a year; of windows so short that it protects nobody, that it does not."""
    whole = year.whole_loss
    if not whole.weak:
        return f"epsilon {year.loss.text(_DIGITS)} of {whole.text(_DIGITS)}, {seized}"
    return (
        f"epsilon {year.loss.text(_DIGITS)} so far, {seized}. A year of windows this short "
        "protects nobody who is in all of them: it adds up to epsilon "
        f"{whole.text(_DIGITS)}. The promise is that of one window; longer windows protect longer"
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


def explanation(part: TitledPart) -> None:
    """Build a part of an explanation."""
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

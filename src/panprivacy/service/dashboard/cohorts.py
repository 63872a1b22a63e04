"""The cohort triangle: who of each window came back in each later one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from panprivacy.privacy.guarantee import Guarantee
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.dashboard.elements import Choice, tag
from panprivacy.service.outgoing.reader import ReleaseReader
from panprivacy.service.outgoing.records import ListedSketch
from panprivacy.service.outgoing.returns import ReturnRates, Series, WindowPair, series_of
from panprivacy.statistics.grid import time_zone

MOST_WINDOWS: Final = 12
"""Number of windows of a triangle."""
_MOST_SECONDS: Final = 0.5
"""Seconds for which pairs are computed before other streams get a turn."""
_DIGITS: Final = 3
_SHOWS: Final = (
    "The share of the users of each window who came in a later one, too, and its interval."
)
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class CohortTable:
    """What is known of the pairs of some windows.

    Args:
        windows: the windows, oldest first.
        rows: of each window but the last, the pairs with each later one.
    """

    windows: Sequence[ListedSketch]
    rows: Sequence[Sequence[WindowPair]] = ()

    @property
    def finished(self) -> bool:
        """Whether all pairs are known."""
        return len(self.rows) >= len(self.windows) - 1


class Cohorts:
    """The triangles of one stream, kept up to date by one thread.

    Args:
        reader: reads the release store.
        stream: name of the stream.
        config: its configuration.

    Attributes:
        known: the triangle of each series.
    """

    def __init__(self, reader: ReleaseReader, stream: str, config: StreamConfig) -> None:
        self._rates, self._stream = ReturnRates(reader), stream
        self._series = series_of(config)
        self.known: Mapping[Series, CohortTable] = {}

    def follow(self, *, released: bool) -> bool:
        """Compute what is new, but not for long; return whether anything changed.

        Args:
            released: whether the stream has published something since the last call.

        Raises:
            StoreError: the store cannot be read now.
        """
        known, until, changed = dict(self.known), time.monotonic() + _MOST_SECONDS, False
        if released:
            for one in self._series:
                listed = self._rates.windows(self._stream, one, MOST_WINDOWS)
                if one not in known or known[one].windows != listed:
                    known[one], changed = CohortTable(listed), True
        for one, table in known.items():
            found, rows = table, list(table.rows)
            while not found.finished and time.monotonic() < until:
                first, *later = found.windows[len(rows) :]
                rows.append(self._rates.of(first, later))
                found, changed = CohortTable(found.windows, tuple(rows)), True
            known[one] = found
        self.known = known
        return changed


class CohortTriangle:
    """The part of a page that shows the triangle of a stream; hidden if it publishes no tables.

    Args:
        config: the configuration of the stream.
        guarantee: the privacy guarantee of one window.
        cohorts: the data.
    """

    def __init__(self, config: StreamConfig, guarantee: Guarantee, cohorts: Cohorts) -> None:
        self._config, self._guarantee, self._cohorts = config, guarantee, cohorts
        self._card = tag("section", style="card hidden")
        with self._card:
            with tag("div", style="head"):
                tag("h2", "Who came back")
                self._choice = Choice("Table", self.draw)
            tag("p", _SHOWS, "small")
            self._table = tag("div", style="scroll")
            self._says = tag("p", " ", "small")

    def draw(self) -> None:
        """Display the current data."""
        named = {_called(one): table for one, table in self._cohorts.known.items()}
        shown = {name: table for name, table in named.items() if len(table.windows) > 1}
        self._card.classes(**{"remove" if shown else "add": "hidden"})
        self._choice.offer(list(shown))
        if not shown:
            return
        table = shown[self._choice.chosen]
        self._table.clear()
        with self._table:
            triangle(table, self._short())
        self._says.set_text(says_of_cost(self._guarantee, len(table.windows)))

    def _short(self) -> Callable[[datetime], str]:
        """Return how the start of a window is written."""
        zone = time_zone(self._config.zone)
        form = "%d %b" if self._config.window_seconds >= _DAY else "%d %b %H:%M"
        return lambda moment: moment.astimezone(zone).strftime(form)


def triangle(table: CohortTable, short: Callable[[datetime], str]) -> None:
    """Build the table of a triangle: a row for each window, a column for each number of later ones.

    So each row begins at the left, where a phone shows it.

    Args:
        table: the pairs.
        short: writes the start of a window.
    """
    heads = [short(one.start) + ("" if one.complete else "*") for one in table.windows]
    with tag("table", style="cohorts"):
        with tag("thead"), tag("tr"):
            tag("th", "came", scope="col")
            for number in range(1, len(heads)):
                tag("th", f"{number} later", "number", scope="col")
        with tag("tbody"):
            for place, head in enumerate(heads[:-1]):
                with tag("tr"):
                    tag("th", head, scope="row")
                    known = table.rows[place] if place < len(table.rows) else ()
                    for pair, later in zip(known, heads[place + 1 :], strict=False):
                        _cell(pair, later)
    if not all(one.complete for one in table.windows):
        tag("p", "* not a whole window", "small")


def says_of_cost(guarantee: Guarantee, windows: int) -> str:
    """Return what the windows of a triangle cost a user who came in all of them."""
    unseen = guarantee.over(windows, seen=0)
    text = f"Cells are blank where there is more noise than signal. Who came in all {windows} "
    text += f"windows loses at most epsilon {unseen.text(_DIGITS)}"
    if guarantee.looks:
        seen = guarantee.over(windows, seen=1).text(_DIGITS)
        text += f", and {seen} if somebody saw the state of one of them"
    return f"{text}. Comparing the tables costs nothing more."


def _cell(pair: WindowPair, later: str) -> None:
    """Build a cell: the rate and its interval, which names the later window; blank for noise."""
    rate = pair.return_rate
    if rate is None or pair.note is not None:
        tag("td", style="number", title=f"{later}: {pair.note or ''}")
        return
    made: Any = tag("td", style="number rate", title=later)
    made.style(f"background: rgba(0, 114, 178, {0.4 * min(max(rate.value, 0.0), 1.0):.2f})")
    with made:
        tag("div", _percent(rate.value))
        tag("div", f"{100 * rate.low:.0f} to {_percent(rate.high)}", "ends")


def _percent(share: float) -> str:
    return f"{100 * min(share, 1.0):.0f} %"


def _called(series: Series) -> str:
    statistic, group = series
    return statistic if group is None else f"{statistic} · {group}"

"""The values of events: the newest histogram, and percentiles over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from panprivacy.service.dashboard import charts
from panprivacy.service.dashboard.board import Look
from panprivacy.service.dashboard.densities import ValueDensity
from panprivacy.service.dashboard.elements import Choice, tag
from panprivacy.service.dashboard.parts import chart, show
from panprivacy.service.dashboard.series import ChartPoints, SeriesName
from panprivacy.service.outgoing.histograms import published_bins
from panprivacy.service.outgoing.records import Published

_SHARE = "share="


class DistributionCards:
    """Two cards of the page of a stream, each hidden while there is nothing for it.

    Args:
        look: the data about the stream.
    """

    def __init__(self, look: Look) -> None:
        self._look, self._group = look, ""
        self._values = tag("section", style="card hidden")
        with self._values:
            with tag("div", style="head"):
                tag("h2", "Values of the newest window")
                self._histogram = Choice("Histogram", self._draw_values)
            self._density = chart()
            self._says = tag("p", " ", "small")
        self._over_time = tag("section", style="card hidden")
        with self._over_time:
            with tag("div", style="head"):
                tag("h2", "Percentiles over time")
                self._statistic = Choice("Statistic", self._draw_percentiles)
            self._lines = chart()
            tag("p", "The bands are their intervals.", "small")

    def draw(self, group: str) -> None:
        """Display the current data.

        Args:
            group: the group that was chosen; empty without groups.
        """
        self._group = group
        self._draw_values()
        self._draw_percentiles()

    def _draw_values(self) -> None:
        rows = of_group(self._look.history.known.newest, self._group)
        found = {bins.statistic: bins for bins in published_bins(rows)}
        self._values.classes(**{"remove" if found else "add": "hidden"})
        self._histogram.offer(list(found))
        if not found:
            return
        bins = found[self._histogram.chosen]
        drawn = ValueDensity.of(bins)
        show(self._density, charts.density(drawn))
        level = f"The band holds all counts together, {100 * bins.confidence:g} %."
        self._says.set_text(f"{level} {drawn.says}")

    def _draw_percentiles(self) -> None:
        found = percentile_lines(self._look.history.known.points, self._group)
        self._over_time.classes(**{"remove" if found else "add": "hidden"})
        self._statistic.offer(list(found))
        if found:
            zone = self._look.promise.config.zone
            show(self._lines, charts.percentiles(found[self._statistic.chosen], zone))


def of_group(rows: Sequence[Published], group: str) -> list[Published]:
    """Return the rows of a group, and those of no group."""
    return [row for row in rows if row.group is None or row.group == group]


def percentile_lines(
    points: Mapping[SeriesName, ChartPoints], group: str
) -> dict[str, dict[str, ChartPoints]]:
    """Return the percentiles of each statistic, by name and in the order of their shares.

    Args:
        points: the answers to each question.
        group: the group; others are left out.

    Returns:
        The largest shares of each statistic that a chart has colours for.
    """
    found: dict[str, dict[float, ChartPoints]] = {}
    for asked, line in points.items():
        is_share = asked.question == "quantile" and asked.arguments.startswith(_SHARE)
        if is_share and asked.group in (None, group):
            share = float(asked.arguments.removeprefix(_SHARE))
            found.setdefault(asked.statistic, {})[share] = line
    return {
        statistic: {f"p{100 * share:.12g}": lines[share] for share in _largest(lines)}
        for statistic, lines in found.items()
    }


def _largest(shares: Mapping[float, ChartPoints]) -> list[float]:
    return sorted(shares)[-len(charts.COLOURS) :]

"""Charts: options of Apache ECharts, made of plain data.

A key that begins with a colon contains a function in JavaScript. Those here are constants: data
from the release store or a configuration is never part of one, or a key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from panprivacy.service.dashboard.densities import ValueDensity
from panprivacy.service.dashboard.series import Bar, ChartPoint, ChartPoints, thinned
from panprivacy.statistics.grid import time_zone

BLUE: Final = "#0072B2"
"""Colour of answers and their intervals, from the palette of Okabe and Ito, as all colours here."""
VERMILION: Final = "#D55E00"
"""Colour of incomplete windows, and of spending beyond the plan."""
COLOURS: Final = BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
"""Colours of lines side by side; there are no more lines in a chart."""
_INK: Final = "#333"
_FAINT: Final = "#6b7280"
_GRID: Final = "#e5e7eb"
_BAND: Final = 0.22
_BEYOND: Final = 1.06
"""Factor by which a chart extends beyond its numbers."""
_ENDLESS: Final = 1e300
"""Smallest number that is drawn as infinite, so that sums of ends are finite."""
_BELOW: Final = 0.2
MOST_BARS: Final = 24
_FEW_POINTS: Final = 60
_SPREAD: Final = 20
"""Ratio of numbers above which their axis is logarithmic."""

_MOMENTS: Final = {
    "year": "{yyyy}",
    "month": "{MMM}",
    "day": "{d} {MMM}",
    "hour": "{HH}:{mm}",
    "minute": "{HH}:{mm}",
    "second": "{HH}:{mm}:{ss}",
}
_NUMBER: Final = """
const number = (x) => x === null || x === undefined || Number.isNaN(x) ? "no limit"
  : Math.abs(x) < 10 && x !== Math.round(x) ? x.toFixed(4)
  : Math.round(x).toLocaleString("en-US");
"""
_TELL_POINT: Final = f"""(shown) => {{
  {_NUMBER}
  const one = shown.find((each) => each.seriesName === "answer");
  if (!one) return "";
  const [at, value, low, high, whole, answers] = one.data;
  const when = new Date(at).toISOString().slice(0, 19).replace("T", " ");
  const lines = [when, `<b>${{value === null ? "lost" : number(value)}}</b>`];
  if (value !== null) lines.push(`${{number(low)}} to ${{number(high)}}`);
  if (!whole) lines.push("not a whole window");
  if (answers > 1) lines.push(`the last of ${{answers}}, interval of all`);
  return lines.join("<br>");
}}"""
_TELL_BAR: Final = f"""(shown) => {{
  {_NUMBER}
  const one = shown.find((each) => each.seriesType === "bar");
  if (!one) return "";
  const name = document.createElement("span");
  name.textContent = one.name;
  const {{value, low, high}} = one.data;
  if (value === null) return `${{name.innerHTML}}<br>lost`;
  const ends = `${{number(low)}} to ${{number(high)}}`;
  return [name.innerHTML, `<b>${{number(value)}}</b>`, ends].join("<br>");
}}"""
_TELL_STEP: Final = f"""(shown) => {{
  {_NUMBER}
  const one = shown.find((each) => each.seriesName === "answer");
  if (!one) return "";
  const [start, value, low, high, end] = one.data;
  const ends = `${{+start.toPrecision(4)}} to ${{+end.toPrecision(4)}}`;
  return [ends, `<b>${{number(value)}}</b>`, `${{number(low)}} to ${{number(high)}}`].join("<br>");
}}"""
_TELL_LINES: Final = f"""(shown) => {{
  {_NUMBER}
  const lines = shown.filter((each) => each.data.length > 2);
  if (!lines.length) return "";
  const when = new Date(lines[0].data[0]).toISOString().slice(0, 19).replace("T", " ");
  const told = lines.map(({{seriesName, data: [, value, low, high]}}) => value === null
    ? `${{seriesName}}: lost`
    : `${{seriesName}}: <b>${{number(value)}}</b>, ${{number(low)}} to ${{number(high)}}`);
  return [when, ...told].join("<br>");
}}"""
_SHORT: Final = """(x) => Math.abs(x) >= 1e6 ? `${+(x / 1e6).toPrecision(3)}M`
  : Math.abs(x) >= 1e4 ? `${+(x / 1e3).toPrecision(3)}k` : x.toLocaleString("en-US")"""
_LABEL: Final = {"color": _FAINT, "fontSize": 12}
_WHISKER: Final = """(params, api) => {
  const flat = params.encode.x[0] !== 0;
  const place = (end) => flat ? api.coord([end, api.value(0)]) : api.coord([api.value(0), end]);
  const [low, high] = [place(api.value(1)), place(api.value(2))];
  const cap = 5, style = {stroke: "#333", lineWidth: 1.5};
  const line = (x1, y1, x2, y2) => ({type: "line", shape: {x1, y1, x2, y2}, style});
  const ends = [low, high].map(([x, y]) =>
    flat ? line(x, y - cap, x, y + cap) : line(x - cap, y, x + cap, y));
  return {type: "group", children: [line(...low, ...high), ...ends]};
}"""

Options = dict[str, Any]
DrawnEnds = tuple[float | None, float | None]


def over_time(points: ChartPoints, unit: str, zone: str) -> Options:
    """Return a line of the answers with a band of their intervals.

    Args:
        points: oldest first.
        unit: the unit of the answers.
        zone: name of the time zone of the axis.
    """
    shown = thinned(points)
    moments = [_on_the_clock(one.at, zone) for one in shown]
    data = [
        [at, *map(_number, (one.value, one.low, one.high)), one.complete, one.of]
        for at, one in zip(moments, shown, strict=True)
    ]
    few = len(shown) <= _FEW_POINTS
    return {
        **_base(f"A line of {len(points):,} answers over time, in {unit}, with their intervals."),
        "useUTC": True,  # the numbers contain the offset of the time zone
        "grid": {"left": 8, "right": 36, "top": 34, "bottom": 8, "containLabel": True},
        "xAxis": _time_axis(),
        "yAxis": _value_axis(unit) | _from(shown),
        "tooltip": {"trigger": "axis", "confine": True, ":formatter": _TELL_POINT},
        "series": [
            *_band(moments, _intervals(shown), BLUE, "band"),
            _line(data, few=few),
            _marks([row for row in data if not row[4]], few=few),
        ],
    }


def percentiles(lines: Mapping[str, ChartPoints], zone: str) -> Options:
    """Return lines side by side, each with the band of its intervals.

    Args:
        lines: answers in one unit, oldest first, by the name of each line; six at most.
        zone: name of the time zone of the axis.
    """
    shown = {name: thinned(points) for name, points in lines.items()}
    every = [one for points in shown.values() for one in points]
    positive = [end for one in every for end in one[1:4] if 0 < end < _ENDLESS]
    is_log = len(positive) == sum(abs(end) < _ENDLESS for one in every for end in one[1:4])
    is_log &= max(positive, default=1.0) > _SPREAD * min(positive, default=1.0)
    series = []
    for colour, (name, points) in zip(COLOURS, shown.items(), strict=False):
        moments = [_on_the_clock(one.at, zone) for one in points]
        data = [
            [at, *map(_number, (one.value, one.low, one.high))]
            for at, one in zip(moments, points, strict=True)
        ]
        few = len(points) <= _FEW_POINTS
        series += _band(moments, _intervals(points, every, is_log=is_log), colour, name)
        series.append(_line(data, few=few, name=name, colour=colour))
    return {
        **_base(f"Lines of {', '.join(lines)} over time, with their intervals."),
        "useUTC": True,  # the numbers contain the offset of the time zone
        "grid": {"left": 8, "right": 36, "top": 54, "bottom": 8, "containLabel": True},
        "legend": {"data": list(shown), "top": 0, "right": 8, "icon": "circle"},
        "xAxis": _time_axis(),
        "yAxis": _value_axis("value") | ({"type": "log"} if is_log else {"scale": True}),
        "tooltip": {"trigger": "axis", "confine": True, ":formatter": _TELL_LINES},
        "series": series,
    }


def density(found: ValueDensity) -> Options:
    """Return the steps of a density, with the band of their intervals.

    Args:
        found: the density.
    """
    edges, value = found.edges.tolist(), found.value.tolist()
    low, high = found.low.tolist(), found.high.tolist()
    rows = [list(row) for row in zip(edges[:-1], value, low, high, edges[1:], strict=True)]
    rows.append([edges[-1], *rows[-1][1:]])  # the last step has a width as well
    band = _band([row[0] for row in rows], [(row[2], row[3]) for row in rows], BLUE, "band")
    steps = [{**one, "step": "end"} for one in (*band, _line(rows, few=False))]
    axis = {"type": "log" if found.is_log else "value", "min": edges[0], "max": edges[-1]}
    return {
        **_base(f"A density in {len(value):,} steps, in {found.unit}, with its band."),
        "grid": {"left": 8, "right": 36, "top": 34, "bottom": 8, "containLabel": True},
        "xAxis": {
            **axis,
            "name": "",
            "axisLabel": {**_LABEL, "hideOverlap": True, ":formatter": _SHORT},
            "splitLine": {"show": False},
        },
        "yAxis": {**_value_axis(found.unit), "axisLine": {"onZero": False}},
        "tooltip": {"trigger": "axis", "confine": True, ":formatter": _TELL_STEP},
        "series": steps,
    }


def _time_axis() -> dict[str, Any]:
    label = {**_LABEL, "hideOverlap": True, "formatter": _MOMENTS}
    return {"type": "time", "splitNumber": 4, "axisLabel": label}


def _line(
    data: list[list[Any]], *, few: bool, name: str = "answer", colour: str = BLUE
) -> dict[str, Any]:
    """Return the line of the answers; if there are few, each has a dot."""
    return {
        "type": "line",
        "name": name,
        "data": data,
        "z": 3,
        "showSymbol": few,
        "symbolSize": 7,
        "symbol": "circle",
        "lineStyle": {"color": colour, "width": 2},
        "itemStyle": {"color": colour},
    }


def _marks(data: list[list[Any]], *, few: bool) -> dict[str, Any]:
    """Return the marks of incomplete windows."""
    return {
        "type": "scatter",
        "name": "not a whole window",
        "z": 4,
        "data": data,
        "symbol": "diamond",
        "symbolSize": 9 if few else 5,
        "itemStyle": {"color": "#fff", "borderColor": VERMILION, "borderWidth": 1.5},
        "tooltip": {"show": False},
    }


def _band(
    places: Sequence[float], ends: Sequence[DrawnEnds], colour: str, stack: str
) -> list[dict[str, Any]]:
    """Return the band of intervals: an invisible base, and their widths stacked upon it."""
    low = [[at, low] for at, (low, _) in zip(places, ends, strict=True)]
    width = [
        [at, None if low is None or high is None else max(high - low, 0.0)]
        for at, (low, high) in zip(places, ends, strict=True)
    ]
    line = {"type": "line", "stack": stack, "stackStrategy": "all", "silent": True}
    line |= {"symbol": "none", "lineStyle": {"opacity": 0}, "tooltip": {"show": False}}
    filled = {"color": colour, "opacity": _BAND}
    return [
        {**line, "name": "low", "data": low},
        {**line, "name": "interval", "data": width, "areaStyle": filled},
    ]


def by_number(bars: Sequence[Bar], unit: str) -> Options:
    """Return vertical bars with whiskers, in the order of their numbers.

    Args:
        bars: in order; only the first ones of very many are drawn.
        unit: the unit of the answers.
    """
    shown = bars[: 4 * MOST_BARS]
    names = [one.label for one in shown]
    return {
        **_base(f"Bars of {len(shown):,} answers, in {unit}, with their intervals."),
        "grid": {"left": 8, "right": 16, "top": 34, "bottom": 8, "containLabel": True},
        "xAxis": {
            "type": "category",
            "data": names,
            "axisTick": {"show": False},
            "axisLabel": {"color": _INK},
        },
        "yAxis": _value_axis(unit),
        "tooltip": {"trigger": "axis", "confine": True, ":formatter": _TELL_BAR},
        "series": _bars_with_whiskers(shown, {"x": 0, "y": [1, 2]}),
    }


def by_label(bars: Sequence[Bar], unit: str) -> Options:
    """Return horizontal bars with whiskers, the first one on top.

    Args:
        bars: in order; only the first ones of very many are drawn.
        unit: the unit of the answers.
    """
    shown = bars[:MOST_BARS]
    names = [one.label for one in shown]
    return {
        **_base(f"Bars of {len(shown):,} groups, in {unit}, with their intervals."),
        "grid": {"left": 8, "right": 24, "top": 8, "bottom": 8, "containLabel": True},
        "xAxis": {**_value_axis(unit), "name": ""},
        "yAxis": {
            "type": "category",
            "data": names,
            "inverse": True,
            "axisTick": {"show": False},
            "axisLabel": {"color": _INK, "width": 120, "overflow": "truncate"},
        },
        "tooltip": {"trigger": "axis", "confine": True, ":formatter": _TELL_BAR},
        "series": _bars_with_whiskers(shown, {"x": [1, 2], "y": 0}),
    }


def _bars_with_whiskers(bars: Sequence[Bar], encode: dict[str, Any]) -> list[dict[str, Any]]:
    points = [one.point for one in bars]
    data = [
        {"value": _number(one.value), "low": _number(one.low), "high": _number(one.high)}
        for one in points
    ]
    ends = _intervals(points)
    whiskers = [[place, *each] for place, each in enumerate(ends) if None not in each]
    bar = {"type": "bar", "name": "answer", "data": data, "barMaxWidth": 46}
    bar["itemStyle"] = {"color": BLUE, "opacity": 0.55, "borderRadius": 2}
    whisker = {"type": "custom", "name": "interval", "data": whiskers, "encode": encode, "z": 3}
    return [bar, {**whisker, "silent": True, ":renderItem": _WHISKER, "tooltip": {"show": False}}]


def _base(says: str) -> Options:
    """Return the options of all charts; `says` is the description for screen readers."""
    aria = {"enabled": True, "label": {"enabled": True, "description": says}}
    return {"animation": False, "aria": aria, "textStyle": {"fontFamily": "system-ui, sans-serif"}}


def _value_axis(unit: str) -> dict[str, Any]:
    return {
        "type": "value",
        "name": unit,
        "nameTextStyle": {"color": _FAINT, "align": "left"},
        "axisLabel": {**_LABEL, ":formatter": _SHORT},
        "splitLine": {"lineStyle": {"color": _GRID}},
        "splitNumber": 4,
    }


def _from(points: Sequence[ChartPoint]) -> dict[str, Any]:
    """Return the start of an axis whose numbers go a little below 0, instead of a round number."""
    bottom, top = _reach(points)
    if not -_BELOW * top < bottom < 0:
        return {}
    return {"min": bottom, "axisLabel": {**_LABEL, ":formatter": _SHORT, "showMinLabel": False}}


def _intervals(
    points: Sequence[ChartPoint],
    beside: Sequence[ChartPoint] | None = None,
    *,
    is_log: bool = False,
) -> list[DrawnEnds]:
    """Return the ends of all intervals, cut off if they are infinite; None if they are lost.

    Args:
        points: of the intervals.
        beside: all points of the chart; None for the same.
        is_log: whether the axis has no 0.
    """
    every = points if beside is None else beside
    bottom, top = _reach(every)
    if is_log:
        bottom = min(end for one in every for end in one[1:4] if 0 < end < _ENDLESS) / _BEYOND
    return [
        (None, None)
        if math.isnan(one.low) or math.isnan(one.high)
        else (min(max(one.low, bottom), top), max(min(one.high, top), bottom))
        for one in points
    ]


def _reach(points: Sequence[ChartPoint]) -> tuple[float, float]:
    """Return a range slightly larger than all finite numbers and 0."""
    ends = [end for one in points for end in one[1:4] if abs(end) < _ENDLESS]
    return _BEYOND * min((0.0, *ends)), _BEYOND * max((0.0, *ends))


def _number(number: float) -> float | None:
    """Return a number that JSON can represent, or None."""
    return number if abs(number) < _ENDLESS else None


def _on_the_clock(at: float, zone: str) -> int:
    """Return a moment in milliseconds, shifted by the zone's offset from UTC at that moment."""
    ahead = datetime.fromtimestamp(at, time_zone(zone)).utcoffset()
    return round(1_000 * (at + (ahead.total_seconds() if ahead else 0.0)))

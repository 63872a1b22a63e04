"""What is drawn: options of Apache ECharts, made of plain data.

A key that begins with a colon holds a function in JavaScript. Those here are constants: nothing
that comes from the release store or from a configuration is ever a part of one, or a key.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from panprivacy.dashboard.series import Bar, Point, Points, thinned
from panprivacy.statistics.grid import time_zone

BLUE: Final = "#0072B2"
"""Of answers and their intervals. It is of the palette of Okabe and Ito, as all colours here."""
VERMILION: Final = "#D55E00"
"""Of what is not whole, or beyond what was planned."""
_INK: Final = "#333"
_FAINT: Final = "#6b7280"
_GRID: Final = "#e5e7eb"
_BAND: Final = 0.22
_BEYOND: Final = 1.06
"""How much farther a chart reaches than its numbers."""
_ENDLESS: Final = 1e300
"""What is no smaller is drawn as infinite, so that sums of ends are numbers."""
_BELOW: Final = 0.2
MOST_BARS: Final = 24
_FEW_POINTS: Final = 60

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


def over_time(points: Points, unit: str, zone: str) -> Options:
    """A line of the answers with a band of their intervals.

    Args:
        points: oldest first.
        unit: what is counted.
        zone: name of the time zone whose clock the axis shows.
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
        "useUTC": True,  # the clock of the zone is in the numbers
        "grid": {"left": 8, "right": 36, "top": 34, "bottom": 8, "containLabel": True},
        "xAxis": {
            "type": "time",
            "splitNumber": 4,
            "axisLabel": {**_LABEL, "hideOverlap": True, "formatter": _MOMENTS},
        },
        "yAxis": _value_axis(unit) | _from(shown),
        "tooltip": {"trigger": "axis", "confine": True, ":formatter": _TELL_POINT},
        "series": [
            *_band(moments, shown),
            _line(data, few=few),
            _marks([row for row in data if not row[4]], few=few),
        ],
    }


def _line(data: list[list[Any]], *, few: bool) -> dict[str, Any]:
    """The answers; few of them have a dot each."""
    return {
        "type": "line",
        "name": "answer",
        "data": data,
        "z": 3,
        "showSymbol": few,
        "symbolSize": 7,
        "symbol": "circle",
        "lineStyle": {"color": BLUE, "width": 2},
        "itemStyle": {"color": BLUE},
    }


def _marks(data: list[list[Any]], *, few: bool) -> dict[str, Any]:
    """Those of windows that are not whole."""
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


def _band(moments: Sequence[int], points: Sequence[Point]) -> list[dict[str, Any]]:
    """The intervals: what is below them, unseen, and their widths stacked upon it."""
    ends = _ends(points)
    low = [[at, low] for at, (low, _) in zip(moments, ends, strict=True)]
    width = [
        [at, None if low is None or high is None else max(high - low, 0.0)]
        for at, (low, high) in zip(moments, ends, strict=True)
    ]
    line = {"type": "line", "stack": "band", "stackStrategy": "all", "silent": True}
    line |= {"symbol": "none", "lineStyle": {"opacity": 0}, "tooltip": {"show": False}}
    filled = {"color": BLUE, "opacity": _BAND}
    return [
        {**line, "name": "low", "data": low},
        {**line, "name": "interval", "data": width, "areaStyle": filled},
    ]


def by_number(bars: Sequence[Bar], unit: str) -> Options:
    """Upright bars in the order of their numbers, with whiskers.

    Args:
        bars: in order; of very many, the first ones are drawn.
        unit: what is counted.
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
    """Lying bars, the first one on top, with whiskers.

    Args:
        bars: in order; of very many, the first ones are drawn.
        unit: what is counted.
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
    ends = _ends(points)
    whiskers = [[place, *each] for place, each in enumerate(ends) if None not in each]
    bar = {"type": "bar", "name": "answer", "data": data, "barMaxWidth": 46}
    bar["itemStyle"] = {"color": BLUE, "opacity": 0.55, "borderRadius": 2}
    whisker = {"type": "custom", "name": "interval", "data": whiskers, "encode": encode, "z": 3}
    return [bar, {**whisker, "silent": True, ":renderItem": _WHISKER, "tooltip": {"show": False}}]


def _base(says: str) -> Options:
    """What all charts share; `says` is for who cannot see them."""
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


def _from(points: Sequence[Point]) -> dict[str, Any]:
    """Where an axis begins whose numbers go a little below 0: there, not at the next round one."""
    bottom, top = _reach(points)
    if not -_BELOW * top < bottom < 0:
        return {}
    return {"min": bottom, "axisLabel": {**_LABEL, ":formatter": _SHORT, "showMinLabel": False}}


def _ends(points: Sequence[Point]) -> list[tuple[float | None, float | None]]:
    """The ends of all intervals, cut off where they are infinite; None where they are lost."""
    bottom, top = _reach(points)
    return [
        (None, None)
        if math.isnan(one.low) or math.isnan(one.high)
        else (min(max(one.low, bottom), top), max(min(one.high, top), bottom))
        for one in points
    ]


def _reach(points: Sequence[Point]) -> tuple[float, float]:
    """A little beyond all that is finite, and 0."""
    ends = [end for one in points for end in one[1:4] if abs(end) < _ENDLESS]
    return _BEYOND * min((0.0, *ends)), _BEYOND * max((0.0, *ends))


def _number(number: float) -> float | None:
    """What JSON can write."""
    return number if abs(number) < _ENDLESS else None


def _on_the_clock(at: float, zone: str) -> int:
    """A moment in milliseconds, moved by as much as the clock of a zone is ahead of UTC then."""
    ahead = datetime.fromtimestamp(at, time_zone(zone)).utcoffset()
    return round(1_000 * (at + (ahead.total_seconds() if ahead else 0.0)))

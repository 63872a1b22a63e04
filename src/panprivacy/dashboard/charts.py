"""What is drawn: options of Apache ECharts, made of plain data.

A key that begins with a colon holds a function in JavaScript. Those here are constants: nothing
that comes from the release store or from a configuration is ever a part of one, or a key.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from panprivacy.dashboard.series import Bar, Point, thinned
from panprivacy.statistics.grid import time_zone

BLUE: Final = "#0072B2"
"""Of answers and their intervals. It is of the palette of Okabe and Ito, as all colours here."""
VERMILION: Final = "#D55E00"
"""Of what is not whole, or beyond what was planned."""
_INK: Final = "#333"
_FAINT: Final = "#6b7280"
_GRID: Final = "#e5e7eb"
_BAND: Final = 0.22
_ABOVE: Final = 1.06
"""How far above the highest end a chart reaches."""
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
  const lines = [when, `<b>${{number(value)}}</b>`, `${{number(low)}} to ${{number(high)}}`];
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
  const ends = `${{number(low)}} to ${{number(high)}}`;
  return [name.innerHTML, `<b>${{number(value)}}</b>`, ends].join("<br>");
}}"""
_SHORT: Final = """(x) => Math.abs(x) >= 1e6 ? `${+(x / 1e6).toPrecision(3)}M`
  : Math.abs(x) >= 1e4 ? `${+(x / 1e3).toPrecision(3)}k` : x.toLocaleString("en-US")"""
_AXIS_LABEL: Final = {"color": _FAINT, ":formatter": _SHORT}
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


def over_time(points: Sequence[Point], unit: str, zone: str) -> Options:
    """A line of the answers with a band of their intervals.

    Args:
        points: oldest first.
        unit: what is counted.
        zone: name of the time zone whose clock the axis shows.
    """
    shown = thinned(points)
    top = _top(shown)
    data = [
        [
            _on_the_clock(one.at, zone),
            _number(one.value),
            _number(one.low),
            _number(one.high),
            one.complete,
            one.answers,
        ]
        for one in shown
    ]
    ends = [(_number(one.low), _number(min(one.high, top))) for one in shown]
    low = [[row[0], low] for row, (low, _) in zip(data, ends, strict=True)]
    width = [
        [row[0], None if low is None or high is None else max(high - low, 0.0)]
        for row, (low, high) in zip(data, ends, strict=True)
    ]
    parts = [row if not row[4] else [row[0], None] for row in data]
    band = {"type": "line", "stack": "band", "stackStrategy": "all", "silent": True}
    band |= {"symbol": "none", "lineStyle": {"opacity": 0}, "tooltip": {"show": False}}
    return {
        **_base(f"A line of {len(points):,} answers over time, in {unit}, with their intervals."),
        "useUTC": True,  # the clock of the zone is in the numbers
        "grid": {"left": 8, "right": 36, "top": 34, "bottom": 8, "containLabel": True},
        "xAxis": {
            "type": "time",
            "splitNumber": 4,
            "axisLabel": {
                **{"hideOverlap": True, "color": _FAINT, "fontSize": 12},
                "formatter": _MOMENTS,
            },
        },
        "yAxis": _value_axis(unit) | _from(shown, top),
        "tooltip": {"trigger": "axis", "confine": True, ":formatter": _TELL_POINT},
        "series": [
            {**band, "name": "low", "data": low},
            {**band, "name": "band", "data": width, "areaStyle": {"color": BLUE, "opacity": _BAND}},
            {
                "type": "line",
                "name": "answer",
                "data": data,
                "showSymbol": len(shown) <= _FEW_POINTS,
                "symbolSize": 7,
                "symbol": "circle",
                "lineStyle": {"color": BLUE, "width": 2},
                "itemStyle": {"color": BLUE},
                "z": 3,
            },
            {
                "type": "scatter",
                "name": "not a whole window",
                "data": parts,
                "symbol": "diamond",
                "symbolSize": 9 if len(shown) <= _FEW_POINTS else 5,
                "itemStyle": {"color": "#fff", "borderColor": VERMILION, "borderWidth": 1.5},
                "tooltip": {"show": False},
                "z": 4,
            },
        ],
    }


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
    top = _top(points)
    data = [
        {"value": _number(one.value), "low": _number(one.low), "high": _number(one.high)}
        for one in points
    ]
    whiskers = [
        [place, one.low, min(one.high, top)]
        for place, one in enumerate(points)
        if not one.is_lost and not math.isnan(one.low + one.high)
    ]
    bar = {"type": "bar", "name": "answer", "data": data, "barMaxWidth": 46}
    bar["itemStyle"] = {"color": BLUE, "opacity": 0.55, "borderRadius": 2}
    whisker = {"type": "custom", "name": "interval", "data": whiskers, "encode": encode, "z": 3}
    return [bar, {**whisker, "silent": True, ":renderItem": _WHISKER, "tooltip": {"show": False}}]


def _base(says: str) -> Options:
    """What all charts share; `says` is for who cannot see them."""
    aria = {"enabled": True, "label": {"enabled": True, "description": says}}
    return {"animation": False, "aria": aria, "textStyle": {"fontFamily": "inherit"}}


def _value_axis(unit: str) -> dict[str, Any]:
    return {
        "type": "value",
        "name": unit,
        "nameTextStyle": {"color": _FAINT, "align": "left"},
        "axisLabel": _AXIS_LABEL,
        "splitLine": {"lineStyle": {"color": _GRID}},
        "splitNumber": 4,
    }


def _from(points: Sequence[Point], top: float) -> dict[str, Any]:
    """Where an axis begins whose numbers go a little below 0: there, not at the next round one."""
    least = min((one.low for one in points if math.isfinite(one.low)), default=0.0)
    if not -_BELOW * top < least < 0:
        return {}
    return {"min": least, "axisLabel": _AXIS_LABEL | {"showMinLabel": False}}


def _top(points: Sequence[Point]) -> float:
    """Where intervals without an upper end are cut off: a little above all that is finite."""
    ends = [end for one in points for end in (one.value, one.low, one.high) if math.isfinite(end)]
    return max((0.0, *ends)) * _ABOVE


def _number(number: float) -> float | None:
    """What JSON can write."""
    return number if math.isfinite(number) else None


def _on_the_clock(at: float, zone: str) -> int:
    """A moment in milliseconds, moved by as much as the clock of a zone is ahead of UTC then."""
    ahead = datetime.fromtimestamp(at, time_zone(zone)).utcoffset()
    return round(1_000 * (at + (ahead.total_seconds() if ahead else 0.0)))

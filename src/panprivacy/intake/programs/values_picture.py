"""A picture of a released histogram: its bins, percentiles and mean, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from panprivacy.statistics.release import Name, Release

_INK: Final = "#1b3a57"
_COLOURS: Final = "#c8553d", "#009e73", "#cc79a7", "#e69f00"
_MOST_MARKS: Final = 8


def draw_values(axis: Axes, released: Mapping[Name, Release | None], *, is_log: bool) -> None:
    """Draw the answers of one release over the axis of values.

    Shares below edges are drawn in place of bins where nobody asked for counts.

    Args:
        axis: to draw on.
        released: the answers of a histogram, by name.
        is_log: whether the axis is logarithmic.
    """
    found = {name: one for name, one in released.items() if one is not None}
    bins = [(name, one) for name, one in found.items() if name.question == "count"]
    shares = [(name, one) for name, one in found.items() if name.question == "share_below"]
    if bins:
        _draw_bins(axis, bins)
    elif shares:
        _draw_shares(axis, shares)
    else:
        axis.set_yticks([])
    marks = [(name, one) for name, one in found.items() if name.question in ("quantile", "mean")]
    for place, (name, one) in enumerate(marks[:_MOST_MARKS]):
        colour = _COLOURS[place % len(_COLOURS)]
        value, low, high = one.formatted()
        axis.axvspan(*_within(axis, one), color=colour, alpha=0.2, linewidth=0)
        axis.axvline(one.value, color=colour, label=f"{name}: {value} ({low} to {high})")
    if is_log:
        axis.set_xscale("log")
    for line in (axis.xaxis, axis.yaxis):
        line.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.10g}"))
    axis.set_xlabel("value")
    axis.spines[["right", "top"]].set_visible(False)
    axis.legend(frameon=False, fontsize=9)


def _draw_bins(axis: Axes, bins: list[tuple[Name, Release]]) -> None:
    """Draw the bins with two ends as steps with their band; the others are told in words."""
    ends: list[tuple[Any, ...]] = [tuple(value for _, value in name.arguments) for name, _ in bins]
    inner = [
        (low, high, one)
        for (low, high), (_, one) in zip(ends, bins, strict=True)
        if math.isfinite(low) and math.isfinite(high)
    ]
    edges = [inner[0][0], *(high for _, high, _ in inner)]
    values, lows, highs = (
        np.array([getattr(one, part) for _, _, one in inner]) for part in ("value", "low", "high")
    )
    level = f"events, {100 * bins[0][1].confidence:g} % band"
    axis.stairs(highs, edges, baseline=lows, fill=True, color=_INK, alpha=0.25)
    axis.stairs(values, edges, color=_INK, baseline=None, label=level)
    axis.set(ylabel="events in a bin", ylim=(0, None), xlim=(edges[0], edges[-1]))


def _draw_shares(axis: Axes, shares: list[tuple[Name, Release]]) -> None:
    """Draw the cumulative curve and its band."""
    edges = [float(str(name.arguments[0][1])) for name, _ in shares]
    ends = [[getattr(one, part) for _, one in shares] for part in ("low", "high", "value")]
    axis.fill_between(edges, ends[0], ends[1], color=_INK, alpha=0.25, linewidth=0)
    level = f"share below, {100 * shares[0][1].confidence:g} % band"
    axis.plot(edges, ends[2], color=_INK, label=level)
    axis.set(ylabel="share of the events below", ylim=(0, 1.02), xlim=(edges[0], edges[-1]))


def _within(axis: Axes, one: Release) -> tuple[float, float]:
    """Return the ends of an interval, cut to the axis where they are infinite."""
    left, right = axis.get_xlim()
    low = one.low if math.isfinite(one.low) else min(left, one.value)
    high = one.high if math.isfinite(one.high) else max(right, one.value)
    return low, high

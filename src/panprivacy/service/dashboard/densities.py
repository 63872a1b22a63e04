"""A published histogram as a density, in steps that are wide enough to be seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from panprivacy.service.outgoing.histograms import PublishedBins
from panprivacy.tables.decoders.intervals import Floats

MOST_STEPS: Final = 240
"""Maximum number of steps: more of them are narrower than the lines."""
_EQUAL: Final = 1e-3
"""Relative difference below which widths are one: edges are published with 12 digits."""
_DECADES: Final = 2
"""Decades from which on edges of one's own are drawn by their logarithms."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueDensity:
    """Events by their value. Bins side by side are added up where there are very many.

    Args:
        edges: of the steps, float64[steps + 1], rising and finite.
        value: events in each step, by its width where widths differ, float64[steps].
        low: lower end of the interval of each, float64[steps]; all hold together.
        high: upper end of it, float64[steps].
        is_log: whether the axis of values is logarithmic.
        unit: unit of `value`.
        says: what a step is, and what lies outside.
    """

    edges: Floats
    value: Floats
    low: Floats
    high: Floats
    is_log: bool
    unit: str
    says: str

    @classmethod
    def of(cls, bins: PublishedBins) -> ValueDensity:
        """Return the density of published bins."""
        inner = bins.inner
        is_log, width = _axis(inner)
        joined = math.ceil((len(inner) - 1) / MOST_STEPS)
        starts = np.arange(0, len(inner) - 1, joined)
        edges = np.append(inner[starts], inner[-1])
        within = np.isfinite(bins.edges[:-1]) & np.isfinite(bins.edges[1:])
        value, low, high = (
            np.add.reduceat(one[within], starts) for one in (bins.estimates, bins.low, bins.high)
        )
        places = np.log10(edges) if is_log else edges
        scale = (1.0 if width is None else joined * width) / np.diff(places)
        value = np.clip(value, low, high)
        unit, says = _words(is_log=is_log, step=None if width is None else joined * width)
        says = " ".join([says, *_outside(bins)])
        return cls(edges, value * scale, low * scale, high * scale, is_log, unit, says)


def _axis(edges: Floats) -> tuple[bool, float | None]:
    """Return whether the axis is logarithmic, and the width of a bin on it, if all have one."""
    if _is_even(np.diff(edges)):
        return False, float(edges[1] - edges[0])
    if edges[0] <= 0:
        return False, None
    places = np.log10(edges)
    if _is_even(np.diff(places)):
        return True, float(places[1] - places[0])
    return bool(places[-1] - places[0] >= _DECADES), None


def _is_even(widths: Floats) -> bool:
    return bool(np.allclose(widths, widths.mean(), rtol=_EQUAL, atol=0))


def _words(*, is_log: bool, step: float | None) -> tuple[str, str]:
    """Return the unit, and what a step is."""
    if step is None:
        unit = "events per factor of 10" if is_log else "events per unit of value"
        return unit, "Bins differ in width, so the height is the number of events by it."
    if is_log:
        return "events in a step", f"A step is {100 * (10**step - 1):.3g} % wide."
    return "events in a step", f"A step is {step:.6g} wide."


def _outside(bins: PublishedBins) -> list[str]:
    """Return how many events lie beyond the edges."""
    told = []
    for place, where in ((0, f"Below {bins.inner[0]:,g}"), (-1, f"From {bins.inner[-1]:,g} on")):
        if not np.isfinite(bins.edges[place]):
            low, high = bins.low[place], bins.high[place]
            value = np.clip(bins.estimates[place], low, high)
            told.append(f"{where}: {value:,.0f} ({low:,.0f} to {high:,.0f}).")
    return told

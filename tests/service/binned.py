"""Published histograms, as rows of the release store."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np

from tests.dashboard.rows import ROW

MARGIN = 3.0


def bins(edges, counts, *, is_open=True, hours=0, margin=MARGIN, **given):
    """A row for each bin: those with two ends, and those without if they are open.

    Args:
        edges: the finite ones.
        counts: the noised counts.
        hours: how much later than the others they were published.
    """
    if is_open:
        edges = [-math.inf, *edges, math.inf]
    later = timedelta(hours=hours)
    told = {"question": "count", "argument": None, "statistic": "times", **given}
    told |= {"released": ROW.released + later, "start": ROW.start + later, "end": ROW.end + later}
    return [
        replace(
            ROW,
            **told,
            arguments=f"low={low:.12g},high={high:.12g}",
            value=max(float(count), 0.0),
            estimate=float(count),
            low=max(count - margin, 0.0),
            high=max(count + margin, 0.0),
            standard_error=1.5,
        )
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]


def powers(first, last, schema):
    """The edges of a native histogram from one power of two to another."""
    return np.exp2(np.arange(first * 2**schema, last * 2**schema + 1) / 2**schema)

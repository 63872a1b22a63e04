"""Histograms for Prometheus: cumulative buckets, and native ones where the edges allow it.

A native histogram of schema n has the edges `2**(i / 2**n)` for whole numbers i, and bucket i ends
at the i-th: https://prometheus.io/docs/specs/native_histograms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.utils import floatToGoString

from panprivacy.service.outgoing.histograms import PublishedBins
from panprivacy.tables.decoders.intervals import Floats

LABELS: Final = ["stream", "statistic", "group"]
"""Labels of a histogram."""

_SCHEMAS: Final = range(-4, 9)
_NEAR: Final = 1e-9
"""Relative difference below which two edges are one: those that are published have 12 digits."""
_NO_WIDTH: Final = 2.0**-128
"""Largest value of a zero bucket in which nothing can be, as other clients say it."""


@dataclass(frozen=True, slots=True)
class Native:
    """Where bins are in a native histogram.

    Args:
        schema: the edges are powers of `2**2**-schema`.
        first: index of the bucket of the first bin with two ends.
        zero_threshold: largest value in the zero bucket, which holds what is below the first edge.
    """

    schema: int
    first: int
    zero_threshold: float


@dataclass(frozen=True, slots=True)
class Buckets:
    """One histogram for Prometheus.

    Args:
        labels: its labels.
        upper: the upper end of each bucket, rising; the last is inf.
        cumulative: whole numbers of events up to each, rising.
        total: the sum of the values.
        native: where the same buckets are in a native histogram; None if they are in none.
        zero: number of events in the zero bucket of a native one.
        counts: numbers of events in its buckets, from the first on.
    """

    labels: Mapping[str, str]
    upper: tuple[float, ...]
    cumulative: tuple[int, ...]
    total: float
    native: Native | None
    zero: int
    counts: tuple[int, ...]

    @classmethod
    def of(cls, bins: PublishedBins) -> Buckets:
        """Return the buckets of published bins."""
        inner, counts = bins.inner, bins.possible()
        total = bins.total(counts)
        opens = int(bins.edges[0] == -math.inf)
        if not opens:
            counts = np.append(0, counts)
        if bins.edges[-1] < math.inf:
            counts = np.append(counts, 0)
        names = bins.stream, bins.statistic, bins.group or ""
        labels = dict(zip(LABELS, names, strict=True))
        upper = (*inner.tolist(), math.inf)
        cumulative = tuple(np.cumsum(counts).tolist())
        zero, *rest = counts.tolist()
        native = native_of(inner, has_lower=bool(opens))
        return cls(labels, upper, cumulative, total, native, zero, tuple(rest))


def native_of(edges: Floats, *, has_lower: bool) -> Native | None:
    """Return where bins are in a native histogram; None if its buckets have other edges.

    Args:
        edges: float64[bins + 1], rising and finite.
        has_lower: whether values below the first edge are counted.
    """
    if edges[0] <= 0:
        return None
    doublings = float(np.log2(edges[1] / edges[0]))
    schema = round(-math.log2(doublings)) if doublings > 0 else _SCHEMAS.stop
    if schema not in _SCHEMAS:
        return None
    first = round(math.log2(edges[0]) * 2.0**schema)
    ideal = np.exp2((first + np.arange(len(edges))) / 2.0**schema)
    if not np.allclose(edges, ideal, rtol=_NEAR, atol=0):
        return None
    return Native(schema, first + 1, float(edges[0]) if has_lower else _NO_WIDTH)


class HistogramFamily(HistogramMetricFamily):
    """Histograms of one name; those that are not native stand first.

    A reader of protobuf from before 2024 decides by the first one whether all are native.

    Args:
        name: of the family.
        says: what it is.
        histograms: its members.
    """

    def __init__(self, name: str, says: str, histograms: list[Buckets]) -> None:
        super().__init__(name, says, labels=LABELS)
        self.members = sorted(histograms, key=lambda one: one.native is not None)
        for one in self.members:
            ends = map(floatToGoString, one.upper)
            buckets = list(zip(ends, one.cumulative, strict=True))
            self.add_metric(list(one.labels.values()), buckets, one.total)

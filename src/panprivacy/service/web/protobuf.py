"""Metrics in the protobuf format of Prometheus, in which alone a native histogram can be scraped.

A message is `io.prometheus.client.MetricFamily` of prometheus/client_model, each after its length.
The numbers of fields here are those of its `metrics.proto`; tests decode all with another library,
and have Prometheus scrape it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from panprivacy.service.web.exponential import Buckets, HistogramFamily

MEDIA_TYPE: Final = "application/vnd.google.protobuf"
_GAUGE, _HISTOGRAM = 1, 4
_VARINT, _DOUBLE, _BYTES = 0, 1, 2
_MORE: Final = 0x80


def generate(collector: Collector) -> bytes:
    """Return all metrics.

    Args:
        collector: of gauges and histograms.
    """
    return b"".join(_delimited(_family(one)) for one in collector.collect() if one.samples)


def _family(metric: Metric) -> bytes:
    if isinstance(metric, HistogramFamily):
        kind, members = _HISTOGRAM, list(map(_of_histogram, metric.members))
    else:
        kind, members = _GAUGE, [_of_gauge(one.labels, one.value) for one in metric.samples]
    head = _text(1, metric.name) + _text(2, metric.documentation) + _number(3, kind)
    return head + b"".join(_message(4, one) for one in members)


def _of_gauge(labels: Mapping[str, str], value: float) -> bytes:
    return _labels(labels) + _message(2, _double(1, value))


def _of_histogram(one: Buckets) -> bytes:
    """Return a histogram with its cumulative buckets, and as a native one if it is one."""
    parts = [_number(1, one.cumulative[-1]), _double(2, one.total)]
    parts += [
        _message(3, _number(1, count) + _double(2, upper))
        for upper, count in zip(one.upper, one.cumulative, strict=True)
    ]
    if one.native is not None:
        deltas = (late - soon for soon, late in pairwise((0, *one.counts)))
        span = _number(1, _zigzag(one.native.first)) + _number(2, len(one.counts))
        parts += [
            _number(5, _zigzag(one.native.schema)),
            _double(6, one.native.zero_threshold),
            _number(7, one.zero),
            _message(12, span),
            _message(13, b"".join(_varint(_zigzag(delta)) for delta in deltas)),
        ]
    return _labels(one.labels) + _message(7, b"".join(parts))


def _labels(labels: Mapping[str, str]) -> bytes:
    pairs = (_text(1, name) + _text(2, value) for name, value in labels.items())
    return b"".join(_message(1, pair) for pair in pairs)


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _delimited(content)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(number)


def _double(field: int, number: float) -> bytes:
    return _varint(field << 3 | _DOUBLE) + struct.pack("<d", number)


def _delimited(content: bytes) -> bytes:
    return _varint(len(content)) + content


def _zigzag(number: int) -> int:
    """Return a whole number as one of 0 or more, small if it is near 0."""
    return 2 * number if number >= 0 else -2 * number - 1


def _varint(number: int) -> bytes:
    """Return a whole number of 0 or more in groups of 7 bits, the lowest first."""
    found = bytearray()
    while number >= _MORE:
        found.append(number % _MORE | _MORE)
        number //= _MORE
    return bytes((*found, number))

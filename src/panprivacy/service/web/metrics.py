"""Metrics for Prometheus: releases and health, and nothing that depends on the number of rows.

The client library's own metrics of the process (processor time, memory, open files) grow with the
number of rows, so they are not exported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from panprivacy.errors import PanPrivacyError
from panprivacy.privacy.guarantee import float_above
from panprivacy.service.engine import Engine
from panprivacy.service.outgoing.histograms import (
    QUESTION,
    PublishedBins,
    is_bin,
    published_bins,
)
from panprivacy.service.outgoing.records import Published, StoreError
from panprivacy.service.outgoing.returns import ReturnRates, series_of
from panprivacy.service.served import Served
from panprivacy.service.web import protobuf
from panprivacy.service.web.exponential import LABELS, Buckets, HistogramFamily

_QUESTION = ["stream", "statistic", "question", "arguments", "group"]

FORMATS: Final[Mapping[str, tuple[Callable[[Collector], bytes], str]]] = {
    "text/plain": (generate_latest, "text/plain; version=0.0.4; charset=utf-8"),
    "application/openmetrics-text": (
        generate_openmetrics,
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    ),
    protobuf.MEDIA_TYPE: (
        protobuf.generate,
        f"{protobuf.MEDIA_TYPE}; proto=io.prometheus.client.MetricFamily; encoding=delimited",
    ),
}
"""Writer of each media type, and its full name; the first is the default."""


def exposition(
    engine: Engine,
    troubles: Iterable[str],
    kind: str = "text/plain",
    rates: ReturnRates | None = None,
) -> bytes:
    """Return all metrics.

    Args:
        engine: the engine of the service.
        troubles: the current troubles.
        kind: one of `FORMATS`.
        rates: compares published tables; None to leave return rates out.
    """
    return FORMATS[kind][0](_Metrics(engine, troubles, rates))


class _Metrics(Collector):
    def __init__(self, engine: Engine, troubles: Iterable[str], rates: ReturnRates | None) -> None:
        self._engine, self._troubles, self._rates = engine, troubles, rates

    def collect(self) -> Iterator[GaugeMetricFamily | HistogramFamily]:
        try:
            latest = self._engine.store.latest()
        except StoreError:
            latest = []
        histograms = published_bins(latest)
        yield from _of_releases([row for row in latest if not is_bin(row)], histograms)
        yield from _of_histograms(histograms)
        if self._rates is not None:
            yield from _of_tables(self._engine.streams, self._rates)
        ends = _gauge("stream_window_end_timestamp_seconds", "end of the window", ["stream"])
        losses = _losses(self._engine.streams)
        left = _gauge("stream_announcements_left", "intrusions that may be announced", ["stream"])
        for name, stream in self._engine.streams.items():
            left.add_metric([name], float(stream.looks_left))
            ends.add_metric([name], stream.ends.timestamp())
        yield from (ends, *losses, left)
        waiting = _gauge("waiting_for_restore", "1 while the checkpoint is not restored", [])
        waiting.add_metric([], float(self._engine.waiting))
        troubles = _gauge("trouble", "1 for what does not work at the moment", ["what"])
        for what in self._troubles:
            troubles.add_metric([what], 1.0)
        yield from (waiting, troubles)
        if self._engine.keeper.written is not None:
            written = _gauge("checkpoint_timestamp_seconds", "when the checkpoint was written", [])
            written.add_metric([], self._engine.keeper.written)
            yield written


def _of_releases(
    latest: list[Published], histograms: list[PublishedBins]
) -> Iterator[GaugeMetricFamily]:
    """Yield the newest answers; lost ones leave a gap. Of a histogram, yield when it was made."""
    value = _gauge("release_value", "the newest answer", _QUESTION)
    low = _gauge("release_low", "lower end of its interval", _QUESTION)
    high = _gauge("release_high", "upper end of its interval", _QUESTION)
    when = _gauge("release_timestamp_seconds", "when it was published", _QUESTION)
    for answer in latest:
        if answer.value is None or answer.low is None or answer.high is None:
            continue
        labels = [answer.stream, answer.statistic, answer.question, answer.arguments]
        labels.append(answer.group or "")
        value.add_metric(labels, answer.value)
        low.add_metric(labels, answer.low)
        high.add_metric(labels, answer.high)
        when.add_metric(labels, answer.released.timestamp())
    for bins in histograms:
        labels = [bins.stream, bins.statistic, QUESTION, "", bins.group or ""]
        when.add_metric(labels, bins.released.timestamp())
    yield from (value, low, high, when)


def _of_histograms(found: list[PublishedBins]) -> Iterator[GaugeMetricFamily | HistogramFamily]:
    """Yield histograms, and how far the count of a bin may be off."""
    margin = _gauge("values_margin", "how far the count of a bin may be off", LABELS)
    histograms = [Buckets.of(bins) for bins in found]
    for bins, one in zip(found, histograms, strict=True):
        margin.add_metric(list(one.labels.values()), bins.margin)
    says = "events by their value, in the newest histogram"
    yield from (HistogramFamily("panprivacy_values", says, histograms), margin)


def _of_tables(streams: Mapping[str, Served], rates: ReturnRates) -> list[GaugeMetricFamily]:
    """Return the newest return rates; what is noise, or cannot be compared, leaves a gap."""
    labels = ["stream", "statistic", "group"]
    value = _gauge("return_rate", "share of the last window but one that came again", labels)
    low = _gauge("return_rate_low", "lower end of its interval", labels)
    high = _gauge("return_rate_high", "upper end of its interval", labels)
    for name, stream in streams.items():
        for statistic, group in series_of(stream.config):
            try:
                pair = rates.newest(name, (statistic, group))
            except PanPrivacyError:  # of the store, or a row that no service wrote
                continue
            if pair is None or pair.return_rate is None or pair.note is not None:
                continue
            for gauge, number in (
                (value, pair.return_rate.value),
                (low, pair.return_rate.low),
                (high, pair.return_rate.high),
            ):
                gauge.add_metric([name, statistic, group or ""], number)
    return [value, low, high]


def _losses(streams: Mapping[str, Served]) -> list[GaugeMetricFamily]:
    """Return the guarantee of each stream, rounded up, and its conditions."""
    kinds = ["stream", "adjacency"]
    epsilon = _gauge("stream_epsilon", "loss in one window, in nats", kinds)
    delta = _gauge("stream_delta", "delta of that loss", kinds)
    year_epsilon = _gauge(
        "stream_year_epsilon", "loss in a year, one window seen if looks are covered", kinds
    )
    year_delta = _gauge("stream_year_delta", "delta of that loss", kinds)
    info = _gauge("stream_info", "1 for each condition of that loss", [*kinds, "condition"])
    for name, stream in streams.items():
        promise = stream.guarantee
        _, year = promise.year(stream.config.window_seconds)
        labels = [name, promise.adjacency]
        for gauge, bound in (
            (epsilon, promise.epsilon), (delta, promise.delta),
            (year_epsilon, year.epsilon), (year_delta, year.delta),
        ):  # fmt: skip
            gauge.add_metric(labels, float_above(bound))
        for condition in promise.conditions or ("",):
            info.add_metric([*labels, condition], 1.0)
    return [epsilon, delta, year_epsilon, year_delta, info]


def _gauge(name: str, says: str, labels: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"panprivacy_{name}", says, labels=labels)

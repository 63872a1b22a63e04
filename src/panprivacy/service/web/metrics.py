"""What Prometheus may see: releases and health, and nothing that depends on the number of rows.

The client library's own numbers of the process (time of the processor, memory, open files) grow
with what comes in, so they are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from panprivacy.service.engine import Engine
from panprivacy.service.outgoing.records import Published, StoreError

_QUESTION = ["stream", "statistic", "question", "arguments", "group"]

FORMATS: Final[Mapping[str, tuple[Callable[[Collector], bytes], str]]] = {
    "text/plain": (generate_latest, "text/plain; version=0.0.4; charset=utf-8"),
    "application/openmetrics-text": (
        generate_openmetrics,
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    ),
}
"""What writes each media type, and its full name; the first is for who does not ask."""


def exposition(engine: Engine, troubles: Iterable[str], kind: str = "text/plain") -> bytes:
    """All metrics.

    Args:
        engine: what is asked.
        troubles: what does not work at the moment.
        kind: one of `FORMATS`.
    """
    return FORMATS[kind][0](_Metrics(engine, troubles))


class _Metrics(Collector):
    def __init__(self, engine: Engine, troubles: Iterable[str]) -> None:
        self._engine, self._troubles = engine, troubles

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            latest = self._engine.store.latest()
        except StoreError:
            latest = []
        yield from _of_releases(latest)
        ends = _gauge("stream_window_end_timestamp_seconds", "end of the window", ["stream"])
        loss = "loss of a user in one window, or of an event, in nats"
        epsilon = _gauge("stream_epsilon", loss, ["stream"])
        left = _gauge("stream_announcements_left", "intrusions that may be announced", ["stream"])
        for name, stream in self._engine.streams.items():
            left.add_metric([name], float(stream.looks_left))
            ends.add_metric([name], stream.ends.timestamp())
            epsilon.add_metric([name], float(stream.config.epsilon))
        yield from (ends, epsilon, left)
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


def _of_releases(latest: list[Published]) -> Iterator[GaugeMetricFamily]:
    """The newest answers; those that are lost leave a gap."""
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
    yield from (value, low, high, when)


def _gauge(name: str, says: str, labels: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"panprivacy_{name}", says, labels=labels)

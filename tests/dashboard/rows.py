"""A service of which the dashboard shows what it published: its file, and rows of its store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np

from panprivacy.service.config.tokens import hash_of
from panprivacy.service.dashboard.series import POINT, ChartPoint
from panprivacy.service.outgoing.records import Entry, Published

START = datetime(2026, 11, 2, tzinfo=UTC)
DAY = timedelta(days=1)
CONFIG = """
[[tokens]]
name = "board"
may = ["read"]
sha256 = "{board}"
[[tokens]]
name = "shop"
may = ["read"]
sha256 = "{shop}"
streams = ["shop"]
[[tokens]]
name = "web"
may = ["ingest"]
sha256 = "{web}"
[streams.shop]
epsilon = 8
window = "1d"
releases = 2
intrusions = 1
ids = "integers"
[[streams.shop.stat]]
name = "distinct"
expected = "10:10000"
[[streams.shop.stat]]
name = "incidence"
bound = 3
expected = 20_000
exactly = "1:3"
as = "visits"
[streams.calls]
epsilon = 1
window = "1m"
[[streams.calls.stat]]
name = "running-count"
horizon = 1000
"""
TOKENS = {name: f"pp_{name}" for name in ("board", "shop", "web")}
HASHES = {name: hash_of(token) for name, token in TOKENS.items()}

ROW = Published(
    stream="shop",
    start=START,
    end=START + DAY,
    complete=True,
    number=1,
    statistic="visits",
    question="exactly",
    argument=1,
    arguments="state=1",
    group=None,
    value=10.0,
    low=8.0,
    high=12.5,
    estimate=10.0,
    standard_error=1.25,
    bias=0.0,
    confidence=0.95,
    epsilon=0.5,
    note=None,
    released=START + DAY,
)


def published(store, rows):
    """Have rows in the store, each release paid for."""
    lines = {(row.stream, row.start, row.number): row for row in rows}
    store.spend(
        [
            Entry(row.stream, row.start, row.end, number, Fraction(1, 4))
            for row in lines.values()
            for number in ([0, 1] if row.number == 1 else [row.number])
        ]
    )
    store.publish(rows)


def days(count, first=0):
    """A row for each of some days."""
    return [
        replace(ROW, start=START + day * DAY, end=START + (day + 1) * DAY,
                released=START + (day + 1) * DAY, value=float(day))
        for day in range(first, first + count)
    ]  # fmt: skip


def point(value, low=None, high=None, **more):
    return ChartPoint(
        0.0, value, value if low is None else low, value if high is None else high, **more
    )


def line(*points):
    """Points as they are kept."""
    return np.array(list(points), POINT)

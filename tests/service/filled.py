"""A release store that streams filled, day by day, before anybody looks at it."""

from __future__ import annotations

import contextlib
import time

import numpy as np
import pyarrow as pa

from panprivacy.service.config.loading import load
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream

DAY = 86_400.0


def fill(file, days, ends=None):
    """Count made-up users of so many days, and have what the streams of a configuration release.

    Args:
        file: of the configuration.
        days: how many.
        ends: when the last of them ends, in seconds since 1970; None for the last midnight.
    """
    config, coins = load(file), np.random.default_rng(27)
    end = time.time() // DAY * DAY if ends is None else ends
    now = [end - days * DAY]
    with contextlib.closing(ReleaseStore(config.releases.store)) as store:
        streams = [
            Stream(name, stream, store, clock=lambda: now[0])
            for name, stream in config.streams.items()
            if stream.window == "1d"
        ]
        for day in range(days):
            came = round(9_000 * (1.2 + 0.5 * np.sin(day / 14) - 0.4 * (day % 7 > 4)))
            users = np.repeat(coins.permutation(50_000)[:came], np.minimum(coins.zipf(2, came), 8))
            for stream in streams:
                stream.take([_rows(stream, users, coins)])
            now[0] += DAY
            for stream in streams:
                stream.advance()


def _rows(stream, users, coins):
    """One event for each user, of a group that is drawn; values where those are counted."""
    if stream.config.stat[0]["name"] == "histogram":
        return pa.record_batch({"value": coins.lognormal(5, 1, len(users))})
    columns = {"user": users}
    if groups := stream.config.groups:
        drawn = np.minimum(coins.zipf(1.7, len(users)), len(groups)) - 1
        columns["page"] = np.array(groups, object)[drawn]
    return pa.record_batch(columns)

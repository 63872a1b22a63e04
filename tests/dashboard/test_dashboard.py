"""What the dashboard makes of a release store: lines, bars and budgets; and who may see them."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import sys
import time
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from panprivacy.errors import PlanError, install
from panprivacy.service.config.loading import load
from panprivacy.service.dashboard import charts
from panprivacy.service.dashboard.history import History
from panprivacy.service.dashboard.promise import StreamPromise
from panprivacy.service.dashboard.series import SeriesName, histograms
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from tests.commands import run_command
from tests.dashboard.rows import DAY, START


@pytest.mark.long
def test_hundred_thousand_answers_stay_quick(store, file):
    ticks = np.arange(100_000) * 1e6 + 1e15
    rows = [(tick, tick % 977) for tick in ticks.tolist()]
    with contextlib.closing(sqlite3.connect(store._engine.url.database)) as raw, raw:
        stamp = "strftime('%Y-%m-%d %H:%M:%f', ?1 / 1e6, 'unixepoch') || '000'"
        raw.executemany(
            f"INSERT INTO panprivacy_answers (stream, start, complete, number, statistic, question,"
            f" arguments, value, low, high, confidence, epsilon, released) VALUES ('shop', {stamp},"
            f" 1, 1, 'distinct', 'distinct', '', ?2, ?2 - 5, ?2 + 5, 0.95, 0.1, {stamp})",
            rows,
        )
    followed = History(store, "shop")
    seconds = [elapsed(followed.follow) for _ in range(3)]
    assert max(seconds) < 3  # a page, not all of them
    while followed.follow():
        pass
    assert followed.known.answers == 100_000
    (points,) = followed.known.points.values()
    assert elapsed(lambda: charts.over_time(points, "users", "UTC")) < 0.5
    assert elapsed(followed.follow) < 1
    assert len(json.dumps(charts.over_time(points, "users", "UTC"))) < 200_000


def elapsed(work):
    """Processor time of this thread."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def test_a_store_or_a_configuration_that_is_not_there_is_told_in_one_line(file):
    pytest.importorskip("nicegui")
    told = run_command("dashboard", file)
    assert (told.code, told.stdout) == (2, "")
    assert "cannot be opened: the database fails: unable to open database file" in told.stderr
    ReleaseStore(f"sqlite:///{file.parent}/releases.sqlite").close()
    taken = run_command("dashboard", file, "--listen", "nowhere")
    spoilt = run_command("dashboard", file.with_name("nothing.toml"))
    assert "listen must be 127.0.0.1" in taken.stderr
    assert "cannot read nothing.toml" in spoilt.stderr
    assert {one.stderr.count("\n") for one in (told, taken, spoilt)} == {1}


def test_a_server_without_the_extra_says_what_to_install(file, monkeypatch):
    for name in [one for one in sys.modules if one.startswith("panprivacy.service.dashboard.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nicegui", None)
    told = run_command("dashboard", file)
    assert told.code == 2
    missing = rf"panprivacy: the dashboard needs \w+: {re.escape(install('dashboard'))}\n"
    assert re.fullmatch(missing, told.stderr)


def test_what_a_stream_released_is_what_is_shown(store, file):
    clock = [START.timestamp()]
    config = load(file).streams["shop"]
    one = Stream("shop", config, store, clock=lambda: clock[0])
    for _ in range(3):
        one.take([pa.record_batch({"user": np.arange(500)})])
        clock[0] += DAY.total_seconds()
        one.advance()
    followed = History(store, "shop")
    followed.follow()
    known = followed.known
    assert len(known.points[SeriesName("distinct", "distinct", "", None)]) == 3
    ((_, bars),) = histograms(known.newest).items()
    assert [bar.label for bar in bars] == ["1", "2", "3"]
    promise = StreamPromise("shop", config)
    year = promise.year(store, datetime.fromtimestamp(clock[0], UTC))
    assert (year.windows, year.loss) == (4, promise.guarantee.over(4))
    with pytest.raises(PlanError):
        promise._windowed.loss(0)

"""Kills of a service under load: each acknowledged row is in the answer of its window, once.

    python -m benchmarks.crashes [KILLS] [SECONDS] [SEED] [GROUPS]

200 kills by default, with windows of 10 seconds, 256 groups and an epsilon so large that answers
are exact. Senders post batches with `durable=1` under an Idempotency-Key, and repeat each until it
is acknowledged. Every third kill comes within the first third of a second of a window, where
answers are made, kept and published; the others come at any time. After each the service is started
again and restored. Ctrl-C ends the killing, and what was sent by then is compared.

A batch belongs to a window in which it was under way. So for each window and group there must be a
choice of the batches that were under way at its ends with which acknowledged and counted rows are
equal, one choice for all windows. The script exits with 1 where there is none, or where the lines
of the ledger are not those of the answers.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import httpx
from tests.service.running import TOKENS, Preloaded, Service, wait_until

_KILLS: Final = 200
_SECONDS: Final = 10
_SEED: Final = 200
_LONGEST: Final = 600.0
"""Seconds in which a service acknowledges again."""
_GROUPS: Final = 256
_UNIVERSE: Final = 2_000
_SENDERS: Final = 6
_MOST_ROWS: Final = 60
_EVERY: Final = 0.1
_AIMED: Final = 1 / 3
_MARGIN: Final = 0.05
"""Seconds by which the clocks of a sender and of the service may be read apart."""

Rows = Counter[str]
"""How many there are of each group."""


@dataclass
class Batch:
    """What was sent at once, and between which windows it was counted."""

    rows: Rows
    first: int
    last: int


@dataclass
class Load:
    """Senders of batches, each of which is repeated until it is acknowledged."""

    service: Service
    seconds: int
    groups: int
    acknowledged: list[Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._users: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(one,), daemon=True) for one in range(_SENDERS)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Send no more batches; those that are under way are repeated until they are taken."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _run(self, sender: int) -> None:
        drawn = random.Random(sender)
        with httpx.Client(
            trust_env=False, verify=False, timeout=20
        ) as client:  # certificates are slow
            self._insist(client, sender, drawn)

    def _insist(self, client: httpx.Client, sender: int, drawn: random.Random) -> None:
        for number in itertools.count():
            if self._stopping.is_set():
                return
            groups = [
                f"g{drawn.randrange(self.groups)}" for _ in range(drawn.randint(1, _MOST_ROWS))
            ]
            with self._lock:
                users = [next(self._users[group]) % _UNIVERSE for group in groups]
            began = time.time() - _MARGIN
            while not self._post(client, users, groups, f"{sender}-{number}"):
                time.sleep(0.1)
            span = (int(moment // self.seconds) for moment in (began, time.time() + _MARGIN))
            with self._lock:
                self.acknowledged.append(Batch(Counter(groups), *span))

    def _post(
        self, client: httpx.Client, users: Sequence[int], groups: Sequence[str], key: str
    ) -> bool:
        with contextlib.suppress(httpx.HTTPError, TypeError, OSError):  # it is dead, or not there
            answer = client.post(
                self.service.url("/v1/streams/visits/updates"),
                params={"durable": 1},
                json={"user": users, "page": groups},
                headers={"Authorization": f"Bearer {TOKENS['ingest']}", "Idempotency-Key": key},
            )
            return answer.status_code == 200
        return False


def streams(seconds: int, groups: int) -> str:
    """The stream that is counted."""
    labels = ", ".join(f'"g{number}"' for number in range(groups))
    return f"""
[streams.visits]
epsilon = 300
window = "{seconds}s"
ids = "integers"
by = "page"
groups = [{labels}]
per_user = 1
[[streams.visits.stat]]
name = "incidence"
universe = {_UNIVERSE}
bound = 2
exactly = "1:2"
"""


@dataclass
class Kills:
    """Kills of a service, and how long it took to go on after each.

    Args:
        seconds: length of a window.
        seed: of the moments.
    """

    seconds: int
    seed: int
    aimed: int = 0
    pauses: list[float] = field(default_factory=list)

    def make(self, service: Service, load: Load, kills: int) -> None:
        """Kill a service so often, or until somebody presses Ctrl-C.

        Before the next one it acknowledges something: on a crowded machine it takes long to close
        the windows that have passed, and would do so without an end if it were killed meanwhile.
        """
        drawn = random.Random(self.seed)
        stopped = threading.Event()
        before = signal.signal(signal.SIGINT, lambda *_: stopped.set())
        while len(self.pauses) < kills and not stopped.is_set():
            at_the_end = len(self.pauses) % round(1 / _AIMED) == 0
            if at_the_end:
                time.sleep(self.seconds - time.time() % self.seconds + drawn.uniform(0, 1 / 3))
            else:
                time.sleep(drawn.uniform(0.1, 0.6 * self.seconds))
            began, known = time.monotonic(), len(load.acknowledged)
            service.kill()
            service.begin()
            wait_until(lambda known=known: len(load.acknowledged) > known, _LONGEST)
            self.pauses.append(time.monotonic() - began)
            self.aimed += at_the_end
            print(f"\r{len(self.pauses)} kills", end="", file=sys.stderr, flush=True)
        signal.signal(signal.SIGINT, before)
        print(file=sys.stderr)


def stored(service: Service, seconds: int) -> tuple[dict[int, Rows], set[object], set[object]]:
    """Rows of each window, and the releases that have answers and lines."""
    counted: dict[int, Rows] = defaultdict(Counter)
    shown, lines = set[object](), set[object]()
    with contextlib.closing(sqlite3.connect(service.directory / "releases.sqlite")) as store:
        asked = 'SELECT start, number, argument, "group", value FROM panprivacy_answers'
        for start, number, argument, group, value in store.execute(asked):
            began = datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp()
            shown.add((start, number))
            counted[int(began // seconds)][group] += argument * round(value)
        found = store.execute("SELECT start, number FROM panprivacy_ledger WHERE number > 0")
        lines.update(found.fetchall())
    return {window: +rows for window, rows in counted.items()}, shown, lines


def unequal(batches: Sequence[Batch], counted: dict[int, Rows]) -> list[int]:
    """The windows of which no choice of the batches at their ends makes sent and counted equal."""
    certain: dict[int, Rows] = defaultdict(Counter)
    open_in: dict[int, list[Batch]] = defaultdict(list)
    for batch in batches:
        if batch.first == batch.last:
            certain[batch.first] += batch.rows
        else:
            open_in[batch.first].append(batch)
    wrong, carried = [], list[Batch]()
    for window in range(min(counted), max(counted) + 1):
        choices = carried + open_in[window]
        missing = Counter(counted.get(window, Counter()))
        missing.subtract(certain[window])
        chosen = next(_choices(choices, missing), None)
        if chosen is None:
            wrong.append(window)
            chosen = tuple(batch for batch in choices if batch.last == window)
        carried = [batch for batch in choices if not any(batch is one for one in chosen)]
        if any(batch.last <= window for batch in carried) and window not in wrong:
            wrong.append(window)
    return wrong


def _choices(batches: Sequence[Batch], missing: Rows) -> Iterator[tuple[Batch, ...]]:
    """Which of the batches have just the rows that are missing."""
    total = missing.total()
    for size in range(len(batches) + 1):
        for some in itertools.combinations(batches, size):
            if sum(one.rows.total() for one in some) == total:
                sums = sum((one.rows for one in some), Counter[str]())
                if all(sums[group] == missing[group] for group in sums | missing):
                    yield some


def run(kills: int, seconds: int, seed: int, groups: int) -> bool:
    """Whether each acknowledged row was in one answer; prints what was counted."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Preloaded(every=_EVERY) as preloaded,
        Service(folder, streams(seconds, groups), preloaded=preloaded) as service,
    ):
        service.begin()
        load = Load(service, seconds, groups)
        made = Kills(seconds, seed)
        made.make(service, load, kills)
        load.stop()
        last = max(batch.last for batch in load.acknowledged)
        wait_until(lambda: max(stored(service, seconds)[0], default=0) >= last, _LONGEST)
        counted, shown, lines = stored(service, seconds)
        said = service.said
    sent = sum(batch.rows.total() for batch in load.acknowledged)
    there = sum(rows.total() for rows in counted.values())
    wrong = unequal(load.acknowledged, counted)
    print(
        f"{len(made.pauses)} kills, {made.aimed} at ends of windows; "
        f"{len(counted)} windows with rows; "
        f"{sent:,} rows acknowledged, {there:,} counted; {len(wrong)} windows unequal; "
        f"{len(lines)} lines of the ledger, {len(shown)} answers; "
        f"counting again after {statistics.median(made.pauses):.1f} s (median), "
        f"{max(made.pauses):.1f} s (most)"
    )
    return sent == there and not wrong and lines == shown and "is lost" not in said


def main() -> None:
    """Read the command line, and exit with 1 where a row is missing or comes twice."""
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(not run(*given, *[_KILLS, _SECONDS, _SEED, _GROUPS][len(given) :]))


if __name__ == "__main__":
    main()

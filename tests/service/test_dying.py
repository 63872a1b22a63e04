"""A service that dies at each step there is: no row, no answer and no line is lost or comes twice.

What a service does to a store or a file is numbered. A short life of three windows is lived once
for each number, and ends there: the process is gone, and another one goes on from the file. The
sender sends again what was not acknowledged.
"""

from __future__ import annotations

import random
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from unittest import mock

import numpy as np
import pyarrow as pa
import pyrage
import pytest

from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.service.kept.keeper import Keeper
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from panprivacy.statistics.checkpoint import Checkpoint
from panprivacy.statistics.contribution import read_parts
from panprivacy.statistics.overlaps.sketch import Sketch
from tests.service.doubles import HOUR, START, Clock, Crash

IDENTITY = pyrage.x25519.Identity.generate()
UNIVERSE = 64
EXACT = {"name": "incidence", "universe": UNIVERSE, "bound": 3, "exactly": "1:3"}
"""With so large an epsilon its answers are exact, with a probability of 1 - 1e-12."""
CONFIGS = {
    "the end of a window": {},
    "several statistics": {"stat": (EXACT, {**EXACT, "as": "again"})},
    "groups": {"by": "page", "groups": ("a", "b"), "per_user": 1},
    "within a window": {"releases": 3, "every": "20m"},
    "on request": {"releases": 3},
    "moves": {
        "stat": ({"name": "density", "universe": UNIVERSE},), "moves": 0.1,
        "releases": 3, "every": "20m",
    },
    "a running count": {"stat": ({"name": "running-count", "horizon": 50},)},
    "a window that learns": {
        "stat": ({"name": "distinct", "expected": "learn:10:1000", "memory": 2_048},)
    },
    "published tables": {
        "stat": ({"name": "overlap", "universe": UNIVERSE},), "keep_tables": "1w",
    },
    "published tables of groups": {
        "stat": ({"name": "overlap", "universe": UNIVERSE, "covers": "publication"},),
        "by": "page", "groups": ("a", "b"), "per_user": 1,
    },
    "contributions": {"contribute": str(IDENTITY.to_public())},
}  # fmt: skip


class Steps:
    """Numbers all that is done to stores and files, and ends the process at some of them."""

    def __init__(self, *deadly):
        self.deadly, self.done = set(deadly), 0

    def __call__(self):
        self.done += 1
        if self.done in self.deadly:
            raise Crash


class Store(ReleaseStore):
    """A store in which each transaction that writes is a step before and a step after it."""

    def __init__(self, url, step):
        super().__init__(url)
        self.step = step

    @contextmanager
    def _transaction(self, *, writes=False):
        step = getattr(self, "step", None) if writes else None
        if step:
            step()
        with super()._transaction(writes=writes) as connection:
            yield connection
        if step:
            step()


@dataclass
class Life:
    """A stream, its files and its sender, over any number of processes."""

    folder: object
    given: dict
    step: Steps
    url: str | None = None
    clock: Clock = field(default_factory=Clock)
    deaths: int = 0

    def __post_init__(self):
        named = {"stat": (EXACT,), "window": "1h", "retries": 50, "epsilon": 200, **self.given}
        named["epsilon"] = Fraction(named["epsilon"])
        self.config = StreamConfig(ids=IdKind.integers, **named)
        self.sealed = Checkpoint(self.folder / "a.sealed", recipient=str(IDENTITY.to_public()))
        self.identity = self.folder / "identity.txt"
        self.identity.write_text(f"{IDENTITY}\n")
        self.url = self.url or f"sqlite:///{self.folder}/releases.db"
        ReleaseStore(self.url).close()
        self.begin()

    def begin(self):
        """Begin, from the checkpoint if there is one."""
        self.store = Store(self.url, self.step)
        self.stream = Stream(
            "visits", self.config, self.store, folder=self.folder, durable=True, clock=self.clock
        )
        with suppress(FileNotFoundError):
            state = self.sealed.unsealed(self.identity)
            known = {
                "released": self.stream.states.released_in(state),
                "announced": self.stream.states.announced_in(state),
            }
            self.stream.check_state(state, **known)
            self.stream.resume(state, **known)
        self.stream.begin()
        self.keeper = Keeper([self.stream], self.sealed)

    def live(self, act):
        """Do something, in as many processes as it takes."""
        while True:
            try:
                act()
            except Crash:
                self.deaths += 1
                self.store.close()
                self.begin()
            else:
                return

    def tick(self):
        self.keeper.advance(self.stream)
        assert self.keeper.write() is None

    def send(self, users, name):
        """A batch that is acknowledged when a checkpoint has it."""
        columns = {"user": pa.array(users, pa.int64())}
        if self.config.by:
            columns["page"] = pa.array([("a", "b")[user % 2] for user in users])
        self.stream.take([pa.record_batch(columns)], name.encode())
        assert self.keeper.write() is None

    def release(self):
        """A release on request, which the keeper's thread would have kept and published."""
        with mock.patch("panprivacy.service.stream_windows._WAIT", 0), suppress(Exception):
            self.stream.release()
        self.tick()


@contextmanager
def dying_files(step):
    """Let each file that is written be a step when it is, and when it has its place."""
    with mock.patch("panprivacy.ground.files.os.fsync", side_effect=lambda _: step()):
        yield  # nothing is synced: no machine loses its power here


def lived(folder, given, step, url=None):
    """Two windows with two batches in each, and the beginning of a third."""
    life = Life(folder, given, step, url)
    users = iter(range(UNIVERSE))
    with dying_files(step):
        for window in range(2):
            for part in range(2):
                sent = [next(users) for _ in range(2 + window + part)]
                life.live(lambda sent=sent, name=f"{window}-{part}": life.send(sent, name))
                life.clock.now += 1_200
                life.live(life.tick)
                if life.config.releases == 3 and life.config.every is None and part == 0:
                    life.live(life.release)
            life.clock.now = START + (window + 1) * HOUR
            life.live(life.tick)
    life.step.deadly = set()
    life.live(life.tick)
    return life


TRUTHS = [2 + 3, 3 + 4]


def check(life, caplog, kind):
    """Each window is answered once, with all that was acknowledged in it, and paid for once."""
    rows = life.store.answers(limit=10_000)
    lines = [(line.start, line.number) for line in life.store.ledger() if line.number]
    shown = {(row.start, row.number) for row in rows}
    assert len(lines) == len(set(lines))
    assert shown <= set(lines)
    if kind != "moves":  # which pays before it compares: a line may be used up without an answer
        assert shown == set(lines)
        assert "lost" not in caplog.text
    ends = [row for row in rows if row.end.timestamp() % HOUR == 0]
    asked = {(row.statistic, row.question, row.argument, row.group) for row in ends}
    for name in asked:
        found = [row for row in ends if name == (*_name(row),)]
        assert [row.start.timestamp() for row in found] == [START + at * HOUR for at in range(2)]
    assert counted(life, ends, kind) == TRUTHS
    life.store.close()


def _name(row):
    return row.statistic, row.question, row.argument, row.group


def counted(life, ends, kind):
    """How many rows are in the answer of each window."""
    if kind == "contributions":
        parts = [_told(path) for path in sorted(life.folder.glob("*.part"))]
        return [int(memory[1]) for memory in parts]
    if kind.startswith("published tables"):
        return members_of_tables(life.store, ends)
    if kind == "moves":
        return [round(UNIVERSE * row.value) for row in ends]
    if kind == "a running count":
        sums = [round(row.value) for row in ends]
        return [after - before for before, after in zip([0, *sums], sums, strict=False)]
    if kind == "a window that learns":
        assert all(row.low <= truth <= row.high for row, truth in zip(ends, TRUTHS, strict=True))
        return TRUTHS
    once = [row for row in ends if row.argument == 1 and row.statistic == "incidence"]
    assert not any(round(row.value) for row in ends if row.argument in {2, 3})
    totals = dict.fromkeys((row.start for row in once), 0)
    for row in once:
        totals[row.start] += round(row.value)
    return list(totals.values())


def members_of_tables(store, ends):
    """How many are in the tables of each window: one for each answer, with what it says."""
    listed, told = store.sketches(), {}
    assert [(one.start, one.number, one.group) for one in listed] == [
        (row.start, row.number, row.group) for row in ends
    ]
    found = [Sketch.read(store.sketch(one.stream, one.id)) for one in listed]
    assert len({one.key for one in found}) == 1, "one key for all windows and all restarts"
    for listed_one, sketch, row in zip(listed, found, ends, strict=True):
        came = int(np.bitwise_count(sketch.packed).sum())
        assert came == round(row.value), "the answer is that of the published table"
        front = sketch.front
        assert (front.start, front.end, front.group) == (row.start, row.end, row.group)
        told[listed_one.start] = told.get(listed_one.start, 0) + came
    return list(told.values())


def _told(path):
    (part,) = read_parts(pyrage.decrypt(path.read_bytes(), [IDENTITY]))
    return memoryview(part.body).cast("q")


def steps_of(folder, given):
    step = Steps()
    folder.mkdir()
    life = lived(folder, given, step)
    life.store.close()
    return step.done


@pytest.mark.parametrize(
    "stride", [pytest.param(3, marks=pytest.mark.long), pytest.param(1, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", CONFIGS)
def test_wherever_it_dies_each_window_is_answered_and_paid_for_once(tmp_path, caplog, kind, stride):
    given = CONFIGS[kind]
    steps = steps_of(tmp_path / "whole", given)
    assert steps > 25
    for deadly in range(1 + len(kind) % stride, steps + 1, stride):
        folder = tmp_path / f"{deadly}"
        folder.mkdir()
        life = lived(folder, given, Steps(deadly))
        assert life.deaths == 1 or kind == "moves", "where answers decide how many steps there are"
        check(life, caplog, kind)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind == "within a window" else pytest.mark.long)
        for kind in CONFIGS
    ],
)
def test_however_often_it_dies_each_window_is_answered_and_paid_for_once(tmp_path, caplog, kind):
    """Several deaths in one life, wherever they come."""
    drawn = random.Random(kind)
    life = lived(tmp_path, CONFIGS[kind], Steps(*drawn.sample(range(1, 60), 20)))
    assert life.deaths > 5
    check(life, caplog, kind)


@pytest.mark.long
def test_with_postgresql_wherever_it_dies_each_window_is_answered_once(tmp_path, postgres, caplog):
    given = CONFIGS["within a window"]
    for deadly in range(3, 36, 4):
        folder = tmp_path / f"{deadly}"
        folder.mkdir()
        life = lived(folder, given, Steps(deadly), postgres.url())
        assert life.deaths == 1
        check(life, caplog, "within a window")

"""The clock on the wall is set, while a stream counts and between two processes.

Of each user one event comes, and epsilon is so large that answers are exact, with a probability of
1 - 1e-12: so each row can be followed into the answer that has it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from fractions import Fraction
from itertools import count, pairwise

import pyarrow as pa
import pytest

from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.service.kept.pulse import Pulse
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.stream import Stream
from tests.service.doubles import HOUR

DAY = 24 * HOUR
JUMPS = {"an hour on": HOUR, "an hour back": -HOUR, "a day on": DAY, "a day back": -DAY}
PLACES = {"at the end": HOUR, "just before it": HOUR - 1, "within": HOUR // 2}


class World:
    """A stream on a clock that is set, the process that it is in, and what was sent to it.

    Args:
        store: the release store.
        clock: on the wall.
    """

    def __init__(self, store, clock):
        self.store, self.clock, self.running = store, clock, 0.0
        self.config = StreamConfig(
            stat=({"name": "incidence", "universe": 4_000, "bound": 3, "exactly": "1"},),
            epsilon=Fraction(200), ids=IdKind.integers, window="1h",
        )  # fmt: skip
        self.users, self.sent = count(), 0
        self.start()

    def start(self):
        """A process that has nothing."""
        pulse = Pulse(self.clock, lambda: self.running)
        pulse.start()
        pulse.stop()  # a test looks itself
        self.stream = Stream(
            "visits", self.config, self.store, durable=True, broken=pulse.broken, clock=self.clock
        )
        self.stream.begin()

    def crash(self, jump):
        """Go on from the last checkpoint in another process, on a clock that was set meanwhile."""
        state = self.kept
        self.set(jump)
        self.start()
        released = self.stream.states.released_in(state)
        self.stream.resume(state, released=released)
        self.stream.begin()
        self.keep()

    def set(self, jump):
        """Set the clock."""
        self.clock.now += jump

    def wait(self, seconds):
        """Let time pass."""
        self.clock.now += seconds
        self.running += seconds

    def send(self, rows):
        """Send rows that are acknowledged once a checkpoint has them."""
        users = [next(self.users) for _ in range(rows)]
        self.keep()
        assert self.stream.take([pa.record_batch({"user": pa.array(users, pa.int64())})])
        self.keep()
        self.sent += rows

    def keep(self):
        """Do what is due, with the checkpoints that it takes."""
        while True:
            with suppress(StoreError):
                self.stream.advance()
            self.kept = self.stream.state()
            self.stream.mark_stored()
            if self.stream.deadline() > self.clock() and not self.stream.unkept:
                self.stream.publish()
                return

    @property
    def counted(self):
        """In all answers of the ends of windows."""
        return sum(round(row.value) for row in self.store.answers(limit=10_000))


def check(world):
    """Windows do not overlap; each has one line and one answer; nothing is paid twice."""
    answers, lines = world.store.answers(limit=10_000), list(world.store.ledger())
    spans = sorted((row.start, row.end) for row in answers)
    assert all(end >= start for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    paid = Counter((line.start, line.number) for line in lines)
    shown = Counter((row.start, row.number) for row in answers)
    assert set(paid.values()) == set(shown.values()) == {1}
    assert set(shown) <= set(paid)
    spent = Counter()
    for line in lines:
        spent[line.start] += line.epsilon
    assert max(spent.values()) <= world.config.epsilon


@pytest.mark.long
@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("crash", [False, True], ids=["it runs", "it crashes"])
def test_a_clock_that_is_set_loses_and_doubles_no_row(store, clock, jump, place, crash):
    """Before it was set, no window was released that the clock could come to again."""
    world = World(store, clock)
    world.send(3)
    world.wait(PLACES[place])
    if place != "at the end":
        world.send(4)
    (world.crash if crash else world.set)(JUMPS[jump])
    world.send(5)
    world.wait(60)
    world.send(6)
    for _ in range(26):
        world.wait(HOUR)
        world.keep()
    check(world)
    assert world.counted == world.sent
    broken = [row.start for row in store.answers(limit=10_000) if not row.complete]
    assert broken, "the window in which it was set is not complete"


@pytest.mark.long
@pytest.mark.parametrize("back", [HOUR, 3 * HOUR, DAY], ids=["an hour", "three hours", "a day"])
@pytest.mark.parametrize("how", ["it runs", "it crashes", "it begins anew"])
def test_what_comes_in_hours_that_have_answers_is_in_the_open_window(
    store, clock, back, how, caplog
):
    """No answer that left changes, and each row that was acknowledged is in one."""
    world = World(store, clock)
    for _ in range(4):
        world.send(10)
        world.wait(HOUR)
        world.keep()
    before = {(row.start, row.value) for row in store.answers()}
    if how == "it begins anew":
        world.set(-back)
        world.start()
    else:
        (world.crash if how == "it crashes" else world.set)(-back)
    for _ in range(back // HOUR + 5):
        world.send(1)
        world.wait(HOUR)
        world.keep()
    check(world)
    assert world.counted == world.sent
    rows = sorted(store.answers(limit=10_000), key=lambda row: row.start)
    assert before == {(row.start, row.value) for row in rows[: len(before)]}
    open_one = rows[len(before)]
    assert round(open_one.value) == back // HOUR + 1
    assert not open_one.complete
    assert "the clock was set back" in caplog.text
    assert "is lost" not in caplog.text

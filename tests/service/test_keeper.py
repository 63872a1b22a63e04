"""The keeper and the desk: group commit, the clock, and how a service goes on."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import pairwise

import pytest

from panprivacy.errors import InputError
from panprivacy.service import stream_windows as streams
from panprivacy.service.config.loading import load
from panprivacy.service.engine import LocalEngine
from panprivacy.service.kept import keeper
from panprivacy.service.kept.keeper import SOON, Keeper
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from panprivacy.statistics.checkpoint import Checkpoint
from tests.service.running import VISITS, Service, wait_until

QUICK = 0.002
PATIENCE = 60
NEVER = 3_600


class Idle:
    """A stream to which nothing happens, or what a test says."""

    name = "visits"

    def __init__(self):
        self.done, self.fails, self.unkept = [], None, False

    def mark_stored(self):
        self.unkept = False

    def mark_not_stored(self):
        self.done.append("not kept")

    def deadline(self):
        return time.time() + NEVER

    def advance(self):
        self.done.append("advance")
        if self.fails is not None:
            raise self.fails

    def close(self):
        self.done.append("close")

    def publish(self):
        self.done.append("publish")


class Disk:
    """A checkpoint that a test holds up, and lets fail."""

    def __init__(self):
        self.free, self.begun, self.fails = threading.Event(), threading.Event(), None
        self.free.set()
        self.times, self.states, self.takes = [], b"", 0.0

    def hold(self):
        """Let the next write wait; returns when it has begun."""
        self.begun.clear()
        self.free.clear()
        assert self.begun.wait(PATIENCE)

    def write(self, streams):
        self.times.append(time.monotonic())
        states = b"".join(one.state() for one in streams if isinstance(one, Stream))
        self.begun.set()
        assert self.free.wait(PATIENCE)
        time.sleep(self.takes)
        if self.fails is not None:
            raise self.fails
        self.states = states


@pytest.fixture
def disk():
    return Disk()


@contextmanager
def running(streams, disk, every=QUICK):
    keeper = Keeper(streams, disk, every)
    keeper.start()
    try:
        yield keeper
    finally:
        if disk is not None:
            disk.free.set()
        keeper.stop()


def word(keeper):
    """What is told of the next checkpoint, once it is."""
    told = []
    keeper.after_next(told.append, time.monotonic())
    wait_until(lambda: told, PATIENCE)
    return told[0]


# Group commit


def test_nobody_is_told_before_the_file_is_there(disk):
    with running([Idle()], disk) as keeper:
        disk.hold()
        told = []
        keeper.after_next(told.append, time.monotonic())
        time.sleep(0.05)
        assert told == []
        disk.begun.clear()
        disk.free.set()
        wait_until(lambda: told, PATIENCE)
        assert disk.begun.is_set(), "not the one that had begun, but the next"
        assert told == [None]


def test_who_waits_in_time_is_told_by_the_one_that_begins(disk):
    keeper = Keeper([Idle()], disk, NEVER)
    early, late = [], []
    keeper.after_next(early.append, time.monotonic())
    disk.free.clear()
    keeper.start()
    assert disk.begun.wait(PATIENCE)
    keeper.after_next(late.append, time.monotonic())
    disk.free.set()
    wait_until(lambda: early, PATIENCE)
    assert (early, late) == ([None], [])
    keeper.stop()
    assert (early, late) == ([None], [None])
    assert len(disk.times) == 2


def test_who_waits_has_a_checkpoint_soon_and_the_disk_is_idle_in_between(disk):
    with running([Idle()], disk, NEVER) as keeper:
        wait_until(lambda: disk.times, PATIENCE)
        assert [word(keeper) for _ in range(3)] == [None] * 3
        assert len(disk.times) == 4
        assert min(after - before for before, after in pairwise(disk.times)) >= SOON
        time.sleep(2 * SOON)
        assert len(disk.times) == 4, "nobody waits"
        disk.takes = 2 * SOON
        assert [word(keeper), word(keeper)] == [None, None]
        assert disk.times[-1] - disk.times[-2] >= 4 * SOON, "as long as it took, after it"


@pytest.mark.long
def test_what_is_acknowledged_is_in_the_file_a_repeated_batch_too(disk, tmp_path):
    with Service(tmp_path) as service, closing(ReleaseStore(f"sqlite:///{tmp_path}/a")) as store:
        config = load(service.config).streams["visits"]
        stream = Stream("visits", config, store)

        def holds(batch_id):
            after = Stream("visits", config, store)
            after.resume(disk.states)
            return batch_id in after.reception.batch_ids

        with running([stream], disk) as keeper:
            for number in range(100):
                batch_id = b"%d" % (number // 2)
                assert stream.take([], batch_id) == (number % 2 == 0)
                assert word(keeper) is None
                assert holds(batch_id)


def test_of_many_each_is_told_once(disk):
    told, lock = [], threading.Lock()

    def wait(number):
        def tell(trouble):
            with lock:
                told.append((number, trouble))

        keeper.after_next(tell, time.monotonic())

    with running([Idle()], disk, 0.000_1) as keeper:
        threads = [
            threading.Thread(target=lambda first=first: [wait(n) for n in range(first, 2_000, 4)])
            for first in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(told) == [(number, None) for number in range(2_000)]


@pytest.mark.long
def test_who_waits_for_the_end_is_told_soon_however_seldom_is_written(disk):
    with running([Idle()], disk, NEVER) as keeper:
        assert disk.begun.wait(PATIENCE)
        keeper.hurry()
        assert word(keeper) is None
        assert word(keeper) is None, "and again"


def test_one_that_cannot_be_told_keeps_the_word_from_nobody(disk):
    def gone(_):
        raise RuntimeError("Event loop is closed")

    with running([Idle()], disk) as keeper:
        keeper.after_next(gone, time.monotonic())
        assert word(keeper) is None
        assert word(keeper) is None


def test_when_it_has_stopped_nobody_waits_in_vain(disk):
    with running([Idle()], disk, NEVER) as keeper:
        told = []
        wait_until(lambda: disk.times, PATIENCE)
        keeper.after_next(told.append, time.monotonic())
    assert told == [None], "the last one is written when it stops"
    keeper.after_next(told.append, time.monotonic())
    assert told == [None, "the service has stopped"]


# Troubles


def test_a_disk_that_fails_is_told_and_tried_again(disk, caplog):
    disk.fails = OSError(errno.ENOSPC, "secret", "path")
    with running([Idle()], disk) as keeper:
        for _ in range(3):
            assert word(keeper) == "No space left on device"
        assert keeper.troubles == {"checkpoint": "No space left on device"}
        assert keeper.written is None
        assert caplog.text.count("No space left") == 1
        disk.fails = None
        wait_until(lambda: not keeper.troubles, PATIENCE)
        assert word(keeper) is None
        assert keeper.written == pytest.approx(time.time(), abs=10)
        assert "works again what=checkpoint" in caplog.text


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StoreError("the database fails: gone"), "the database fails: gone"),
        (MemoryError("secret"), "failed with MemoryError"),
        (ValueError("secret"), "failed with ValueError"),
    ],
)
def test_a_stream_that_fails_keeps_nothing_else_from_being_done(disk, error, reason):
    stream, other = Idle(), Idle()
    stream.fails, other.name = error, "other"
    with running([stream, other], disk) as keeper:
        for _ in range(5):
            assert word(keeper) is None
        assert keeper.troubles == {"stream visits": reason}
        assert other.done
        stream.fails = None
        wait_until(lambda: not keeper.troubles, PATIENCE)


@pytest.mark.long
def test_it_is_tried_again_in_a_second_and_not_at_once():
    stream = Idle()
    stream.fails = StoreError("gone")
    stream.deadline = lambda: 0.0
    began = time.monotonic()
    with running([stream], None, NEVER):
        time.sleep(0.5)
        tried = len(stream.done)
    assert tried <= 2 + (time.monotonic() - began)


# The clock


def test_a_release_has_a_checkpoint_of_its_own_before_it_leaves(disk):
    stream, advanced = Idle(), []

    def advance():
        advanced.append((stream.unkept, len(disk.times)))
        if len(advanced) == 2:
            stream.unkept = True  # it has made a release

    stream.advance = advance
    stream.deadline = lambda: time.time() + QUICK
    with running([stream], disk, every=NEVER):
        wait_until(lambda: len(advanced) > 3, PATIENCE)
    made = next(at for at, (_, written) in enumerate(advanced) if written == 2)
    assert advanced[made - 1 : made + 1] == [(False, 1), (False, 2)]


@pytest.mark.long
def test_a_checkpoint_that_failed_keeps_nothing(disk):
    stream, disk.fails = Idle(), OSError(28, "full")
    stream.unkept = True
    with running([stream], disk, every=NEVER) as keeper:
        wait_until(lambda: keeper.troubles, PATIENCE)
        assert stream.unkept
        disk.fails = None
        wait_until(lambda: not stream.unkept, PATIENCE)


@pytest.mark.long
def test_checkpoints_come_on_a_clock_without_anything_to_write(disk):
    with running([Idle()], disk, 0.05):
        wait_until(lambda: len(disk.times) >= 10, PATIENCE)
    beats = [round((moment - disk.times[0]) / 0.05, 1) for moment in disk.times[:-1]]
    passed = disk.times[-2] - disk.times[0]
    assert len(beats) <= passed / 0.05 + 1.5, "never oftener"


@pytest.mark.long
def test_a_slow_disk_is_not_written_to_twice_in_a_row(disk):
    with running([Idle()], disk, 0.3):
        disk.hold()
        time.sleep(1)
        before = len(disk.times)
        disk.free.set()
        wait_until(lambda: len(disk.times) >= before + 3, PATIENCE)
    after = disk.times[before : before + 3]
    assert after[2] - after[0] > 0.15, "what was left out is not made up for"


def test_a_stream_is_advanced_at_its_deadline(monkeypatch):
    monkeypatch.setattr(keeper, "_LONGEST_WAIT", NEVER)
    stream, due = Idle(), []

    def advance():
        stream.done.append(time.time())
        due.append(stream.done[-1] + 0.5 * len(due))  # at once, for the first wiping takes long

    stream.advance = advance
    stream.deadline = lambda: due[-1] if len(due) < 3 else time.time() + NEVER
    with running([stream], None, NEVER):
        wait_until(lambda: len(stream.done) == 3, PATIENCE)
    assert stream.done[2] >= due[1]


@pytest.mark.long
def test_one_stream_that_is_far_behind_keeps_no_checkpoint_waiting(disk, tmp_path, monkeypatch):
    """Those of other streams wait for it: batches are counted, and their senders are not told."""
    monkeypatch.setattr(streams, "_STEP_SECONDS", 0.02)
    now, paid = [1_790_000_000.0], []
    with Service(tmp_path) as service, closing(ReleaseStore(f"sqlite:///{tmp_path}/a")) as store:
        service.configure(VISITS.replace("1d", "1m"))
        config = load(service.config).streams["visits"]
        behind = Stream("visits", config, store, durable=True, clock=lambda: now[0])
        now[0] += 100 * 60
        write = disk.write

        def spied(several):
            paid.append(len(store.ledger()) // 2)
            write(several)

        disk.write = spied
        with running([behind, Idle()], disk, every=0.01):
            wait_until(lambda: len(store.ledger()) == 200, PATIENCE)
    assert len({*paid} & {*range(1, 100)}) >= 3


@pytest.mark.slow
def test_a_window_in_which_the_process_was_stopped_is_not_complete(tmp_path):
    with Service(tmp_path, VISITS.replace("1d", "10s"), checkpoint=None) as service:
        service.start()
        os.kill(service.pid, signal.SIGSTOP)
        stopped = time.time()
        time.sleep(12)
        os.kill(service.pid, signal.SIGCONT)
        went_on = time.time()
        wait_until(lambda: any(row["complete"] for row in service.releases()), PATIENCE)
        for row in service.releases():
            start, end = (
                datetime.fromisoformat(row[name]).timestamp() for name in ("start", "end")
            )
            assert not (row["complete"] and start < went_on and end > stopped), row
        assert service.said.count("the service stood still") == 1


# Stopping


def test_with_checkpoints_a_stop_writes_and_releases_nothing_early(disk):
    stream = Idle()
    with running([stream], disk, NEVER):
        wait_until(lambda: disk.times, PATIENCE)
    assert len(disk.times) == 2
    assert stream.done[-1] == "publish"
    assert "close" not in stream.done


def test_the_last_checkpoint_waits_for_no_store(disk, monkeypatch):
    """Of many streams whose store hangs, those for which there is no time are left."""
    monkeypatch.setattr(keeper, "_STOP_SECONDS", 0.2)

    class Hanging(Idle):
        def publish(self):
            written.append(len(disk.times))
            time.sleep(0.15)

    written, streams = [], [Hanging() for _ in range(20)]
    with running(streams, disk, NEVER):
        wait_until(lambda: disk.times, PATIENCE)
    assert set(written) == {2}, "it is on disk before"
    assert len(written) <= 3


def test_without_checkpoints_a_stop_releases_once():
    stream = Idle()
    with running([stream], None):
        pass
    assert stream.done.count("close") == 1


def test_what_never_began_does_nothing_when_it_stops(disk):
    for checkpoint in (disk, None):
        stream = Idle()
        Keeper([stream], checkpoint).stop()
        assert stream.done == []
    assert disk.times == []


# An engine that is restored


TWO = VISITS + VISITS.replace("visits", "views")


@pytest.fixture
def engine(tmp_path):
    service = Service(tmp_path, TWO)
    config = load(service.config)
    first = LocalEngine(config)
    for stream in first.streams.values():
        stream.take([], b"a")
    Checkpoint(service.sealed, recipient=service.recipient).write(list(first.streams.values()))
    first.store.close()
    found = LocalEngine(config)
    yield found
    found.end()
    service.client.close()


def unsealed(engine):
    sealed = Checkpoint(engine.checkpoint_file, recipient=engine.config.checkpoint.recipient)
    return sealed.unsealed(engine.checkpoint_file.with_name("key.txt"))


def test_so_much_is_read_that_longer_states_of_a_checkpoint_fit(engine):
    """As where windows learned, and are planned for a larger table than a new one."""
    states = len(unsealed(engine))
    assert engine.most_restored >= states == engine.state_bytes
    sealed = Checkpoint(engine.checkpoint_file, recipient=engine.config.checkpoint.recipient)
    sealed.write(list(engine.streams.values()) * 3)
    assert engine.most_restored >= 3 * states


def test_a_restore_that_fails_at_any_point_can_be_repeated(engine, monkeypatch, caplog):
    states, released = unsealed(engine), engine.store.released
    before = [stream.state() for stream in engine.streams.values()]
    for good in range(2):
        calls = iter([True] * good + [False])

        def failing(*arguments, calls=calls):
            if not next(calls):
                raise StoreError("gone")
            return released(*arguments)

        monkeypatch.setattr(ReleaseStore, "released", lambda _, *arguments: failing(*arguments))
        with pytest.raises(StoreError):
            engine.restore(states)
        assert [stream.state() for stream in engine.streams.values()] == before
    monkeypatch.undo()
    with pytest.raises(InputError):
        engine.restore(states[:-1])
    engine.restore(states)
    assert caplog.text.count("what came later may be missing stream=v") == 2
    assert caplog.text.count(" written=") == caplog.text.count(" seconds=") == 2
    assert b"".join(stream.state() for stream in engine.streams.values()) == states
    assert not any(stream.take([], b"a") for stream in engine.streams.values())

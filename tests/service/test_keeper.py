"""The keeper and the desk: group commit, the clock, and how a service goes on."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import struct
import threading
import time
from contextlib import closing, contextmanager, suppress
from datetime import datetime

import pytest

from panprivacy.checkpoint import Checkpoint
from panprivacy.errors import InputError, PanPrivacyError, PlanError
from panprivacy.service import stream as streams
from panprivacy.service.config.loading import load
from panprivacy.service.engine import LocalEngine
from panprivacy.service.kept import keeper, restoring
from panprivacy.service.kept.keeper import Keeper
from panprivacy.service.kept.pulse import Pulse
from panprivacy.service.kept.restoring import DESK, Desk, hand_over
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from tests.service.running import VISITS, Service, wait_until

QUICK = 0.002
PATIENCE = 60
NEVER = 3_600


class Idle:
    """A stream to which nothing happens, or what a test says."""

    name = "visits"

    def __init__(self):
        self.done, self.fails, self.unkept = [], None, False

    def kept(self):
        self.unkept = False

    def not_kept(self):
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
        self.times, self.states = [], b""

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


def test_what_is_acknowledged_is_in_the_file_a_repeated_batch_too(disk, tmp_path):
    with Service(tmp_path) as service, closing(ReleaseStore(f"sqlite:///{tmp_path}/a")) as store:
        config = load(service.config).streams["visits"]
        stream = Stream("visits", config, store)

        def holds(batch_id):
            after = Stream("visits", config, store)
            after.resume(disk.states)
            return batch_id in after._reception.batch_ids

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


def test_it_is_tried_again_in_a_second_and_not_at_once():
    stream = Idle()
    stream.fails = StoreError("gone")
    stream.deadline = lambda: 0.0
    with running([stream], None, NEVER):
        time.sleep(0.5)
        assert len(stream.done) <= 2


# The clock


def test_the_end_of_a_window_has_a_checkpoint_of_its_own_before_its_answer(disk):
    stream, advanced = Idle(), []
    stream.advance = lambda: advanced.append((stream.unkept, len(disk.times)))
    with running([stream], disk, every=NEVER):
        wait_until(lambda: disk.times, PATIENCE)
        stream.unkept = True
        wait_until(lambda: len(disk.times) == 2, PATIENCE)
        wait_until(lambda: advanced[-1] == (False, 2), PATIENCE)
    assert not any(unkept for unkept, _ in advanced)


def test_a_checkpoint_that_failed_keeps_nothing(disk):
    stream, disk.fails = Idle(), OSError(28, "full")
    stream.unkept = True
    with running([stream], disk, every=NEVER) as keeper:
        wait_until(lambda: keeper.troubles, PATIENCE)
        assert stream.unkept
        disk.fails = None
        wait_until(lambda: not stream.unkept, PATIENCE)


def test_checkpoints_come_on_a_clock_without_anything_to_write(disk):
    with running([Idle()], disk, 0.05):
        wait_until(lambda: len(disk.times) >= 10, PATIENCE)
    beats = [round((moment - disk.times[0]) / 0.05, 1) for moment in disk.times[:-1]]
    passed = disk.times[-2] - disk.times[0]
    assert len(beats) <= passed / 0.05 + 1.5, "never oftener"


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
    stream, due = Idle(), time.time() + 0.3
    stream.deadline = lambda: due if time.time() < due else due + NEVER
    stream.advance = lambda: stream.done.append(time.time())
    with running([stream], None, NEVER):
        wait_until(lambda: len(stream.done) == 2, PATIENCE)
    first, second, _ = stream.done
    assert first < due <= second


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


class Clocks:
    """That on the wall, and one that nobody sets."""

    def __init__(self):
        self.now, self.running = 1_790_000_000.0, 500.0
        self.pulse = Pulse(lambda: self.now, lambda: self.running)
        self.pulse.start()
        self.pulse.stop()  # a test looks itself

    def pass_by(self, wall, running=None):
        """Let time pass; whether something is noticed."""
        before = self.pulse.broken()
        self.now += wall
        self.running += wall if running is None else running
        return self.pulse.broken() != before


def test_a_clock_that_goes_on_evenly_is_not_noticed(caplog):
    clocks = Clocks()
    for passed in (0.0, 1.0, 4.9, 0.1):
        assert not clocks.pass_by(passed)
    assert not clocks.pass_by(-3, 1), "a little is set by each synchronisation"
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("wall", "running"), [(60, 60), (60, 0.1), (0.1, 60)], ids=["stopped", "paused", "set back too"]
)
def test_what_stood_still_is_noticed_once(caplog, wall, running):
    clocks = Clocks()
    assert clocks.pass_by(wall, running)
    assert not clocks.pass_by(1)
    assert caplog.text.count("the service stood still") == 1
    assert "seconds=60" in caplog.text


def test_a_clock_that_is_set_back_is_told_once_and_once_when_it_is_right(caplog):
    clocks = Clocks()
    assert clocks.pass_by(-3_600, 1)
    for _ in range(300):
        assert not clocks.pass_by(1)
    assert caplog.text.count("the clock was set back") == 1
    assert "where it was" not in caplog.text
    for _ in range(3_400):
        clocks.pass_by(1)
    assert caplog.text.count("where it was before") == 1
    assert len(caplog.records) == 2


def test_before_it_begins_nothing_is_noticed():
    moments = iter(range(0, 1_000, 100))
    pulse = Pulse(lambda: next(moments), lambda: 0.0)
    assert pulse.broken() == pulse.broken()
    pulse.stop()


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


# The desk


class Waiting:
    """A desk in a loop of its own, as in a service."""

    def __init__(self, path, size=10, resume=None):
        self.taken, self.failure = [], None
        self._resume = resume or (lambda _: None)
        self.desk = Desk(path, size, self._take)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        wait_until(lambda: path.is_socket() or not self.thread.is_alive(), PATIENCE)

    def _take(self, states):
        self._resume(states)
        self.taken.append(states)

    def _run(self):
        try:
            asyncio.run(self._wait())
        except PanPrivacyError as error:
            self.failure = error

    async def _wait(self):
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self.desk.wait())
        with suppress(asyncio.CancelledError):
            await self._task
        await asyncio.sleep(0.05)  # a service goes on, and its connections are closed

    @property
    def over(self):
        self.thread.join(0.5)
        return not self.thread.is_alive()

    def end(self):
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._task.cancel)
        self.thread.join()


@pytest.fixture
def path(tmp_path):
    return tmp_path / DESK


@pytest.fixture
def waiting(path):
    found = Waiting(path, resume=refuse_others)
    yield found
    found.end()


def refuse_others(states):
    if len(states) != 10:
        raise InputError("they are of something else")


def test_states_are_handed_over_once(waiting, path):
    assert path.stat().st_mode & 0o777 == 0o600
    hand_over(path, b"0123456789")
    assert waiting.over
    assert waiting.taken == [b"0123456789"]
    assert not path.exists()
    with pytest.raises(PlanError, match="no service waits"):
        hand_over(path, b"0123456789")


def test_of_two_that_come_at_once_one_is_told_that_it_is_late(path):
    """Both are connected before the first has sent: the second would undo what came since."""
    waiting = Waiting(path)
    with socket.socket(socket.AF_UNIX) as other:
        other.connect(str(path))
        other.sendall(struct.pack("<Q", 10) + b"01234")
        hand_over(path, b"0123456789")
        with suppress(BrokenPipeError, ConnectionResetError):
            other.sendall(b"56789")
            assert other.recv(100).startswith((b"the service goes on already", b""))
    wait_until(lambda: waiting.over, PATIENCE)
    assert waiting.taken == [b"0123456789"]


def test_a_late_one_is_refused_in_words(path):
    desk = Desk(path, 10, lambda _: None)
    desk._take_over(b"0123456789")
    with pytest.raises(InputError, match="goes on already"):
        desk._take_over(b"0123456789")


def test_who_is_connected_and_says_nothing_keeps_nobody(waiting, path):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(path))
        hand_over(path, b"0123456789")
        assert waiting.over


@pytest.mark.parametrize("sent", [b"", b"\0\0\0", struct.pack("<Q", 10) + b"01234"])
def test_what_ends_too_early_changes_nothing(waiting, path, sent):
    with socket.socket(socket.AF_UNIX) as desk:
        desk.connect(str(path))
        desk.sendall(sent)
        desk.shutdown(socket.SHUT_WR)
        assert desk.recv(100) == b"the states did not arrive\n"
    hand_over(path, b"0123456789")
    assert waiting.taken == [b"0123456789"]


def test_who_is_too_slow_is_told_so(path, monkeypatch):
    monkeypatch.setattr(restoring, "_PATIENCE", 0.05)
    waiting = Waiting(path)
    with socket.socket(socket.AF_UNIX) as desk:
        desk.connect(str(path))
        assert desk.recv(100) == b"the states did not arrive\n"
    waiting.end()


def test_a_huge_length_is_neither_waited_for_nor_kept(waiting, path):
    with socket.socket(socket.AF_UNIX) as desk:
        desk.connect(str(path))
        desk.sendall(struct.pack("<Q", 2**64 - 1) + bytes(1_000))
        assert desk.recv(100) == b"they are of something else\n"
    with pytest.raises(InputError, match="something else"):
        hand_over(path, bytes(1 << 24))
    hand_over(path, b"0123456789")


def test_a_refusal_is_told_and_the_desk_waits_on(waiting, path):
    for _ in range(3):
        with pytest.raises(InputError, match=r"^they are of something else$"):
            hand_over(path, b"other")
    assert not waiting.over
    hand_over(path, b"0123456789")
    assert waiting.over


def test_what_is_not_foreseen_is_told_without_its_text(path):
    def resume(_):
        raise ZeroDivisionError("secret")

    waiting = Waiting(path, resume=resume)
    with pytest.raises(InputError, match="failed with ZeroDivisionError"):
        hand_over(path, b"0123456789")
    assert not waiting.over
    waiting.end()
    assert not path.exists()


def test_a_socket_that_was_left_behind_is_replaced(path):
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    with pytest.raises(PlanError, match="no service waits"):
        hand_over(path, b"0123456789")
    waiting = Waiting(path)

    def handed():
        with suppress(PlanError):
            hand_over(path, b"0123456789")
        return waiting.taken

    wait_until(handed, PATIENCE)
    assert waiting.over


def test_a_path_where_no_socket_can_be_is_refused(tmp_path):
    for path in (tmp_path / "no" / DESK, tmp_path / ("x" * 200)):
        waiting = Waiting(path)
        assert isinstance(waiting.failure, PlanError)
        with pytest.raises(PlanError, match="no service waits"):
            hand_over(path, b"")


@pytest.mark.parametrize(("answer", "kind"), [(b"", InputError), (None, PlanError)])
def test_a_service_that_goes_away_or_is_silent(path, monkeypatch, answer, kind):
    monkeypatch.setattr(restoring, "_PATIENCE", 0.2)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        ended = threading.Event()

        def serve():
            connection, _ = listener.accept()
            if answer is None:
                ended.wait()
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with pytest.raises(kind, match=r"went away|does not answer"):
                hand_over(path, bytes(1 << 22))
        finally:
            ended.set()
            thread.join()
    assert os.path.lexists(path)

"""The desk where states are handed over to a service that begins."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
from contextlib import suppress

import pytest

from panprivacy.errors import InputError, PanPrivacyError, PlanError
from panprivacy.service.kept import restoring
from panprivacy.service.kept.restoring import DESK, Desk, hand_over
from tests.service.running import wait_until
from tests.service.test_keeper import PATIENCE


@pytest.fixture
def path(tmp_path):
    return tmp_path / DESK


class Waiting:
    """A desk in a loop of its own, as in a service."""

    def __init__(self, path, size=10, resume=None):
        self.taken, self.failure, self._begun = [], None, threading.Event()
        self._resume = resume or (lambda _: None)
        self.desk = Desk(path, size, self._take)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        assert self._begun.wait(PATIENCE)

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
        self._loop.call_soon(self._begun.set)  # by then it listens, or has failed
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


@pytest.mark.long
def test_a_refusal_is_told_and_the_desk_waits_on(waiting, path):
    for _ in range(3):
        with pytest.raises(InputError, match=r"^they are of something else$"):
            hand_over(path, b"other")
    assert not waiting.over
    hand_over(path, b"0123456789")
    assert waiting.over


@pytest.mark.long
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
        assert waiting.over
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

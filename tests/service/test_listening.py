"""Threads that read what comes without a request: they go on, and end when they are told."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pyarrow as pa
import pytest

from panprivacy.errors import InputError
from panprivacy.intake.sources import Skips
from panprivacy.service.config.stream import StdinConfig
from panprivacy.service.incoming import listening
from panprivacy.service.incoming.listening import DatagramThread, InputThread
from panprivacy.service.outgoing.records import StoreError


class Source:
    """Gives batches, and fails where it is told."""

    skips = None

    def __init__(self, *batches, error=None):
        self.given, self.error, self.closed = batches, error, False

    def batches(self):
        yield from self.given
        if self.error:
            raise self.error

    def close(self):
        self.closed = True


class Stream:
    """Takes batches, after so many failures."""

    name = "visits"

    def __init__(self, failures=0, stdin=True):
        self.failures, self.taken, self.ids = failures, [], []
        self.complete = True
        self.config = SimpleNamespace(
            stdin=StdinConfig(format="ndjson") if stdin else None, syslog=()
        )
        self.columns = SimpleNamespace(wanted=lambda: ())

    def mark_incomplete(self):
        self.complete = False

    def new_batch_id(self):
        self.ids.append(b"%d" % len(self.ids))
        return self.ids[-1]

    def take(self, batches, batch_id):
        users = [user for one in batches for user in one["user"].to_pylist()]
        if None in users:
            raise InputError("no user", row=1 + users.index(None))
        if self.failures:
            self.failures -= 1
            raise StoreError("it is gone")
        self.taken.append((users, batch_id))


def batch(*users):
    return pa.record_batch({"user": pa.array(users, pa.string())})


@pytest.fixture
def run(monkeypatch):
    """Have a stream take what a source has."""

    def made(stream, source):
        monkeypatch.setattr(listening, "open_source", lambda *_, **__: source)
        monkeypatch.setattr(listening, "_PAUSE", 0.001)
        thread = InputThread([Stream(stdin=False), stream])
        thread.start()
        thread._thread.join(10)
        thread.stop()
        return thread

    return made


def test_each_batch_of_the_input_is_taken_once(caplog, run):
    stream = Stream()
    source = Source(batch("a"), batch("b"))
    run(stream, source)
    assert stream.taken == [(["a"], b"0"), (["b"], b"1")]
    assert source.closed
    assert stream.complete
    assert not caplog.records


def test_all_rows_before_one_that_cannot_be_counted_are(caplog, run):
    stream = Stream()
    run(stream, Source(batch("a"), batch("b", "c", "d", None, "e"), batch("f")))
    assert [user for users, _ in stream.taken for user in users] == ["a", "b", "c", "d"]
    assert len({batch_id for _, batch_id in stream.taken}) == len(stream.taken)
    assert not stream.complete
    assert "no user" in caplog.text
    assert "row 4" in caplog.text


def test_rows_that_cannot_be_counted_are_skipped_and_their_number_is_told(caplog, run):
    stream, source = Stream(), Source(batch("a"), batch("b", None, "c", None), batch("f"))
    source.skips = Skips()
    run(stream, source)
    assert [user for users, _ in stream.taken for user in users] == ["a", "b", "c", "f"]
    assert "skipped 2 rows that cannot be read; the first: no user" in caplog.text


@pytest.mark.parametrize("skips", [False, True])
def test_the_configuration_says_whether_rows_are_skipped(monkeypatch, skips):
    stream, opened = Stream(), []
    stream.config.stdin = StdinConfig(format="ndjson", skip_unreadable=skips)
    monkeypatch.setattr(
        listening, "open_source", lambda *_, **told: opened.append(told) or Source()
    )
    thread = InputThread([stream])
    thread.start()
    thread._thread.join(10)
    thread.stop()
    assert (opened[0]["skips"] is not None) == skips


def test_where_the_store_fails_the_same_batch_is_tried_again(run):
    stream = Stream(failures=3)
    run(stream, Source(batch("a")))
    assert stream.taken == [(["a"], b"0")]


def test_who_stops_does_not_wait_for_the_store():
    stream, stopping = Stream(failures=9), threading.Event()
    stopping.set()
    with pytest.raises(StoreError):
        listening._take([batch("a")], stream, stopping)
    assert stream.failures == 8


@pytest.mark.parametrize(
    ("error", "says"),
    [(InputError("no user", row=2), "no user"), (ValueError("ada"), "ValueError")],
)
def test_an_input_that_fails_ends_and_shows_no_content(caplog, error, says, run):
    stream = Stream()
    run(stream, Source(batch("a"), error=error))
    assert not stream.complete
    assert len(caplog.records) == 1
    assert says in caplog.text
    assert "ada" not in caplog.text


def test_without_anything_to_read_no_thread_begins():
    for thread in (InputThread([Stream(stdin=False)]), DatagramThread([Stream()])):
        thread.start()
        assert thread._thread.ident is None
        thread.stop()


def test_lines_that_are_lost_are_told_without_them(caplog):
    def failing():
        raise ValueError("ada")

    listening._drain(SimpleNamespace(drain=failing))
    assert "ValueError" in caplog.text
    assert "ada" not in caplog.text

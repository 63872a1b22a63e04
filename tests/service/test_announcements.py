"""An announced intrusion: on disk before it takes effect, everywhere or nowhere, and spent once."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pyarrow as pa
import pytest

from panprivacy.errors import BudgetError, InputError
from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.service.outgoing.announcements import Scope
from panprivacy.service.outgoing.records import Announcement, StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from tests.commands import run_command
from tests.service.doubles import HOUR, Crash
from tests.service.doubles import Store as FailingStore
from tests.service.running import TOKENS, Service
from tests.service.test_stream import USERS, batch, published

TWICE = 2
"""Announced intrusions that are planned for."""


class Store(FailingStore):
    """One that also fails around announcements."""

    def announce(self, line):
        self._called("announce", super().announce, [line])

    def _called(self, name, method, rows):
        if name != "announce":
            super()._called(name, method, rows)
            return
        self._due("before announce")
        method(rows[0])
        self._due("after announce")


@pytest.fixture
def store(tmp_path):
    found = Store(f"sqlite:///{tmp_path}/releases.sqlite")
    yield found
    found.close()


def make(store, clock, **given):
    """A stream with so much epsilon that its counts are exact, also after two announcements."""
    named = {"intrusions": TWICE, "window": "1h", "releases": 2, "retries": 10, **given}
    config = StreamConfig(
        stat=(
            {"name": "incidence", "universe": USERS, "bound": 3, "exactly": "1:3"},
            {"name": "density", "universe": USERS},
        ),
        epsilon=Fraction(600),
        ids=IdKind.integers,
        **named,
    )
    config.check()
    return Stream("visits", config, store, clock=clock)


def restarted(state, store, clock, **given):
    """A stream that goes on from a state as a service does."""
    after = make(store, clock, **given)
    after.resume(
        state, released=after.states.released_in(state), announced=after.states.announced_in(state)
    )
    return after


def announced(stream):
    """How many announced intrusions each statistic knows."""
    return [
        one.internals.memory.announced
        for one in stream.windows.windowed.current.statistics.values()
    ]


# What it does


def test_it_counts_for_the_window_of_the_moment_and_says_how_many_are_left(store, clock):
    stream = make(store, clock)
    assert stream.described()["intrusions_left"] == 2
    first = stream.announce(b"monday")
    assert (first.number, first.left) == (1, 1)
    assert first.window_began == stream.windows.windowed.began
    assert announced(stream) == [1, 1]
    clock.now += HOUR
    second = stream.announce(b"tuesday")
    assert (second.number, second.left) == (1, 1)
    assert second.window_began == stream.windows.windowed.began > first.window_began
    described = stream.described()
    assert described["intrusions_announced"] == 1
    assert (described["intrusions_planned"], described["intrusions_left"]) == (2, 1)


def test_answers_are_as_right_before_it_as_after_it(store, clock):
    stream = make(store, clock)
    for number, users in enumerate((range(100), range(100, 250), range(250, 450))):
        stream.take(batch(*users))
        if number < TWICE:
            stream.announce(b"%d" % number)
    clock.now += HOUR
    stream.advance()
    assert published(store) == [("09:00", 1, True, 450)]
    (density,) = [row for row in store.answers() if row.statistic == "density"]
    assert density.value == pytest.approx(450 / USERS, abs=0.01)


def test_one_name_is_one_look(store, clock):
    stream = make(store, clock)
    first = stream.announce(b"monday")
    state = stream.state()
    assert stream.announce(b"monday") == first
    assert announced(stream) == [1, 1]
    clock.now += HOUR  # in another window it is still the look at the first one
    again = stream.announce(b"monday")
    assert (again.window_began, again.number) == (first.window_began, 1)
    assert announced(stream) == [1, 1]
    stream.advance()
    assert stream.announce(b"monday").left == 2
    assert announced(stream) == [0, 0]
    assert announced(restarted(state, store, clock)) == [1, 1]


def test_one_too_many_is_refused_and_changes_nothing(store, clock):
    stream = make(store, clock)
    for name in (b"1", b"2"):
        stream.announce(name)
    before = stream.state()
    with pytest.raises(BudgetError, match="all 2 announced intrusions of this window"):
        stream.announce(b"3")
    assert stream.state() == before
    assert stream.announce(b"2").left == 0
    clock.now += HOUR
    assert stream.announce(b"3").number == 1


def test_without_intrusions_planned_for_there_are_none(store, clock):
    stream = make(store, clock, intrusions=0)
    with pytest.raises(BudgetError, match="no announced intrusions were planned"):
        stream.announce(b"1")


def test_each_group_and_each_statistic_is_told(store, clock):
    stream = make(store, clock, by="page", groups=("home", "help"))
    columns = {"user": pa.array([1, 2], pa.int64()), "page": ["home", "help"]}
    stream.take([pa.record_batch(columns)])
    stream.announce(b"1")
    groups = stream.windows.windowed.current.members
    found = {
        label: [s.internals.memory.announced for s in one.statistics.values()]
        for label, one in groups.items()
    }
    assert found == {"home": [1, 1], "help": [1, 1]}


def test_the_name_of_a_look_is_kept_as_a_hash(store, clock):
    stream = make(store, clock)
    stream.announce(b"who-looked")
    line = stream._announcements.find(b"who-looked")
    assert isinstance(line, Announcement)
    assert re.fullmatch("[0-9a-f]{64}", line.key)
    assert b"who-looked" not in stream.state()


# Whatever fails

FAILS = ["before announce", "after announce"]


@pytest.mark.parametrize("place", FAILS)
def test_a_store_that_fails_once_costs_nothing(store, clock, place):
    """Whether the line was lost, or only the word that it was committed."""
    stream = make(store, clock)
    stream.take(batch(1, 2))
    store.fail(place)
    with pytest.raises(StoreError):
        stream.announce(b"monday")
    assert announced(stream) == [0, 0]
    assert stream.announce(b"monday").left == 1
    assert announced(stream) == [1, 1]
    assert store.announced("visits", stream.windows.windowed.began) == 1


@pytest.mark.parametrize("place", FAILS)
def test_another_look_makes_up_for_one_of_which_nobody_knows(store, clock, place):
    stream = make(store, clock)
    store.fail(place)
    with pytest.raises(StoreError):
        stream.announce(b"monday")
    made = stream.announce(b"tuesday")
    known = 1 + (place == "after announce")
    assert (made.number, announced(stream)) == (known, [known, known])


@pytest.mark.parametrize("place", FAILS)
def test_wherever_it_crashes_it_was_announced_everywhere_or_nowhere(store, clock, place):
    stream = make(store, clock)
    stream.take(batch(1, 2))
    checkpoint = stream.state()
    store.fail(place, error=Crash())
    with pytest.raises(Crash):
        stream.announce(b"monday")
    after = restarted(checkpoint, store, clock)
    found = 1 if place == "after announce" else 0
    assert announced(after) == [found, found]
    again = after.announce(b"monday")
    assert (again.number, again.left, announced(after)) == (1, 1, [1, 1])
    clock.now += HOUR
    after.advance()
    assert published(store)[0][3] == 2


def test_an_older_checkpoint_is_re_randomised_as_often_as_was_announced(store, clock):
    stream = make(store, clock)
    stream.take(batch(*range(300)))
    checkpoints = [stream.state()]
    for name in (b"1", b"2"):
        stream.announce(name)
        checkpoints.append(stream.state())
    for checkpoint in checkpoints:
        after = restarted(checkpoint, store, clock)
        assert announced(after) == [2, 2]
        assert after.described()["intrusions_left"] == 0
        with pytest.raises(BudgetError):
            after.announce(b"3")
        assert after.announce(b"1").number == 1
    clock.now += HOUR
    after.advance()
    assert published(store)[0][3] == 300


def test_coins_that_fail_announce_nothing(store, clock, monkeypatch):
    stream = make(store, clock)
    one = list(stream.windows.windowed.current.statistics.values())[-1]

    def fails(*_):
        raise MemoryError

    before = stream.state()
    monkeypatch.setattr(type(one.internals.memory), "fresh_noise", fails)
    with pytest.raises(MemoryError):
        stream.announce(b"monday")
    assert stream.state() == before
    assert store.announced("visits", stream.windows.windowed.began) == 0
    monkeypatch.undo()
    assert stream.announce(b"monday").number == 1


def test_a_window_that_is_begun_again_pays_for_looks_at_what_is_gone(store, clock):
    """Its fresh state needs no noise for them, also after another crash; but they are spent."""
    stream = make(store, clock)
    checkpoint = stream.state()
    clock.now += HOUR
    stream.take(batch(*range(20)))
    stream.announce(b"monday")
    after = restarted(checkpoint, store, clock)
    after.advance()
    assert announced(after) == [0, 0]
    assert after.described()["intrusions_left"] == 1
    assert after.announce(b"monday").number == 1
    assert announced(after) == [0, 0]
    made = after.announce(b"tuesday")
    assert (made.number, made.left, announced(after)) == (2, 0, [1, 1])
    assert announced(restarted(after.state(), store, clock)) == [1, 1]


def test_a_store_that_cannot_be_read_where_a_window_is_begun_again_costs_noise_alone(
    store, clock, monkeypatch
):
    stream = make(store, clock)
    checkpoint = stream.state()
    clock.now += HOUR
    stream.announce(b"monday")
    after = restarted(checkpoint, store, clock)

    def fails(*_):
        message = "the server is gone"
        raise StoreError(message)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "announced", fails)
        after.take(batch(1))
    made = after.announce(b"tuesday")
    assert (made.number, made.left) == (2, 0)
    assert announced(after) == [2, 2]


def test_a_store_that_has_lost_an_announcement_is_refused(store, clock, tmp_path):
    stream = make(store, clock)
    stream.announce(b"monday")
    state = stream.state()
    other = Store(f"sqlite:///{tmp_path}/other.sqlite")
    after = make(other, clock)
    with pytest.raises(InputError, match="put the store back as it was"):
        after.states.announced_in(state)
    other.close()


def test_a_state_that_counts_looks_impossibly_is_refused(store, clock):
    stream = make(store, clock)
    stream.announce(b"monday")
    parts = stream.states.parts(stream.state())
    for broken in (parts.seen[:8] + bytes(8) + parts.seen[8:16], b"\x7f" * 24):
        with pytest.raises(InputError, match="damaged"):
            stream._announcements.missing(broken)


def test_of_two_services_on_one_store_each_line_is_one_look(store, clock):
    one, other = make(store, clock), make(store, clock)
    assert one.announce(b"1").number == 1
    assert other.announce(b"2").number == 2
    assert announced(other) == [2, 2]
    with pytest.raises(BudgetError):
        one.announce(b"3")
    line = one._announcements.find(b"1")
    with pytest.raises(StoreError, match="another service"):
        ReleaseStore.announce(store, line)


# What goes on from window to window


def running(store, clock, **given):
    config = StreamConfig(
        stat=({"name": "running-count", "horizon": 5},),
        epsilon=Fraction(60),
        window="1h",
        intrusions=TWICE,
        ids=IdKind.integers,
        **given,
    )
    config.check()
    return Stream("calls", config, store, clock=clock)


def test_of_a_running_count_looks_add_up_over_its_windows(store, clock):
    stream = running(store, clock)
    stream.take(batch(*range(10)))
    assert stream.announce(b"1").number == 1
    clock.now += HOUR
    stream.advance()
    checkpoint = stream.state()
    made = stream.announce(b"2")
    assert (made.number, made.left) == (2, 0)
    after = running(store, clock)
    after.resume(
        checkpoint,
        released=after.states.released_in(checkpoint),
        announced=after.states.announced_in(checkpoint),
    )
    assert announced(after) == [2]
    with pytest.raises(BudgetError):
        after.announce(b"3")


@pytest.mark.parametrize(("lasting", "holds"), [(False, "010"), (True, "011")])
def test_looks_at_a_state_are_those_since_it_was_born(lasting, holds):
    born, hour = datetime(2024, 5, 1, 9, tzinfo=UTC), timedelta(hours=1)
    scope = Scope(born, lasting)
    lines = [
        Announcement("calls", start, 1, "", start) for start in (born - hour, born, born + hour)
    ]
    assert [scope.holds(line) for line in lines] == [one == "1" for one in holds]


def test_a_line_of_an_earlier_window_takes_effect_in_a_running_count(store, clock):
    stream = running(store, clock)
    store.fail("after announce")
    with pytest.raises(StoreError):
        stream.announce(b"1")
    clock.now += HOUR
    stream.advance()
    assert announced(stream) == [0]
    assert stream.announce(b"1").left == 1
    assert announced(stream) == [1]


def test_a_running_count_that_begins_anew_has_all_its_looks_again(store, clock):
    stream = running(store, clock)
    stream.announce(b"1")
    for _ in range(5):
        clock.now += HOUR
        stream.advance()
    made = stream.announce(b"2")
    assert (made.number, made.left) == (1, 1)


# A real service

SEEN = f"""
[streams.visits]
epsilon = 600
window = "3660d"
ids = "integers"
intrusions = 2
[[streams.visits.stat]]
name = "incidence"
universe = {USERS}
bound = 3
[[streams.visits.stat]]
name = "density"
universe = {USERS}
"""


@pytest.mark.long
def test_a_service_that_is_killed_has_forgotten_no_look(tmp_path):
    """Its only checkpoint is that of its start: what it knows of looks is in the store."""
    with Service(tmp_path, SEEN, checkpoint='every = "24h"') as service:
        service.begin()
        token = tmp_path / "token"
        token.write_text(f"{TOKENS['announce']}\n")
        words = "announce", service.url(), "visits", "--token", token, "--key", "monday"
        first = run_command(*words)
        assert first.code == 0, first.stderr
        assert re.fullmatch(
            r"visits: announced, number 1 of the window that began \S+; 1 left.\n", first.stdout
        )
        service.kill()
        service.begin()
        assert "an intrusion was announced" not in service.said
        again = run_command(words[0], service.url(), *words[2:])
        assert (again.code, again.stdout) == (0, first.stdout)
        url = service.url("/v1/streams")
        (told,) = service.client.get(url, headers=service.headers("read")).json()
        assert (told["intrusions_announced"], told["intrusions_left"]) == (1, 1)

        other = run_command(words[0], service.url(), "visits", "--token", token)
        assert other.stdout.endswith("; 0 left.\n")
        refused = run_command(words[0], service.url(), "visits", "--token", token)
        assert (refused.code, refused.stdout) == (2, "")
        assert "all 2 announced intrusions of this window have been made" in refused.stderr
        assert service.said.count("an intrusion was announced") == 1

        token.write_text(TOKENS["release"])
        refused = run_command(words[0], service.url(), "visits", "--token", token)
        assert "this token may not announce this stream" in refused.stderr
        assert TOKENS["release"] not in refused.stderr
        metrics = service.client.get(service.url("/metrics"), headers=service.headers("read")).text
        assert 'panprivacy_stream_announcements_left{stream="visits"} 0.0' in metrics


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["http://127.0.0.1:1", "visits"], "does not answer, so nobody knows"),
        (["unix:/nowhere/http.sock", "visits"], "repeat this with --key"),
        (["127.0.0.1:8642", "visits"], "URL must be http://HOST:PORT"),
        (["http://127.0.0.1:99999", "visits"], "URL must be"),
        (["http://127.0.0.1:1/v1?since=0", "visits"], "URL must be"),
        (["http://127.0.0.1:1", "visits", "--key", "a b"], "--key must be"),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path, words, says):
    token = tmp_path / "token"
    token.write_text("pp_secret")
    result = run_command("announce", *words, "--token", token)
    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert says in result.stderr
    assert "pp_secret" not in result.stderr


@pytest.mark.parametrize("held", [b"", b"pp_a\npp_b", b"\xff"])
def test_a_file_that_is_no_token_is_refused(tmp_path, held):
    token = tmp_path / "token"
    token.write_bytes(held)
    result = run_command("announce", "http://127.0.0.1:1", "visits", "--token", token)
    assert result.code == 2
    assert "--token must name a file with a token" in result.stderr

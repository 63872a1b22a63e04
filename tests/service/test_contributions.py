"""Windows that are sealed as contributions: paid for, written once, and merged with others."""

from __future__ import annotations

import re
import time
from fractions import Fraction
from unittest import mock

import pyrage
import pytest

from panprivacy.errors import PlanError
from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.service.config.values import ConfigError
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.stream import Stream
from panprivacy.statistics.contribution import read_parts
from tests.commands import run_command
from tests.service.doubles import HOUR, Crash, Store
from tests.service.running import Service, wait_until
from tests.service.test_stream import USERS, batch, paid

IDENTITY = pyrage.x25519.Identity.generate()
STAT = {"name": "incidence", "universe": USERS, "bound": 3, "exactly": "1:3"}


def planned(**given):
    """So much privacy loss that counts are exact."""
    named = {"stat": (STAT,), "window": "1h", "retries": 10, **given}
    return StreamConfig(
        epsilon=Fraction(200),
        ids=IdKind.integers,
        **{"contribute": str(IDENTITY.to_public()), **named},
    )


def make(store, clock, folder, **given):
    config = planned(**given)
    config.check()
    return Stream("visits", config, store, folder=folder, durable=True, clock=clock)


def ended(stream, clock):
    """The end of a window, with the checkpoint that its contribution waits for."""
    clock.now += HOUR
    stream.advance()
    state = stream.state()
    stream.mark_stored()
    return state


def keep(stream):
    """Write a checkpoint, as the keeper does, and have what it holds leave."""
    stream.state()
    stream.mark_stored()
    stream.publish()


def restarted(state, store, clock, folder):
    after = make(store, clock, folder)
    after.resume(
        state, released=after.states.released_in(state), announced=after.states.announced_in(state)
    )
    after.begin()
    return after


def found(folder):
    return sorted(folder.glob("visits-*.part"))


def told(path):
    (part,) = read_parts(pyrage.decrypt(path.read_bytes(), [IDENTITY]))
    return part


@pytest.fixture
def identity(tmp_path):
    path = tmp_path / "identity.txt"
    path.write_text(f"{IDENTITY}\n")
    return path


def merge(paths, identity, *options):
    result = run_command("merge", *paths, "--identity", identity, *options)
    assert result.code == 0, result.stderr
    return result


def test_two_services_hand_out_what_one_merge_answers(tmp_path, store, clock, identity):
    folders = [tmp_path / name for name in ("east", "west")]
    for number, folder in enumerate(folders):
        folder.mkdir()
        own = Store(f"sqlite:///{folder}/releases.sqlite")
        stream = make(own, clock, folder)
        stream.take(batch(*range(100 * number, 100 * number + 60)))
        ended(stream, clock)
        stream.advance()
        assert paid(own) == [0, 1]
        assert [row.value for row in own.answers()] == [None] * 3
        assert {row.note for row in own.answers()} == {
            "sealed as a contribution, for panprivacy merge"
        }
        own.close()
    paths = [found(folder)[0] for folder in folders]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in paths)
    result = merge(paths, identity)
    assert re.search(r"exactly 1\s+120 ", result.stdout)
    assert "a contribution is the look at its shard" in result.stdout


def test_each_window_has_a_file_of_its_own_that_says_whether_it_is_whole(store, clock, tmp_path):
    clock.now += 60.25
    stream = make(store, clock, tmp_path)
    for users in (3, 5):
        stream.take(batch(*range(users)))
        ended(stream, clock)
        stream.advance()
    names = [path.name.removeprefix("visits-") for path in found(tmp_path)]
    assert [name[11:] for name in names] == ["09-01-00.250000Z.part", "10-00-00Z.part"]
    assert f"{stream.windows.windowed.began:%Y-%m-%d}" == names[0][:10]
    parts = [told(path).told for path in found(tmp_path)]
    assert [part.complete for part in parts] == [False, True]
    assert parts[0].id != parts[1].id
    assert [row.complete for row in store.answers()] == [False] * 3 + [True] * 3
    assert paid(store) == [0, 1, 0, 1]


def test_a_window_in_which_the_process_stood_still_is_not_whole(store, clock, tmp_path):
    stream = make(store, clock, tmp_path)
    ended(stream, clock)
    stream.advance()
    stream._releases.completeness._broken = lambda: clock.now
    ended(stream, clock)
    stream.advance()
    assert [told(path).told.complete for path in found(tmp_path)] == [True, False]


def test_what_ends_before_its_time_is_not_whole(store, clock, tmp_path):
    stream = make(store, clock, tmp_path)
    ended(stream, clock)
    stream.advance()
    clock.now += 60
    stream.close()
    keep(stream)
    assert [told(path).told.complete for path in found(tmp_path)] == [True, False]


def test_it_tells_that_a_contribution_is_the_look(store, clock, tmp_path):
    promise = "a contribution is the look at its window"
    assert promise in make(store, clock, tmp_path).described()["guarantee"]
    plain = Stream("visits", planned(contribute=None), store, clock=clock)
    assert promise not in plain.described()["guarantee"]


@pytest.mark.parametrize("place", ["before line", "after line", "before settle", "after settle"])
def test_wherever_it_crashes_it_is_written_once_and_paid_once(
    store, clock, tmp_path, caplog, place
):
    """What an earlier attempt has written is written again as it was, or left as it is."""
    stream = make(store, clock, tmp_path)
    stream.take(batch(1, 2))
    state = ended(stream, clock)
    store.fail(place, error=Crash())
    with pytest.raises(Crash):
        stream.advance()
    before = [path.read_bytes() for path in found(tmp_path)]
    assert len(before) == (place in {"before settle", "after settle"})
    assert paid(store) == ([] if place == "before line" else [0, 1])
    for _ in range(2):
        after = restarted(state, store, clock, tmp_path)
        after.advance()
        (path,) = found(tmp_path)
        assert before in ([], [path.read_bytes()])
        assert paid(store) == [0, 1]
        assert len(store.answers()) == 3
    assert "lost" not in caplog.text


def test_a_contribution_that_was_taken_away_is_not_written_again(store, clock, tmp_path):
    stream = make(store, clock, tmp_path)
    state = ended(stream, clock)
    stream.advance()
    found(tmp_path)[0].unlink()
    restarted(state, store, clock, tmp_path).advance()
    assert found(tmp_path) == []
    assert paid(store) == [0, 1]


def test_a_disk_that_is_full_is_waited_for(store, clock, tmp_path):
    """What is sealed waits in memory, and is neither made nor paid for again."""
    stream = make(store, clock, tmp_path)
    stream.take(batch(1, 2))
    ended(stream, clock)
    with mock.patch("panprivacy.ground.files.os.fsync", side_effect=OSError(28, "No space left")):
        for _ in range(2):
            with pytest.raises(StoreError, match="contribution cannot be written: No space left"):
                stream.advance()
    assert found(tmp_path) == []
    assert not list(tmp_path.glob("*.new"))
    assert not store.answers()
    stream.advance()
    assert len(found(tmp_path)) == 1
    assert len(store.answers()) == 3
    assert paid(store) == [0, 1]


def test_what_cannot_be_paid_for_leaves_no_file(store, clock, tmp_path):
    stream = make(store, clock, tmp_path)
    ended(stream, clock)
    store.fail("before line", times=2)
    for _ in range(2):
        with pytest.raises(StoreError):
            stream.advance()
        assert found(tmp_path) == []
    assert paid(store) == []
    stream.advance()
    assert len(found(tmp_path)) == 1


@pytest.mark.parametrize("users", [0, 7, 900])
def test_the_size_of_the_state_tells_nothing_of_a_contribution_that_waits(
    store, clock, tmp_path, users
):
    stream = make(store, clock, tmp_path)
    sizes = {len(stream.state()), stream.state_bytes}
    stream.take(batch(*range(users)))
    ended(stream, clock)
    assert stream._releases.outbox.waits
    assert sizes == {len(stream.state())}


def test_it_waits_for_the_checkpoint_that_holds_all_of_it(store, clock, tmp_path):
    stream = make(store, clock, tmp_path)
    stream.take(batch(1))
    clock.now += HOUR
    stream.advance()
    assert found(tmp_path) == []
    stream.state()
    stream.mark_stored()
    stream.advance()
    assert len(found(tmp_path)) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"contribute": "age1no"}, "contribute must be a public key of age"),
        ({"releases": 2}, "leave out releases and every"),
        ({"stat": ({"name": "running-count", "horizon": 9},)}, "let each shard release"),
        (
            {"stat": ({"name": "distinct", "expected": "learn"},)},
            "contribute has none: say a number",
        ),
    ],
)
def test_what_cannot_contribute_is_refused(given, said):
    with pytest.raises((PlanError, ConfigError), match=said):
        planned(**given).check()


def test_there_is_no_answer_on_request(store, clock, tmp_path):
    stream = make(store, clock, tmp_path)
    with pytest.raises(Exception, match="no release is left"):
        stream.release()
    assert found(tmp_path) == []


SECONDS = 4


@pytest.mark.long
def test_a_service_that_is_killed_before_and_after_contributes_once(tmp_path, identity):
    """Two windows: it is killed within the first, and after the contribution of the second."""
    streams = f"""
[streams.visits]
epsilon = 200
window = "{SECONDS}s"
ids = "integers"
contribute = "{IDENTITY.to_public()}"
[[streams.visits.stat]]
name = "incidence"
universe = {USERS}
bound = 3
exactly = "1:3"
"""
    with Service(tmp_path, streams) as service:
        service.begin()
        time.sleep(SECONDS - time.time() % SECONDS)  # so that what follows is in one window
        assert service.send(range(50), durable=True).status_code == 200
        service.kill()
        wait_until(lambda: time.time() % SECONDS < 1)
        begun = len(found(tmp_path))
        service.begin()
        wait_until(lambda: len(found(tmp_path)) > begun + 1)
        service.kill()
        parts = found(tmp_path)
        before = [path.read_bytes() for path in parts]
        service.begin()
        wait_until(lambda: len(found(tmp_path)) > len(parts))
        service.kill()
        assert [path.read_bytes() for path in parts] == before
        assert "answer of a window is lost" not in service.said
        held = [told(path).told.complete for path in found(tmp_path)]
        assert not all(held)
        result = merge(found(tmp_path), identity)
        assert re.search(r"exactly 1\s+50 ", result.stdout)

"""A stream in a shard: each message is counted once, wherever it crashes."""

from __future__ import annotations

import itertools

import pyrage
import pytest

from panprivacy.cluster.marks import packed_mark
from panprivacy.errors import BudgetError, InputError, PlanError
from panprivacy.statistics.explain.reading import read_states
from panprivacy.statistics.merging import Merger
from tests.cluster.shards import (
    BEGAN,
    LATER,
    NEXT,
    at,
    counted,
    key_of,
    make,
    merged,
    planned,
    resumed,
    sealed,
)
from tests.commands import run_command

pytestmark = pytest.mark.filterwarnings("ignore:epsilon .* protects nobody")


# Once


def test_each_message_is_counted_once_wherever_the_shard_crashes():
    """It is killed after any message, and goes on from the state of any message before that."""
    first = make(shards=1)
    newborn, public = first.state(), key_of(first)
    bodies = [([1], b"a"), ([1, 2], b"b"), ([2], b"b"), ([1, 2, 3], None), ([4], b"c")]
    log = [(at(n), *sealed(public, *body)) for n, body in enumerate(bodies, start=1)]
    for kept, crash in itertools.combinations_with_replacement(range(len(log) + 1), 2):
        stream, state = resumed(newborn, shards=1), newborn
        for position, message in log[:crash]:
            stream.take([(position, message)])
            if position.sequence == kept:
                state = stream.state()
        after = resumed(state, shards=1)
        assert after.position.sequence == kept
        after.take(log[max(0, kept - 2) :])  # some come again
        assert counted(after) == [2, 1, 1], "1 came three times, 2 twice, 3 and 4 once"


def test_what_is_past_the_cut_is_of_the_next_window():
    stream = make(shards=1)
    public = key_of(stream)
    stream.take([(at(1), *sealed(public, [1]))])
    assert counted(stream) == [1, 0, 0]
    stream.take([(at(2), *sealed(public, [1, 2]))])
    assert stream.report()["window"] == NEXT
    assert counted(stream, NEXT) == [2, 0, 0]


@pytest.mark.parametrize(("through", "complete"), [(at(3), True), (at(2), True), (at(1), False)])
def test_where_rows_beyond_the_cut_were_counted_neither_window_is_complete(through, complete):
    stream = make(shards=1)
    public = key_of(stream)
    stream.take([(at(1), *sealed(public, [1])), (at(2), *sealed(public, [2]))])
    for window, following in ((BEGAN, NEXT), (NEXT, LATER), (LATER, LATER + 1)):
        cut = through if window == BEGAN else at(2)
        stream.contribute(window, 1, through=cut, last=True, next_start=following)
    kept = [stream.contribution(window, 1) for window in (BEGAN, NEXT, LATER)]
    assert [Merger([one]).complete for one in kept] == [complete, complete, True]


def test_a_state_with_a_contribution_to_a_window_of_a_whole_second_is_gone_on_from():
    stream = make(shards=1, began=int(BEGAN))
    stream.take([(at(1), *sealed(key_of(stream), [1, 2]))])
    stream.contribute(int(BEGAN), 1, last=True, next_start=int(NEXT))
    after = resumed(stream.state(), shards=1)
    assert after.contribution(BEGAN, 1) == stream.contribution(BEGAN, 1)


def test_a_mark_is_passed_without_a_word():
    stream = make(shards=1)
    public = key_of(stream)
    marked = (at(2), packed_mark((BEGAN, 1)))
    stream.take([(at(1), *sealed(public, [1])), marked, (at(3), *sealed(public, [2]))])
    assert stream.position == at(3)
    assert stream.report()["whole"]
    assert counted(stream) == [2, 0, 0]


def test_a_contribution_is_the_same_until_it_is_settled():
    stream = make(shards=1)
    stream.take([(at(1), *sealed(key_of(stream), [1, 2]))])
    before = stream.state()
    stream.contribute(BEGAN, 1, last=True, next_start=NEXT)
    first, state = stream.contribution(BEGAN, 1), stream.state()
    stream.contribute(BEGAN, 1, last=True, next_start=LATER)
    after = resumed(state, shards=1)
    assert after.report() == stream.report()
    assert after.report()["window"] == NEXT
    assert after.report()["pending"] == [(BEGAN, 1)]
    after.contribute(BEGAN, 1, last=True, next_start=LATER)
    assert after.contribution(BEGAN, 1) == stream.contribution(BEGAN, 1) == first
    again = resumed(before, shards=1)  # it crashed before anybody had the contribution
    assert counted(again) == merged([first]) == [2, 0, 0]
    after.settle(BEGAN, 1)
    after.settle(BEGAN, 1)
    assert after.state_bytes == len(after.state()) == len(before)
    for late in ((BEGAN, 1), (BEGAN, 2), (NEXT, 2), (LATER, 1)):
        with pytest.raises(PlanError, match="its next one is number 1"):
            after.contribute(*late, last=True, next_start=LATER)
    with pytest.raises(PlanError, match="no such contribution"):
        after.contribution(BEGAN, 1)


def test_the_size_of_a_state_tells_nothing_but_what_is_kept_for_the_coordinator():
    stream = make(shards=1)
    sizes = {len(stream.state())}
    for number in range(1, 30):
        stream.take([(at(number), *sealed(key_of(stream), range(number), b"%d" % number))])
        sizes.add(len(stream.state()))
    stream.rotate()
    sizes.add(len(stream.state()))
    assert sizes == {stream.state_bytes}


def test_releases_within_a_window_are_looks_that_nobody_else_may_use():
    first, second = (make(shard, releases=3, intrusions=1) for shard in range(2))
    for number in (1, 2):
        for one, message in zip(
            (first, second), sealed(key_of(first, second), [5, 6]), strict=True
        ):
            one.take([(at(number), message)])
        for one in (first, second):
            one.contribute(BEGAN, number, last=False)
        each = [one.contribution(BEGAN, number) for one in (first, second)]
        assert merged(each) == ([2, 0, 0] if number == 1 else [0, 2, 0])
    for one in (first, second):
        one.announce(BEGAN, 1)
        one.announce(BEGAN, 1)
        one.announce(LATER, 5)  # of another window
        assert one.report()["announced"] == 1
        with pytest.raises(BudgetError, match="no 2 announced"):
            one.announce(BEGAN, 2)
        with pytest.raises(BudgetError, match="but that of the end"):
            one.contribute(BEGAN, 3, last=False)
        one.contribute(BEGAN, 3, last=True, next_start=NEXT)
    assert merged([one.contribution(BEGAN, 3) for one in (first, second)]) == [0, 2, 0]
    assert first.report()["announced"] == 0


# Resumed


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        ({"shard": 1}, "another shard"),
        ({"shards": 3}, "another shards"),
        ({"key": bytes(16)}, "another routing"),
        ({"retries": 17}, "batch_ids"),
        ({"epsilon": planned().epsilon / 2}, "ledger"),
    ],
)
def test_the_state_of_another_slice_is_refused(other, differs):
    stream, after = make(), make(**other)
    before = after.report()
    with pytest.raises(InputError, match=differs):
        after.resume(stream.state())
    assert after.report() == before


def test_damaged_states_are_refused_and_change_nothing():
    stream = make(shards=1)
    stream.contribute(BEGAN, 1, last=True, next_start=NEXT)
    state, before = stream.state(), stream.report()
    for damaged in (
        state[:-1],
        state + b"\0",
        b"",
        state.replace(b'"kept": [[1000.0, 1, ', b'"kept": [[1000.0, x, '),
        state.replace(b'"kept": [[1000.0', b'"kept": [["then"'),
    ):
        after = make(shards=1)
        fresh = after.report()
        with pytest.raises(InputError):
            after.resume(damaged)
        assert after.report() == fresh
    assert stream.report() == before


def test_a_sealed_state_is_explained(tmp_path):
    stream, key = make(1, releases=2), pyrage.x25519.Identity.generate()
    stream.contribute(BEGAN, 1, last=False)
    file, identity = tmp_path / "panprivacy-2-of-2.sealed", tmp_path / "key"
    file.write_bytes(pyrage.encrypt(stream.state(), [key.to_public()]))
    identity.write_text(f"{key}\n")
    (alike,) = read_states(file, identity)
    assert alike.within == ("ShardStream", "Together")
    page = " ".join(run_command("explain", file, "--identity", identity).stdout.split())
    assert "the keys that open its messages" in page
    assert "Hashes of the last batch ids" in page

"""The messages of a shard: lies are refused, others counted, and what is lost is noticed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from panprivacy.cluster import message_reader, messages
from panprivacy.cluster.envelopes import seal
from panprivacy.cluster.messages import Round
from panprivacy.cluster.queues import Position
from panprivacy.cluster.routing import Router
from panprivacy.cluster.shard import ShardStream
from panprivacy.privacy.coins import SystemCoins
from panprivacy.service.batches import HalvedError
from panprivacy.service.config.stream import IdKind
from panprivacy.service.journal import JOURNAL
from panprivacy.statistics.merging import Merger
from panprivacy.tables.slices import Slice
from tests.cluster.shards import (
    BEGAN,
    KEY,
    MOST,
    NEXT,
    at,
    batch,
    counted,
    key_of,
    make,
    merged,
    planned,
    queue,
    resumed,
    sealed,
)

pytestmark = pytest.mark.filterwarnings("ignore:epsilon .* protects nobody")


@pytest.fixture
def told(monkeypatch):
    """What the journal was told."""
    lines = []
    tell = lambda event, **values: lines.append((str(event), values))  # noqa: E731
    monkeypatch.setattr(JOURNAL, "error", tell, raising=False)
    monkeypatch.setattr(JOURNAL, "warning", tell, raising=False)
    return lines


# Refused


def test_rows_of_another_shard_are_refused_and_the_other_parts_counted(told):
    first, second = make(0), make(1)
    router = Router(2, KEY, numbered=True)
    homes = router.shards_of(np.arange(50))
    own, other = np.flatnonzero(homes == 0)[:3], np.flatnonzero(homes == 1)[:3]
    liar = Round(Router(1, KEY, numbered=True), 0, MOST)
    liar.add([batch(own)], b"own")
    liar.add([batch([*own, *other])], b"mixed")
    liar.add([batch(other)], b"other")
    (((plain,),)) = liar.pack()
    first.take([(at(1), seal(plain, *key_of(first), queue(0).subject))])
    (line,) = told
    assert "not counted" in line[0]
    assert "belongs to another shard" in line[1]["reason"]
    for one in (first, second):
        one.contribute(BEGAN, 1, last=True, next_start=NEXT)
    each = [one.contribution(BEGAN, 1) for one in (first, second)]
    assert merged(each) == [3, 0, 0]
    assert Merger(each).complete


def garbage(public):
    """What a liar may put into a queue."""
    subject = queue(0, 1).subject
    good = sealed(public, [1])[0]
    texts = Round(Router(1, KEY, numbered=False), 0, MOST)
    texts.add([pa.record_batch({"user": ["ada"]})])
    yield b""
    yield bytes(200)
    yield good[:-1]
    yield good[:100] + bytes([good[100] ^ 1]) + good[101:]
    yield seal(bytearray(b"nothing of ours"), *public, subject)
    yield seal(bytearray(messages._MAGIC + b"\xff" * 100), *public, subject)
    yield seal(*Round(Router(1, KEY, numbered=True), 0, MOST).pack()[0], *public, "other.1.0")
    yield seal(*texts.pack()[0], *public, subject)


def test_what_a_liar_sends_is_refused_with_a_line_and_changes_no_count(told, monkeypatch):
    monkeypatch.setattr(message_reader, "_QUIET_SECONDS", 0.0)
    stream = make(shards=1)
    public = key_of(stream)
    for number, lie in enumerate(garbage(public), start=1):
        stream.take([(at(number), lie)])
        assert len(told) == number
        assert "ada" not in str(told)
        assert stream.position == at(number)
    stream.take([(at(number + 1), *sealed(public, [1, 2]))])
    assert len(told) == number
    assert stream.report()["whole"]
    assert counted(stream) == [2, 0, 0]


@pytest.mark.parametrize("together", [1, 1 << 10, 1 << 20], ids=["alone", "some", "all"])
def test_messages_that_come_together_are_counted_but_for_the_lies(told, monkeypatch, together):
    monkeypatch.setattr(message_reader, "_QUIET_SECONDS", 0.0)
    monkeypatch.setattr(message_reader, "_GROUP_BYTES", together)
    stream = make(shards=1)
    public = key_of(stream)
    bodies = [([1], b"a"), ([1, 2], b"b"), ([2], b"b"), ([1, 2, 3], None), ([4], b"c")]
    lies = list(garbage(public))
    log = [
        one
        for body, lie in zip(bodies, lies, strict=False)
        for one in (lie, *sealed(public, *body))
    ]
    log += lies[len(bodies) :]
    stream.take([(at(number), one) for number, one in enumerate(log, start=1)])
    assert len(told) == len(lies)
    assert stream.position == at(len(log))
    assert not any(stream._reader._room)
    assert stream.report()["whole"]
    assert counted(stream) == [2, 1, 1], "1 came three times, 2 twice, 3 and 4 once"


@pytest.mark.parametrize("together", [1, 2, 5])
def test_a_name_is_known_for_as_long_whatever_came_with_it(together):
    """Of three names the last two are kept: so the first one counts again, in all shards alike."""
    stream = make(shards=1, retries=2)
    log = [
        (at(number), *sealed(key_of(stream), [name[0]], name))
        for number, name in enumerate([b"a", b"b", b"b", b"c", b"a"], start=1)
    ]
    for start in range(0, len(log), together):
        stream.take(log[start : start + together])
    assert counted(stream) == [2, 1, 0], "b and c came once, and a twice"


def test_what_cannot_be_counted_is_not_counted_again_and_the_shard_goes_on(told, monkeypatch):
    stream = make(shards=1)
    public = key_of(stream)
    with monkeypatch.context() as broken:
        broken.setattr(type(stream._counting.internals.memory), "apply", lambda *_: 1 / 0)
        stream.take([(at(1), *sealed(public, [1], b"a"))])
    stream.take([(at(1), *sealed(public, [1], b"a")), (at(2), *sealed(public, [2]))])
    assert "ZeroDivisionError" in str(told)
    assert not stream.report()["whole"]
    assert not any(stream._reader._room)
    assert counted(stream) == [1, 0, 0]


@pytest.mark.parametrize(
    "where", ["service.batches.check_room", "cluster.message_reader.read_message"]
)
def test_what_finds_no_memory_stays_in_the_queue_and_counts_once_there_is_some(monkeypatch, where):
    stream = make(shards=1)
    public = key_of(stream)
    log = [(at(1), *sealed(public, [1], b"a")), (at(2), *sealed(public, [1, 2], b"b"))]

    def fails(*_):
        raise MemoryError

    with monkeypatch.context() as tight:
        tight.setattr(f"panprivacy.{where}", fails)
        with pytest.raises(MemoryError):
            stream.take(log)
        assert stream.position < at(1)
    stream.take(log)
    assert stream.position == at(2)
    stream.contribute(BEGAN, 1, last=True, next_start=NEXT)
    kept = stream.contribution(BEGAN, 1)
    assert merged([kept]) == [1, 1, 0]
    assert Merger([kept]).complete


def test_a_message_of_which_a_part_was_counted_makes_the_window_incomplete(told, monkeypatch):
    stream = make(shards=1)

    def fails(*_):
        raise MemoryError

    with monkeypatch.context() as tight:
        tight.setattr(type(stream._counting.internals.memory), "apply", fails)
        stream.take([(at(1), *sealed(key_of(stream), [1]))])
    assert [values["reason"] for _, values in told] == [str(HalvedError())]
    stream.contribute(BEGAN, 1, last=True, next_start=NEXT)
    assert not Merger([stream.contribution(BEGAN, 1)]).complete


def test_what_cannot_be_opened_for_whatever_reason_keeps_none_of_the_others(told, monkeypatch):
    stream = make(shards=1)
    log = [(at(number), *sealed(key_of(stream), [number])) for number in (1, 2, 3)]
    opened = message_reader.Opener.open
    monkeypatch.setattr(
        message_reader.Opener,
        "open",
        lambda opener, message, *given: (
            1 / 0 if message == log[1][1] else opened(opener, message, *given)
        ),
    )
    stream.take(log)
    assert not stream.report()["whole"]
    assert counted(stream) == [2, 0, 0]


def test_texts_are_counted_as_the_hashes_that_stand_for_them(told):
    """A shard reads no text, whatever ids are configured; 7 and "7" are one user."""
    stream = ShardStream(
        queue(0, 1),
        planned(stat=({"name": "distinct", "expected": "10:1000"},), ids=IdKind.text),
        Slice(0, 1, KEY),
        BEGAN,
    )
    sent = Round(Router(1, KEY, numbered=False), 0, MOST)
    for users in (["ada", "grace", "7"], [b"ada", b"7"], [7]):
        sent.add([pa.record_batch({"user": users})])
    ((plain,),) = sent.pack()
    stream.take([(at(1), seal(plain, *key_of(stream), queue(0, 1).subject))])
    assert told == []
    stream.contribute(BEGAN, 1, last=True, next_start=NEXT)
    answer = Merger([stream.contribution(BEGAN, 1)]).release(0.95, SystemCoins())
    (found,) = answer.answers().values()
    assert 2 <= round(found.value) <= 3, "two may meet in a cell"


def test_a_liar_does_not_fill_the_journal(told):
    stream = make(shards=1)
    for number in range(1, 50):
        stream.take([(at(number), bytes(200))])
    assert len(told) == 1


# Lost


@pytest.mark.parametrize("next_one", [Position(1, 3), Position(2, 1)])
def test_a_window_of_which_messages_are_lost_is_not_complete(told, next_one):
    stream = make(shards=1)
    stream.take([(at(1), *sealed(key_of(stream), [1]))])
    stream.take([(next_one, *sealed(key_of(stream), [2]))])
    assert not stream.report()["whole"]
    assert len(told) == 1
    after = resumed(stream.state(), shards=1)
    assert counted(after) == [2, 0, 0]
    assert not Merger([after.contribution(BEGAN, 1)]).complete
    assert after.report()["whole"], "the next window is"


def test_a_queue_that_was_born_anew_and_is_empty_is_known_as_such(told):
    stream = make(shards=1)
    stream.go_on_at(at(0))
    assert (stream.position, stream.report()["whole"]) == (at(0), True)
    stream.take([(at(1), *sealed(key_of(stream), [1]))])
    stream.go_on_at(at(1))
    assert (stream.position, stream.report()["whole"]) == (at(1), True)
    stream.go_on_at(at(7, born=2))
    assert (stream.position, stream.report()["whole"]) == (at(0, born=2), False)
    stream.take([(at(9), *sealed(key_of(stream), [2]))])  # of the queue that is gone
    stream.take([(at(1, born=2), *sealed(key_of(stream), [3]))])
    assert counted(stream) == [2, 0, 0]


def test_a_key_opens_until_it_was_rotated_out_twice(told):
    stream = make(shards=1)
    old = key_of(stream)
    stream.rotate()
    stream = resumed(stream.state(), shards=1)
    stream.take([(at(1), *sealed(old, [1]))])
    stream.take([(at(2), *sealed(key_of(stream), [2]))])
    stream.rotate()
    stream.take([(at(3), *sealed(old, [3]))])
    assert len(told) == 1
    assert not stream.report()["whole"], "what nobody can open any more is missing"
    assert counted(stream) == [2, 0, 0]


# Traces


def test_what_was_opened_is_overwritten(monkeypatch, told):
    stream = make(shards=1)
    opened, seen = stream._reader.opener.open, []

    def spy(*given):
        seen.append(opened(*given))
        return seen[-1]

    monkeypatch.setattr(message_reader.Opener, "open", lambda _, *given: spy(*given))
    stream.take([(at(1), *sealed(key_of(stream), [1, 2, 3]))])
    stream.take([(at(2), seal(bytearray(b"a lie"), *key_of(stream), queue(0, 1).subject))])
    assert [any(one) for one in seen] == [False, False]
    assert counted(stream) == [3, 0, 0]


def test_which_shard_has_rows_does_not_show_in_the_names_that_are_kept():
    first, second = make(0), make(1)
    for one, message in zip(
        (first, second), sealed(key_of(first, second), {b"a": [1], b"b": [2, 3]}), strict=True
    ):
        one.take([(at(1), message)])
    names = [one._reader.reception.batch_ids.packed() for one in (first, second)]
    assert names[0] == names[1]
    assert any(names[0])

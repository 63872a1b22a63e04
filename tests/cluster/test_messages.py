"""Rounds: what comes out is what went in, and lengths do not tell whose it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from panprivacy.cluster import messages
from panprivacy.cluster.envelopes import ENVELOPE_BYTES
from panprivacy.cluster.messages import MessagePart, Round, read_message
from panprivacy.cluster.routing import Router
from panprivacy.errors import InputError

MOST = 1 << 20


def router(shards):
    return Router(shards, b"sixteen letters!", numbered=True)


def batch(*columns):
    names = [f"column {i}" for i in range(len(columns))]
    return pa.RecordBatch.from_arrays(list(columns), names=names)


def ids(*values):
    return batch(pa.array(values, pa.int64()))


def opened(messages, shard, columns=1):
    return [part for message in messages for part in read_message(message[shard], columns)]


def rows(parts):
    return [row for part in parts for one in part.batches for row in one.column(0).to_pylist()]


def of_shard(shards, shard, count):
    """Numbers that belong to one shard."""
    numbers = np.arange(100 * shards + 4 * count * shards)
    return numbers[router(shards).shards_of(numbers) == shard][:count]


def test_each_shard_gets_its_rows_and_all_get_the_same_lengths_and_names():
    sent = Round(router(3), 0, MOST)
    sent.add([ids(*range(50)), ids(*range(50, 60))])
    sent.add([ids(*range(60, 100))])
    sent.add([ids(*of_shard(3, 0, 5) + 1000)], b"first")
    sent.add([], b"empty")
    (message,) = sent.pack()
    assert len({len(plain) for plain in message}) == 1
    each = [opened([message], shard) for shard in range(3)]
    assert len({tuple(part.name for part in parts if part.name) for parts in each}) == 1
    assert [len([part for part in parts if part.name]) for parts in each] == [2, 2, 2]
    for shard, parts in enumerate(each):
        found = rows(parts)
        assert len([part for part in parts if part.name is None]) == 1
        assert (router(3).shards_of(np.array(found)) == shard).all()
    every = sorted(row for parts in each for row in rows(parts))
    assert every == sorted([*range(100), *(of_shard(3, 0, 5) + 1000).tolist()])


def test_no_id_is_in_a_message_but_what_stands_for_it_in_each_form():
    texts = [f"visitor {number}" for number in range(40)] + [str(number) for number in range(40)]
    hashing = Router(2, b"sixteen letters!", numbered=False)
    forms = [
        pa.array(texts),
        pa.array(texts, pa.string_view()),
        pa.array([one.encode() for one in texts], pa.large_binary()),
        pa.array(texts).dictionary_encode(),
    ]
    found, lengths = [], set()
    for form in forms:
        for name in (None, b"name"):
            sent = Round(hashing, 0, MOST)
            sent.add([batch(form)], name)
            (message,) = sent.pack()
            assert not any(b"visitor" in plain for plain in message)
            each = [rows(opened([message], shard)) for shard in range(2)]
            found.append(each)
            lengths.add((name, len(message[0])))
            for shard, words in enumerate(each):
                assert all((word % 2**64) * 2 >> 64 == shard for word in words)
    assert all(each == found[0] for each in found)
    assert len({word for each in found[0] for word in each}) == len(texts)
    assert len(lengths) == 2
    sent = Round(hashing, 0, MOST)
    sent.add([ids(*range(40))])
    (message,) = sent.pack()
    numbers = [rows(opened([message], shard)) for shard in range(2)]
    assert all(set(few) < set(many) for few, many in zip(numbers, found[0], strict=True))


def test_a_round_of_nothing_is_sent_to_all():
    ((first, second),) = Round(router(2), 0, MOST).pack()
    assert first == second
    assert list(read_message(first, 1)) == []


def test_three_ids_are_as_long_as_the_page_says():
    sent = Round(router(2), 0, MOST)
    sent.add([ids(1, 2, 3)])
    (message,) = sent.pack()
    page = (Path(__file__).parents[2] / "docs/guarantees/envelopes.md").read_text()
    for plain in message:
        assert f"| {len(plain) + ENVELOPE_BYTES:,} |" in page


@pytest.mark.parametrize("kind", ["numbers", "texts", "views", "some nulls"])
def test_small_rounds_are_as_long_however_rows_are_divided(kind):
    def column(values):
        if kind == "numbers":
            return pa.array(values, pa.int64())
        texts = [None if kind == "some nulls" and i % 3 else "x" * i for i in values]
        return pa.array(texts, pa.string_view() if kind == "views" else pa.string())

    lengths = set()
    of = [of_shard(2, shard, 60) for shard in range(2)]
    for name in (None, b"name"):
        for cut in range(61):
            sent = Round(router(2), 0, MOST)
            owner = pa.array(np.concatenate([of[0][:cut], of[1][: 60 - cut]]))
            sent.add([batch(owner, column(range(60)))], name)
            messages = sent.pack()
            assert len(rows(opened(messages, 0, 2))) == cut
            lengths.add((name, *(len(plain) for message in messages for plain in message)))
    assert len(lengths) == 2


def test_a_long_batch_is_cut_between_rows_with_a_name_for_each_piece():
    ids_of_all = np.arange(300_000)
    sent = Round(router(2), 0, MOST)
    for _ in range(2):
        sent.add([batch(pa.array(ids_of_all))], b"name")
    messages = sent.pack()
    assert len(messages) > 2
    for message in messages:
        assert len({len(plain) for plain in message}) == 1
        assert len(message[0]) <= MOST
    each = [opened(messages, shard) for shard in range(2)]
    half = len(each[0]) // 2
    for parts in each:
        assert [part.name for part in parts[:half]] == [part.name for part in parts[half:]]
        assert len({part.name for part in parts}) == half
        assert rows(parts[:half]) == rows(parts[half:])
    assert sorted(rows(each[0][:half]) + rows(each[1][:half])) == ids_of_all.tolist()


def test_as_many_names_are_kept_whoever_the_rows_are_of():
    counts = set()
    for divided in (of_shard(2, 0, 100_000), np.arange(100_000)):
        sent = Round(router(2), 0, MOST)
        sent.add([batch(pa.array(divided))], b"name")
        messages = sent.pack()
        counts |= {len(opened(messages, shard)) for shard in range(2)}
    assert len(counts) == 1


def test_a_long_round_tells_how_long_the_longest_share_is():
    """What the pages do not promise, and say so: who sends much shows, by number of messages."""
    counts = []
    for divided in (of_shard(4, 0, 30_000), np.arange(30_000)):
        sent = Round(router(4), 0, 1 << 16)
        sent.add([batch(pa.array(divided))])
        counts.append(len(sent.pack()))
    assert counts == [4, 1]


def test_a_name_does_not_depend_on_what_else_is_in_the_round():
    alone, crowded = Round(router(1), 0, MOST), Round(router(1), 0, MOST)
    crowded.add([batch(pa.array(np.arange(50_000)))])
    names = []
    for sent in (alone, crowded):
        sent.add([batch(pa.array(np.arange(100_000)))], b"name")
        names.append([part.name for part in opened(sent.pack(), 0) if part.name])
    assert names[0] == names[1]


def test_a_row_longer_than_a_message_is_refused_and_the_round_goes_on():
    sent = Round(router(1), 0, 1 << 14)
    with pytest.raises(InputError, match="no message") as refused:
        sent.add([batch(pa.array([1, 2]), pa.array(["a", "b" * (1 << 14)]))])
    assert "bbb" not in str(refused.value)
    sent.add([ids(1)])
    assert rows(opened(sent.pack(), 0)) == [1]
    with pytest.raises(InputError, match="max_payload"):
        Round(router(1), 0, 1 << 11)


@pytest.mark.parametrize("values", [[1, 2, 3], [-(1 << 63), (1 << 63) - 1]])
def test_numbers_alone_are_read_as_they_came(values):
    sent = Round(router(1), 0, MOST)
    sent.add([ids(7, *values).slice(1)])
    ((plain,),) = sent.pack()
    assert rows(opened([[plain]], 0)) == values


def test_nulls_are_read_as_they_came():
    sent = Round(router(1), 0, MOST)
    sent.add([batch(pa.array([1, 2, 3]), pa.array([1, None, 3]))])
    ((plain,),) = sent.pack()
    (part,) = read_message(plain, 2)
    assert [one.column(1).to_pylist() for one in part.batches] == [[1, None, 3]]


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.int64()])
def test_a_dictionary_is_sent_as_what_it_says(kind):
    lengths = set()
    for labels in ([1, 2, 1, 2], [1, 2, None, 2]):
        values = pa.array(labels, pa.int64()).cast(pa.string()).cast(kind)
        codes = pa.array([None if one is None else one - 1 for one in labels], pa.int8())
        coded = pa.DictionaryArray.from_arrays(codes, pa.array(["1", "2"]).cast(kind))
        for groups in (values, coded):
            sent = Round(router(1), 0, MOST)
            sent.add([batch(pa.array([1, 2, 3, 4]), groups)])
            ((plain,),) = sent.pack()
            (part,) = read_message(plain, 2)
            found = [row for one in part.batches for row in one.column(1).to_pylist()]
            assert found == values.to_pylist()
            lengths.add(len(plain))
    assert len(lengths) == 1


@pytest.mark.parametrize("values", [[True], [1.5], [[1]], [{"ada": 1}]])
@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("name", [None, b"name"])
def test_what_no_shard_reads_is_refused_where_it_is_sent(values, name, coded):
    sent = Round(router(1), 0, MOST)
    before, column = sent.pack(), pa.array(values)
    if coded:
        column = pa.DictionaryArray.from_arrays([0], column)
    with pytest.raises(InputError, match="whole numbers, byte strings or texts") as refused:
        sent.add([ids(1), batch(pa.array([1]), column)], name)
    assert "ada" not in str(refused.value)
    assert sent.pack() == before


def test_a_column_of_nulls_alone_is_sent():
    sent = Round(router(1), 0, MOST)
    sent.add([batch(pa.array([1, 2, 3]), pa.nulls(3))])
    ((plain,),) = sent.pack()
    (part,) = read_message(plain, 2)
    assert [one.column(1).to_pylist() for one in part.batches] == [[None] * 3]


def test_what_a_round_was_made_of_is_overwritten_and_it_begins_anew(monkeypatch):
    pack, made = messages._packed, []
    monkeypatch.setattr(messages, "_packed", lambda *part: made.append(pack(*part)) or made[-1])
    sent = Round(router(1), 0, MOST)
    sent.add([ids(1)])
    sent.add([ids(2)], b"name")
    assert rows(opened(sent.pack(), 0)) == [2, 1]
    assert [any(part) for part in made] == [False, False]
    assert rows(opened(sent.pack(), 0)) == []


def test_a_part_that_cannot_be_read_does_not_spoil_the_others():
    sent = Round(router(1), 0, MOST)
    sent.add([ids(1)], b"one column")
    sent.add([batch(pa.array([1]), pa.array([1]))])
    wrong, right = opened(sent.pack(), 0, 2)
    assert isinstance(wrong, InputError)
    assert isinstance(right, MessagePart)
    assert rows([right]) == [1]


@pytest.mark.parametrize(("length", "numbers"), [(16, 1), (16, 3), (12, 0), (12, 1), (1 << 62, 0)])
def test_a_part_of_another_length_than_it_says_is_refused(length, numbers):
    plain = messages._FRONT.pack(messages._MAGIC, 1) + messages._PART.pack(b"", length, numbers)
    with pytest.raises(InputError, match="cut off"):
        read_message(plain + bytes(24), 1)


def test_bytes_of_a_liar_are_refused():
    sent = Round(router(1), 0, MOST)
    sent.add([ids(*range(100))])
    ((plain,),) = sent.pack()
    end = len(plain.rstrip(b"\0"))
    for length in range(0, end - 8, 7):
        with pytest.raises(InputError):
            read_message(plain[:length], 1)
    generator = np.random.default_rng(1)
    for _ in range(2_000):
        wrong = bytearray(plain)
        for at in generator.integers(0, len(plain), 3):
            wrong[at] = generator.integers(256)
        try:
            for part in read_message(wrong, 1):
                assert isinstance(part, MessagePart | InputError)
        except InputError:
            pass

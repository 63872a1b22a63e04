"""Rounds: what comes out is what went in, and lengths do not tell whose it was."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from panprivacy.cluster.messages import Part, Round, read_message
from panprivacy.errors import InputError

MOST = 1 << 20


def batch(*columns):
    return pa.RecordBatch.from_arrays(
        list(columns), names=[f"column {i}" for i in range(len(columns))]
    )


def ids(*values):
    return batch(pa.array(values, pa.int64()))


def opened(messages, shard, columns=1):
    return [part for message in messages for part in read_message(message[shard], columns)]


def rows(parts):
    return [row for part in parts for one in part.batches for row in one.column(0).to_pylist()]


def test_each_shard_gets_its_rows_and_all_get_the_same_lengths():
    sent = Round(3, MOST)
    sent.add([ids(1, 2, 3), None, ids(4)])
    sent.add([None, None, ids(5)])
    sent.add([ids(6), None, None], b"first")
    (message,) = sent.pack()
    assert len({len(plain) for plain in message}) == 1
    assert rows(opened([message], 0)) == [6, 1, 2, 3]
    assert opened([message], 1) == []
    assert rows(opened([message], 2)) == [4, 5]
    named, nameless = opened([message], 0)
    assert nameless.name is None
    assert len(named.name) == 16


def test_a_round_of_nothing_is_sent_to_all():
    ((first, second),) = Round(2, MOST).pack()
    assert first == second
    assert list(read_message(first, 1)) == []


@pytest.mark.parametrize("kind", ["numbers", "texts", "views", "some nulls"])
def test_small_rounds_are_as_long_however_rows_are_divided(kind):
    def column(values):
        if kind == "numbers":
            return pa.array(values, pa.int64())
        texts = [None if kind == "some nulls" and i % 3 else "x" * i for i in values]
        return pa.array(texts, pa.string_view() if kind == "views" else pa.string())

    lengths = set()
    for cut in range(101):
        sent = Round(2, MOST)
        parts = [range(cut), range(cut, 100)]
        sent.add([batch(column(part)) if part else None for part in parts])
        lengths.add(tuple(len(plain) for message in sent.pack() for plain in message))
    assert len(lengths) == 1


def test_a_long_part_is_cut_between_rows_with_a_name_for_each_piece():
    ids_of_all = np.arange(300_000)
    sent = Round(2, MOST)
    for _ in range(2):
        sent.add([batch(pa.array(ids_of_all)), ids(7)], b"name")
    messages = sent.pack()
    assert len(messages) > 2
    for message in messages:
        assert len({len(plain) for plain in message}) == 1
        assert len(message[0]) <= MOST
    parts = opened(messages, 0)
    half = len(parts) // 2
    assert rows(parts[:half]) == rows(parts[half:]) == ids_of_all.tolist()
    assert [part.name for part in parts[:half]] == [part.name for part in parts[half:]]
    assert len({part.name for part in parts}) == half
    assert rows(opened(messages, 1)) == [7, 7]


def test_a_name_does_not_depend_on_what_else_is_in_the_round():
    alone, crowded = Round(1, MOST), Round(1, 1 << 19)
    crowded.add([batch(pa.array(np.arange(50_000)))])
    names = []
    for sent in (alone, crowded):
        sent.add([batch(pa.array(np.arange(100_000)))], b"name")
        names.append([part.name for part in opened(sent.pack(), 0) if part.name])
    assert names[0] == names[1]


def test_a_row_longer_than_a_message_is_refused_and_the_round_goes_on():
    sent = Round(1, 1 << 14)
    with pytest.raises(InputError, match="which no message") as refused:
        sent.add([batch(pa.array(["a", "b" * (1 << 14)]))])
    assert "bbb" not in str(refused.value)
    sent.add([ids(1)])
    assert rows(opened(sent.pack(), 0)) == [1]
    with pytest.raises(InputError, match="max_payload"):
        Round(1, 1 << 11)


def test_rows_without_columns_are_counted():
    sent = Round(1, MOST)
    sent.add([batch(pa.nulls(3))])
    ((plain,),) = sent.pack()
    (part,) = read_message(plain, 0)
    assert [one.num_rows for one in part.batches] == [3]


def test_what_a_round_was_made_of_is_overwritten_and_it_begins_anew():
    sent = Round(1, MOST)
    sent.add([ids(1)])
    assert rows(opened(sent.pack(), 0)) == [1]
    assert rows(opened(sent.pack(), 0)) == []


def test_a_part_that_cannot_be_read_does_not_spoil_the_others():
    sent = Round(1, MOST)
    sent.add([batch(pa.array([1.5]))], b"floats")
    sent.add([ids(1)])
    wrong, right = opened(sent.pack(), 0)
    assert isinstance(wrong, InputError)
    assert isinstance(right, Part)
    assert rows([right]) == [1]


def test_bytes_of_a_liar_are_refused():
    sent = Round(1, MOST)
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
                assert isinstance(part, Part | InputError)
        except InputError:
            pass

"""Columns of ids are read without loss, and errors name the row."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.errors import InputError
from panprivacy.tables.ids import (
    PIECE_ROWS,
    ByteIds,
    CodedIds,
    IntegerIds,
    as_column,
    read_deltas,
    read_ids,
)

INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20)
STRINGS = st.lists(st.binary(max_size=12), min_size=1, max_size=20)
TEXTS = st.lists(st.text(max_size=6), min_size=1, max_size=20)


def listed(ids):
    """The ids of one chunk as Python objects."""
    if isinstance(ids, IntegerIds):
        return ids.values.tolist()
    if isinstance(ids, CodedIds):
        values = listed(ids.values)
        return [values[code] for code in ids.codes.tolist()]
    ends = ids.offsets.tolist()
    data = ids.data.tobytes()
    return [data[start:end] for start, end in pairwise(ends)]


def read(users):
    """The ids of a batch as Python objects."""
    return [user for ids in read_ids(users) for user in listed(ids)]


@given(INTEGERS)
def test_integers_are_read_as_they_are(users):
    assert (
        read(users) == read(np.array(users, np.int64)) == read(pa.array(users, pa.int64())) == users
    )


@given(STRINGS)
def test_byte_strings_are_read_as_they_are(users):
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert read(pa.array(users, kind)) == users
    assert read(users) == users


@given(TEXTS)
def test_texts_are_read_as_their_utf8_bytes(users):
    expected = [user.encode() for user in users]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert read(pa.array(users, kind)) == expected
    assert read(users) == expected


@given(STRINGS, st.data())
def test_windows_of_arrow_arrays_are_read_from_their_offset(users, data):
    start = data.draw(st.integers(0, len(users)))
    length = data.draw(st.integers(0, len(users) - start))
    for array in (
        pa.array(users),
        pa.array(users, pa.large_binary()),
        pa.array(users, pa.binary_view()),
        pa.array(users).dictionary_encode(),
        pa.array([user.ljust(12) for user in users], pa.binary(12)),
    ):
        window = array.slice(start, length)
        assert read(window) == window.to_pylist()


@given(st.lists(st.sampled_from([b"", b"a", b"bb"]), min_size=1), st.integers(0, 9))
def test_a_dictionary_is_read_through_its_codes(users, kind):
    index_types = [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    ]
    values = [b"unused", b"bb", b"", b"a", b"a"]
    codes = pa.array([values.index(user) for user in users], index_types[kind % 8])
    assert read(pa.DictionaryArray.from_arrays(codes, pa.array(values))) == users


def test_a_dictionary_of_numbers_holds_numbers():
    users = pa.array([7, -7, 7]).dictionary_encode()
    assert read(users) == [7, -7, 7]
    assert isinstance(read_ids(users)[0], IntegerIds)


def test_a_dictionary_of_strings_stays_encoded():
    (ids,) = read_ids(pa.array(["ada", "ada", "grace"]).dictionary_encode())
    assert isinstance(ids, CodedIds)
    assert (len(ids), len(ids.values)) == (3, 2)


def test_an_extension_type_is_read_as_its_storage():
    users = pa.array([bytes(range(16)), bytes(16)], pa.binary(16)).cast(pa.uuid())
    assert read(users) == [bytes(range(16)), bytes(16)]


def test_chunks_come_in_order():
    chunks = pa.chunked_array([["a", "b"], [], ["c"]])
    assert [listed(ids) for ids in read_ids(chunks)] == [[b"a", b"b"], [], [b"c"]]


@pytest.mark.parametrize(
    "users", [[], (), np.array([], np.uint8), pa.array([]), pa.array([], pa.string())]
)
def test_nobody_is_read_as_nobody(users):
    assert read(users) == []


def test_arrow_and_numpy_buffers_are_not_copied():
    array = np.arange(5)
    assert np.shares_memory(read_ids(array)[0].values, array)
    arrow = pa.array(array)
    assert np.shares_memory(read_ids(arrow)[0].values, arrow.to_numpy())
    text = pa.array(["ada", "grace"])
    assert read_ids(text)[0].data.ctypes.data == text.buffers()[2].address


def test_integers_of_any_width_and_byte_order_are_widened():
    for dtype in ("i1", "u1", "<i2", ">i2", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8"):
        (ids,) = read_ids(np.array([0, 1, 100], dtype))
        assert ids.values.dtype == np.int64
        assert ids.values.flags.c_contiguous
        assert ids.values.tolist() == [0, 1, 100]


@pytest.mark.parametrize("rows", [0, 1, PIECE_ROWS - 1, PIECE_ROWS, PIECE_ROWS + 1, 2 * PIECE_ROWS])
def test_pieces_are_the_whole_in_small_parts(rows):
    offsets = np.arange(rows + 1, dtype=np.int32)
    for ids in (IntegerIds(np.arange(rows)), ByteIds(offsets, np.arange(rows).astype(np.uint8))):
        pieces = list(ids.pieces())
        assert all(0 < len(piece) <= PIECE_ROWS for piece in pieces)
        assert [user for piece in pieces for user in listed(piece)] == listed(ids)
        assert len(ids) == rows


@pytest.mark.parametrize(
    ("users", "row"),
    [
        ([None], 1),
        ([1, 2, None], 3),
        (["a", None, "b"], 2),
        (pa.array([1, None]).slice(1), 1),
        (pa.array(["a", None]).dictionary_encode(), 2),
        (pa.chunked_array([[1, 2], [], [3, None]]), 4),
        (pa.chunked_array([["a"], ["b", "c"], [None]]), 4),
        (pa.DictionaryArray.from_arrays([1, 0, 1], ["a", None]), 1),
    ],
)
def test_a_null_is_refused_by_row(users, row):
    with pytest.raises(InputError, match=rf"^row {row} .*null") as caught:
        read_ids(users)
    assert caught.value.row == row


def test_large_row_numbers_are_easy_to_read():
    error = InputError("reason", row=3).after(1_234_564)
    assert str(error) == "row 1,234,567 (counting from 1): reason"
    assert InputError("reason").after(5).row is None


@pytest.mark.parametrize(
    "users",
    [
        np.array([[1, 2]]),
        np.array(1),
        np.array([1.5]),
        [0.5],
        [True],
        pa.array([[1]]),
        pa.array([1.5]),
        [[1], [2]],
        [1, "a"],
        {"a": 1},
        "ada",
        b"ada",
        bytearray(b"ada"),
        5,
        None,
        object(),
        [object()],
        [2**64],
        np.array(["2020-01-01"], "M8[D]"),
    ],
    ids=lambda users: type(users).__name__,
)
def test_what_is_not_a_column_of_ids_is_refused(users):
    with pytest.raises(InputError, match="user ids must be"):
        read_ids(users)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_unsigned_numbers_are_read_alike_in_lists_and_arrays(users):
    (listed,), (array,) = read_ids(users), read_ids(np.array(users, np.uint64))
    assert listed.values.tolist() == array.values.tolist()


def test_a_list_that_no_64_bits_hold_is_refused_without_an_id():
    for users in ([-1, 2**63], [2**63, "7"], [2**63, 7.5]):
        with pytest.raises(InputError, match="user ids must be") as refused:
            read_ids(users)
        assert str(2**63) not in str(refused.value)
        assert refused.value.__context__ is None, "the error of Arrow quotes an id"
    with pytest.raises(InputError, match=r"row 2 .*null"):
        read_ids([2**63, None])


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_deltas_are_read_as_they_are(deltas):
    chunks = pa.chunked_array([deltas[:3], deltas[3:]], pa.int64())
    for form in (deltas, np.array(deltas), pa.array(deltas), chunks):
        assert read_deltas(form, len(deltas)).tolist() == deltas


@pytest.mark.parametrize("deltas", [[], np.array([], np.int64), pa.chunked_array([], pa.int64())])
def test_no_rows_have_no_deltas(deltas):
    assert read_deltas(deltas, 0).tolist() == []


def test_another_number_of_deltas_is_refused():
    with pytest.raises(InputError, match="3 ids, 2 deltas"):
        read_deltas([1, 1], 3)
    with pytest.raises(InputError, match="1 ids, 2 deltas"):
        read_deltas([1, 1], 1)


@pytest.mark.parametrize(
    "deltas", [[1.0], ["1"], [True], np.ones(1), np.ones((1, 1), int), np.array(1)], ids=repr
)
def test_deltas_that_are_not_whole_numbers_are_refused(deltas):
    with pytest.raises(InputError, match="deltas must be whole numbers"):
        read_deltas(deltas, 1)


def test_a_null_delta_is_refused_by_row():
    with pytest.raises(InputError, match=r"row 2 .*delta is null"):
        read_deltas([1, None], 2)


def test_a_null_delta_in_a_later_chunk_is_refused_by_row():
    with pytest.raises(InputError, match="row 4 "):
        read_deltas(pa.chunked_array([[1, 1], [1, None]]), 4)


@pytest.mark.parametrize(
    "one", ["ada", b"ada", bytearray(b"ada"), 7, 7.5, np.int64(7), pa.scalar("ada")], ids=repr
)
def test_a_single_one_is_put_into_a_list(one):
    says = r"put a single one into a list: update\(\[\.\.\.\]\)$"
    with pytest.raises(InputError, match=says) as caught:
        read_ids(one)
    assert "ada" not in str(caught.value)
    with pytest.raises(InputError, match=f"deltas must be whole numbers.*{says}"):
        read_deltas(one, 1)


@pytest.mark.parametrize(
    "ids",
    [[1.0], np.ones(2), np.ones(2, np.float32), pa.array([1.5])],
    ids=lambda ids: type(ids).__name__,
)
def test_floats_are_told_how_to_become_ids(ids):
    with pytest.raises(InputError, match=r'whole ones become ids by astype\("int64"\)$'):
        read_ids(ids)


def test_fields_that_are_named_after_users_are_not_told():
    with pytest.raises(InputError, match=r"not records$"):
        read_ids(pa.array([{"ada": 1}]))


@pytest.mark.parametrize("deltas", [1, [1, "a"]], ids=repr)
def test_a_message_about_deltas_speaks_of_deltas(deltas):
    with pytest.raises(InputError, match="delta"):
        read_deltas(deltas, 1)


@pytest.mark.parametrize("delta", [2**63, 2**64 - 1])
@pytest.mark.parametrize("order", "<>")
def test_unsigned_deltas_of_any_byte_order_are_not_taken_for_negative_ones(order, delta):
    with pytest.raises(InputError, match="below 2\\*\\*63"):
        read_deltas(np.array([1, delta], f"{order}u8"), 2)
    assert read_deltas(np.array([2**63 - 1], f"{order}u8"), 1).tolist() == [2**63 - 1]


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint32, ">i8"])
@pytest.mark.parametrize("count", [1, 2, 129, 130])
def test_a_copy_of_ids_leaves_the_last_word_of_its_block(kind, count):
    """The C library does not overwrite that word when the block is freed."""
    (ids,) = read_ids(np.arange(count).astype(kind))
    assert ids.values.tolist() == list(map(int, np.arange(count).astype(kind)))
    assert ids.values.base.nbytes == 8 * count + 8


def test_ids_that_are_as_they_should_be_are_not_copied():
    users = np.arange(129)
    (ids,) = read_ids(users)
    assert np.shares_memory(ids.values, users)


READERS = {
    "users": read_ids,
    "deltas": lambda column: read_deltas(column, 3),
    "a column": lambda column: as_column(column, "a column"),
}


@pytest.mark.parametrize("kind", [np.int64, np.uint16])
@pytest.mark.parametrize("what", READERS)
def test_a_value_that_is_masked_is_null_whatever_lies_under_the_mask(what, kind):
    for masked in range(3):
        column = np.ma.masked_array(np.array([5, 6, 7], kind), np.arange(3) >= masked)
        with pytest.raises(InputError, match="is null") as refused:
            READERS[what](column)
        assert refused.value.row == masked + 1


@pytest.mark.parametrize("mask", [np.ma.nomask, [False] * 3])
def test_an_array_of_which_nothing_is_masked_is_one(mask):
    column = np.ma.masked_array([5, 6, 7], mask)
    assert read(column) == [5, 6, 7]
    assert read_deltas(column, 3).tolist() == [5, 6, 7]


@pytest.mark.parametrize("pandas_is_there", [True, False])
@pytest.mark.parametrize(
    "users",
    [["ada", "", "grüße", "7"], ("ada",), ["x"] * 5_000, [1, -(2**63), 2**63 - 1], [2**64 - 1, 1]],
    ids=["texts", "a tuple", "many texts", "numbers", "unsigned numbers"],
)
def test_lists_are_read_the_same_with_and_without_pandas(users, pandas_is_there, monkeypatch):
    (expected,) = read_ids(pa.array(users, pa.uint64() if users[0] == 2**64 - 1 else None))
    if not pandas_is_there:
        monkeypatch.delitem(sys.modules, "pandas", raising=False)
    (found,) = read_ids(users)
    assert type(found) is type(expected)
    for name in type(found).__dataclass_fields__:
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()


@pytest.mark.parametrize(
    "users", [[True, False], [1, True], [1.5], ["a", 1], [None, "a"], ["\ud800"]]
)
def test_lists_of_what_is_no_id_are_refused_without_pandas(users, monkeypatch):
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    with pytest.raises(InputError) as refused:
        read_ids(users)
    assert "ud800" not in str(refused.value)

"""The same users give the same state, whatever holds them and in whatever order they come."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from panprivacy.tables.cells.bits import SPARSE, RedrawnBits
from panprivacy.testing import SeededCoins

from .doubles import exact_law
from .readers import each_form, reader_of_deltas, reader_of_ids


def state_after(case, users, deltas=None, seed=7):
    """The state after one batch, a function of the batch's users and of the seed."""
    statistic = case.make(coins=SeededCoins(seed))
    statistic.update(users, deltas)
    return statistic.state()


def strided(values):
    wide = np.full((len(values), 3), -1, np.int64)
    wide[:, 1] = values
    return wide[:, 1]


def read_only(values):
    array = np.array(values, np.int64)
    array.setflags(write=False)
    return array


def packed_records(values):
    """A field of a packed record: neither contiguous nor aligned."""
    records = np.zeros(len(values), np.dtype([("kind", "u1"), ("user", "<i8")]))
    records["user"] = values
    return records["user"]


def misaligned(values):
    data = b"?" + np.array(values, np.int64).tobytes()
    return np.frombuffer(data, np.int64, offset=1)


def chunked(values):
    middle = len(values) // 3
    return pa.chunked_array([values[:middle], pa.array([], pa.int64()), values[middle:]])


def sliced(array):
    """The same Arrow array, as a window of a longer one."""
    longer = pa.concat_arrays([array[:2], array, array[:3]])
    return longer[2 : 2 + len(array)]


def as_objects(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


INTEGER_FORMS = {
    "tuple": tuple,
    "iterator": iter,
    "int32": lambda users: np.array(users, np.int32),
    "uint32": lambda users: np.array(users, np.uint32),
    "int64": lambda users: np.array(users, np.int64),
    "uint64": lambda users: np.array(users, np.uint64),
    "big endian": lambda users: np.array(users, ">i8"),
    "object array": as_objects,
    "strided": strided,
    "backwards in memory": lambda users: np.array(users[::-1], np.int64)[::-1],
    "read-only": read_only,
    "packed records": packed_records,
    "misaligned": misaligned,
    "Arrow int64": pa.array,
    "Arrow int32": lambda users: pa.array(users, pa.int32()),
    "Arrow uint64": lambda users: pa.array(users, pa.uint64()),
    "sliced Arrow": lambda users: sliced(pa.array(users)),
    "chunked Arrow": chunked,
    "dictionary-encoded Arrow": lambda users: pa.array(users).dictionary_encode(),
    "pandas": pd.Series,
    "pandas with a shuffled index": lambda users: pd.Series(users, index=users[::-1]),
    "pandas nullable": lambda users: pd.Series(users, dtype="Int64"),
    "pandas on Arrow": lambda users: pd.Series(users, dtype="int64[pyarrow]"),
    "pandas index": pd.Index,
    "pandas categorical": lambda users: pd.Series(users).astype("category"),
    "Polars": pl.Series,
    "Polars UInt32": lambda users: pl.Series(users, dtype=pl.UInt32),
    "chunked Polars": lambda users: pl.concat(
        [pl.Series(users[:5]), pl.Series(users[5:])], rechunk=False
    ),
}


def dictionary(users):
    """A dictionary with values that no row uses and with one value twice."""
    values = ["unused", *sorted(set(users)), users[0], "another"]
    codes = [values.index(user) for user in users]
    codes[0] = len(values) - 2
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(values))


def dictionary_with_null(users):
    """A dictionary with a null that no row uses."""
    values = [None, *sorted(set(users))]
    codes = [values.index(user) for user in users]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int16()), pa.array(values))


def chunked_dictionary(users):
    """Chunks of which each has a dictionary of its own."""
    half = len(users) // 2
    chunks = [pa.array(part).dictionary_encode() for part in (users[:half], users[half:])]
    return pa.chunked_array(chunks)


def arrow(kind):
    return lambda users: pa.array(users, kind)


def encoded(users):
    return [user.encode() for user in users]


def fixed_size(users):
    return pa.array(encoded(users), pa.binary(len(users[0].encode())))


def misaligned_offsets(users):
    """A string array whose offsets start at an odd address."""
    _, offsets, data = pa.array(users).buffers()
    shifted = pa.py_buffer(b"?" + offsets.to_pybytes()).slice(1)
    return pa.Array.from_buffers(pa.string(), len(users), [None, shifted, data])


TEXT_FORMS = {
    "bytes": encoded,
    "NumPy U": np.array,
    "NumPy S": lambda users: np.array(encoded(users)),
    "object array": as_objects,
    "object array of bytes": lambda users: as_objects(encoded(users)),
    "string": arrow(pa.string()),
    "large_string": arrow(pa.large_string()),
    "string_view": arrow(pa.string_view()),
    "binary": lambda users: pa.array(encoded(users), pa.binary()),
    "large_binary": lambda users: pa.array(encoded(users), pa.large_binary()),
    "binary_view": lambda users: pa.array(encoded(users), pa.binary_view()),
    "fixed-size binary": fixed_size,
    "sliced string": lambda users: sliced(pa.array(users)),
    "sliced large_string": lambda users: sliced(pa.array(users, pa.large_string())),
    "sliced string_view": lambda users: sliced(pa.array(users, pa.string_view())),
    "sliced fixed-size binary": lambda users: sliced(fixed_size(users)),
    "string with misaligned offsets": misaligned_offsets,
    "chunked": lambda users: pa.chunked_array([users[:4], [], users[4:]]),
    "dictionary": dictionary,
    "dictionary of large_string": lambda users: arrow(pa.large_string())(users).dictionary_encode(),
    "dictionary with an unused null": dictionary_with_null,
    "sliced dictionary": lambda users: sliced(dictionary(users)),
    "dictionary of a sliced array": lambda users: pa.DictionaryArray.from_arrays(
        np.arange(len(users)), sliced(pa.array(users))
    ),
    "chunked dictionary": chunked_dictionary,
    "pandas": pd.Series,
    "pandas object": lambda users: pd.Series(users, dtype=object),
    "pandas on Arrow": lambda users: pd.Series(users, dtype=pd.ArrowDtype(pa.string())),
    "pandas categorical": lambda users: pd.Series(users).astype("category"),
    "pandas bytes": lambda users: pd.Series(encoded(users)),
    "Polars": pl.Series,
    "Polars Binary": lambda users: pl.Series(encoded(users)),
    "Polars Categorical": lambda users: pl.Series(users, dtype=pl.Categorical),
    "Polars Enum": lambda users: pl.Series(users, dtype=pl.Enum(["unused", *sorted(set(users))])),
}


DELTA_FORMS = {
    "list": list,
    "int8": lambda deltas: np.array(deltas, np.int8),
    "int64": lambda deltas: np.array(deltas, np.int64),
    "strided": strided,
    "read-only": read_only,
    "Arrow": pa.array,
    "chunked Arrow": chunked,
    "pandas": pd.Series,
    "Polars": pl.Series,
}


@each_form(
    INTEGER_FORMS,
    ["packed records", "chunked Arrow"],
    reader_of_ids,
    chosen=lambda case: case.counts_users and not case.rounds,
)
def test_numbers_are_the_same_users_in_every_form(case, form):
    users, deltas = case.rows(60)
    given = INTEGER_FORMS[form](users)
    assert state_after(case, given, deltas) == state_after(case, users, deltas)


@each_form(
    TEXT_FORMS,
    ["bytes", "chunked dictionary"],
    reader_of_ids,
    chosen=lambda case: case.takes_bytes and not case.rounds,
)
def test_texts_are_the_same_users_in_every_form(case, form):
    ids, deltas = case.rows(60)
    users = [f"üser-{user}" for user in ids]
    given = TEXT_FORMS[form](users)
    assert state_after(case, given, deltas) == state_after(case, users, deltas)


@pytest.mark.parametrize("form", [list, np.array, encoded, dictionary])
def test_a_number_and_its_text_are_one_user(bytes_case, form):
    ids, deltas = bytes_case.rows(60)
    users = [-ids[0], 2**63 - 1, *ids[2:]]
    given = form([str(user) for user in users])
    assert state_after(bytes_case, given, deltas) == state_after(bytes_case, users, deltas)


def test_another_user_gives_another_state(told_case):
    users = told_case.rows(60)[0]
    others = [user + 1 for user in users]
    assert state_after(told_case, users) != state_after(told_case, others)


def test_another_text_gives_another_state(told_bytes_case):
    users = [f"user-{user}" for user in told_bytes_case.rows(60)[0]]
    others = [user.upper() for user in users]
    assert state_after(told_bytes_case, users) != state_after(told_bytes_case, others)


def dense(case, users):
    """The users, often enough for bits to be redrawn once a cell: few rows are redrawn one by one.

    A coin of each row has the same law, but not the same outcomes.
    """
    cells = case.make().internals.memory.cells
    times = cells.cells // (SPARSE * len(users)) + 1 if isinstance(cells, RedrawnBits) else 1
    return np.tile(users, times)


def test_the_order_of_users_is_irrelevant(plain_case):
    users = dense(plain_case, plain_case.rows(300)[0])
    shuffled = np.random.default_rng(1).permutation(users)
    assert (
        state_after(plain_case, shuffled)
        == state_after(plain_case, sorted(users.tolist()))
        == state_after(plain_case, users)
    )


def test_appearing_twice_in_a_batch_is_appearing_once(bits_case):
    users = dense(bits_case, bits_case.ids(100))
    twice = np.concatenate([users, users[::-1]])
    assert state_after(bits_case, twice) == state_after(bits_case, users)


class SwitchedCoins:
    """Coins of one source, and then of another."""

    def __init__(self, now):
        self.now = now

    def __getattr__(self, name):
        return getattr(self.now, name)


def law_after(case, users):
    """The exact law of the state after one batch, over all its coins, for one table of before."""

    def run(coins):
        switched = SwitchedCoins(SeededCoins(7))
        statistic = case.make(coins=switched)
        switched.now = coins
        statistic.update(users)
        return statistic.state()

    return exact_law(run)


def test_order_and_repetitions_of_few_users_are_irrelevant_to_the_law(redrawn_case):
    users = redrawn_case.ids(2)
    law = law_after(redrawn_case, users)
    assert law == law_after(redrawn_case, users[::-1])
    assert law == law_after(redrawn_case, users + users[:1])
    assert law == law_after(redrawn_case, dense(redrawn_case, users))


def test_a_delta_of_1_is_the_default(case):
    users = case.rows(60)[0]
    assert state_after(case, users, [1] * 60) == state_after(case, users)


def test_a_batch_is_left_as_it_was(case):
    users, deltas = (np.array(column) for column in case.rows(60))
    before = users.copy(), deltas.copy()
    state_after(case, users, deltas)
    assert np.array_equal([users, deltas], before)


@each_form(DELTA_FORMS, ["read-only", "chunked Arrow"], reader_of_deltas)
def test_deltas_are_the_same_in_every_form(case, form):
    users, deltas = case.rows(60)
    given = DELTA_FORMS[form](deltas)
    assert state_after(case, users, given) == state_after(case, users, deltas)


def test_batches_that_are_counted_in_one_pass_are_one_batch(plain_case):
    users, deltas = plain_case.rows(90)
    together = plain_case.make(coins=SeededCoins(7))
    parts = [slice(0, 20), slice(20, 20), slice(20, 90)]
    together.internals.memory.apply(
        *(together.internals.memory.prepare(users[part], deltas[part]) for part in parts)
    )
    assert together.state() == state_after(plain_case, users, deltas)


def test_a_batch_without_deltas_is_one_of_1_beside_others(plain_case):
    users, deltas = plain_case.rows(60)
    together = plain_case.make(coins=SeededCoins(7))
    together.internals.memory.apply(
        together.internals.memory.prepare(users, deltas), together.internals.memory.prepare(users)
    )
    assert together.state() == state_after(plain_case, [*users, *users], [*deltas, *[1] * 60])


def test_a_batch_of_many_pieces_is_one_batch(bits_case):
    users = bits_case.rows(300)[0]
    fewer = dense(bits_case, users)
    assert state_after(bits_case, np.tile(users, 300)) == state_after(bits_case, fewer)


def test_only_the_last_delta_of_a_user_in_a_batch_counts(bits_deletions_case):
    users = dense(bits_deletions_case, bits_deletions_case.ids(50)).tolist()
    come, go = [1] * len(users), [-1] * len(users)
    left = state_after(bits_deletions_case, users, go)
    stayed = state_after(bits_deletions_case, users, come)
    assert left != stayed
    assert state_after(bits_deletions_case, users + users, come + go) == left
    assert state_after(bits_deletions_case, users + users, go + come) == stayed


def test_counters_add_up_the_deltas_of_a_batch(counters_case):
    users = counters_case.ids(300)
    twice = state_after(counters_case, [*users, *users], [1] * 600)
    assert twice == state_after(counters_case, users, [2] * 300)
    assert twice != state_after(counters_case, users, [1] * 300)


def test_counters_forget_who_leaves(adding_case):
    users = adding_case.ids(300)
    assert state_after(adding_case, [*users, *users], [1] * 300 + [-1] * 300) == state_after(
        adding_case, []
    )


def test_who_enters_toggles_a_parity_as_who_leaves_does(strict_case):
    users = strict_case.ids(300)
    nobody, inside = state_after(strict_case, []), state_after(strict_case, users)
    assert nobody != inside == state_after(strict_case, users, [-1] * 300)
    assert nobody == state_after(strict_case, users + users, [1] * 600)

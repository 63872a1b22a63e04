"""Every addressing is a function of design, key and id, with the stated law over keys."""

from __future__ import annotations

import hashlib
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.errors import InputError
from panprivacy.tables import addressing as addresses
from panprivacy.tables.addressing import MAX_UNIVERSE, CellBatch, Direct, Hashed, Levelled, Sampled
from panprivacy.tables.ids import PIECE_ROWS, read_ids

KEYS = st.binary(min_size=16, max_size=16)
SIZES = pytest.mark.parametrize(
    "universes",
    [range(1, 100), range(100, 301), (4_095, 4_096, 4_097, 100_003), (2**20,)],
    ids=["up to 99", "up to 300", "thousands", "a million"],
)


def a_key(name):
    return hashlib.sha256(str(name).encode()).digest()[:16]


def slots_of(addressing, users):
    """The cells of users, after the check that `Statistic.update` makes."""
    batch = read_ids(users)
    addressing.check(batch)
    return np.concatenate([np.empty(0, np.int64), *addressing.slots(batch)])


def largest_deviation(counts, law):
    """How far binomial counts stray from what is expected, in standard deviations.

    Args:
        counts: how often something happened.
        law: the expected count, one for all or one each, and the number of trials.
    """
    mean, trials = law
    return np.max(np.abs(counts - mean) / np.sqrt(mean * (1 - mean / trials)))


def critical(tests):
    """A deviation that the largest of so many counts exceeds with probability below 1e-6.

    Counts of 400 and more are normal enough: their skewness multiplies this tail by less than 10.
    """
    return NormalDist().inv_cdf(1 - 1e-7 / (2 * tests))


# Direct


@given(st.lists(st.integers(0, 99), max_size=30))
def test_direct_gives_every_user_the_cell_of_his_number(users):
    assert slots_of(Direct(100), users).tolist() == users


# Sampled


@SIZES
def test_a_full_sample_is_a_permutation(universes):
    for universe in universes:
        slots = slots_of(Sampled(universe, universe, a_key(universe)), np.arange(universe))
        assert np.array_equal(np.sort(slots), np.arange(universe))


@SIZES
def test_a_sample_has_exactly_as_many_users_as_cells(universes):
    for universe in universes:
        cells = universe // 3 + 1
        slots = slots_of(Sampled(universe, cells, a_key(universe)), np.arange(universe))
        assert np.array_equal(np.sort(slots[slots >= 0]), np.arange(cells))
        assert (slots >= -1).all()


@pytest.mark.parametrize("universe", [2**32 - 1, 2**32 + 1, 10**12, 2**61 + 1, MAX_UNIVERSE])
def test_huge_universes_are_permuted_without_collision(universe):
    users = np.concatenate([np.arange(50_000), universe - 1 - np.arange(50_000)])
    images = slots_of(Sampled(universe, universe, a_key(universe)), users)
    assert len(np.unique(images)) == len(users)
    assert 0 <= images.min() <= images.max() < universe


@pytest.mark.parametrize("universe", [10**6, 10**12, MAX_UNIVERSE])
def test_the_share_of_a_huge_universe_that_is_sampled_is_the_stated_one(universe):
    """False alarm 1e-6; the deviation allowed is 2 % of the count."""
    users = np.arange(200_000)
    slots = slots_of(Sampled(universe, universe // 4, a_key(universe)), users)
    sampled = np.array([(slots >= 0).sum()])
    assert largest_deviation(sampled, (50_000, 200_000)) < critical(1)


def sampled_permutation(key, users):
    return slots_of(Sampled(users, users, a_key(key)), np.arange(users))


def rotation(key, users):
    """A permutation of which every user's image is uniform, and no two are independent."""
    return (np.arange(users) + int.from_bytes(a_key(key)[:4], "big")) % users


@pytest.mark.long
def test_every_user_is_as_likely_to_be_sampled_as_any_other():
    """False alarm 1e-6. Power: what is off by 30 % lies beyond the limit."""
    users, keys = np.arange(11), 11 * 1_000
    counts = np.zeros((11, 11))
    for key in range(keys):
        counts[users, sampled_permutation(key, 11)] += 1
    limit = critical(counts.size)
    assert largest_deviation(counts, (1_000, keys)) < limit
    assert largest_deviation(1.3 * counts[0], (1_000, keys)) > limit


def pairs_of_images(permute, keys):
    """How often users 3 and 4 of 7 get each pair of images, over many keys."""
    counts = np.zeros((7, 7))
    for key in range(keys):
        images = permute(key, 7)
        counts[images[3], images[4]] += 1
    return counts[~np.eye(7, dtype=bool)]


@pytest.mark.long
def test_users_are_sampled_independently_of_their_neighbours():
    """False alarm 1e-6; rotations, in which neighbours stay neighbours, are rejected."""
    keys, few = 42 * 400, 42 * 40
    assert largest_deviation(pairs_of_images(sampled_permutation, keys), (400, keys)) < critical(42)
    assert largest_deviation(pairs_of_images(rotation, few), (40, few)) > critical(42)


@pytest.mark.parametrize(
    "addressing", [Direct(10), Sampled(10, 5, bytes(16))], ids=["direct", "sampled"]
)
def test_a_universe_refuses_whom_it_does_not_know(addressing):
    for stranger in (10, -1, 2**63 - 1, -(2**63)):
        with pytest.raises(InputError, match=r"row 4 .*outside the declared universe 0 to 9"):
            slots_of(addressing, [0, 9, 3, stranger, stranger])
    with pytest.raises(InputError, match="whole-number ids from 0 to 9"):
        slots_of(addressing, ["0"])
    with pytest.raises(InputError, match="row 3 "):
        slots_of(addressing, pa.chunked_array([[1, 2], [10]]))


def test_unchecked_strings_have_no_place_in_a_universe():
    with pytest.raises(TypeError, match="not checked"):
        list(Direct(10).slots(read_ids(["0"])))


# Levelled and hashed


@pytest.mark.parametrize("levels", [2, 5, 10])
def test_levels_halve_in_popularity_and_the_last_one_takes_the_rest(levels):
    """False alarm 1e-6. Power: 30 % off in the least popular level lies beyond the limit."""
    users, limit = 400_000, critical(levels)
    slots = slots_of(Levelled(levels, 100, a_key(levels)), np.arange(users))
    counts = np.bincount(slots // 100, minlength=levels)
    expected = users * 2.0 ** -np.minimum(np.arange(1, levels + 1), levels - 1)
    assert len(counts) == levels
    assert largest_deviation(counts, (expected, users)) < limit
    assert largest_deviation(1.3 * expected[-1:], (expected[-1], users)) > limit


@pytest.mark.parametrize(
    ("levels", "cells_per_level"), [(1, 1), (1, 100), (3, 7), (48, 1), (48, 999)]
)
def test_slots_are_in_range_and_every_cell_of_the_first_level_is_used(levels, cells_per_level):
    slots = slots_of(Levelled(levels, cells_per_level, a_key("range")), np.arange(50_000))
    assert 0 <= slots.min() <= slots.max() < levels * cells_per_level
    assert set(range(cells_per_level)) <= set(slots.tolist())


@pytest.mark.parametrize(
    ("levels", "cells_per_level"), [(1, 1), (1, 100), (3, 7), (48, 1), (48, 999)]
)
@pytest.mark.parametrize("rows", [0, 1, 15, 16, 17, 31, 32, 33, 48, 2_001])
def test_the_bits_of_whole_numbers_are_those_of_their_slots(levels, cells_per_level, rows):
    addressing = Levelled(levels, cells_per_level, a_key(rows))
    users = np.arange(rows) * 3 - 1
    touched = np.zeros(-(-addressing.cells // 64), np.uint64)
    addressing.mark(read_ids(users), touched)
    bits = np.unpackbits(touched.view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == sorted({*slots_of(addressing, users).tolist()})


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
@pytest.mark.parametrize(
    ("levels", "cells_per_level"), [(1, 1), (1, 100), (3, 7), (48, 1), (48, 999)]
)
def test_the_bits_of_texts_are_those_of_their_slots(levels, cells_per_level, kind):
    """Texts of all lengths up to 40, numbers among them, in a slice of a longer column."""
    addressing = Levelled(levels, cells_per_level, a_key("texts"))
    texts = ["x" * length for length in range(41)]
    texts += [str(10**length + 7) for length in range(21)] + [str(-(3**n)) for n in range(40)]
    column = pa.array(["before", *texts, "behind"]).cast(kind).slice(1, len(texts))
    touched = np.zeros(-(-addressing.cells // 64), np.uint64)
    addressing.mark(read_ids(column), touched)
    bits = np.unpackbits(touched.view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == sorted({*slots_of(addressing, column).tolist()})


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_threads_mark_what_one_thread_does_and_each_row_once(threads, monkeypatch):
    """The runs of rows begin and end within pieces, and between them."""
    monkeypatch.setattr(addresses, "cores", lambda: threads)
    monkeypatch.setattr(addresses, "THREAD_ROWS", 1)
    addressing = Levelled(3, 64, a_key(threads))
    users = np.arange(60) * 7
    batch = [read_ids(part)[0] for part in np.split(users, [10, 10, 20, 45])]
    rows = CellBatch(addressing, batch)
    parts = rows._parts(3)
    assert len(parts) == threads
    held = [row for part in parts for ids in part for row in ids.values.tolist()]
    assert held == users.tolist()
    touched = np.zeros(3, np.uint64)
    rows.mark(touched)
    bits = np.unpackbits(touched.view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == sorted({*slots_of(addressing, users).tolist()})


def test_the_cell_is_independent_of_the_level():
    """False alarm 1e-6. Power: 30 % off in one cell is 15 deviations."""
    slots = slots_of(Levelled(3, 16, a_key("cells")), np.arange(640_000))
    counts = np.bincount(slots).reshape(3, 16)
    shares = np.array([[1 / 2], [1 / 4], [1 / 4]]) / 16
    assert largest_deviation(counts, (640_000 * shares, 640_000)) < critical(48)


@given(st.lists(st.binary(max_size=12), min_size=1, max_size=20), KEYS)
def test_equal_users_have_equal_cells(users, key):
    addressing = Levelled(5, 1_000, key)
    slots = slots_of(addressing, users + users)
    assert slots[: len(users)].tolist() == slots[len(users) :].tolist()
    assert len(set(slots.tolist())) <= len(set(users))


@given(st.lists(st.sampled_from(["a", "bb", ""]), min_size=1, max_size=9), KEYS)
def test_dictionary_codes_lead_to_the_cells_of_the_values(users, key):
    addressing = Levelled(5, 1_000, key)
    encoded = pa.array(users).dictionary_encode()
    assert slots_of(addressing, encoded).tolist() == slots_of(addressing, users).tolist()


def test_one_level_is_a_hashed_table():
    users, key = np.arange(1_000), a_key("hashed")
    hashed = slots_of(Hashed(77, key), users)
    assert hashed.tolist() == slots_of(Levelled(1, 77, key), users).tolist()
    assert Hashed(77, key).cells == 77


def test_hashed_cells_are_equally_popular():
    """False alarm 1e-6. Power: 30 % off in one cell is 9 deviations."""
    counts = np.bincount(slots_of(Hashed(100, a_key("even")), np.arange(100_000)), minlength=100)
    assert largest_deviation(counts, (1_000, 100_000)) < critical(100)


# All


@pytest.mark.parametrize(
    "make",
    [
        lambda key: Sampled(10**6, 10**5, key),
        lambda key: Hashed(10**5, key),
        lambda key: Levelled(4, 10**5, key),
    ],
    ids=["sampled", "hashed", "levelled"],
)
def test_the_key_decides(make):
    users = np.arange(1_000)
    first = slots_of(make(a_key(1)), users)
    assert np.array_equal(first, slots_of(make(a_key(1)), users))
    assert not np.array_equal(first, slots_of(make(a_key(2)), users))


@pytest.mark.parametrize(
    "addressing",
    [Direct(10**6), Sampled(10**6, 10**5, a_key(1)), Levelled(4, 10**5, a_key(1))],
    ids=["direct", "sampled", "levelled"],
)
def test_long_batches_are_addressed_in_pieces(addressing):
    users = np.arange(2 * PIECE_ROWS + 3)
    pieces = list(addressing.slots(read_ids(users)))
    assert [len(piece) for piece in pieces] == [PIECE_ROWS, PIECE_ROWS, 3]
    again = [slots_of(addressing, users[start::1_000])[0] for start in range(0, len(users), 9_999)]
    assert np.concatenate(pieces)[::9_999].tolist() == again


def test_long_dictionary_batches_are_addressed_in_pieces():
    users = pa.array(["ada", "grace"] * PIECE_ROWS).dictionary_encode()
    pieces = list(Hashed(10**6, a_key(1)).slots(read_ids(users)))
    assert [len(piece) for piece in pieces] == [PIECE_ROWS, PIECE_ROWS]
    assert len(set(np.concatenate(pieces).tolist())) == 2


def test_the_cells_of_a_dictionary_leave_the_last_word_of_their_block(monkeypatch):
    """As copies of ids do: the C library does not overwrite that word when it is freed."""
    joined, concatenate = [], np.concatenate
    monkeypatch.setattr(np, "concatenate", lambda parts: joined.append(parts) or concatenate(parts))
    users = read_ids(pa.array(["ada", "grace", "ada"]).dictionary_encode())
    (slots,) = Hashed(10, a_key(1)).slots(users)
    assert len(slots) == 3
    assert sum(map(len, joined[-1])) == 2 + 1


# How often a value is hashed


class CountedHashes(Hashed):
    """Counts the ids that it hashes."""

    hashed = 0

    def _piece(self, ids):
        self.hashed += len(ids)
        return super()._piece(ids)


@pytest.mark.parametrize(
    ("values", "rows", "hashed"),
    [(50, 10_000, 50), (50, 100_000, 50), (50, 50, 50), (50, 49, 49), (10_000, 3, 3)],
)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.string_view()], ids=str)
def test_each_value_of_a_dictionary_is_hashed_once_and_no_more_values_than_rows(
    values, rows, hashed, kind
):
    texts = pa.array([f"user {one}" for one in range(values)])
    codes = np.arange(rows) * 7 % values
    column = pa.DictionaryArray.from_arrays(codes, texts.cast(kind))
    addressing = CountedHashes(1_000, a_key("hashes"))
    slots = slots_of(addressing, column)
    assert addressing.hashed == hashed
    plain = slots_of(Hashed(1_000, a_key("hashes")), texts.take(pa.array(codes)))
    assert slots.tolist() == plain.tolist()


def test_each_row_of_a_view_column_is_hashed_once():
    texts = pa.array([f"user {one % 7} with a name that is no short view" for one in range(1_000)])
    addressing = CountedHashes(1_000, a_key("hashes"))
    assert slots_of(addressing, texts.cast(pa.string_view())).tolist() == (
        slots_of(Hashed(1_000, a_key("hashes")), texts).tolist()
    )
    assert addressing.hashed == 1_000

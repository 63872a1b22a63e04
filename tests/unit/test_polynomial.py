"""Random polynomials: what is computed, and that cells of different users are independent."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.tables.addressing import Independent
from panprivacy.tables.ids import read_ids
from panprivacy.tables.polynomial import DIGIT_BYTES, PRIME, WORD_BYTES, words_of

from .test_hashing import NUMERALS, number_or_bytes

KEYS = st.binary(min_size=24, max_size=64).map(lambda key: key[: len(key) // 8 * 8])


def slots_of(addressing, users):
    return np.concatenate([np.empty(0, np.int64), *addressing.slots(read_ids(users))])


def number_of(user, point):
    """The first polynomial, in whole numbers of any size."""
    user = number_or_bytes(user)
    if isinstance(user, int):
        digits = [2**57 + (user % 2**64 >> 32), user % 2**32]
    else:
        parts = range(0, len(user), DIGIT_BYTES)
        digits = [int.from_bytes(user[at : at + DIGIT_BYTES], "little") for at in parts]
        digits = [len(user), *digits]
    number = 0
    for digit in digits:
        number = (number * point + digit) % PRIME
    return number


def cell_of(user, key, cells):
    point, *coefficients = (int(word) for word in words_of(key))
    number, value = number_of(user, point), 0
    for coefficient in coefficients:
        value = (value * number + coefficient) % PRIME
    return value * 8 * cells >> 64


EXTREMES = [0, 1, -1, 2**32 - 1, 2**32, 2**61 - 1, 2**61, 2**63 - 1, -(2**63)]


@pytest.mark.long
@given(KEYS, st.lists(st.sampled_from(EXTREMES) | st.integers(-(2**63), 2**63 - 1), min_size=1))
@pytest.mark.parametrize("cells", [1, 2, 1_000_003, 2**26])
def test_the_cell_of_a_whole_number_is_the_documented_one(cells, key, users):
    found = slots_of(Independent(cells, key), np.array(users, np.int64))
    assert found.tolist() == [cell_of(user, key, cells) for user in users]


@given(KEYS, st.lists(st.binary(max_size=40) | NUMERALS, min_size=1, max_size=10))
def test_the_cell_of_a_byte_string_is_the_documented_one(key, users):
    found = slots_of(Independent(9_973, key), pa.array(users, pa.binary()))
    assert found.tolist() == [cell_of(user, key, 9_973) for user in users]


@pytest.mark.parametrize("word", [0, PRIME, PRIME - 1, 2**64 - 1])
def test_extreme_keys_give_cells(word):
    key = word.to_bytes(8, "little") * 4
    users = np.array(EXTREMES, np.int64)
    found = slots_of(Independent(77, key), users)
    assert found.tolist() == [cell_of(user, key, 77) for user in EXTREMES]


@pytest.mark.long
@pytest.mark.parametrize(
    ("independence", "form"), [(2, "integers"), (3, "integers"), (5, "integers"), (3, "texts")]
)
def test_all_tuples_of_cells_are_equally_likely(independence, form):
    """A chi-square test over 40,000 keys, which are fixed: it says the same in every run."""
    users = [3, 2**32 + 3, 5, -9, 2**62][:independence]
    ids = read_ids(np.array(users) if form == "integers" else [f"user {user}" for user in users])
    cells, keys = 3, 40_000
    drawn = hashlib.shake_256(f"{independence}{form}".encode()).digest(
        WORD_BYTES * (1 + independence) * keys
    )
    width = WORD_BYTES * (1 + independence)
    counts = np.zeros(cells**independence)
    places = cells ** np.arange(independence)
    for at in range(0, len(drawn), width):
        (slots,) = Independent(cells, drawn[at : at + width]).slots(ids)
        counts[slots @ places] += 1
    expected = keys / len(counts)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert abs(statistic - len(counts) + 1) < 5 * np.sqrt(2 * len(counts)) + 5


def test_three_users_of_pairwise_independence_are_not_independent():
    """On a line, the middle one follows from the two others: with three coefficients it is free."""
    users = np.array([1, 2, 3])

    def spread(independence):
        shown = set()
        for seed in range(300):
            key = hashlib.shake_256(str(seed).encode()).digest(WORD_BYTES * (1 + independence))
            first, middle, last = slots_of(Independent(1_024, key), users).tolist()
            shown.add((2 * middle - first - last) % 1_024)
        return len(shown)

    assert spread(2) <= 6
    assert spread(3) > 100


def test_with_four_coefficients_collisions_vary_as_if_all_were_independent():
    """With two, ids in a row meet all at once or not at all. Keys are fixed."""
    users, cells, keys = np.arange(1_000), 16_000, 400

    def pairs(independence):
        found = []
        for seed in range(keys):
            key = hashlib.shake_256(b"%d" % seed).digest(WORD_BYTES * (1 + independence))
            counts = np.bincount(slots_of(Independent(cells, key), users))
            found.append((counts * (counts - 1) // 2).sum())
        return np.array(found)

    expected = 1_000 * 999 / 2 / cells
    four, two = pairs(4), pairs(2)
    assert four.mean() == pytest.approx(expected, rel=0.05)
    assert four.var() == pytest.approx(expected, rel=0.3)
    assert two.mean() == pytest.approx(expected, rel=0.5)
    assert two.var() > 10 * expected


@pytest.mark.parametrize("wrong", [0, 1, 3, 65, 4.5, True])
def test_an_independence_that_cannot_be(wrong):
    with pytest.raises(pp.PlanError, match="independence"):
        pp.HeavyHitterCount(k=10, total=1_000, epsilon=1, independence=wrong)


@pytest.mark.parametrize("independence", [4, 8, 64])
def test_more_coefficients_are_more_key(independence):
    heavy = pp.HeavyHitterCount(k=10, total=1_000, epsilon=1, independence=independence)
    assert heavy.plan.key_bytes == 8 * (1 + independence)
    heavy.update(["ada", "grace"], [100, 300])
    again = pp.HeavyHitterCount(k=10, total=1_000, epsilon=1, independence=independence)
    again.resume(heavy.state())
    assert again.state() == heavy.state()

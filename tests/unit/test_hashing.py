"""The kernels compute the documented formulas, and those spread ids evenly."""

from __future__ import annotations

import contextlib
import hashlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panprivacy.ground import intrinsics as _intrinsics
from panprivacy.tables.hashing import ABREAST, hash_byte_strings, hash_integers, key_words

MASK = 2**64 - 1
SECRET_0, SECRET_1 = 0x2D358DCCAA6C78A5, 0x8BB84B93962EACC9

FALSE_ALARM = 1e-6
CELLS = 257
ROWS = 100_000

KEYS = st.binary(min_size=16, max_size=16)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
NUMERALS = st.one_of(
    st.integers(-(2**65), 2**65).map(lambda number: b"%d" % number),
    st.integers(-3, 3).flatmap(
        lambda off: st.sampled_from([2**63, -(2**63), 2**64]).map(lambda end: b"%d" % (end + off))
    ),
    st.text("0123456789-+ .", max_size=22).map(str.encode),
)


# The formulas again, in integers of any size


def fold(a, b):
    return (a * b >> 64) ^ (a * b & MASK)


def reference_hash_word(word, key_0, key_1):
    product = fold(word ^ key_0, key_1 | 1)
    return fold(product ^ SECRET_0, word ^ SECRET_1 ^ key_1)


def number_or_bytes(user):
    """The whole number of 64 bits of which a byte string is the shortest decimal form, or that."""
    with contextlib.suppress(ValueError):
        number = int(user)
        if str(number).encode() == user and -(2**63) <= number < 2**64:
            return number
    return user


def reference_hash(user, key):
    """The hash of a whole number or a byte string."""
    key_0, key_1 = (int.from_bytes(half, "little") for half in (key[:8], key[8:]))
    user = number_or_bytes(user)
    if isinstance(user, int):
        return reference_hash_word(user & MASK, key_0, key_1)
    state = key_0
    for start in range(0, len(user) - 8, 8):
        word = int.from_bytes(user[start : start + 8], "little")
        state = fold(state ^ word, key_1 | 1) ^ key_0
    last = int.from_bytes(user[-8:], "little")
    return reference_hash_word(last ^ state, key_0 ^ (len(user) * SECRET_1 & MASK), key_1)


def integer_hashes(values, key):
    hashes = np.empty(len(values), np.uint64)
    hash_integers(np.array(values, np.int64), *key_words(key), hashes)
    return hashes


def string_hashes(strings, key, *, before=b"", dtype=np.int32):
    """The hashes of strings that stand one after another, `before` standing first."""
    offsets = len(before) + np.cumsum([0, *map(len, strings)])
    data = np.frombuffer(before + b"".join(strings) + b"after", np.uint8)
    hashes = np.empty(len(strings), np.uint64)
    hash_byte_strings(offsets.astype(dtype), data, *key_words(key), hashes)
    return hashes


def a_key(name):
    return hashlib.sha256(str(name).encode()).digest()[:16]


@given(st.lists(INTEGERS, max_size=20), KEYS)
def test_the_hash_of_integers_is_the_documented_one(values, key):
    assert integer_hashes(values, key).tolist() == [reference_hash(value, key) for value in values]


@given(
    st.lists(st.binary(max_size=40), max_size=20),
    KEYS,
    st.binary(max_size=7),
    st.sampled_from([np.int32, np.int64]),
)
def test_the_hash_of_strings_is_the_documented_one(strings, key, before, dtype):
    hashes = string_hashes(strings, key, before=before, dtype=dtype)
    assert hashes.tolist() == [reference_hash(string, key) for string in strings]


@pytest.mark.long
@settings(max_examples=300)
@given(st.lists(NUMERALS, max_size=20), KEYS)
def test_only_the_shortest_decimal_form_of_a_number_is_that_number(strings, key):
    hashes = string_hashes(strings, key)
    assert hashes.tolist() == [reference_hash(string, key) for string in strings]


def test_numbers_and_their_texts_are_one_user_up_to_the_last():
    key, ends = a_key("ends"), [0, 7, -7, 2**63 - 1, -(2**63)]
    assert string_hashes([b"%d" % end for end in ends], key).tolist() == (
        integer_hashes(ends, key).tolist()
    )
    (largest,) = string_hashes([b"%d" % (2**64 - 1)], key)
    assert largest == integer_hashes([-1], key)[0]
    others = [b"07", b"+7", b"-0", b"", b"-", b"7 ", b"7.0", b"%d" % 2**64, b"%d" % (-(2**63) - 1)]
    numbers = {*integer_hashes([0, 7, -7, -1, 2**63 - 1, -(2**63)], key).tolist()}
    assert not numbers & {*string_hashes(others, key).tolist()}
    (twenty,) = string_hashes([b"%d" % 10**19], key)  # the least of so many digits
    assert twenty == integer_hashes([10**19 - 2**64], key)[0]
    left = [10, 100, 10**18]
    beyond = string_hashes([b"%d" % (2**64 + word) for word in left], key)
    assert not {*beyond.tolist()} & {*integer_hashes(left, key).tolist()}


@pytest.mark.parametrize("length", range(41))
def test_strings_of_every_length_are_hashed_wherever_they_stand(length):
    string, key = hashlib.sha512(bytes([length])).digest()[:length], a_key(length)
    for padding in range(8):
        hashes = string_hashes([string], key, before=bytes(padding))
        assert hashes.tolist() == [reference_hash(string, key)]


@pytest.mark.parametrize("length", range(1, 22))
def test_numerals_of_every_length_are_numbers_wherever_they_stand(length):
    """Up to eight digits, up to 16, and more are read in three ways; one wrong byte ends each."""
    key, digits = a_key(length), b"918273645546372819019"[:length]
    wrong = [digits[:at] + byte + digits[at + 1 :] for at in range(length) for byte in (b":", b"/")]
    signed = [b"-" + digits, b"0" + digits, b"1" + (length - 1) * b"0", digits[:-1] + b"-"]
    for string in [digits, *wrong, *signed]:
        for behind in (b"", b"1", b"12345678"):
            data = np.frombuffer(string + behind, np.uint8)
            hashes = np.empty(1, np.uint64)
            hash_byte_strings(np.array([0, len(string)]), data, *key_words(key), hashes)
            assert hashes[0] == reference_hash(string, key), string


def test_what_stands_around_a_string_does_not_matter():
    key = a_key("around")
    assert string_hashes([b"abc", b"ada", b"xyz"], key)[1] == string_hashes([b"ada"], key)[0]


def test_strings_that_differ_in_length_only_have_different_hashes():
    hashes = string_hashes([bytes(length) for length in range(200)], a_key("zeros"))
    assert len(set(hashes.tolist())) == 200


@given(st.binary(min_size=1, max_size=40), st.data())
def test_every_bit_of_a_string_matters(string, data):
    at = data.draw(st.integers(0, 8 * len(string) - 1))
    flipped = bytearray(string)
    flipped[at // 8] ^= 1 << at % 8
    first, second = string_hashes([string, bytes(flipped)], a_key("bits"))
    assert first != second


def test_another_key_gives_other_hashes():
    values = range(1_000)
    first, second = (integer_hashes(values, a_key(name)) for name in ("first", "second"))
    assert not (first == second).any()


# Spread


def chi_square_tail(statistic, dof):
    """The probability that a chi-square variable with an even `dof` exceeds `statistic`.

    A Poisson variable with mean `statistic/2` is then below `dof/2`.
    """
    half = statistic / 2
    terms = (k * math.log(half) - half - math.lgamma(k + 1) for k in range(dof // 2))
    return math.fsum(map(math.exp, terms))


def is_even(hashes):
    """Whether both halves of the hashes spread evenly over the cells, false alarm 1e-6."""
    halves = (hashes >> np.uint64(32), hashes & np.uint64(0xFFFFFFFF))
    p_values = []
    for half in halves:
        counts = np.bincount(
            (half * np.uint64(CELLS) >> np.uint64(32)).astype(int), minlength=CELLS
        )
        expected = len(hashes) / CELLS
        p_values.append(chi_square_tail(((counts - expected) ** 2).sum() / expected, CELLS - 1))
    return min(p_values) > FALSE_ALARM / 2


SPREAD = {
    "sequential": range(ROWS),
    "sequential from far away": range(-(2**40), -(2**40) + ROWS),
    "multiples of 2**8": range(0, ROWS << 8, 1 << 8),
    "multiples of 2**24": range(0, ROWS << 24, 1 << 24),
    "multiples of 2**46": range(0, ROWS << 46, 1 << 46),
    "multiples of 1000": range(0, ROWS * 1_000, 1_000),
}

STRINGS = {
    "decimal digits": [str(number).encode() for number in range(ROWS)],
    "padded digits": [f"{number:010}".encode() for number in range(ROWS)],
    "a long common start": [
        f"https://example.org/user/{number}".encode() for number in range(ROWS)
    ],
    "a long common end": [f"{number}@example.org.invalid".encode() for number in range(ROWS)],
    "three bytes": [number.to_bytes(3, "big") for number in range(ROWS)],
}


@pytest.mark.parametrize("name", SPREAD)
def test_integers_spread_evenly(name):
    assert is_even(integer_hashes(SPREAD[name], a_key(name)))


@pytest.mark.parametrize("name", STRINGS)
def test_strings_spread_evenly(name):
    assert is_even(string_hashes(STRINGS[name], a_key(name)))


def test_the_test_of_spread_knows_the_chi_square_law():
    """The 5 % and 0.1 % points of 100 degrees of freedom, from printed tables."""
    assert chi_square_tail(124.342, 100) == pytest.approx(0.05, rel=1e-4)
    assert chi_square_tail(149.449, 100) == pytest.approx(0.001, rel=1e-4)


def test_the_test_of_spread_rejects_bad_hashes():
    values = np.arange(ROWS, dtype=np.uint64)
    only_high_bits = values * np.uint64(0x9E3779B97F4A7C15) << np.uint64(32)
    assert not is_even(values)
    assert not is_even(only_high_bits)


def test_the_test_of_spread_rejects_a_law_that_is_off_by_30_percent():
    """Half of the cells are 30 % too popular: a fair hash is moved there with probability 0.15."""
    good = integer_hashes(range(ROWS), a_key("power"))
    bad = good.copy()
    moved = integer_hashes(range(ROWS), a_key("moved")) < np.uint64(round(0.15 * 2**64))
    bad[moved] >>= np.uint64(1)
    assert is_even(good)
    assert not is_even(bad)


# Instructions


def test_as_many_words_are_hashed_at_a_time_as_there_is_room_for():
    assert _intrinsics.ABREAST == ABREAST

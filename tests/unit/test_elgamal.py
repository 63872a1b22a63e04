"""Ciphertexts add up, look fresh, open with their key alone; and what is none is refused."""

from __future__ import annotations

import hmac
import pickle
import sys
from math import isqrt

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from panprivacy.devices.federated import elgamal, group
from panprivacy.devices.federated.elgamal import CIPHERTEXT_BYTES, DecryptionKey, EncryptionKey
from panprivacy.devices.federated.embedding import embed, extract
from panprivacy.devices.federated.group import ORDER
from panprivacy.errors import InputError, PlanError
from panprivacy.privacy.coins import SystemCoins
from tests.unit import secp256k1 as book
from tests.unit.drawn import Scripted

COINS = SystemCoins()
KEY = DecryptionKey.from_bytes(bytes(range(1, 33)))
SECRET = int.from_bytes(bytes(range(1, 33)), "big")
PUBLIC = KEY.public
OTHER = DecryptionKey.from_bytes(bytes(range(2, 34)))

SMALL = st.integers(-1_000, 1_000)
ROWS = st.lists(SMALL, min_size=1, max_size=4)
NONCES = st.integers(1, ORDER - 1)
quick = settings(max_examples=25)


def sums(ciphertexts, reach=1_000):
    return KEY.small_sums(ciphertexts, -reach, reach).tolist()


def points_of(ciphertexts):
    """Both points of each, as bytes."""
    return [ciphertexts[i : i + 33] for i in range(0, len(ciphertexts), 33)]


def scripted(*numbers):
    return Scripted(*map(group.scalar, numbers))


def made(nonce, value, secret=SECRET):
    """A ciphertext by the book."""
    first, second = book.times(nonce), book.times(nonce * secret + value)
    return book.encode(first) + book.encode(second)


TWO = made(3, 0) + made(4, 1)


# By the book


def test_a_key_is_that_of_the_book():
    assert bytes(PUBLIC) == book.encode(book.times(SECRET))


@pytest.mark.long
@given(NONCES, st.integers(-(2**62), 2**62))
@example(1, 0)
@example(ORDER - 1, 1)
@example(2**248, -(2**62))
@quick
def test_a_ciphertext_is_that_of_the_book(nonce, value):
    assert PUBLIC.encrypt([value], scripted(nonce)) == made(nonce, value)


@given(NONCES, SMALL, st.integers(0, ORDER - 1))
@example(5, 1, 0)
@example(5, 0, ORDER - 4)
@quick
def test_re_randomising_adds_to_the_nonce(nonce, value, more):
    """So with a uniform addend, it is a fresh ciphertext's nonce, whatever it was."""
    assume((nonce + more) % ORDER)  # a nonce of 0 is drawn again
    found = PUBLIC.rerandomise(made(nonce, value), scripted(more))
    assert found == PUBLIC.encrypt([value], scripted((nonce + more) % ORDER))


def test_sums_and_multiples_are_those_of_the_book():
    row, more = made(3, 4) + made(5, 6), made(7, 8) + made(9, 10)
    assert PUBLIC.add(row, more, row) == made(13, 16) + made(19, 22)
    assert PUBLIC.scale(row, 7) == made(21, 28) + made(35, 42)
    assert PUBLIC.scale(row, -1) == made(-3, -4) + made(-5, -6)


# What leads to no ciphertext is drawn again, alike in fresh and in re-randomised ones


@pytest.mark.parametrize("value", [0, 1, -3])
def test_nonces_without_an_encoding_are_drawn_again(value):
    neutral = [0, -value * pow(SECRET, -1, ORDER) % ORDER]  # the first point, or the second
    for nonce in neutral:
        coins = scripted(nonce, 77)
        assert PUBLIC.encrypt([value], coins) == made(77, value)
        assert coins.is_used_up()
        coins = scripted((nonce - 5) % ORDER, 72)
        assert PUBLIC.rerandomise(made(5, value), coins) == made(77, value)
        assert coins.is_used_up()


def test_numbers_from_the_order_on_are_drawn_again():
    coins = Scripted(ORDER.to_bytes(32, "big"), b"\xff" * 32, group.scalar(8))
    assert PUBLIC.encrypt([1], coins) == made(8, 1)
    coins = Scripted(bytes(32), ORDER.to_bytes(32, "big"), group.scalar(7))
    assert bytes(DecryptionKey.generate(coins)) == group.scalar(7)


# Properties


@pytest.mark.long
@given(ROWS, st.integers(-99, 99).filter(bool), st.data())
@quick
def test_ciphertexts_add_up_and_scale(values, factor, data):
    others = data.draw(st.lists(SMALL, min_size=len(values), max_size=len(values)))
    one, other = PUBLIC.encrypt(values, COINS), PUBLIC.encrypt(others, COINS)
    expected = [factor * a + b for a, b in zip(values, others, strict=True)]
    assert sums(PUBLIC.add(PUBLIC.scale(one, factor), other), 100_000) == expected


@given(ROWS)
@quick
def test_re_randomising_keeps_the_value_and_leaves_no_point(values):
    seen = [PUBLIC.encrypt(values, COINS)]
    for _ in range(3):
        seen.append(PUBLIC.rerandomise(seen[-1], COINS))
    points = [point for row in seen for point in points_of(row)]
    assert len(set(points)) == len(points) == 8 * len(values)
    assert [sums(row) for row in seen] == [values] * 4


@given(st.lists(st.integers(0, 1), max_size=8))
@quick
def test_bits_are_decrypted(bits):
    found = KEY.bits(PUBLIC.encrypt(bits, COINS))
    assert found.tolist() == bits
    assert found.dtype == np.uint8


@given(st.integers(-500, 500), st.integers(0, 1_000), st.data())
@quick
def test_all_of_a_range_is_found_and_nothing_beyond_it(low, width, data):
    high = low + width
    values = data.draw(st.lists(st.integers(low, high), min_size=1, max_size=5))
    found = KEY.small_sums(PUBLIC.encrypt([low, high, *values], COINS), low, high)
    assert found.tolist() == [low, high, *values]
    assert found.dtype == np.int64
    for beyond in (low - 1, high + 1):
        with pytest.raises(InputError, match=r"row 2 .*: its value is not one of"):
            KEY.small_sums(PUBLIC.encrypt([low, beyond], COINS), low, high)


def test_few_baby_steps_find_the_same(monkeypatch):
    monkeypatch.setattr(elgamal, "_MOST_BABY_STEPS", 3)
    values = list(range(-5, 15))
    assert KEY.small_sums(PUBLIC.encrypt(values, COINS), -5, 14).tolist() == values
    with pytest.raises(InputError, match="row 20 "):
        KEY.small_sums(PUBLIC.encrypt(values, COINS), -5, 13)


def test_no_ciphertexts_are_none():
    assert PUBLIC.encrypt([], COINS) == PUBLIC.rerandomise(b"", COINS) == PUBLIC.add(b"") == b""
    assert KEY.bits(b"").size == KEY.small_sums(b"", 0, 5).size == 0


@given(st.binary(max_size=31))
@example(b"")
@example(bytes(31))
@example(b"\xff" * 31)
@quick
def test_points_go_through(payload):
    row = PUBLIC.rerandomise(PUBLIC.encrypt_points(embed(payload), COINS), COINS)
    assert extract(KEY.points(row)) == payload


def test_the_number_0_is_no_point():
    with pytest.raises(InputError, match=r"row 2 .* no point"):
        KEY.points(PUBLIC.encrypt([1, 0], COINS))


# Another key


def test_another_key_opens_nothing():
    row = PUBLIC.encrypt([0, 1, 5], COINS)
    for i in range(3):
        one = row[i * CIPHERTEXT_BYTES :][:CIPHERTEXT_BYTES]
        with pytest.raises(InputError, match="another key"):
            OTHER.bits(one)
        with pytest.raises(InputError, match="another key"):
            OTHER.small_sums(one, -10_000, 10_000)


def test_re_randomising_with_another_key_spoils():
    with pytest.raises(InputError, match="another key"):
        KEY.bits(OTHER.public.rerandomise(PUBLIC.encrypt([1], COINS), COINS))


# Decryption takes the same path whatever is found


def steps_of(action):
    """The lines of the package that an action runs, and its calls of `compare_digest`."""
    seen, compared = [], []

    def look(frame, event, _):
        if "panprivacy" in frame.f_code.co_filename:
            seen.append((frame.f_code.co_name, frame.f_lineno, event))
        return look

    def compare(one, other):
        compared.append((len(one), len(other)))
        return original(one, other)

    original = hmac.compare_digest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hmac, "compare_digest", compare)
        before = sys.gettrace()
        sys.settrace(look)
        try:
            action()
        finally:
            sys.settrace(before)
    return seen, compared


def test_a_bit_is_decrypted_by_the_same_steps_whatever_it_is():
    """Both hashes of each are compared whole, and no line depends on what is found."""
    paths = []
    for bits in ([0, 0, 0], [0, 1, 0], [1, 1, 1]):
        row = PUBLIC.encrypt(bits, COINS)
        KEY.bits(row)
        paths.append(steps_of(lambda row=row: KEY.bits(row)))
    assert paths[0] == paths[1] == paths[2]
    assert paths[0][1] == [(32, 32)] * 6


def test_all_are_compared_before_one_is_refused():
    def refused(row):
        with pytest.raises(InputError):
            KEY.bits(row)

    for values in ([7, 0, 0], [0, 0, 7]):
        row = PUBLIC.encrypt(values, COINS)
        assert len(steps_of(lambda row=row: refused(row))[1]) == 6


def test_what_is_no_bit_is_marked_by_the_same_steps():
    """How long reports take to read must not say whether a doubled bit was among them."""
    foreign = DecryptionKey.generate(COINS).public.encrypt([1], COINS)
    rows = [PUBLIC.encrypt([1, value, 0], COINS) for value in (0, 1, 2, -1, 10**6)]
    rows.append(PUBLIC.encrypt([1], COINS) + foreign + PUBLIC.encrypt([0], COINS))
    found, paths = [], []
    for row in rows:
        found.append(KEY.marked_bits(row).tolist())
        paths.append(steps_of(lambda row=row: KEY.marked_bits(row)))
    assert found == [[1, 0, 0], [1, 1, 0], *[[1, -1, 0]] * 4]
    assert all(path == paths[0] for path in paths)


def test_sums_are_searched_for_by_the_same_steps_whatever_they_are():
    """How long a mean takes must not say whether a report could be read, or what it was."""
    foreign = DecryptionKey.generate(COINS).public.encrypt([1], COINS)
    rows = [PUBLIC.encrypt([1, value, 0], COINS) for value in (0, 1, 57, 99, 100, -1, 10**6)]
    rows.append(PUBLIC.encrypt([1], COINS) + foreign + PUBLIC.encrypt([0], COINS))
    # moved to where the search begins, or a step later, it is the neutral element
    steps = isqrt(3 * 99) + 1
    middles = [made(7, times * steps - elgamal._SHIFT) for times in range(3)]
    # so is its second point, moved by as much
    middles.append(book.encode(book.BASE) + book.encode(book.times(-elgamal._SHIFT % ORDER)))
    rows += [PUBLIC.encrypt([1], COINS) + one + PUBLIC.encrypt([0], COINS) for one in middles]
    found, paths = [], []
    for row in rows:
        found.append(KEY.marked_sums(row, 0, 99).tolist())
        paths.append(steps_of(lambda row=row: KEY.marked_sums(row, 0, 99)))
    assert [one for _, one, _ in found] == [0, 1, 57, 99, *[100] * 8]
    assert {(first, last) for first, _, last in found} == {(1, 0)}
    assert all(path == paths[0] for path in paths)


def test_encryption_takes_the_same_steps_whatever_the_value_is():
    paths = [
        steps_of(lambda value=value: PUBLIC.encrypt([value], scripted(9))) for value in (0, 1, -2)
    ]
    assert paths[0] == paths[1] == paths[2]


def test_a_second_point_that_is_the_base_is_read_too():
    """Its point less one has no encoding to compare with."""
    row = made(pow(SECRET, -1, ORDER), 0) + made(2, 1)
    assert points_of(row)[1] == book.encode(book.BASE)
    assert KEY.bits(row).tolist() == [0, 1]
    with pytest.raises(InputError):
        KEY.bits(book.encode(book.times(2)) + book.encode(book.BASE))


def test_a_value_without_an_encoding_is_refused_with_its_row():
    """Moved to where the search begins it is the neutral element."""
    row = PUBLIC.encrypt([5, 6], COINS) + made(7, 3 - elgamal._SHIFT)
    with pytest.raises(InputError, match=r"^row 3 .*not one of 3 to 9") as caught:
        KEY.small_sums(row, 3, 9)
    assert caught.value.row == 3


def test_what_has_no_encoding_without_a_layer_becomes_something_else():
    stripped = points_of(KEY.strip(made(5, 0) + made(6, 3)))
    expected = [5, -10 * SECRET % ORDER, 6, 3]
    assert stripped == [book.encode(book.times(number)) for number in expected]


def test_the_points_of_values_are_wiped_once_they_are_encrypted(monkeypatch):
    found, multiples = [], group.base_multiples
    monkeypatch.setattr(
        group, "base_multiples", lambda scalars: found.append(multiples(scalars)) or found[-1]
    )
    PUBLIC.encrypt([0, 1], COINS)
    assert len(found[0]) == 2
    assert not found[0].any()


# Several processes


@pytest.mark.long
def test_processes_share_a_row():
    bits = [0, 1, 1, 0, 1]
    row = PUBLIC.encrypt(bits, COINS)
    assert KEY.bits(row, processes=2).tolist() == bits
    with pytest.raises(InputError, match=r"^row 5 \(counting from 1\): its value") as caught:
        KEY.bits(row[:-CIPHERTEXT_BYTES] + PUBLIC.encrypt([2], COINS), processes=2)
    assert caught.value.row == 5


# What is refused


@pytest.mark.parametrize("length", [1, 33, 65, 67, 131, 133])
def test_rows_of_another_length_are_refused(length):
    with pytest.raises(InputError, match="expected bytes, 66 for each row"):
        PUBLIC.check((PUBLIC.encrypt([0, 1, 0], COINS))[:length])


OPERATIONS = {
    "check": PUBLIC.check,
    "rerandomise": lambda row: PUBLIC.rerandomise(row, COINS),
    "add": lambda row: PUBLIC.add(row, row),
    "scale": lambda row: PUBLIC.scale(row, 2),
    "bits": KEY.bits,
    "small_sums": lambda row: KEY.small_sums(row, 0, 9),
    "points": KEY.points,
    "bits of two": lambda row: KEY.bits(row, processes=2),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_refuses_what_is_no_row(operation):
    good = made(3, 0)
    off_curve = b"\x02" + (5).to_bytes(32, "big")
    assert book.decode(off_curve) is book.NEUTRAL
    bad = {
        "identity": bytes(CIPHERTEXT_BYTES),
        "infinity of SEC 1": bytes(33) + good[33:],
        "off the curve": off_curve + good[33:],
        "second off the curve": good[:33] + off_curve,
        "prefix": b"\x04" + good[1:],
        "x of the prime": b"\x02" + book.PRIME.to_bytes(32, "big") + good[33:],
        "truncated": good[:-1],
        "oversized": good + b"\0",
    }
    for name, row in bad.items():
        for whole in (row, good + row):
            with pytest.raises(InputError) as caught:
                OPERATIONS[operation](whole)
            assert row[1:].hex() not in str(caught.value), name
            assert repr(row[1:])[2:-1] not in str(caught.value), name
    for kind in (good.hex(), bytearray(good), None):
        with pytest.raises(InputError):
            OPERATIONS[operation](kind)


@given(st.binary(max_size=140))
@settings(max_examples=300)
def test_random_bytes_are_refused(data):
    if data:
        with pytest.raises(InputError):
            PUBLIC.check(data)


@pytest.mark.long
@given(st.integers(0, 2 * CIPHERTEXT_BYTES - 1), st.integers(1, 255))
@settings(max_examples=300)
def test_a_damaged_row_is_refused_or_is_other_points(place, flip):
    """What passes is what the book reads, and every operation takes it."""
    damaged = bytearray(TWO)
    damaged[place] ^= flip
    row = bytes(damaged)
    if all(book.decode(point) for point in points_of(row)):
        PUBLIC.check(row)
        assert len(PUBLIC.rerandomise(row, COINS)) == len(row)
        with pytest.raises(InputError):
            KEY.bits(row)
    else:
        with pytest.raises(InputError):
            PUBLIC.check(row)


def test_sums_without_an_encoding_are_refused_with_their_row():
    row = made(3, 0) + made(4, 1)
    with pytest.raises(InputError, match=r"^row 2 .*: the sum has no encoding"):
        PUBLIC.add(row, made(3, 0) + PUBLIC.scale(made(4, 1), -1))


@pytest.mark.parametrize("terms", [(), (made(3, 0), b""), (made(3, 0), made(3, 0) * 2)])
def test_terms_of_different_lengths_are_refused(terms):
    with pytest.raises(InputError, match="all of the same length"):
        PUBLIC.add(*terms)


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        (lambda: PUBLIC.scale(made(3, 0), 0), "factor must not be 0: encrypt 0 instead"),
        (lambda: PUBLIC.scale(made(3, 0), 0.5), "factor must be a whole number"),
        (lambda: PUBLIC.scale(made(3, 0), True), "factor must be a whole number"),
        (lambda: PUBLIC.encrypt([2**62 + 1], COINS), "value must be at most"),
        (lambda: PUBLIC.encrypt(["1"], COINS), "value must be a whole number"),
        (lambda: KEY.small_sums(made(3, 0), 5, 4), "low to high must be 1 to"),
        (lambda: KEY.small_sums(made(3, 0), 0, 2**40), "low to high must be 1 to"),
        (lambda: KEY.bits(made(3, 0), processes=0), "processes must be a whole number"),
    ],
)
def test_arguments_out_of_range_are_refused(refused, says):
    with pytest.raises(PlanError, match=says):
        refused()


# Keys


@pytest.mark.parametrize(
    "encoded",
    [b"", bytes(33), bytes(PUBLIC)[:-1], bytes(PUBLIC) + b"\0", bytes(PUBLIC).hex(), None],
)
def test_a_public_key_is_a_point(encoded):
    with pytest.raises(InputError):
        EncryptionKey(encoded)


@pytest.mark.parametrize(
    "secret", [b"", bytes(32), bytes(31), bytes(33), b"\xff" * 32, ORDER.to_bytes(32, "big"), None]
)
def test_a_secret_key_is_a_number_below_the_order(secret):
    with pytest.raises(InputError, match="a secret key has 32 bytes"):
        DecryptionKey.from_bytes(secret)


def test_a_key_is_the_same_again_from_its_bytes():
    again = DecryptionKey.from_bytes(bytes(KEY))
    assert (
        again.public == PUBLIC == EncryptionKey(bytes(PUBLIC)) == pickle.loads(pickle.dumps(PUBLIC))
    )
    assert len({again.public, PUBLIC, OTHER.public}) == 2
    assert again.bits(PUBLIC.encrypt([1], COINS)).tolist() == [1]


def test_fresh_keys_differ():
    assert len({bytes(DecryptionKey.generate(COINS)) for _ in range(20)}) == 20


def test_a_key_does_not_show_its_secret():
    for shown in (repr(KEY), str(KEY), f"{KEY}"):
        assert bytes(KEY).hex() not in shown
        assert bytes(PUBLIC).hex() in shown
    assert eval(repr(PUBLIC)) == PUBLIC


def test_a_device_needs_no_more_than_the_protocol():
    used: elgamal.Encryption = PUBLIC
    assert KEY.bits(used.add(used.encrypt([1], COINS), used.encrypt([0], COINS))).tolist() == [1]


# Payloads


@pytest.mark.parametrize(
    "point",
    [
        b"",
        bytes(33),
        book.encode(book.BASE),
        embed(bytes(31))[:-1],
        embed(bytes(31)) + b"\0",
        b"\3" + embed(bytes(31))[1:-1] + b"\xff",
        b"\3" + embed(b"short")[1:2] + b"short".ljust(30, b"1") + b"\5",
        b"\2" + bytes([embed(bytes(31))[1] + 1]) + bytes(31),
    ],
)
def test_a_point_without_a_payload_is_refused(point):
    with pytest.raises(InputError, match="this point holds no payload"):
        extract(point)


@pytest.mark.parametrize("length", range(32))
@pytest.mark.parametrize("fill", [0, 1, 255])
def test_payloads_of_every_length_come_back(length, fill):
    payload = bytes([fill]) * length
    point = embed(payload)
    assert book.decode(point) is not book.NEUTRAL
    assert extract(point) == payload


def test_payloads_have_points_of_their_own():
    payloads = [bytes([fill]) * length for fill in (0, 1, 30, 31) for length in range(1, 32)]
    assert len(set(map(embed, payloads))) == len(payloads)


def test_a_payload_of_32_bytes_is_refused():
    with pytest.raises(InputError, match="31 bytes at most"):
        embed(bytes(32))


@given(st.binary(max_size=40))
@example(embed(bytes(31)))
@example(bytes([5 - embed(bytes(31))[0]]) + embed(bytes(31))[1:])
@example(book.encode(book.BASE))
@settings(max_examples=200)
def test_only_points_of_payloads_are_read(point):
    try:
        payload = extract(point)
    except InputError:
        return
    assert embed(payload) == point

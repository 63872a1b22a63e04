"""The encryption of which nothing is learnt, and a device whose reports are opened."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.audit.ideal import IdealEncryption, MemoryStorage, device_of
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.promise import Promise
from panprivacy.errors import InputError
from panprivacy.testing import SeededCoins

COINS = SeededCoins(1)


def test_values_come_back_and_no_ciphertext_comes_twice():
    key = IdealEncryption(2)
    one, other = key.encrypt([1, 0, 1], COINS), key.encrypt([1, 0, 1], COINS)
    assert len(one) == 3 * 2
    assert one != other
    assert key.values(one) == key.values(other) == [1, 0, 1]
    again = key.rerandomise(one, COINS)
    assert again not in {one, other}
    assert key.values(again) == [1, 0, 1]


def test_columns_add_up():
    key = IdealEncryption()
    added = key.add(key.encrypt([1, 2], COINS), key.encrypt([10, 20], COINS))
    assert key.values(added) == [11, 22]
    with pytest.raises(ValueError, match="zip"):
        key.add(key.encrypt([1, 2], COINS), key.encrypt([1], COINS))


def test_what_was_never_made_is_no_ciphertext():
    key = IdealEncryption(2)
    made = key.encrypt([5], COINS)
    for row in (made[:1], made + made[:1], (1).to_bytes(2, "big"), b"\xff\xff"):
        with pytest.raises(InputError, match="this is no row of ciphertexts"):
            key.check(row)
    key.check(made)
    key.check(b"")


def test_sums_are_opened_within_their_range():
    key = IdealEncryption()
    row = key.encrypt([0, 1, 3], COINS)
    assert key.marked_sums(row, 0, 3).tolist() == [0, 1, 3]
    assert key.marked_sums(row, 0, 2).tolist() == [0, 1, 3]
    assert key.marked_sums(row, 1, 3).tolist() == [4, 1, 3]
    assert key.bits(row[: 2 * key.entry_bytes]).tolist() == [0, 1]
    assert key.bits(row[:0]).dtype == np.uint8
    with pytest.raises(InputError, match="out of range"):
        key.bits(row)


def test_storage_keeps_the_last_state():
    storage = MemoryStorage()
    assert storage.read() is None
    storage.write(b"one")
    storage.write(b"other")
    assert storage.read() == b"other"


def test_the_device_is_that_of_user_0():
    promise = Promise(epsilon=Fraction(60))
    make = device_of(CountNonZero.planned(promise), promise, 2)
    told = []
    for users in ([0], [1], []):
        device = make(SeededCoins(3))
        before = device.state()
        device.update(users)
        device.update([])
        assert device.state() != before
        told.append(device.release().counts)
    assert told[1] == told[2] != told[0]

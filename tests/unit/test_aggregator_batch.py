"""What two servers add up of a batch: how many, which, and shares of their sums."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest

from panprivacy.devices.aggregator.batch import BatchBucket, read_shares, share_bytes
from panprivacy.devices.vdaf import MODULUS
from panprivacy.errors import InputError

NAMES = [b"a" * 16, b"b" * 16, b"c" * 16]
OUTPUTS = np.array([[1, MODULUS - 1], [2, 5], [4, 9]], np.uint64)


def of(*accepted):
    return BatchBucket.of(NAMES, OUTPUTS, np.array(accepted))


def test_accepted_reports_alone_are_added_up():
    batch = of(True, False, True)
    assert (batch.reports, batch.shares) == (2, (5, 8))
    digests = [sha256(NAMES[place]).digest() for place in (0, 2)]
    assert batch.checksum == bytes(a ^ b for a, b in zip(*digests, strict=True))
    assert of(False, False, False) == BatchBucket.empty(2)


def test_batches_join_modulo_the_field_in_any_order():
    one, other = of(True, False, False), of(False, True, True)
    assert one.combined(other) == other.combined(one) == of(True, True, True)
    assert one.combined(other).shares == (7, (MODULUS - 1 + 14) % MODULUS)
    assert one.combined(BatchBucket.empty(2)) == one


def test_a_batch_is_the_same_from_its_bytes():
    for batch in (of(True, True, False), BatchBucket.empty(3)):
        assert BatchBucket.read(bytes(batch)) == batch
    assert len(bytes(BatchBucket.empty(3))) == 8 + 32 + 3 * 8


def test_shares_are_elements_of_the_field_or_refused():
    assert read_shares(share_bytes([0, MODULUS - 1])) == (0, MODULUS - 1)
    assert read_shares(b"") == ()
    for damaged in (b"\x00" * 7, b"\x00" * 9, MODULUS.to_bytes(8, "little"), b"\xff" * 8):
        with pytest.raises(InputError, match="these are no shares of sums: they are damaged"):
            read_shares(damaged)

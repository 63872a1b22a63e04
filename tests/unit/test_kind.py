"""What all kinds of reports have in common: one bad ciphertext costs no other its value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.errors import InputError
from panprivacy.federated.count_nonzero import CountNonZero
from panprivacy.federated.kind import lenient
from panprivacy.federated.promise import Promise

SIZE = 2


def decrypt(row):
    """Two digits each, of which 99 is none."""
    values = [int(row[place : place + SIZE]) for place in range(0, len(row), SIZE)]
    if 99 in values:
        raise InputError("no value")
    return np.array(values, np.uint8)


@pytest.mark.parametrize(
    ("row", "values"),
    [
        (b"010203", [1, 2, 3]),
        (b"99", [0]),
        (b"0199", [1, 0]),
        (b"9901029904", [0, 1, 2, 0, 4]),
        (b"99" * 7, [0] * 7),
    ],
)
def test_what_cannot_be_read_is_0_and_the_others_are_themselves(row, values):
    found = lenient(decrypt, row, SIZE)
    assert found.tolist() == values
    assert found.dtype == np.int64


def test_a_bad_one_among_many_is_found_in_few_steps():
    calls = []

    def counting(row):
        calls.append(row)
        return decrypt(row)

    lenient(counting, b"01" * 700 + b"99" + b"02" * 323, SIZE)
    assert len(calls) <= 1 + 2 * 10


def test_a_promise_is_kept_up_to_its_delta():
    kind = CountNonZero(epsilon_0=Fraction(1))
    delta = Fraction(kind.delta(Fraction(1, 2), 1))
    assert kind.keeps(Promise(epsilon=Fraction(1, 2), delta=delta))
    assert not kind.keeps(Promise(epsilon=Fraction(1, 2), delta=delta * Fraction(99, 100)))

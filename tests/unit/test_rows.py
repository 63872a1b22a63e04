"""Rows of ciphertexts: taken apart, chosen from, and put together."""

from __future__ import annotations

import pytest

from panprivacy.devices.federated.rows import (
    CIPHERTEXT_BYTES,
    SHARED_BYTES,
    entries,
    row_of,
    selected,
)


def test_a_row_is_taken_apart_and_put_together():
    assert entries(b"aabbc", 2) == [b"aa", b"bb", b"c"]
    assert entries(b"", 2) == []
    assert row_of(entries(b"aabb", 2), [], [b"cc"]) == b"aabbcc"
    assert row_of() == b""


def test_each_entry_is_chosen_by_its_bit():
    zeros, ones = [b"a", b"b", b"c"], [b"A", b"B", b"C"]
    assert selected([0, 1, 0], zeros, ones) == b"aBc"
    for choices in ([0, 1], [0, 1, 0, 1]):
        with pytest.raises(ValueError, match="zip"):
            selected(choices, zeros, ones)


def test_a_ciphertext_is_two_points_and_shares_take_four_of_them():
    assert (CIPHERTEXT_BYTES, SHARED_BYTES) == (2 * 33, 4 * 66)

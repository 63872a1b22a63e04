"""The language of messages: numbers, parts with their lengths, and nothing behind the end."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from panprivacy.devices.aggregator.presentation import (
    UINT8,
    UINT16,
    UINT64,
    ByteReader,
    Fixed,
    Opaque,
    Rest,
    Struct,
    Within,
    decoded,
)
from panprivacy.errors import InputError


class Pair(NamedTuple):
    number: int
    word: bytes


PAIR = Struct(Pair, UINT16, Opaque(1))
EARLY, BEHIND = "the message ends too early", "the message goes on behind its end"


@pytest.mark.parametrize(
    ("codec", "value", "data"),
    [
        (UINT8, 255, b"\xff"),
        (UINT16, 258, b"\x01\x02"),
        (UINT64, 1, bytes(7) + b"\x01"),
        (Fixed(3), b"abc", b"abc"),
        (Opaque(2), b"abc", b"\x00\x03abc"),
        (Opaque(1), b"", b"\x00"),
        (Rest(UINT16), (1, 2), b"\x00\x01\x00\x02"),
        (Rest(UINT8), (), b""),
        (PAIR, Pair(7, b"ada"), b"\x00\x07\x03ada"),
        (Within(Opaque(1), PAIR), Pair(7, b""), b"\x03\x00\x07\x00"),
        (Within(Opaque(2), Rest(UINT8)), (5, 6), b"\x00\x02\x05\x06"),
    ],
)
def test_a_value_has_its_bytes_and_is_read_back_from_them_alone(codec, value, data):
    assert codec.write(value) == data
    assert decoded(codec, data) == value
    if not isinstance(codec, Rest):
        with pytest.raises(InputError, match=BEHIND):
            decoded(codec, data + b"\x00")
    if data and not isinstance(codec, Rest):
        with pytest.raises(InputError, match=f"{EARLY}|{BEHIND}"):
            decoded(codec, data[:-1])


def test_a_part_within_another_ends_with_it():
    within = Within(Opaque(1), UINT16)
    with pytest.raises(InputError, match=EARLY):
        decoded(within, b"\x01\x00")
    with pytest.raises(InputError, match=BEHIND):
        decoded(within, b"\x03\x00\x01\x02")


def test_a_part_may_have_to_have_something_in_it():
    assert decoded(Opaque(1, 1), b"\x01a") == b"a"
    with pytest.raises(InputError, match="a part of the message is empty that must not be"):
        decoded(Opaque(1, 1), b"\x00")


def test_there_are_so_many_parts_and_no_more():
    assert decoded(Rest(UINT8, 2), b"\x01\x02") == (1, 2)
    with pytest.raises(InputError, match="a message has at most 2 parts: send the others in"):
        decoded(Rest(UINT8, 2), b"\x01\x02\x03")


def test_values_and_parts_are_as_many():
    with pytest.raises(ValueError, match="zip"):
        PAIR.write((1,))


def test_a_source_gives_each_byte_once():
    source = ByteReader(b"abc")
    assert (source.take(2), source.is_empty) == (b"ab", False)
    with pytest.raises(InputError, match=EARLY):
        source.take(2)
    assert (source.take(1), source.is_empty, source.take(0)) == (b"c", True, b"")

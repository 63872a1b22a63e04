"""Payloads in points of the curve."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.devices.federated.embedding import PAYLOAD_BYTES, embed, extract
from panprivacy.errors import InputError


@given(st.binary(max_size=PAYLOAD_BYTES))
def test_a_payload_is_the_same_again(payload):
    point = embed(payload)
    assert len(point) == 33
    assert extract(point) == payload


@pytest.mark.parametrize("size", [0, 1, 30, 31])
@pytest.mark.parametrize("byte", [b"\x00", b"\x1e", b"\xff"])
def test_zeros_at_the_end_of_a_payload_stay(size, byte):
    payload = byte * size
    assert extract(embed(payload)) == payload
    assert embed(payload)[:1] == (b"\x02" if size == 31 else b"\x03")


def test_a_payload_beyond_a_point_is_refused():
    with pytest.raises(InputError, match="a point holds 31 bytes at most: split the payload"):
        embed(bytes(32))


@pytest.mark.parametrize("place", [1, 2, 31, 32])
def test_a_changed_point_holds_no_payload(place):
    point = bytearray(embed(b"ada"))
    point[place] ^= 1
    with pytest.raises(InputError, match="this point holds no payload"):
        extract(bytes(point))


@pytest.mark.parametrize("point", [b"", b"\x03", b"\x02" + bytes(32), embed(b"ada") + b"\x00"])
def test_what_is_no_point_of_a_payload_is_refused(point):
    with pytest.raises(InputError, match="this point holds no payload"):
        extract(point)


def test_the_first_counter_that_gives_a_point_is_taken():
    """So that a payload has one point: another counter is none of its own."""
    point = embed(b"ada")
    for counter in range(point[1] + 1, 256):
        with pytest.raises(InputError, match="holds no payload"):
            extract(point[:1] + bytes([counter]) + point[2:])

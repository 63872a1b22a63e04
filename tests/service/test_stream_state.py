"""The state of a stream as bytes: what is put together comes apart as it was."""

from __future__ import annotations

import io
import json
import struct
from datetime import UTC, datetime

import pytest

from panprivacy.errors import InputError
from panprivacy.service.outgoing import announcements, payment
from panprivacy.service.stream_state import OWN_BYTES, StreamState, packed
from panprivacy.statistics.header import Header, read_header
from tests.service.test_stream import make

PAID = bytes(range(payment.PACKED_BYTES))
SEEN = bytes(range(100, 100 + announcements.PACKED_BYTES))


def test_each_part_comes_back_as_it_was():
    own = packed(1_700_000_000, PAID, SEEN, b"waits", b"names")
    assert len(own) == OWN_BYTES + len(b"waits") + len(b"names")
    state = StreamState.of(own, b"inner", len(b"waits"))
    assert state == StreamState(
        datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), PAID, SEEN, b"waits", b"names", b"inner"
    )


def test_a_state_may_have_no_names_and_a_time_before_1970():
    state = StreamState.of(packed(-1, PAID, SEEN, b"", b""), b"", 0)
    assert state.holds_until == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert (state.names, state.inner) == (b"", b"")


@pytest.mark.parametrize("second", [2**62, -(2**62), 2**63 - 1, 10**12])
def test_a_state_of_no_time_is_refused(second):
    with pytest.raises(InputError, match="the state is damaged: no checkpoint was written then"):
        StreamState.of(packed(second, PAID, SEEN, b"", b""), b"", 0)


def test_seconds_are_in_8_bytes_before_all_else():
    assert packed(7, b"p", b"s", b"w", b"n") == struct.pack("<q", 7) + b"pswn"


def test_a_stream_does_not_go_on_from_a_state_of_no_time(store, clock):
    stream = make(store, clock)
    stream.states._holds_until = 2**62
    state = stream.state()
    with pytest.raises(InputError, match="the state is damaged"):
        make(store, clock).resume(state)


def test_a_state_of_before_releases_could_wait_is_refused_by_its_format(store, clock):
    stream = make(store, clock)
    public = read_header(io.BytesIO(stream.state())).public()
    del public["format"]
    old = Header(json.dumps(public, sort_keys=True).encode(), 0).packed()
    with pytest.raises(InputError) as refused:
        stream.check_state(old)
    assert str(refused.value) == "the state is of format 1, and this is 2"

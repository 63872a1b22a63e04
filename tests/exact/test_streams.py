"""Short streams with their public steps."""

from __future__ import annotations

from panprivacy.audit import ANNOUNCE, RELEASE
from panprivacy.audit.neighbours import short_streams


def test_short_streams_have_every_order_of_their_public_steps():
    streams = list(short_streams([[0]], 2, releases=1, announced=1))
    assert [[0], RELEASE, ANNOUNCE] in streams
    assert [ANNOUNCE, [0], RELEASE, [0]] in streams
    assert len(streams) == 3 * 2 + 12
    assert len({repr(stream) for stream in streams}) == len(streams)

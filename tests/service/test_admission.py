"""Room for requests and their bodies."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.service.incoming import admission
from panprivacy.service.incoming.admission import Admission, Room, Sender
from panprivacy.service.incoming.problems import Problem
from tests.service.asking import chunks, client_in, refused


def test_more_than_there_is_room_for_comes_again(tmp_path):
    with client_in(tmp_path, "max_body_bytes = 800\nmax_waiting_bytes = 2400") as client:
        client.engine.admission._bytes.hold(Sender("ingest", "visits"), 400)
        before = client.state
        answer = client.send(bytes(408))
        assert refused(answer, 429) == "too much is under way; come again"
        assert answer.headers["Retry-After"] == "1"
        refused(client.send(chunks(400, 8)), 429)
        assert client.state == before
        for body in (bytes(400), chunks(400)):
            assert client.send(body).status_code == 202
        assert client.send(bytes(640), role="visits").status_code == 202
        client.engine.admission._bytes.hold(Sender("ingest", "visits"), -400)
        assert client.send(bytes(800)).status_code == 202
        assert holds_nothing(client.engine.admission)


def holds_nothing(door):
    """Nobody is let in, and nothing is known of who was."""
    return not (door._requests._held or door._bytes._held)


def test_there_is_room_for_so_many_requests(monkeypatch):
    monkeypatch.setattr(admission, "_MOST_REQUESTS", 3)
    door = Admission(10, 100, 1)
    one, other = Sender("one", "visits"), Sender("other", "visits")
    with door.request(one):
        with pytest.raises(Problem) as refusal, door.request(one):
            pass
        assert refusal.value.status == 429
        with pytest.raises(Problem), door.request(other):  # half of two is left to be shared
            pass
    with door.request(other):
        pass
    assert holds_nothing(door)


SENDERS = [Sender(token, stream) for token in "ab" for stream in "xyz"]


@given(st.lists(st.tuples(st.sampled_from(SENDERS), st.integers(1, 400)), max_size=60))
def test_nobody_fills_the_room(wanted):
    """Whatever some take, a further token finds room, and there is never more than there is."""
    room, held = Room(1_000), Counter()
    for sender, size in wanted:
        with suppress(Problem):
            room.check(sender, size)
            room.hold(sender, size)
            held[sender] += size
    token = Counter({name: sum(held[one] for one in SENDERS if one.token == name) for name in "ab"})
    assert max(held.values(), default=0) <= 333
    assert max(token.values()) <= 500
    assert held.total() <= 750
    room.check(Sender("c", "x"), (1_000 - held.total()) // 3)
    for sender, size in held.items():
        room.hold(sender, -size)
    assert not room._held


@pytest.mark.long
def test_a_slow_body_gives_its_room_back(tmp_path):
    async def stalled():
        yield bytes(8)
        await asyncio.sleep(30)

    with client_in(tmp_path, 'timeout = "1s"') as client:
        before = client.state
        assert refused(client.send(stalled()), 408) == "the body did not arrive within 1 seconds"
        assert client.state == before
        assert holds_nothing(client.engine.admission)

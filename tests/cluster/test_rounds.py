"""Rounds of sending: each body is told of once, whatever becomes of the others."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from panprivacy.cluster import rounds
from panprivacy.cluster.broker import BrokerError, LostError
from panprivacy.cluster.envelopes import Opener
from panprivacy.cluster.rounds import Rounds
from panprivacy.cluster.routing import Router


class Broker:
    """Fails as often as a test says."""

    most_message = 1 << 16

    def __init__(self, *errors):
        self.errors, self.published = list(errors), []

    def publish(self, messages):
        if self.errors:
            raise self.errors.pop(0)
        self.published.append(messages)
        return ["position"] * 2


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(rounds, "_PAUSE", 0.001)
    keys = [Opener() for _ in range(2)]
    queues = [SimpleNamespace(stream="visits", subject=f"visits.{shard}") for shard in range(2)]

    def make(*errors):
        heard = []
        publics = [key.public for key in keys]
        router = Router(2, bytes(16), numbered=False)
        broker = Broker(*errors)
        sending = Rounds(broker, queues, router, 0, lambda: publics, heard.append)
        return sending, broker, heard

    return make


BATCH = [pa.record_batch({"user": ["ada", "grace"]})]


def ended(sending):
    """All rounds, the last one after it was told to stop."""
    sending.stop()
    sending._run()


def test_a_round_goes_to_every_shard_whether_or_not_anything_came(made):
    sending, broker, heard = made()
    body = sending.put(BATCH, None)
    ended(sending)
    assert body.result(0) is None
    (messages,) = broker.published
    assert [queue.subject for queue, _ in messages] == ["visits.0", "visits.1"]
    assert len({len(sealed) for _, sealed in messages}) == 1
    assert heard == [["position"] * 2]


def test_what_fails_for_a_while_is_sent_once(made):
    sending, broker, heard = made(BrokerError("away"), BrokerError("away"))
    body = sending.put(BATCH, b"name")
    sending._send(sending._bodies)
    assert body.result(0) is None
    assert len(broker.published) == 1
    assert [type(one) for one in heard] == [BrokerError, BrokerError, list]


@pytest.mark.parametrize("stopping", [False, True])
def test_what_is_lost_or_stopped_is_not_tried_again(made, stopping):
    error = BrokerError("away") if stopping else LostError("lost")
    sending, broker, _ = made(error, BrokerError("never asked"))
    body = sending.put(BATCH, None)
    if stopping:
        sending.stop()
    sending._send(sending._bodies)
    assert body.exception(0) is error
    assert body.exception(0).__traceback__ is None
    assert len(broker.errors) == 1


def test_a_bad_body_does_not_spoil_the_others(made):
    sending, *_ = made()
    bad = sending.put([pa.record_batch({"user": [None]})], None)
    good = sending.put(BATCH, None)
    sending._send(sending._bodies)
    assert good.result(0) is None
    assert bad.done()


def test_who_comes_after_the_end_is_refused(made):
    sending, *_ = made()
    sending.stop()
    with pytest.raises(BrokerError, match="this has stopped sending"):
        sending.put(BATCH, None)

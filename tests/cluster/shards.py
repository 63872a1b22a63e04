"""Shards of one stream without Ray, and what is sent to them."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa

from panprivacy.cluster.envelopes import seal
from panprivacy.cluster.messages import Round
from panprivacy.cluster.queues import Position, Queue
from panprivacy.cluster.routing import Router
from panprivacy.cluster.shard import ShardStream
from panprivacy.privacy.coins import SystemCoins
from panprivacy.service.config.stream import IdKind, StreamConfig
from panprivacy.statistics.merging import Merger
from panprivacy.tables.slices import Slice

NAME = "test"
"""Of the cluster."""
USERS = 200
KEY = bytes(range(16))
BEGAN, NEXT, LATER = 1_000.0, 2_000.0, 3_000.0
MOST = 1 << 16


def planned(**given):
    """So much privacy loss that counts are exact, with a probability of 1 - 1e-12."""
    named = {
        "stat": ({"name": "incidence", "universe": USERS, "bound": 3},),
        "ids": IdKind.integers,
        "epsilon": Fraction(400),
        "window": "1h",
        "retries": 16,
        **given,
    }
    return StreamConfig(**named)


def queue(shard, shards=2):
    return Queue(NAME, "visits", shards, shard)


def make(shard=0, shards=2, *, key=KEY, began=BEGAN, **given):
    return ShardStream(queue(shard, shards), planned(**given), Slice(shard, shards, key), began)


def batch(users):
    return pa.record_batch({"user": pa.array(users, pa.int64())})


def sealed(publics, users, name=None):
    """A message to each shard, as a gateway sends them.

    Args:
        publics: the keys of all shards.
        users: of one body; a list of bodies with a name each if it is a dictionary.
        name: of the body.
    """
    shards = len(publics)
    sent = Round(Router(shards, KEY, numbered=True), 0, MOST)
    bodies = users if isinstance(users, dict) else {name: users}
    for each, ids in bodies.items():
        sent.add([batch(ids)], each)
    (plains,) = sent.pack()
    return [
        seal(plain, public, queue(shard, shards).subject)
        for shard, (plain, public) in enumerate(zip(plains, publics, strict=True))
    ]


def at(sequence, born=1):
    return Position(born, sequence)


def merged(contributions):
    """How many users came exactly once, twice, and three times or more."""
    answer = Merger(contributions).release(0.95, SystemCoins())
    return [round(one.value) for _, one in sorted(answer.answers().items(), key=str)][1:]


def key_of(*streams):
    return [one.report()["public"] for one in streams]


def resumed(state, **given):
    after = make(**given)
    after.resume(state)
    return after


def counted(stream, window=BEGAN, number=1):
    """How many users came exactly once, twice, and three times or more, in a cluster of one."""
    stream.contribute(window, number, last=True, next_start=window + 1_000.0)
    return merged([stream.contribution(window, number)])

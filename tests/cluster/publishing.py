"""Draws ids, publishes them to the shards of a stream, and writes them down: in a process alone.

Ray sends eight bytes that it has not written with each argument. So a process that is searched for
ids gets no argument from one that has them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.envelopes import seal
from panprivacy.cluster.messages import Round
from panprivacy.cluster.queues import Queue
from panprivacy.cluster.routing import Router
from panprivacy.privacy.coins import SystemCoins
from tests.cluster.shards import KEY, MOST

BODIES, EACH, BYTES = 4, 50, 32


def publish(url, name, stream, file, *keys):
    """Publish bodies of ids that are random bytes.

    What Ray itself writes is full of hex digits: eight of an id are found in it by chance in some
    runs of a hundred, eight random bytes in less than one of a million.
    """
    broker, router = Broker(url), Router(len(keys), KEY, numbered=False)
    queues = [Queue(name, stream, len(keys), shard) for shard in range(len(keys))]
    with Path(file).open("wb") as drawn:
        for _ in range(BODIES):
            ids = [SystemCoins().key(BYTES) for _ in range(EACH)]
            drawn.writelines(ids)
            sent = Round(router, 0, MOST)
            sent.add([pa.record_batch({"user": ids})])
            for plains in sent.pack():
                each = zip(queues, plains, keys, strict=True)
                broker.publish(
                    [
                        (one, seal(plain, bytes.fromhex(key), one.subject))
                        for one, plain, key in each
                    ]
                )
    broker.close()


if __name__ == "__main__":
    publish(*sys.argv[1:])

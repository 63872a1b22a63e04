"""The memory of a broker has no id and no hash of one, also not in what it has freed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.envelopes import Opener, seal
from panprivacy.cluster.messages import Round, read_message
from panprivacy.cluster.queues import Queue
from panprivacy.cluster.routing import Router
from tests.cluster.nats import NatsServer, found_nats
from tests.forensic.memory import Needles, needs_administrator, search_process

COUNT = 20_000


@needs_administrator
def test_a_broker_never_has_an_id():
    generator = np.random.default_rng()
    ids = generator.integers(1 << 48, 1 << 63, COUNT)
    router, openers = Router(2, b"sixteen letters!", numbered=False), (Opener(), Opener())
    with NatsServer(found_nats()) as server:
        broker = Broker(server.url, most_bytes=1 << 24)
        queues = [Queue("panprivacy", "visits", 2, shard) for shard in range(2)]
        sent = Round(router, 0, broker.most_message)
        rows = pa.RecordBatch.from_arrays([pa.array(ids)], names=["user"])
        hashes = np.array(router.hashed(rows, 0).column(0))
        needles = Needles.of(*(each.view(np.uint8).reshape(-1, 8) for each in (ids, hashes)))
        sent.add([rows])
        found = 0
        starts = [broker.open(queue) for queue in queues]
        for message in sent.pack():
            for queue, opener, plain in zip(queues, openers, message, strict=True):
                broker.publish([(queue, seal(plain, opener.public, queue.subject))])
        assert search_process(server.pid, needles) == 0  # in the queues
        for queue, opener, start in zip(queues, openers, starts, strict=True):
            for position, sealed in broker.pull(queue, start, 100, 1.0):
                for part in read_message(opener.open(sealed, queue.subject), 1):
                    found += sum(batch.num_rows for batch in part.batches)
                broker.remove(queue, position)
        assert found == COUNT
        assert search_process(server.pid, needles) == 0  # and after they were removed
        broker.publish([(queues[0], ids.tobytes())])
        assert search_process(server.pid, needles) >= COUNT  # as they would be without envelopes
        broker.remove(queues[0], broker.last(queues[0]))
        assert search_process(server.pid, needles) > 0  # it does not overwrite what it frees
        broker.close()

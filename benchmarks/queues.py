"""How many ids a second go through a queue: `python -m benchmarks.queues`.

Rounds for one shard are packed, sealed, published to a NATS server that is started here, pulled,
opened and read. Seconds are of the processor: of this process for each step, and of the server for
all. The script exits with 1 where messages of 10,000 ids miss the rate.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.cluster.nats import NatsServer, found_nats

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.envelopes import Opener, Sealed, seal
from panprivacy.cluster.messages import Round, read_message
from panprivacy.cluster.queues import START, Position, Queue
from panprivacy.cluster.routing import Router

SIZES = {10_000: 1_000, 1_000: 2_000, 100: 4_000}
"""Messages of each number of ids."""
TOGETHER = 50
RATE = 3e6
QUEUE_BYTES = 256 << 20
STEPS = ("pack", "seal", "publish", "pull", "open", "read")


class Queued:
    """A queue of a server, and both its ends.

    Args:
        server: has it.
        ids: in a message.
    """

    def __init__(self, server: NatsServer, ids: int) -> None:
        self.broker = Broker(server.url, most_bytes=QUEUE_BYTES)
        self.queue = Queue("panprivacy", f"ids{ids}", 1, 0)
        self.broker.open(self.queue)
        self.most = self.broker.most_message
        self.opener = Opener()
        self.router = Router(1, b"sixteen letters!", numbered=False)
        column = pa.array(np.random.default_rng(1).integers(1 << 62, size=ids))
        self.batch = pa.RecordBatch.from_arrays([column], names=["user"])
        self.seconds = dict.fromkeys(STEPS, 0.0)
        self.after = START

    def timed(self, step: str, work: Callable[[], list]) -> list:
        """What comes of a step, and its seconds added up."""
        began = time.process_time()
        done = work()
        self.seconds[step] += time.process_time() - began
        return done

    def round(self) -> int:
        """Send some messages through; how many ids came out."""
        subject, public = self.queue.subject, self.opener.public
        plain = self.timed("pack", lambda: [self.packed() for _ in range(TOGETHER)])
        sealed = self.timed("seal", lambda: [seal(one, public, subject) for one in plain])
        messages = [(self.queue, one) for one in sealed]
        self.timed("publish", lambda: self.broker.publish(messages))
        pulled: list[tuple[Position, Sealed]] = []
        while len(pulled) < TOGETHER:
            pulled += self.timed(
                "pull", lambda: self.broker.pull(self.queue, self.after, TOGETHER, 1.0)
            )
            self.after = pulled[-1][0]
        opened = self.timed("open", lambda: [self.opener.open(one, subject) for _, one in pulled])
        parts = self.timed("read", lambda: [list(read_message(one, 1)) for one in opened])
        self.broker.remove(self.queue, self.after)
        return sum(batch.num_rows for (part,) in parts for batch in part.batches)

    def packed(self) -> bytearray:
        """A message."""
        one = Round(self.router, 0, self.most)
        one.add([self.batch])
        ((plain,),) = one.pack()
        return plain


def server_seconds(server: NatsServer) -> float:
    """Of the processor, of a server since it began."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Print a table; 1 where the rate is missed."""
    missed = False
    print("ids a message  million ids/s  messages/s  microseconds a message:", *STEPS, "(server)")
    with NatsServer(found_nats()) as server:
        for ids, messages in SIZES.items():
            one = Queued(server, ids)
            one.round()  # connects, and compiles
            one.seconds, began = dict.fromkeys(STEPS, 0.0), server_seconds(server)
            count = sum(one.round() for _ in range(messages // TOGETHER))
            if count != ids * messages:
                print("ids were lost")
                return 1
            total, other = sum(one.seconds.values()), server_seconds(server) - began
            each = [f"{1e6 * one.seconds[step] / messages:.0f}" for step in STEPS]
            rates = f"{count / total / 1e6:.2f}  {messages / total:,.0f}"
            print(f"{ids:,}  {rates}  {' '.join(each)} ({1e6 * other / messages:.0f})")
            missed |= ids == max(SIZES) and count / total < RATE
            one.broker.close()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

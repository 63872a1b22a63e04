"""Streams that are counted by several machines: shards on Ray, with queues in NATS.

A program that sends to a cluster needs `Publisher` alone.

It imports the service and everything below; `actors` is the one module that imports Ray.
No statistic and no rule of privacy of its own comes here.
"""

from panprivacy.cluster.publisher import Publisher
from panprivacy.cluster.queues import BrokerError, QueueFullError

__all__ = ["BrokerError", "Publisher", "QueueFullError"]

"""Streams that are counted by several machines: shards on Ray, fed by queues in NATS.

A program that sends to a cluster needs `Publisher` alone.
"""

from panprivacy.cluster.publisher import Publisher
from panprivacy.cluster.queues import BrokerError, QueueFullError

__all__ = ["BrokerError", "Publisher", "QueueFullError"]

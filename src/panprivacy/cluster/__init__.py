"""Streams that are counted by several machines: shards on Ray, fed by queues in NATS.

A program that sends to a cluster needs `Publisher` alone.
"""

from panprivacy.cluster.broker import BrokerError, QueueFullError
from panprivacy.cluster.publisher import Publisher

__all__ = ["BrokerError", "Publisher", "QueueFullError"]

"""A queue in which senders take turns: who sends much waits for itself, and others do not."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """A queue for each sender; one item of each is taken in turn, by any number of threads.

    An item waits for those of its own sender, and for one of each other sender before each of
    them. Of who has nothing in the queue, nothing is known.
    """

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[Item]] = OrderedDict()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, sender: str, item: Item) -> None:
        """Add an item behind the others of its sender."""
        with self._changed:
            self._queues.setdefault(sender, deque()).append(item)
            self._changed.notify()

    def get(self) -> Item | None:
        """Take the next item, once there is one; None if the queue is closed and empty."""
        with self._changed:
            while not self._queues:
                if self._closed:
                    return None
                self._changed.wait()
            sender, items = self._queues.popitem(last=False)
            item = items.popleft()
            if items:
                self._queues[sender] = items  # behind all others
            return item

    def close(self) -> None:
        """End whoever waits for an item, once all are taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

"""Fair queue: senders take turns, so a sender with many items delays only itself."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """A queue for each sender; one item of each is taken in turn, by any number of threads.

    An item waits for those of its own sender, and for one of each other sender before each of them.
    Nothing is stored about senders without items in the queue.
    """

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[Item]] = OrderedDict()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, sender: str, item: Item) -> None:
        """Add an item after the others of its sender."""
        with self._changed:
            self._queues.setdefault(sender, deque()).append(item)
            self._changed.notify()

    def get(self) -> Item | None:
        """Return the next item, once there is one; None if the queue is closed and empty."""
        with self._changed:
            while not self._queues:
                if self._closed:
                    return None
                self._changed.wait()
            sender, items = self._queues.popitem(last=False)
            item = items.popleft()
            if items:
                self._queues[sender] = items  # after all others
            return item

    def close(self) -> None:
        """End all waiting calls of `get`, once all items are taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

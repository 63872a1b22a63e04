"""What the shards of one stream are asked, once or until it is on the disk."""

from __future__ import annotations

import math
import time
from concurrent.futures import Future
from typing import Any, Final

from panprivacy.cluster.shards import Shards

_AGAIN: Final = 1.0
"""Seconds until a shard is asked again."""


class Asking:
    """Asks shards about one stream, and knows what became of it; for one thread.

    Args:
        stream: its name.
        shards: count.
    """

    def __init__(self, stream: str, shards: Shards) -> None:
        self._stream, self._shards = stream, shards
        self._asked: dict[tuple[Any, ...], tuple[float, Future[Any]]] = {}

    def now(self, shard: int, what: str, *arguments: Any) -> Future[Any]:
        """Ask a shard, whatever it was asked before; safe for several threads."""
        return self._shards.ask(shard, what, self._stream, *arguments)

    def once(self, key: tuple[Any, int], what: str, *arguments: Any) -> Future[Any] | None:
        """Ask a shard, unless it was asked; one that failed, again after a while.

        Returns:
            What becomes of it.
        """
        since, asked = self._asked.get((*key, what), (-math.inf, None))
        now = time.monotonic()
        failed = asked is not None and asked.done() and asked.exception() is not None
        if asked is None or (failed and now >= since + _AGAIN):
            asked = self.now(key[1], what, *arguments)
            self._asked[(*key, what)] = now, asked
        return asked

    def again(self, key: tuple[Any, int], what: str, *arguments: Any) -> None:
        """Ask a shard, and after a while once more: what it did was not on the disk, then."""
        since, asked = self._asked.get((*key, what), (-math.inf, None))
        if asked is not None and asked.done() and time.monotonic() >= since + _AGAIN:
            del self._asked[(*key, what)]
        self.once(key, what, *arguments)

    def forget(self, key: tuple[Any, int]) -> None:
        """Know no more what a shard was asked under a key."""
        for asked in [one for one in self._asked if one[:2] == key]:
            del self._asked[asked]

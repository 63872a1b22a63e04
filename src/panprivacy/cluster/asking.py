"""Calls to the shards of one stream: once, or repeated until the effect is on the disk."""

from __future__ import annotations

import math
import time
from concurrent.futures import Future
from typing import Any, Final

from panprivacy.cluster.shards import Shards

_AGAIN: Final = 1.0
"""Seconds until a call to a shard is repeated."""


class Asking:
    """Client that calls shards about one stream and remembers the outcomes; for one thread.

    Args:
        stream: the name of the stream.
        shards: the shards.
    """

    def __init__(self, stream: str, shards: Shards) -> None:
        self._stream, self._shards = stream, shards
        self._asked: dict[tuple[Any, ...], tuple[float, Future[Any]]] = {}

    def now(self, shard: int, what: str, *arguments: Any) -> Future[Any]:
        """Call a shard, regardless of earlier calls; thread-safe."""
        return self._shards.ask(shard, what, self._stream, *arguments)

    def once(self, key: tuple[Any, int], what: str, *arguments: Any) -> Future[Any] | None:
        """Call a shard unless it was called under this key; repeat a failed call after a pause.

        Returns:
            The future of the call.
        """
        since, asked = self._asked.get((*key, what), (-math.inf, None))
        now = time.monotonic()
        failed = asked is not None and asked.done() and asked.exception() is not None
        if asked is None or (failed and now >= since + _AGAIN):
            asked = self.now(key[1], what, *arguments)
            self._asked[(*key, what)] = now, asked
        return asked

    def again(self, key: tuple[Any, int], what: str, *arguments: Any) -> None:
        """Call a shard, and repeat the call after a pause: its effect was not yet on the disk."""
        since, asked = self._asked.get((*key, what), (-math.inf, None))
        if asked is not None and asked.done() and time.monotonic() >= since + _AGAIN:
            del self._asked[(*key, what)]
        self.once(key, what, *arguments)

    def forget(self, key: tuple[Any, int]) -> None:
        """Forget the calls to a shard under a key."""
        for asked in [one for one in self._asked if one[:2] == key]:
            del self._asked[asked]

"""Interface of the coordinator to the shards, each in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from panprivacy.cluster.vault import ShardReport


class Shards(Protocol):
    """All shards, and the vault with their reports."""

    def ask(self, shard: int, what: str, *arguments: Any) -> Future[Any]:
        """Call a shard; the future fails with `StoreError` if the shard does not answer."""

    def report(self) -> Mapping[int, Mapping[str, ShardReport]]:
        """Return the last report of each shard about its stored state, by stream.

        Raises:
            GoneError: the vault does not answer, and never will.
            StoreError: it does not answer now.
        """

    def stop(self) -> None:
        """Make all shards seal their states, and end."""

    def close(self) -> None:
        """End all shards at once; no call to one is in progress when this returns."""

"""The shards, as the coordinator asks them: each in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from panprivacy.cluster.vault import Told


class Shards(Protocol):
    """All shards, and the vault with what they have told."""

    def ask(self, shard: int, what: str, *arguments: Any) -> Future[Any]:
        """Have a shard do something; `StoreError` comes of it if the shard does not answer."""

    def told(self) -> Mapping[int, Mapping[str, Told]]:
        """What each shard has told of the state that the vault has, by stream.

        Raises:
            GoneError: the vault does not answer, and will not any more.
            StoreError: it does not answer now.
        """

    def stop(self) -> None:
        """Have all shards seal what they have counted, and end."""

"""The shards, as the coordinator asks them: each in a process of its own, which Ray runs."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Protocol

import ray

from panprivacy.cluster.routing import Router
from panprivacy.cluster.vault import Told
from panprivacy.cluster.worker import WorkerConfig, asked
from panprivacy.cluster.worker import start as start_worker
from panprivacy.errors import PlanError
from panprivacy.service.config.config import Config

_STOP_SECONDS: Final = 15.0


class Shards(Protocol):
    """All shards, and the vault with what they have told."""

    def ask(self, shard: int, what: str, *arguments: Any) -> Future[Any]:
        """Have a shard do something; `StoreError` comes of it if the shard does not answer."""

    def told(self) -> Mapping[int, Mapping[str, Told]]:
        """What each shard has told of the state that the vault has, by stream.

        Raises:
            StoreError: the vault does not answer.
        """

    def stop(self) -> None:
        """Have all shards seal what they have counted, and end."""


class RayShards:
    """Shards that Ray runs, and starts again where they end.

    Args:
        config: of the cluster, with a checkpoint.
        router: of the shards.
        begins: when the first window of each stream begins, if there is no state of it.
        vault: as `worker.start_vault` gave it.
        names: of the batches that shards of another number have counted, as `Worker.names` tells.
    """

    def __init__(
        self,
        config: Config,
        router: Router,
        begins: Mapping[str, float],
        vault: Any,
        names: Mapping[str, bytes],
    ) -> None:
        if config.checkpoint is None:
            message = "a cluster needs [checkpoint]: a shard goes on from its sealed state"
            raise PlanError(message)
        self._vault = vault
        self._workers = [
            start_worker(
                WorkerConfig(
                    part=router.slice(shard),
                    streams=config.streams,
                    begins=begins,
                    cluster=config.cluster,
                    recipient=config.checkpoint.recipient,
                    every=config.checkpoint.every_seconds,
                    names=names,
                )
            )
            for shard in range(router.shards)
        ]
        self._threads = ThreadPoolExecutor(4 * router.shards, "panprivacy-shards")

    def ask(self, shard: int, what: str, *arguments: Any) -> Future[Any]:
        """As `Shards.ask`."""
        return self._threads.submit(asked, getattr(self._workers[shard], what), *arguments)

    def told(self) -> Mapping[int, Mapping[str, Told]]:
        """As `Shards.told`."""
        return {part.shard: told for part, (_, told) in asked(self._vault.told).items()}

    def stop(self) -> None:
        """As `Shards.stop`; who does not answer is ended, and goes on from its last state."""
        ending = [one.stop.remote() for one in self._workers]
        ray.wait(ending, num_returns=len(ending), timeout=_STOP_SECONDS)
        for one in self._workers:
            ray.kill(one)
        self._threads.shutdown(wait=False, cancel_futures=True)

"""What Ray runs: an actor for each shard, and one for the vault. Nothing else here knows Ray.

Ray starts an actor again when it has ended, on another node if its own is gone. Through Ray go the
configuration, sealed states, sealed contributions, positions and public keys. No event does, no
plain state, and no identity: whoever runs Ray, or reads what it writes, sees neither. Errors cross
as words of this package, without the frames that raised them.
"""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from panprivacy._kernels import compile_kernels
from panprivacy.cluster.leftovers import ended_with_this_process
from panprivacy.cluster.routing import Router
from panprivacy.cluster.vault import GoneError, SilentError, Told, Vault
from panprivacy.cluster.waiting import Patience
from panprivacy.cluster.worker import PATIENCE, Worker, WorkerConfig
from panprivacy.coins import SystemCoins
from panprivacy.errors import PanPrivacyError, PlanError, without_frames
from panprivacy.hygiene.protection import protect
from panprivacy.service.config.config import Config
from panprivacy.service.journal import write_to_stderr
from panprivacy.service.outgoing.records import StoreError
from panprivacy.slices import Slice
from panprivacy_launcher import hardened

_LONG_PATIENCE: Final = 30.0
"""Seconds in which an actor answers: longer than it waits for anything itself."""
_STOP_SECONDS: Final = 15.0
_PORT_SECONDS: Final = 5.0
_VAULT: Final = "panprivacy-vault"
"""Its name among the actors of this driver."""
_ASKING: Final = 4
"""Threads that wait for the answers of one shard."""
_CALLS: Final = 16
"""That may wait in an actor at the same time."""
_ASKS_FOR: Final = {"num_cpus": 0, "memory": 1}
"""A byte of memory: Ray puts an actor that asks for nothing on any node, wherever it belongs."""
_SECRET_BYTES: Final = 32
_LOCAL: Final = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
"""Of Ray on this machine, whose objects are small here."""


class RayShards:
    """Shards that Ray runs, and starts again where they end.

    They are spread evenly over the nodes that live now, and stay there: Ray starts a shard again on
    its node, and on another one only if that is gone.

    Args:
        config: of the cluster, with a checkpoint.
        router: of the shards.
        begins: when the first window of each stream begins, if there is no state of it.
        vault: as `start_vault` gave it.
        names: of the batches that shards of another number have counted, as `Worker.names` tells.

    Attributes:
        workers: the handles of the actors, by shard; they end with the process that has made this.
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
        self._vault, nodes = vault, _living_nodes()
        self.workers = [
            _actor(_Hardened, nodes[shard % len(nodes)], soft=True).remote(
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
        self._threads = [  # of each its own, so that one that does not answer holds up no other
            ThreadPoolExecutor(_ASKING, f"panprivacy-shard-{shard}")
            for shard in range(router.shards)
        ]

    def ask(self, shard: int, what: str, *arguments: Any) -> Future[Any]:
        """As `Shards.ask`."""
        return self._threads[shard].submit(asked, getattr(self.workers[shard], what), *arguments)

    def told(self) -> Mapping[int, Mapping[str, Told]]:
        """As `Shards.told`."""
        try:
            told = asked(self._vault.told)
        except SilentError:
            if _here() in _living_nodes():
                raise
            message = "Ray has ended on this machine: start panprivacy cluster again"
            raise GoneError(message) from None
        return {part.shard: told for part, (_, told) in told.items()}

    def stop(self) -> None:
        """As `Shards.stop`; who does not answer is ended, and goes on from its last state."""
        ending = [one.stop.remote() for one in self.workers]
        ray.wait(ending, num_returns=len(ending), timeout=_STOP_SECONDS)
        for one in self.workers:
            ray.kill(one)
        for threads in self._threads:
            threads.shutdown(wait=False, cancel_futures=True)


class _Hardened(Worker):
    """A worker in a process of its own, whose memory is kept clean."""

    def __init__(self, config: WorkerConfig) -> None:
        protect()
        write_to_stderr()
        compile_kernels()
        super().__init__(config, _RemoteVault(), _end_process)


class _RemoteVault:
    """The vault, from another process."""

    def begin(self, part: Slice) -> tuple[int, bytes | None]:
        """As `Vault.begin`, for this node."""
        return self._asked("begin", part, _here())

    def keep(
        self, part: Slice, incarnation: int, number: int, sealed: bytes, told: Mapping[str, Told]
    ) -> None:
        """As `Vault.keep`."""
        self._asked("keep", part, incarnation, number, sealed, told)

    def _asked(self, method: str, *arguments: Any) -> Any:
        """What the vault answers; see `asked`."""
        try:
            vault = _vault()
        except ValueError:  # there is none of that name
            message = "the vault does not answer"
            raise SilentError(message) from None
        return asked(getattr(vault, method), *arguments, patience=PATIENCE)


def check_address(address: str | None) -> None:
    """Refuse what is no address of a cluster of Ray that this machine can have joined.

    Raises:
        PlanError: it is one of another kind, as those of Ray Client, or nothing answers there.
    """
    if address is None or address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        message = "--address takes auto or HOST:PORT: this machine has the vault and the releases, "
        message += "so join it to the cluster of Ray first, with ray start --address=HOST:PORT"
        raise PlanError(message)
    try:  # Ray itself would try for minutes
        socket.create_connection((host.strip("[]"), int(port)), _PORT_SECONDS).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "it does not answer"
        message = f"Ray cannot be reached at {address}: {reason}"
        raise PlanError(message) from None


@contextmanager
def connected(address: str | None, patience: Patience) -> Iterator[None]:
    """A connection to Ray, which tells nobody of itself.

    A Ray that is started here listens on all addresses of the machine, and runs what it is given.
    So it listens only to who has its token, which is in the memory of its processes alone.

    Args:
        address: of a cluster of Ray that this machine has joined; None to start one here.
        patience: with a Ray that does not answer yet.

    Raises:
        PlanError: there is none at the address, or this machine is not one of its nodes.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options = {}
    if address is None:
        options = _LOCAL
        os.environ["RAY_AUTH_TOKEN"] = SystemCoins().key(_SECRET_BYTES).hex()

    def begin() -> None:
        ray.shutdown()  # what an attempt before has left
        ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **options)

    with ended_with_this_process():
        try:
            patience.wait_for(begin, *([RuntimeError] if address is None else []))
        except (OSError, RuntimeError, ValueError) as error:
            message = f"Ray cannot be reached: {str(error).splitlines()[0]}"
            raise PlanError(message) from None
        try:
            yield
        finally:
            ray.shutdown()


def start_vault(path: str) -> Any:
    """Have Ray run the vault, on this node and no other.

    Args:
        path: of the checkpoint in the configuration.

    Returns:
        The handle of the actor.
    """
    return _actor(Vault, _here(), soft=False, name=_VAULT).remote(path)


def asked(method: Any, *arguments: Any, patience: float = _LONG_PATIENCE) -> Any:
    """What an actor of Ray answers.

    Args:
        method: of its handle.
        arguments: public, or sealed.
        patience: seconds in which it answers.

    Raises:
        PanPrivacyError: what it raises.
        SilentError: it does not answer.
    """
    try:
        return ray.get(method.remote(*arguments), timeout=patience)
    except RayTaskError as error:
        cause = error.cause
        if isinstance(cause, PanPrivacyError):
            raise without_frames(cause) from None
        message = f"a process of Ray failed with {type(cause).__name__}"
        raise StoreError(message) from None
    except (RayError, TimeoutError) as error:
        message = f"a process of Ray does not answer ({type(error).__name__})"
    raise SilentError(message)


def _actor(kind: type, node: str, *, soft: bool, **options: Any) -> Any:
    """An actor that Ray starts again on its node, or on another one if it may and that is gone."""
    return ray.remote(kind).options(
        **_ASKS_FOR,
        max_restarts=-1,
        max_concurrency=_CALLS,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=soft),
        runtime_env={"env_vars": hardened({})},
        **options,
    )


def _living_nodes() -> list[str]:
    """Those of the cluster of Ray, by their ids in order."""
    return sorted(one["NodeID"] for one in ray.nodes() if one["Alive"])


def _here() -> str:
    """The id of the node of this process."""
    return str(ray.get_runtime_context().get_node_id())


@functools.cache
def _vault() -> Any:
    """The handle of the vault, by name: a handle that is handed over need not outlive a restart."""
    return ray.get_actor(_VAULT)


def _end_process() -> None:
    """At once: what this process knows is another one's, and Ray starts no second one for it."""
    os._exit(1)

"""Ray actors: one for each shard, and one for the vault. No other module uses Ray.

Ray restarts an actor that has ended, on another node if its own node is gone. Ray transports the
configuration, sealed states, sealed contributions, positions and public keys. It transports no
event, no plain state and no identity: the operator of Ray, and a reader of what Ray writes, see
none of them. Errors cross as messages of this package, without the frames that raised them.
"""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from panprivacy.cluster.leftovers import ended_with_this_process
from panprivacy.cluster.routing import Router
from panprivacy.cluster.vault import GoneError, ShardReport, SilentError, Vault
from panprivacy.cluster.waiting import Patience
from panprivacy.cluster.worker import PATIENCE, Worker, WorkerConfig
from panprivacy.errors import PanPrivacyError, PlanError, without_frames
from panprivacy.ground.hygiene.protection import protect
from panprivacy.ground.kernels import compile_kernels
from panprivacy.privacy.coins import SystemCoins
from panprivacy.service.config.config import Config
from panprivacy.service.journal import write_to_stderr
from panprivacy.service.outgoing.records import StoreError
from panprivacy.tables.slices import Slice
from panprivacy_launcher import hardened

_LONG_PATIENCE: Final = 30.0
"""Seconds to wait for the answer of an actor: longer than an actor waits for anything itself."""
_STOP_SECONDS: Final = 15.0
_PORT_SECONDS: Final = 5.0
_VAULT: Final = "panprivacy-vault"
"""Name of the vault among the actors of this driver."""
_ASKING: Final = 4
"""Number of threads that wait for the answers of one shard."""
_CALLS: Final = 16
"""Number of calls that may wait in an actor at the same time."""
_ASKS_FOR: Final = {"num_cpus": 0, "memory": 1}
"""One byte of memory: Ray may put an actor that requests nothing on any node."""
_SECRET_BYTES: Final = 32
_LOCAL: Final = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
"""Options of a Ray that runs on this machine; its objects are small."""


class RayShards:
    """Shards that Ray runs, and restarts when they end.

    They are spread evenly over the living nodes and stay there: Ray restarts a shard on its own
    node, and on another node only if its own is gone.

    Args:
        config: the configuration of the cluster, with a checkpoint.
        router: the router of the shards.
        begins: start of the first window of each stream, used if the stream has no state.
        vault: the handle that `start_vault` returned.
        names: sealed names of the batches counted before the number of shards changed, by stream;
            see `Worker.names`.

    Attributes:
        workers: the handles of the actors, by shard; the actors end with the process that made
            this.
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
        self._threads = [  # one pool each: a silent shard delays no other
            ThreadPoolExecutor(_ASKING, f"panprivacy-shard-{shard}")
            for shard in range(router.shards)
        ]

    def ask(self, shard: int, what: str, *arguments: Any) -> Future[Any]:
        """Call a shard; see `Shards.ask`."""
        return self._threads[shard].submit(
            call_actor, getattr(self.workers[shard], what), *arguments
        )

    def report(self) -> Mapping[int, Mapping[str, ShardReport]]:
        """Return what the shards have reported; see `Shards.report`."""
        try:
            report = call_actor(self._vault.report)
        except SilentError:
            if _here() in _living_nodes():
                raise
            message = "Ray has ended on this machine: start panprivacy cluster again"
            raise GoneError(message) from None
        return {part.shard: report for part, (_, report) in report.items()}

    def stop(self) -> None:
        """Stop all shards; one that does not answer is killed, and resumes from its last state."""
        try:
            ending = [one.stop.remote() for one in self.workers]
            ray.wait(ending, num_returns=len(ending), timeout=_STOP_SECONDS)
        finally:
            self.close()

    def close(self) -> None:
        """Kill the shards that still run, and wait for the calls in progress.

        A call in progress when Ray is shut down would never end, and neither would the process.
        """
        for one in self.workers:
            with suppress(RayError, RuntimeError):  # it, or Ray, has ended
                ray.kill(one)
        for threads in self._threads:
            threads.shutdown(cancel_futures=True)


class _Hardened(Worker):
    """Worker in a process of its own, with memory protection."""

    def __init__(self, config: WorkerConfig) -> None:
        protect()
        write_to_stderr()
        compile_kernels()
        super().__init__(config, _RemoteVault(), _end_process)


class _RemoteVault:
    """The vault, called from another process."""

    def begin(self, part: Slice) -> tuple[int, bytes | None]:
        """Start an incarnation on this node; see `Vault.begin`."""
        return self._call("begin", part, _here())

    def keep(
        self,
        part: Slice,
        incarnation: int,
        number: int,
        sealed: bytes,
        report: Mapping[str, ShardReport],
    ) -> None:
        """Store a sealed state; see `Vault.keep`."""
        self._call("keep", part, incarnation, number, sealed, report)

    def _call(self, method: str, *arguments: Any) -> Any:
        """Return the answer of the vault; see `call_actor`."""
        try:
            vault = _vault()
        except ValueError:  # there is no actor of that name
            message = "the vault does not answer"
            raise SilentError(message) from None
        return call_actor(getattr(vault, method), *arguments, patience=PATIENCE)


def check_address(address: str | None) -> None:
    """Check that the address is that of a Ray cluster that this machine can have joined.

    Raises:
        PlanError: the address is of another kind, such as Ray Client, or nothing answers there.
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
    """Connect to Ray, with usage reports disabled.

    A Ray started here listens on all addresses of the machine, and runs any code it is sent. So it
    accepts only clients with its token, which is only in the memory of its processes.

    Args:
        address: the address of a Ray cluster that this machine has joined; None to start one here.
        patience: how long to wait for a Ray that does not answer yet.

    Raises:
        PlanError: no cluster is at the address, or this machine is not one of its nodes.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options = {}
    if address is None:
        options = _LOCAL
        os.environ["RAY_AUTH_TOKEN"] = SystemCoins().key(_SECRET_BYTES).hex()

    def begin() -> None:
        ray.shutdown()  # the remains of an earlier attempt
        named = address or "local"
        try:
            ray.init(address=named, log_to_driver=False, logging_level="ERROR", **options)
        except (OSError, ValueError):  # permanent errors
            raise
        except Exception as error:  # noqa: BLE001 - Ray raises just that where it was too slow
            raise SilentError(str(error)) from None

    with ended_with_this_process():
        try:
            patience.wait_for(begin, *([SilentError] if address is None else []))
        except PlanError:
            raise
        except (OSError, SilentError, ValueError) as error:
            message = f"Ray cannot be reached: {str(error).splitlines()[0]}"
            raise PlanError(message) from None
        try:
            yield
        finally:
            ray.shutdown()


def start_vault(path: str) -> Any:
    """Start the vault as an actor on this node; Ray never moves it to another one.

    Args:
        path: path of the checkpoint in the configuration.

    Returns:
        The handle of the actor.
    """
    return _actor(Vault, _here(), soft=False, name=_VAULT).remote(path)


def call_actor(method: Any, *arguments: Any, patience: float = _LONG_PATIENCE) -> Any:
    """Call a method of a Ray actor and return its result.

    Args:
        method: a method of the actor's handle.
        arguments: public or sealed values.
        patience: seconds to wait for the result.

    Raises:
        PanPrivacyError: the method raised it.
        SilentError: the actor does not answer.
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
    """Define an actor that Ray restarts on its node, or, if `soft`, elsewhere once that is gone."""
    return ray.remote(kind).options(
        **_ASKS_FOR,
        max_restarts=-1,
        max_concurrency=_CALLS,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=soft),
        runtime_env={"env_vars": hardened({})},
        **options,
    )


def _living_nodes() -> list[str]:
    """Return the sorted ids of the living nodes of the Ray cluster."""
    return sorted(one["NodeID"] for one in ray.nodes() if one["Alive"])


def _here() -> str:
    """Return the id of the node of this process."""
    return str(ray.get_runtime_context().get_node_id())


@functools.cache
def _vault() -> Any:
    """Return the vault's handle, by name: a handle passed along need not survive a restart."""
    return ray.get_actor(_VAULT)


def _end_process() -> None:
    """End at once: another process has the state now, and Ray restarts no second one for it."""
    os._exit(1)

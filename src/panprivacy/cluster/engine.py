"""Construction of a coordinator and its gateway from a configuration."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.coordinator import Coordinator
from panprivacy.cluster.gateway import ClusterStream, Gateway
from panprivacy.cluster.marks import put_marks
from panprivacy.cluster.queues import Position, Queue
from panprivacy.cluster.record import RecordFile
from panprivacy.cluster.releaser import Releaser
from panprivacy.cluster.routing import Router
from panprivacy.cluster.shards import Shards
from panprivacy.cluster.vault import GoneError
from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.intake.programs.counting import Counting, numbered, reads_amounts
from panprivacy.service.batches import Reception
from panprivacy.service.config.config import CheckpointConfig, Config
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.engine import Engine, looked_after
from panprivacy.service.kept.pulse import Pulse
from panprivacy.service.outgoing.records import StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.statistics.abilities import TablePublishing
from panprivacy.statistics.overlaps.sketch import MOST_SHARDS

_MOST_SHARDS: Final = 1_000
_MOST_PUBLISHED: Final = 1 << 24
"""Bytes of tables that wait in the record of the coordinator."""
_AMOUNTS: Final = "unit= is for one machine: divide amounts before they are sent, and leave it out"
_PAUSE: Final = 0.05


class ClusterEngine(Engine):
    """Engine that sends incoming rows to the shards of a cluster, and makes its releases.

    Args:
        config: a configuration that passes `check`.
        file: path of the configuration, if its tokens are to be followed.
        store: the store of the releases.
        record: the record of the coordinator.
        broker: has the queues.
        shards: the shards, already started.

    Attributes:
        shards: the same.
    """

    def __init__(
        self,
        config: Config,
        file: Path | None,
        store: ReleaseStore,
        record: RecordFile,
        broker: Broker,
        shards: Shards,
    ) -> None:
        found, pulse = record.record, Pulse()
        self._patience = float(config.cluster.start_seconds)
        self.shards, self._record, self._broker, self._config = shards, record, broker, config
        self._queues = queues_of(config, found.shards)
        routers, receptions, countings = {}, {}, {}
        for name, stream in config.streams.items():
            counting = stream.make_counting(found.router(numbered=False).slice(0))
            countings[name], receptions[name] = counting, Reception(stream, counting)
            routers[name] = found.router(numbered=numbered(counting))
        for queue in itertools.chain.from_iterable(self._queues.values()):
            broker.open(queue)
        gateway = Gateway(broker, config.cluster.name, receptions, routers)
        self._releasers = {
            name: Releaser(
                name,
                stream,
                record,
                store,
                shards,
                routers[name],
                partial(put_marks, broker, self._queues[name]),
                patience=config.cluster.patience_seconds(stream.window_seconds),
                broken=pulse.broken,
            )
            for name, stream in config.streams.items()
        }
        streams = {
            name: ClusterStream(
                receptions[name],
                countings[name],
                gateway,
                self._releasers[name],
                store,
                exposed=config.cluster.identity_command is None,
            )
            for name in config.streams
        }
        tokens, looks = looked_after(config, file, store)
        self.coordinator = Coordinator(shards, list(self._releasers.values()), gateway, looks)
        super().__init__(config, store, pulse, streams, self.coordinator, tokens)

    def wait_for_shards(self) -> None:
        """Wait until all shards have started.

        Raises:
            PlanError: they have not started in time.
        """
        until = time.monotonic() + self._patience
        while time.monotonic() < until:
            try:
                if self.coordinator.look():
                    self._forget_names()
                    return
            except GoneError:
                raise
            except StoreError:  # the vault is still starting
                pass
            if troubles := self._troubles_of_beginning():
                raise PlanError(troubles)
            time.sleep(_PAUSE)
        message = f"not all shards have begun within {self._patience:g} seconds: give Ray more "
        message += "processors, or raise start_patience in [cluster]"
        raise PlanError(message)

    def finish(self, seconds: float | None = None) -> None:
        """Make all releases that are due, and have the shards forget their contributions.

        Nobody may send in the meantime: rows after the last cut would be in no release.

        Args:
            seconds: maximum duration; `start_patience` by default.

        Raises:
            PlanError: it takes too long; a shard or the store does not answer; or somebody sends.
                If somebody sent from the beginning, nothing has changed.
        """
        for name in self._queues:  # no publisher starts after this
            self._broker.tell(self._config.cluster.name, name, b"")
        before = {name: self._last_positions(name) for name in self._queues}
        self.wait_for_shards()
        self._check_quiet(before, "stop that first, and start this again")
        until = time.monotonic() + (self._patience if seconds is None else seconds)
        while True:
            self.coordinator.advance()
            if self.coordinator.gone is not None:
                raise self.coordinator.gone
            if not any(one.busy for one in self._releasers.values()):
                break
            if time.monotonic() > until:
                reasons = "; ".join(self.coordinator.troubles.values())
                message = f"the releases of {self._record.record.shards} shards cannot be made now"
                raise PlanError(f"{message}: {reasons}" if reasons else message)
            time.sleep(_PAUSE)
        cut = {
            name: [Position(cut.born, cut.sequence + 1) for cut in one.through]  # and the mark
            for name, one in self._releasers.items()
        }
        self._check_quiet(
            cut, "that counts in the next window of these shards, so start them once more"
        )

    def _check_quiet(self, known: Mapping[str, Sequence[Position]], advice: str) -> None:
        """Check that nothing was sent since the queues were at these positions."""
        for name, through in known.items():
            if self._last_positions(name) != list(through):
                message = f"somebody still sends to the {len(through)} shards of {name}: {advice}"
                raise PlanError(message)

    def _forget_names(self) -> None:
        """Forget the names of batches: the shards have started, so stored states have them."""
        if self._record.record.names:
            with self._record.changing() as record:
                record.names = {}

    def _last_positions(self, stream: str) -> list[Position]:
        return [self._broker.last(queue) for queue in self._queues[stream]]

    def _troubles_of_beginning(self) -> str:
        """Return why a shard cannot start, if one reports a reason."""
        for shard in range(self._record.record.shards):
            try:
                found: Mapping[str, str] = self.shards.ask(shard, "troubles").result(self._patience)
            except (PanPrivacyError, TimeoutError):
                continue
            if "beginning" in found:
                return f"shard {shard + 1} of {self._record.record.shards}: {found['beginning']}"
        return ""


def queues_of(config: Config, shards: int) -> dict[str, list[Queue]]:
    """Return the queues of each stream."""
    name = config.cluster.name
    return {
        stream: [Queue(name, stream, shards, shard) for shard in range(shards)]
        for stream in config.streams
    }


def check(config: Config, shards: int) -> CheckpointConfig:
    """Check that the configuration can be counted by this number of shards.

    Returns:
        The configuration of the checkpoint.

    Raises:
        PlanError: it cannot.
    """
    if not 1 <= shards <= _MOST_SHARDS:
        message = f"--shards must be 1 to {_MOST_SHARDS:,}"
        raise PlanError(message)
    if config.checkpoint is None:
        message = "a cluster needs [checkpoint]: a shard that starts again goes on from its sealed "
        message += "state"
        raise PlanError(message)
    slice_ = Router(shards, bytes(16), numbered=False).slice(0)
    for name, stream in config.streams.items():
        if stream.contribute is not None:
            message = f"streams.{name}: a cluster answers by itself: leave out contribute"
            raise PlanError(message)
        if stream.beacon is not None:
            message = f"streams.{name}: a cluster takes no beacon: leave it out, or count it with "
            message += "panprivacy serve"
            raise PlanError(message)
        try:
            counting = stream.make_counting(slice_)
            _check_published(stream, counting, shards)
            if reads_amounts(counting):
                raise PlanError(_AMOUNTS)
            counting.forget()
        except PanPrivacyError as error:
            message = f"streams.{name} cannot be counted in shards: {error}"
            raise PlanError(message) from None
    return config.checkpoint


def _check_published(stream: StreamConfig, counting: Counting, shards: int) -> None:
    """Check that the record of the coordinator can hold the tables that a window publishes."""
    plans = [one.plan for one in counting.statistics.values()]
    each = [len(one.blank_sketch.table) for one in plans if isinstance(one, TablePublishing)]
    size = sum(each) * len(stream.groups or (None,))
    if each and shards > MOST_SHARDS:
        message = f"a published table has {MOST_SHARDS} shards at most"
        raise PlanError(message)
    if size > _MOST_PUBLISHED:
        message = f"its published tables take {size:,} bytes, and a cluster publishes up to "
        message += f"{_MOST_PUBLISHED:,} in a window: take a smaller memory= or cells="
        raise PlanError(message)

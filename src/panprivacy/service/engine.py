"""The engine of a service: its parts, built from its configuration."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from panprivacy.errors import InputError
from panprivacy.ground.hygiene.wiping import traces_wiped
from panprivacy.ground.kernels import compile_kernels
from panprivacy.service.config.config import Config
from panprivacy.service.config.following import FollowedTokens
from panprivacy.service.config.tokens import Tokens
from panprivacy.service.incoming.admission import Admission
from panprivacy.service.incoming.body_counter import BodyCounter
from panprivacy.service.incoming.listening import DatagramThread, InputThread
from panprivacy.service.incoming.unpacking import Unpacker
from panprivacy.service.incoming.warming import warm_up
from panprivacy.service.journal import JOURNAL, Event
from panprivacy.service.kept.keeper import Keeper
from panprivacy.service.kept.pulse import Pulse
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.served import Keeping, Served
from panprivacy.service.stream import Stream
from panprivacy.statistics.checkpoint import Checkpoint
from panprivacy.statistics.containers import parted, resume_all

_SWEEP_SECONDS = 0.25

_FULL_COLLECTION = 20
"""Collections of younger garbage before all objects are scanned, in place of 10.

A scan delays all requests; it frees what connections leave behind that were closed since.
"""


class Engine:
    """Takes requests in, and has them counted, stored and released.

    Args:
        config: a configuration that was loaded.
        store: the release store.
        pulse: the detector of pauses.
        streams: the streams, by name.
        keeper: makes checkpoints and releases on a clock.
        tokens: the access tokens and their rights.

    Attributes:
        waiting: whether a checkpoint has to be brought before anything is taken in.
    """

    waiting = False

    def __init__(
        self,
        config: Config,
        store: ReleaseStore,
        pulse: Pulse,
        streams: Mapping[str, Served],
        keeper: Keeping,
        tokens: Tokens,
    ) -> None:
        server = config.server
        self.config, self.store, self.pulse = config, store, pulse
        self.streams, self.keeper, self.tokens = streams, keeper, tokens
        self.admission = Admission(
            server.max_body_bytes, server.max_waiting_bytes, server.timeout_seconds
        )
        self.bodies, self.unpacker = BodyCounter(streams.values()), Unpacker()
        self.sweeper = Sweeper()
        self._datagrams = DatagramThread(streams.values())
        self._input = InputThread(streams.values())

    def warm_up(self) -> None:
        """Run the slow first steps, such as compilation, before there are requests."""
        compile_kernels()
        for stream in self.config.streams.values():
            warm_up(stream)
        gc.collect()
        gc.freeze()  # these objects stay: to scan them takes longer than many requests
        gc.set_threshold(*gc.get_threshold()[:2], _FULL_COLLECTION)

    def begin(self) -> None:
        """Start the intake, the checkpoints and the releases.

        Raises:
            PlanError: a listener cannot listen.
        """
        self._datagrams.start()
        self.pulse.start()
        self.bodies.start()
        self.unpacker.start()
        self.waiting = False
        for stream in self.streams.values():
            stream.begin()
        self.keeper.start()
        self._input.start()

    def end(self) -> None:
        """Stop the intake; write the last checkpoint, or release the current counts."""
        if not self.waiting:
            self._input.stop()
            self._datagrams.stop()
            self.unpacker.stop()
            self.bodies.stop()
            self.keeper.stop()
            self.pulse.stop()
        self.store.close()

    async def on_disk(self, since: float) -> str | None:
        """Wait until the rows that were counted since a moment are on disk.

        Args:
            since: the moment, by `time.monotonic`.

        Returns:
            None, or the reason why they are not.
        """
        loop = asyncio.get_running_loop()
        told: asyncio.Future[str | None] = loop.create_future()

        def set_it(trouble: str | None) -> None:
            if not told.done():
                told.set_result(trouble)

        def tell(trouble: str | None) -> None:
            if not loop.is_closed():  # the keeper's thread may outlive it
                loop.call_soon_threadsafe(set_it, trouble)

        self.keeper.after_next(tell, since)
        return await told

    def troubles(self) -> dict[str, str]:
        """Current failures: the reason, by the name of the part that fails."""
        self.keeper.attempt("release store", self.store.check)
        return self.keeper.troubles


class LocalEngine(Engine):
    """Counts in this process, and restarts from one checkpoint.

    Args:
        config: a configuration that was loaded.
        file: its path, if its tokens are to be followed.

    Raises:
        PlanError: the release store cannot be used.
    """

    def __init__(self, config: Config, file: Path | None = None) -> None:
        store, pulse = ReleaseStore(config.releases.store), Pulse()
        self._counting = {
            name: Stream(
                name,
                stream,
                store,
                durable=config.checkpoint is not None,
                broken=pulse.broken,
                folder=Path(config.server.directory),
            )
            for name, stream in config.streams.items()
        }
        sealed, every = None, 1.0
        if config.checkpoint is not None:
            sealed = Checkpoint(config.checkpoint.path, recipient=config.checkpoint.recipient)
            every = config.checkpoint.every_seconds
        tokens, looks = looked_after(config, file, store)
        keeper = Keeper(list(self._counting.values()), sealed, every, looks=looks)
        super().__init__(config, store, pulse, self._counting, keeper, tokens)
        self.waiting = self.checkpoint_file is not None and self.checkpoint_file.exists()

    @property
    def checkpoint_file(self) -> Path | None:
        """Path of the sealed checkpoint; None if states are in memory only."""
        return None if self.config.checkpoint is None else Path(self.config.checkpoint.path)

    @property
    def state_bytes(self) -> int:
        """Size of all states, which no stream of events changes."""
        return sum(stream.state_bytes for stream in self._counting.values())

    @property
    def most_restored(self) -> int:
        """Largest size of the states of a checkpoint in bytes: it varies if windows learn."""
        sealed = self.checkpoint_file
        held = sealed.stat().st_size if sealed is not None and sealed.exists() else 0
        return max(self.state_bytes, held)

    def give_up(self) -> None:
        """Remove the checkpoint, and start anew."""
        if self.checkpoint_file is not None:
            self.checkpoint_file.unlink(missing_ok=True)
        self.waiting = False

    def restore(self, states: bytes) -> None:
        """Resume from the states of a checkpoint; releases made since then stay charged.

        Raises:
            InputError: they are damaged, or of other streams. Nothing was changed.
            StoreError: the ledger cannot be read now. Nothing was changed.
        """
        streams = list(self._counting.values())
        parts = parted(states, streams)
        try:
            each = list(zip(streams, parts, strict=True))
            released = [stream.states.released_in(part) for stream, part in each]
            announced = [stream.states.announced_in(part) for stream, part in each]
            resume_all(streams, parts, released, announced)
        except InputError as error:
            reason = f"{error.reason}; start with the configuration that it was written with, or "
            raise InputError(reason + "give it up with panprivacy serve --fresh") from None
        for stream in streams:
            written, now = stream.states.missing
            seconds = round((now - written).total_seconds())
            JOURNAL.warning(
                Event.goes_on,
                stream=stream.name,
                window_end=stream.ends,
                written=written,
                seconds=seconds,
            )


def looked_after(
    config: Config, file: Path | None, store: ReleaseStore
) -> tuple[Tokens, dict[str, Callable[[], None]]]:
    """Return the tokens of a configuration, and the checks that a keeper runs regularly.

    Args:
        config: a configuration that was loaded.
        file: its path; None if its tokens are not followed.
        store: the release store, whose file has to stay in place.
    """
    looks = {"file of the release store": store.check_file}
    if file is None:
        return Tokens(config.tokens), looks
    followed = FollowedTokens(file, config.tokens)
    return followed, {**looks, "tokens": followed.look}


class Sweeper:
    """Overwrites the traces of batches in memory, soon after the last of them."""

    def __init__(self) -> None:
        self._planned = False

    def soon(self) -> None:
        """Schedule a sweep, in the thread of the event loop."""
        if not self._planned:
            self._planned = True
            asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        self._planned = False
        self._go_on(traces_wiped())

    def _go_on(self, steps: Iterator[None]) -> None:
        """Wipe a little, then let the requests that have arrived go first."""
        if next(steps, self) is None:
            asyncio.get_running_loop().call_soon(self._go_on, steps)

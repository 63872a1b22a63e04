"""One stream: what is counted in its current window, which batches were, and what it releases.

The ledger is paid, on disk, before a release is made. So a number that left is always in the
ledger, and a crash loses a release, never the budget.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from panprivacy.counting import Answer, Counting
from panprivacy.errors import BudgetError, InputError, PanPrivacyError, PlanError
from panprivacy.intake import Intake
from panprivacy.service.batch_ids import BatchIds
from panprivacy.service.results import Moment, published
from panprivacy.service.store import Entry, Published, ReleaseStore, StoreError
from panprivacy.service.stream_config import Ids
from panprivacy.service.stream_config import Stream as StreamConfig
from panprivacy.statistics import Window, Windowed
from panprivacy.statistics.resuming import Container

_LOG = logging.getLogger("panprivacy.service")
_PATIENCE = 30
"""Seconds that the end of a window waits for a release store that cannot be written to."""


class BusyError(PanPrivacyError):
    """The stream does something that takes a while; who can wait calls again with `wait`."""


class Stream:
    """Counts batches and releases answers; safe for several threads.

    Guarantee: that of `Windowed` for users; the ids of the last batches are kept besides.
    [docs/guarantees/service.md]

    Args:
        name: of the stream.
        config: what is counted.
        store: where releases and ledger go.
        clock: seconds since 1970 in UTC.
    """

    def __init__(
        self,
        name: str,
        config: StreamConfig,
        store: ReleaseStore,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name, self.config = name, config
        self.columns = config.columns()
        self._intake = Intake(self.columns, config.nulls, config.deletions)
        self._store, self._clock = store, clock
        self._windowed = Windowed(
            config.make_counting,
            every=config.window_seconds,
            release=self._last_release,
            clock=clock,
        )
        self._batch_ids = BatchIds(config.retries)
        self._unpublished: list[Published] = []
        self._lock = threading.Lock()

    @property
    def ends(self) -> datetime:
        """When the current window ends."""
        return self._windowed.ends

    def described(self) -> dict[str, object]:
        """What is counted and promised, for people and programs."""
        counting = self._windowed.current
        return {
            "name": self.name,
            "statistics": list(counting.statistics),
            "epsilon": float(counting.guarantee.epsilon),
            "guarantee": str(counting.guarantee),
            "window_seconds": self.config.window_seconds,
            "window_began": self._windowed.began.isoformat(),
            "window_ends": self._windowed.ends.isoformat(),
            "releases_made": counting.releases,
            "releases_planned": counting.planned,
            "state_bytes": self.state_bytes,
        }

    def take(
        self, batches: Iterable[pa.RecordBatch], batch_id: bytes | None = None, *, wait: bool = True
    ) -> bool:
        """Count all rows of some record batches, or none.

        Args:
            batches: with the columns of the stream.
            batch_id: of all of them together, if the sender may send them again.
            wait: for another thread, or for the end of the window.

        Returns:
            Whether they were counted now; False if a batch of that id was counted before.

        Raises:
            InputError: a row cannot be counted. Nothing was counted.
            BusyError: the caller does not wait, and would have to.
            StoreError: the window has ended and cannot be closed yet. Nothing was counted.
        """
        with self._held(wait=wait):
            if self._windowed.due:
                if not wait:
                    raise BusyError
                self._advance()
            if batch_id is not None and batch_id in self._batch_ids:
                return False
            for count in self._checked(batches):
                count()
            if batch_id is not None:
                self._batch_ids.add(batch_id)
            return True

    def deadline(self) -> float:
        """When `advance` will have something to do, in seconds since 1970."""
        with self._lock:
            return min(self._scheduled(), self._windowed.ends.timestamp())

    def advance(self) -> None:
        """Make the releases that are due.

        Raises:
            StoreError: they cannot be paid for, or not be published; try again.
        """
        with self._lock:
            self._advance()

    def release(self) -> None:
        """Make one release now.

        Raises:
            PlanError: the stream releases on a clock.
            BudgetError: none is left but that of the end of the window.
            StoreError: it cannot be paid for, or not be published.
        """
        if self.config.every_seconds is not None:
            message = f"stream {self.name} releases on a clock, every {self.config.every}"
            raise PlanError(message)
        with self._lock:
            self._advance()
            if self._left() <= 1:
                message = (
                    "no release is left but that of the end of the window; "
                    "plan for more with releases="
                )
                raise BudgetError(message)
            self._release_now()

    def close(self) -> None:
        """End the current window now, and release its answer."""
        with self._lock:
            self._advance()
            self._windowed.close()
            self._publish()

    @property
    def state_bytes(self) -> int:
        """The size of `state()`, which no stream of events changes."""
        return self._container.state_bytes

    def state(self) -> bytes:
        """Batch ids, and the state of the current window; whoever reads it has intruded."""
        with self._lock:
            return self._container.packed(self._batch_ids.packed())

    def check_state(self, state: bytes, *, released: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        _, (inner,) = self._container.parts(state)
        self._windowed.check_state(inner, released=max(released, self._released(inner)))

    def resume(self, state: bytes, *, released: int = 0) -> None:
        """Go on from an earlier state; what the ledger says was released since is paid for."""
        own, (inner,) = self._container.parts(state)
        with self._lock:
            self._windowed.resume(inner, released=max(released, self._released(inner)))
            self._batch_ids.unpack(own)

    @contextmanager
    def _held(self, *, wait: bool) -> Iterator[None]:
        if not self._lock.acquire(blocking=wait):
            raise BusyError
        try:
            yield
        finally:
            self._lock.release()

    def _checked(self, batches: Iterable[pa.RecordBatch]) -> list[Callable[[], None]]:
        """All batches checked; what comes back counts them."""
        checked: list[Callable[[], None]] = []
        rows = 0
        for batch in batches:
            self._check_ids(batch.schema.types[0])
            checked += self._intake.prepare(self._windowed.current, batch, rows)
            rows += batch.num_rows
        return checked

    def _check_ids(self, kind: pa.DataType) -> None:
        """Refuse numbers where ids are texts, and texts for numbers: 7 and "7" are two users."""
        if pa.types.is_null(kind) or pa.types.is_integer(kind) == (self.config.ids is Ids.integers):
            return
        wanted = 'whole numbers (ids = "integers")'
        if self.config.ids is not Ids.integers:
            wanted = f'texts (ids = "{self.config.ids}")'
        message = f"the user ids of this stream are {wanted}; send such ids, or change the service"
        raise InputError(message)

    def _advance(self) -> None:
        self._publish()
        if self._windowed.due:
            self._check_ledger()
            self._windowed.advance()
            self._publish()
        elif self._scheduled() <= self._clock():
            self._release_now()

    def _check_ledger(self) -> None:
        """Pay for the last release, or wait for the store to come back, but not for ever."""
        try:
            self._pay(self._windowed.current)
        except StoreError:
            if self._clock() < self._windowed.ends.timestamp() + _PATIENCE:
                raise

    def _last_release(self, counting: Counting) -> tuple[int, dict[str, Answer]] | None:
        """What a window releases at its end, and its number; nothing that is not in the ledger."""
        number = counting.releases + 1
        try:
            if not self._pay(counting):
                return None
        except StoreError as error:
            _LOG.error("stream %s: the answer of a window is lost: %s", self.name, error)
            return None
        return number, counting.release()

    def _release_now(self) -> None:
        """One release within the window."""
        counting = self._windowed.current
        number = counting.releases + 1
        self._pay(counting)
        now = datetime.fromtimestamp(self._clock(), UTC)
        moment = Moment(self.name, self._windowed.began, now, number, complete=False, now=now)
        self._unpublished += published(counting.release(), counting, moment)
        self._publish()

    def _pay(self, counting: Counting) -> bool:
        """Have the next release in the ledger; False if all were made before a restart.

        An entry that is there already is this process's own: its commit was reported as failed.
        """
        number, began = counting.releases + 1, self._windowed.began
        if number > counting.planned:
            return False
        if self._store.released(self.name, began) < number:
            state = counting.guarantee.epsilon - counting.planned * counting.release_epsilon
            costs = [(0, state)] if number == 1 else []
            costs.append((number, counting.release_epsilon))
            self._store.spend([
                Entry(self.name, began, self._windowed.ends, place, epsilon)
                for place, epsilon in costs
            ])  # fmt: skip
        return True

    def _publish(self) -> None:
        """Have the store show what was released."""
        for window in self._windowed.take():
            self._unpublished += self._of_window(window)
        if not self._unpublished:
            return
        try:
            self._store.publish(self._unpublished)
        except StoreError:
            raise
        except PanPrivacyError as error:  # they are there: the commit was reported as failed
            _LOG.warning("stream %s: %s", self.name, error)
        self._unpublished = []

    def _of_window(self, window: Window) -> list[Published]:
        """The answers of a window that has ended."""
        if window.release is None:
            return []
        number, answers = window.release
        now = datetime.fromtimestamp(self._clock(), UTC)
        moment = Moment(self.name, window.start, window.end, number, window.complete, now)
        return published(answers, self._windowed.current, moment)

    def _left(self) -> int:
        counting = self._windowed.current
        return counting.planned - counting.releases

    def _scheduled(self) -> float:
        """When the next release within the window is due; never if none is."""
        every, made = self.config.every_seconds, self._windowed.current.releases
        if every is None or self._left() <= 1:
            return float("inf")
        return self._windowed.began.timestamp() + (made + 1) * every

    def _released(self, window: bytes) -> int:
        """How many releases of an earlier window are in the ledger."""
        return self._store.released(self.name, self._windowed.began_in(window))

    @property
    def _container(self) -> Container:
        public: dict[str, Any] = {"stream": self.name, "batch_ids": self.config.retries}
        return Container("Stream", public, self._batch_ids.state_bytes, [self._windowed])

"""The release of a table of bits: the table itself, published once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PanPrivacyError
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.header import unpacked
from panprivacy.statistics.overlaps.sketch import Sketch
from panprivacy.statistics.reading import Reading
from panprivacy.statistics.release import Answer
from panprivacy.statistics.sketch.plan import OverlapPlan, OverlapReading
from panprivacy.statistics.sketch.released import SketchRelease
from panprivacy.statistics.state import State
from panprivacy.statistics.table.memory import Batch, TableMemory
from panprivacy.statistics.table.releasing import TableReleasing
from panprivacy.tables.cells.protocol import Table
from panprivacy.tables.ids import AmountColumn, Labels, SharedColumn, WholeNumbers


class SketchMemory(TableMemory[OverlapPlan]):
    """A state of which each table is published once: a new one takes its place."""

    __slots__ = ()

    def prepare(
        self,
        users: Labels | SharedColumn,
        deltas: WholeNumbers | AmountColumn | SharedColumn | None = None,
        sides: Labels | SharedColumn | str | None = None,
    ) -> Batch:
        """Check one batch; see `TableMemory.prepare`.

        Raises:
            InputError: as for `Statistic.update`.
            PanPrivacyError: all tables were published.
        """
        self._check_open(self.now)
        return super().prepare(users, deltas, sides)

    def apply(self, *batches: Batch) -> None:
        """Count what was checked; see `TableMemory.apply`."""
        self._check_open(self.now)
        super().apply(*batches)

    def fresh_table(self) -> Table:
        """Return a table in which nobody has appeared."""
        table: Table = self.cells.initial(self.coins)
        return table

    def earlier(self, state: bytes, released: int, announced: int) -> State:
        """Return an earlier state; if its table was published since, with a new table."""
        known = unpacked(state, self.header)[0].releases
        found = super().earlier(state, released, announced)
        if found.releases > known:
            return replace(found, arrays=[self.fresh_table()])
        return found

    def _check_open(self, state: State) -> None:
        if state.releases >= self.plan.request.releases:
            message = (
                "its table was published: count in a new one, of the next window, or plan for more "
                "tables with releases="
            )
            raise PanPrivacyError(message)


class SketchReleasing(TableReleasing[OverlapPlan]):
    """The release of a table of bits: a further random table, drawn from it once."""

    __slots__ = ()

    memory: SketchMemory

    def _add_noise(self, reading: Reading, sums: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        """Return the table to publish, and begin the next one: both, or neither."""
        fresh = self.memory.fresh_table()
        published: NDArray[np.uint8] = self.memory.cells.published(sums, self.memory.coins)
        self.memory.now.table[:] = fresh
        wipe(fresh)
        return published

    def contributed(self, reading: Reading) -> bytes:
        """Return the sketch of a slice: it is published by itself, so no one sees its state."""
        memory, key = self.memory, self.memory.now.key
        layout = None if memory.slice is None else memory.plan.slice_layout(memory.slice)
        published = self.with_noise(reading).astype(np.uint8, copy=False)
        return Sketch.of(memory.plan, key, published, layout).to_bytes()

    def answer(self, reading: Reading, counts: NDArray[Any], confidence: float = 0.95) -> Answer:
        """Return the answer of a published table: a function of it, the plan and the key."""
        plan, read = self.memory.plan, cast("OverlapReading", reading)
        release = read.answer(read.counts(counts), confidence).under(self.memory.name)
        key = self.memory.now.key
        return SketchRelease.of(release, Sketch.of(plan, key, counts))

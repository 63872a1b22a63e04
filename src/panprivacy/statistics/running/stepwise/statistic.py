"""What answers at the end of every step: noisy sums in its table go on from step to step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import numpy as np

from panprivacy.ground.validation import proportion
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.release import Release
from panprivacy.statistics.running.stepwise.event_plan import EventPlan
from panprivacy.statistics.state import State
from panprivacy.statistics.statistic import Statistic
from panprivacy.statistics.table.memory import Batch, TableMemory
from panprivacy.statistics.table.releasing import TableReleasing
from panprivacy.tables.cells.protocol import Table
from panprivacy.tables.counters.running import Running

P = TypeVar("P", bound=EventPlan)


class StepwiseMemory(TableMemory[P]):
    """The memory of a statistic whose table has sums, each a `Running`, in the open step."""

    __slots__ = ()

    def catch_up(self, state: State, announced: int) -> None:
        """Re-randomise; after steps that have left since, restart its sums with new noise."""
        super().catch_up(state, announced)
        if state.tick < state.releases:
            self.plan.table.restart(state.table, state.releases, self.coins)
            state.tick = state.releases

    def earlier(self, state: bytes, released: int, announced: int) -> State:
        """Return an earlier state, once it is checked: none of its sums begins after its end."""
        earlier = super().earlier(state, released, announced)
        for one in self.plan.table.sums(earlier.table, earlier.tick, self.coins):
            one.check(earlier.tick, memoryview(one.packed()))
        return earlier

    def fresh_noise(self, state: State) -> Table:
        """Return as much noise as open nodes were born with, for an announced intrusion."""
        return self.plan.table.fresh_noise(self.coins, state.table, state.tick)

    def rerandomise(self, state: State, noise: Table) -> None:
        """Add the noise, in the open step; what fails half way is wiped."""
        with self._undone_on_error(state):
            self.plan.table.rerandomise(state.table, noise, state.tick, self.coins)

    @contextmanager
    def _undone_on_error(self, state: State) -> Iterator[None]:
        """Wipe a state that an error leaves half changed: its sums would be wrong for good."""
        try:
            yield
        except BaseException:
            wipe(*state.arrays)
            if state is self.kept:
                self.forget()
            raise

    @property
    def sums(self) -> list[Running]:
        """The sums in its table, in place."""
        return self.plan.table.sums(self.now.table, self.now.tick, self.coins)


class CountedMemory(StepwiseMemory[P]):
    """The memory of a statistic with cells of users, whose sums are counted as they change."""

    __slots__ = ()

    def apply(self, *batches: Batch) -> None:
        """Count what this statistic has checked, or one of the same plan, in the open step.

        Raises:
            BudgetError: all steps have ended. Nothing was changed.
        """
        self.check_steps()
        state, cells = self.now, self.cells
        before = cells.group_sums(state.table, cells.levels, 0)
        try:
            super().apply(*batches)
        finally:  # whatever has changed is counted
            with self._undone_on_error(state):
                cells.count(state.table, before, state.tick, self.coins)


class StepwiseReleasing(TableReleasing[P]):
    """The releases of a statistic, of which each ends a step."""

    __slots__ = ()

    def release(self, *, confidence: float = 0.95, **asked: object) -> Release:
        """End the step, and publish the answer after it.

        Args:
            confidence: probability, 0 to 1, that the interval covers the truth.
            asked: nothing.

        Raises:
            PlanError: something cannot be asked. Nothing was changed.
            BudgetError: all steps have ended. Nothing was changed.
        """
        self.check_release(confidence=confidence, **asked)
        memory = self.memory
        plan, state = memory.plan, memory.now
        after = state.table.copy()
        try:
            sums = plan.table.sums(after, state.tick, memory.coins)
            ended = np.zeros(1, np.int64)
            released = np.concatenate([one.run(ended).released for one in sums])
            told = plan.estimate([one.last for one in sums], state.intrusions, confidence)
        except BaseException:
            wipe(after)
            raise
        # One store: an interrupt finds either step whole. Nodes of one with the other's number
        # could be without noise.
        memory.kept = replace(
            state, arrays=[after], tick=state.tick + 1, releases=state.releases + 1
        )
        wipe(state.table)
        (name,), (value, low, high, measured) = plan.names(None), told
        numbers = value, low, high, confidence, 0.0, tuple(released.tolist())
        note = note_on(low, high, unit=plan.unit, value=value)
        return Release(*numbers, name, plan.unit, note, *measured).under(memory.name)

    def check_release(self, *, confidence: float = 0.95, **asked: object) -> None:
        """Raise what `release` would refuse."""
        proportion(confidence=confidence)
        self.query(asked)
        self.memory.check_steps()


class Stepwise(Statistic[P, Release]):
    """The base of statistics whose release ends a step. All of epsilon is paid at birth.

    Its table has `sums`, each a `Running`; its plan has an `estimate` from their
    last answers.
    """

    __slots__ = ()

    _memory = StepwiseMemory
    _releasing = StepwiseReleasing


class StepwiseTable(Stepwise[P]):
    """The base of those that keep cells of users, whose sums are counted as they change."""

    __slots__ = ()

    _memory = CountedMemory

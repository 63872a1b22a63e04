"""What answers at the end of every step: noisy sums in its table go on from step to step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from panprivacy.ground.validation import proportion
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.release import Answer, Release
from panprivacy.statistics.running.stepwise.event_plan import EventPlan, SumsPlan
from panprivacy.statistics.state import State
from panprivacy.statistics.statistic import Statistic
from panprivacy.statistics.table.memory import Batch, TableMemory
from panprivacy.statistics.table.releasing import TableReleasing
from panprivacy.tables.cells.protocol import Table
from panprivacy.tables.counters.running import Running

P = TypeVar("P", bound=EventPlan)
S = TypeVar("S", bound=SumsPlan)
A = TypeVar("A", bound=Answer)
T = TypeVar("T")


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

    def _end_step(self, read: Callable[[Any], T]) -> T:
        """End the step, and return what is read of its sums; an error changes nothing.

        Args:
            read: ends the step of the sums of the table that it is given, and reads their answers.
        """
        memory = self.memory
        state = memory.now
        after = state.table.copy()
        try:
            found = read(memory.plan.table.sums(after, state.tick, memory.coins))
        except BaseException:
            wipe(after)
            raise
        # One store: an interrupt finds either step whole. Nodes of one with the other's number
        # could be without noise.
        memory.kept = replace(
            state, arrays=[after], tick=state.tick + 1, releases=state.releases + 1
        )
        wipe(state.table)
        return found

    def check_release(self, *, confidence: float = 0.95, **asked: object) -> None:
        """Raise what `release` would refuse."""
        proportion(confidence=confidence)
        self.query(asked)
        self.memory.check_steps()


class SumsReleasing(StepwiseReleasing[S]):
    """The releases of a statistic with one answer, of which each ends a step."""

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
        plan, epoch = memory.plan, memory.now.intrusions

        def read(sums: list[Running]) -> Release:
            ended = np.zeros(1, np.int64)
            released = np.concatenate([one.run(ended).released for one in sums])
            told = plan.estimate([one.last for one in sums], epoch, confidence)
            (name,), (value, low, high, measured) = plan.names(None), told
            numbers = value, low, high, confidence, 0.0, tuple(released.tolist())
            note = note_on(low, high, unit=plan.unit, value=value)
            return Release(*numbers, name, plan.unit, note, *measured)

        return self._end_step(read).under(memory.name)


class Stepwise(Statistic[P, A]):
    """The base of statistics whose release ends a step. All of epsilon is paid at birth."""

    __slots__ = ()

    _memory = StepwiseMemory
    _releasing = StepwiseReleasing


class StepwiseSums(Stepwise[S, Release]):
    """The base of those with one answer: the `estimate` of the plan, from the last sums.

    Its table has `sums`, each a `Running`.
    """

    __slots__ = ()

    _releasing = SumsReleasing


class StepwiseTable(StepwiseSums[S]):
    """The base of those that keep cells of users, whose sums are counted as they change."""

    __slots__ = ()

    _memory = CountedMemory

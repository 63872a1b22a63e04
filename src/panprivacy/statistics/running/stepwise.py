"""What answers at the end of every step: noisy sums in its table go on from step to step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from panprivacy._validate import proportion
from panprivacy.cells.protocol import Table
from panprivacy.counters.running import Running
from panprivacy.errors import BudgetError
from panprivacy.noise import wipe
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.release import Release
from panprivacy.statistics.state import State
from panprivacy.statistics.statistic import Batch, Statistic

P = TypeVar("P", bound=Plan)


class Stepwise(Statistic[P, Release]):
    """The base of statistics whose release ends a step. All of epsilon is paid at birth.

    Its table has `sums`, each a `Running`; its plan says in `told` what the last answers of them
    mean.
    """

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
        plan: Any = self._plan
        state = self._state
        after = state.table.copy()
        try:
            sums = plan.table.sums(after, state.tick, self._coins)
            ended = np.zeros(1, np.int64)
            released = np.concatenate([one.run(ended).released for one in sums])
            told = plan.told([one.last for one in sums], state.intrusions, confidence)
        except BaseException:
            wipe(after)
            raise
        # One store: an interrupt finds either step whole. Nodes of one with the other's number
        # could be without noise.
        self._kept = replace(
            state, arrays=[after], tick=state.tick + 1, releases=state.releases + 1
        )
        wipe(state.table)
        (name,), (value, low, high, measured) = plan.names(None), told
        numbers = value, low, high, confidence, 0.0, tuple(released.tolist())
        note = note_on(low, high, unit=plan.unit, value=value)
        return Release(*numbers, name, plan.unit, note, *measured).under(self.name)

    def check_release(self, *, confidence: float = 0.95, **asked: object) -> None:
        """Raise what `release` would refuse."""
        proportion(confidence=confidence)
        self.query_type.read(self.name, asked)
        self._check_left()

    def _catch_up(self, state: State, announced: int) -> None:
        """Where steps have left since, its sums go on with new noise at the step after them."""
        super()._catch_up(state, announced)
        if state.tick < state.releases:
            table: Any = self._plan.table
            table.restart(state.table, state.releases, self._coins)
            state.tick = state.releases

    def _earlier(self, state: bytes, released: int, announced: int) -> State:
        """An earlier state, once it is checked: none of its sums begins after its end."""
        earlier = super()._earlier(state, released, announced)
        table: Any = self._plan.table
        for one in table.sums(earlier.table, earlier.tick, self._coins):
            one.check(earlier.tick, memoryview(one.packed()))
        return earlier

    def _fresh_noise(self, state: State) -> Table:
        """What an announced intrusion adds: as much noise as open nodes were born with."""
        table: Any = self._plan.table
        noise: Table = table.fresh_noise(self._coins, state.table, state.tick)
        return noise

    def _rerandomise(self, state: State, noise: Table) -> None:
        """Add it, in the open step; what fails half way is wiped."""
        table: Any = self._plan.table
        with self._whole(state):
            table.rerandomise(state.table, noise, state.tick, self._coins)

    @contextmanager
    def _whole(self, state: State) -> Iterator[None]:
        """Wipe a state that an error leaves half changed: its sums would be wrong for good."""
        try:
            yield
        except BaseException:
            wipe(*state.arrays)
            if state is self._kept:
                self.forget()
            raise

    def _check_left(self) -> None:
        """Raise `BudgetError` if all steps have ended."""
        if self._state.releases >= self.planned:
            message = (
                f"all {self.planned:,} steps have ended: make the count with a larger horizon="
            )
            raise BudgetError(message)

    @property
    def _sums(self) -> list[Running]:
        """The sums in its table, in place."""
        table: Any = self._plan.table
        sums: list[Running] = table.sums(self._state.table, self._state.tick, self._coins)
        return sums


class StepwiseTable(Stepwise[P]):
    """The base of those that keep cells of users, whose sums are counted as they change."""

    __slots__ = ()

    def apply(self, *batches: Batch) -> None:
        """Count what this statistic has checked, or one of the same plan, in the open step.

        Raises:
            BudgetError: all steps have ended. Nothing was changed.
        """
        self._check_left()
        state, cells = self._state, self._cells
        before = cells.group_sums(state.table, cells.levels, 0)
        try:
            super().apply(*batches)
        finally:  # whatever has changed is counted
            with self._whole(state):
                cells.count(state.table, before, state.tick, self._coins)

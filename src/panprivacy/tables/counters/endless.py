"""A running count of any number of steps: one tree after another, each for more steps.

Each tree also leaves the sum of all its steps when it ends, for a share of epsilon; an answer is
the sums of the trees that have ended and that of the one that runs. An event is in one tree.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.counters.mechanism import CounterState, Integers, Mechanism, StepAnswers
from panprivacy.tables.counters.shapes import largest_deviation, mixed_radix
from panprivacy.tables.counters.tree import SHARES, Tree

_FIRST: Final = 1 << 8
"""Steps of the first tree."""
_GROWTH: Final = 8
"""Minimum factor between the steps of a tree and those of the one before."""
_SUM_SHARE: Final = SHARES // 8
"""Share of the sum of all steps of a tree."""
_LEVELS: Final = 16
"""Upper bound on the number of levels of a tree."""


@dataclass(frozen=True, slots=True)
class Endless(Mechanism):
    """The parameters of a count without a known number of steps.

    The last column of `told` has the sums of the trees that have ended; the others, and the cells,
    are those of the tree that runs.

    Args:
        epsilon: the loss for one event.
        bound: the most that an event adds.
        open_steps: whether the memory may be seen within a step.
        horizon: more steps than ever come.
    """

    epsilon: Fraction
    bound: int = 1
    open_steps: bool = False
    horizon: int = 1 << 50
    estimates: ClassVar[int] = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Number of sums of a memory, and of columns of `told`."""
        return _LEVELS, _LEVELS + 1

    def largest_deviation(self, steps: int) -> float:
        """Return a bound on the standard deviation of the first answers.

        The sums of trees that have ended are weighed with what else is known of them: what that
        is worth is not counted.
        """
        start, tree = self._trees(steps - 1)
        scale = tree.bound * SHARES / (_SUM_SHARE * float(tree.epsilon))
        ended, at = 0.0, 0
        while at < start:
            ended, at = ended + 4 * scale**2, at + self._trees(at)[1].horizon
        left = SHARES / (SHARES - _SUM_SHARE)
        inner = replace(tree, radices=tree.radices[:-1], shares=tree.shares[:-1])
        return math.sqrt(ended + (left * largest_deviation(inner)) ** 2)

    def initial(self, coins: Coins) -> CounterState:
        """Return the first tree."""
        memory = CounterState(np.zeros(_LEVELS, np.int64), np.zeros((5, _LEVELS + 1)))
        self._keep(memory, self._trees(0)[1].initial(coins))
        return memory

    def add(self, memory: CounterState, amount: int) -> None:
        """Count events of the open step."""
        start, tree = self._trees(memory.tick)
        running = self._running(memory, start, tree)
        tree.add(running, amount)
        self._keep(memory, running)

    def run(self, memory: CounterState, amounts: Integers, coins: Coins) -> StepAnswers:
        """Take in steps, of one tree after another."""
        copy = CounterState(memory.cells.copy(), memory.told.copy(), memory.tick)
        parts = []
        while len(amounts):
            start, tree = self._trees(copy.tick)
            here = amounts[: start + tree.horizon - copy.tick]
            running, before = self._running(copy, start, tree), copy.told[:3, -1:].copy()
            answers = tree.run(running, here, coins)
            sums = np.array([answers.values, answers.variances, answers.fourths]) + before
            parts.append((*sums, answers.released))
            copy.tick, amounts = copy.tick + len(here), amounts[len(here) :]
            if running.tick == tree.horizon:
                copy.told[:3, -1] += running.told[:3, len(tree.radices) - 1]
                running = self._trees(copy.tick)[1].initial(coins)
            self._keep(copy, running)
        memory.cells[:], memory.told[:], memory.tick = copy.cells, copy.told, copy.tick
        wipe(copy.cells)
        return StepAnswers(*map(np.concatenate, zip(*parts, strict=True)))

    def rerandomise(self, memory: CounterState, coins: Coins) -> None:
        """Add noise to every open node of the tree that runs."""
        start, tree = self._trees(memory.tick)
        running = self._running(memory, start, tree)
        tree.rerandomise(running, coins)
        self._keep(memory, running)

    def _running(self, memory: CounterState, start: int, tree: Tree) -> CounterState:
        """Return the memory of the tree that runs."""
        levels = len(tree.radices)
        told = np.ascontiguousarray(memory.told[:, :levels])
        return CounterState(memory.cells[:levels].copy(), told, memory.tick - start)

    @staticmethod
    def _keep(memory: CounterState, running: CounterState) -> None:
        """Write the memory of the tree that runs into that of all, and wipe it."""
        levels = len(running.cells)
        memory.cells[:], memory.told[:, :-1] = 0, 0.0
        memory.cells[:levels], memory.told[:, :levels] = running.cells, running.told
        wipe(running.cells)

    def _trees(self, tick: int) -> tuple[int, Tree]:
        """Return the tree that runs in a step, and how many steps came before it."""
        start, tree = 0, _tree(_FIRST, self.epsilon, self.bound, self.open_steps)
        while tick >= start + tree.horizon:
            start += tree.horizon
            tree = _tree(_GROWTH * tree.horizon, self.epsilon, self.bound, self.open_steps)
        return start, tree


@functools.lru_cache(maxsize=256)
def _tree(steps: int, epsilon: Fraction, bound: int, open_steps: bool) -> Tree:  # noqa: FBT001
    """Return a tree of at least `steps` steps that outputs their sum."""
    inner = mixed_radix(steps, epsilon, bound, open_steps=open_steps)
    radices, shares = (*inner.radices, 2), (*inner.shares, (_SUM_SHARE, 0))
    return replace(inner, horizon=math.prod(inner.radices), radices=radices, shares=shares)

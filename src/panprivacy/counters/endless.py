"""A running count of so many steps as come: one tree after another, each for more steps.

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

from panprivacy.coins import Coins
from panprivacy.counters.mechanism import Integers, Mechanism, Memory, StepAnswers
from panprivacy.counters.shapes import largest_deviation, mixed_radix
from panprivacy.counters.tree import SHARES, Tree
from panprivacy.noise import wipe

_FIRST: Final = 1 << 8
"""Steps of the first tree."""
_GROWTH: Final = 8
"""Each tree has so many times the steps of the one before, at least."""
_SUM_SHARE: Final = SHARES // 8
"""Of the sum of all steps of a tree."""
_LEVELS: Final = 16
"""At least as many as any tree has."""


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
        """How many sums a memory has, and columns of what is told."""
        return _LEVELS, _LEVELS + 1

    def largest_deviation(self, steps: int) -> float:
        """The largest standard deviation of the first so many answers, at most.

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

    def born(self, coins: Coins) -> Memory:
        """The first tree."""
        memory = Memory(np.zeros(_LEVELS, np.int64), np.zeros((5, _LEVELS + 1)))
        self._keep(memory, self._trees(0)[1].born(coins))
        return memory

    def add(self, memory: Memory, amount: int) -> None:
        """Count events of the open step."""
        start, tree = self._trees(memory.tick)
        running = self._running(memory, start, tree)
        tree.add(running, amount)
        self._keep(memory, running)

    def run(self, memory: Memory, amounts: Integers, coins: Coins) -> StepAnswers:
        """Take in steps, of one tree after another."""
        copy = Memory(memory.cells.copy(), memory.told.copy(), memory.tick)
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
                running = self._trees(copy.tick)[1].born(coins)
            self._keep(copy, running)
        memory.cells[:], memory.told[:], memory.tick = copy.cells, copy.told, copy.tick
        wipe(copy.cells)
        return StepAnswers(*map(np.concatenate, zip(*parts, strict=True)))

    def rerandomise(self, memory: Memory, coins: Coins) -> None:
        """Add noise to every open node of the tree that runs."""
        start, tree = self._trees(memory.tick)
        running = self._running(memory, start, tree)
        tree.rerandomise(running, coins)
        self._keep(memory, running)

    def _running(self, memory: Memory, start: int, tree: Tree) -> Memory:
        """The memory of the tree that runs."""
        levels = len(tree.radices)
        told = np.ascontiguousarray(memory.told[:, :levels])
        return Memory(memory.cells[:levels].copy(), told, memory.tick - start)

    @staticmethod
    def _keep(memory: Memory, running: Memory) -> None:
        """Write the memory of the tree that runs into that of all, and wipe it."""
        levels = len(running.cells)
        memory.cells[:], memory.told[:, :-1] = 0, 0.0
        memory.cells[:levels], memory.told[:, :levels] = running.cells, running.told
        wipe(running.cells)

    def _trees(self, tick: int) -> tuple[int, Tree]:
        """The tree that runs in a step, and how many steps came before it."""
        start, tree = 0, _tree(_FIRST, self.epsilon, self.bound, self.open_steps)
        while tick >= start + tree.horizon:
            start += tree.horizon
            tree = _tree(_GROWTH * tree.horizon, self.epsilon, self.bound, self.open_steps)
        return start, tree


@functools.lru_cache(maxsize=256)
def _tree(steps: int, epsilon: Fraction, bound: int, open_steps: bool) -> Tree:  # noqa: FBT001
    """A tree of at least so many steps that leaves their sum."""
    inner = mixed_radix(steps, epsilon, bound, open_steps=open_steps)
    radices, shares = (*inner.radices, 2), (*inner.shares, (_SUM_SHARE, 0))
    return replace(inner, horizon=math.prod(inner.radices), radices=radices, shares=shares)

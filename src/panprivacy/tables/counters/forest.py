"""Running counts of many things at once: a tree of time for each, and all trees have one shape.

All trees end a step together, so which noise is drawn, and when, is public. An event is in one
tree: each has the whole of epsilon, and the proof for one tree is the proof for all of them.
[docs/guarantees/online.md]
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np

from panprivacy.ground.kernels import kernel
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.counters.mechanism import (
    CounterState,
    Floats,
    Integers,
    StepAnswers,
    variances,
)
from panprivacy.tables.counters.shapes import mixed_radix
from panprivacy.tables.counters.tree import (
    KERNEL_SHAPE,
    OWN_VARIANCE,
    Tree,
    advance,
    draws_of,
    laplace_cumulants,
)


@dataclass(frozen=True, slots=True)
class Forest(Tree):
    """The parameters of many trees of one shape.

    `cells` of its memory are int64[trees, levels], and `told` is float64[trees, 5, levels].

    Args:
        trees: number of trees.
    """

    trees: int = 1

    @classmethod
    def planted(cls, trees: int, horizon: int, epsilon: Fraction, *, open_steps: bool) -> Forest:
        """Return trees that err least on average over all steps.

        Args:
            trees: number of trees.
            horizon: number of steps.
            epsilon: the loss for one event.
            open_steps: whether the memory may be seen within a step.
        """
        one = mixed_radix(horizon, epsilon, open_steps=open_steps)
        shape = one.radices, one.shares, one.bound, one.open_steps, one.combined
        return cls(horizon, epsilon, *shape, trees=trees)

    def count(self, memory: CounterState, events: Integers) -> None:
        """Count events of the open step, each the number of its tree."""
        _count(events, memory.cells, self._units(memory.tick) > 0)

    def add_all(self, memory: CounterState, amounts: Integers) -> None:
        """Count events of the open step: int64[trees], how many of each tree."""
        memory.cells += amounts[:, None] * (self._units(memory.tick) > 0)

    def run(self, memory: CounterState, amounts: Integers, coins: Coins) -> StepAnswers:
        """Take in steps, int64[trees, steps], and answer at the end of each, float64[trees, steps].

        Variances and fourth cumulants are the same for all trees, and told once: float64[steps].
        """
        steps = amounts.shape[1]
        scales = draws_of(memory.tick, steps, self.horizon, *self._shape)
        noise = self._noises(scales, coins)
        answers = np.empty((self.trees, 3, steps))
        most = steps + scales.size + len(self.radices)
        left = np.empty((self.trees, most), np.int64)
        cells, told, end = memory.cells.copy(), memory.told.copy(), memory.tick + steps
        try:
            leaving = _advance_all(
                memory.tick, self.horizon, amounts, noise, cells, told, answers, left,
                float(self._scale(1)), self.combined, *self._shape,
            )  # fmt: skip
            # As in `Tree.run`: an interrupt finds either memory whole.
            memory.cells[:], memory.told[:], memory.tick = cells, told, end
        finally:
            wipe(noise, cells, told)
        return StepAnswers(answers[:, 0], answers[0, 1], answers[0, 2], left[:, :leaving])

    def spreads(self, told: Floats) -> Floats:
        """Return the part of `told` that is never negative, of each tree."""
        return told[:, self.estimates :]

    def variances(self) -> Floats:
        """Return the variance of each answer, float64[horizon]; it is the same for all trees."""
        return variances(self._tree)

    def exponents(self) -> tuple[float, float]:
        """Return the tail exponents (S, T) of the noise Z of an answer.

        `E exp(theta Z)` is at most `exp(2 theta**2 S)` for theta of -T .. T.
        [docs/guarantees/online.md]
        """
        return _exponents(self._tree)

    @property
    def _tree(self) -> Tree:
        """One of the trees."""
        return Tree(**{one.name: getattr(self, one.name) for one in fields(Tree)})

    def _empty(self) -> CounterState:
        """Return nodes of every tree that have counted nothing, without noise."""
        levels = len(self.radices)
        return CounterState(
            np.zeros((self.trees, levels), np.int64), np.zeros((self.trees, 5, levels))
        )

    def _disturb(self, memory: CounterState, scales: Integers, coins: Coins) -> None:
        """Add noise of these scales to the open nodes of every tree; none where a scale is 0."""
        levels = np.flatnonzero(scales)
        noise = self._noises(scales[levels], coins)
        for place, level in enumerate(levels):
            memory.cells[:, level] += noise[:, place]
            more = laplace_cumulants.plain(float(self._scale(int(scales[level]))))
            memory.told[:, OWN_VARIANCE:, level] += more
        wipe(noise)

    def _noises(self, scales: Integers, coins: Coins) -> Integers:
        """Return noise of each scale for each tree, drawn together for all that have the same."""
        noise = np.empty((self.trees, scales.size), np.int64)
        for units in np.unique(scales):
            places = np.flatnonzero(scales == units)
            drawn = coins.discrete_laplace(self._scale(int(units)), self.trees * places.size)
            noise[:, places] = drawn.reshape(self.trees, places.size)
            wipe(drawn)
        return noise


@functools.lru_cache(maxsize=64)
def _exponents(tree: Tree) -> tuple[float, float]:
    """Return the exponents, from the largest variance of any answer and the largest noise scale."""
    most = min(1.0, 1 / (math.sqrt(2) * float(tree.largest_scale)))
    return (math.cosh(most) - 1) / most**2 * float(variances(tree).max()), most


@kernel("void(int64[::1], int64[:, ::1], boolean[::1])")
def _count(events: Integers, cells: Integers, counted: Integers) -> None:
    """Add each event to the open nodes of its tree."""
    for place in range(events.size):
        for level in range(counted.size):
            if counted[level]:
                cells[events[place], level] += 1


@kernel(
    "int64(int64, int64, int64[:, ::1], int64[:, ::1], int64[:, ::1], float64[:, :, ::1], "
    f"float64[:, :, ::1], int64[:, ::1], float64, boolean, {KERNEL_SHAPE})"
)
def _advance_all(  # noqa: PLR0913, PLR0917 - as `advance`
    tick: int,
    horizon: int,
    amounts: Integers,
    noise: Integers,
    cells: Integers,
    told: Floats,
    answers: Floats,
    left: Integers,
    unit: float,
    combined: bool,  # noqa: FBT001
    radices: Integers,
    sizes: Integers,
    shares: Integers,
    open_steps: bool,  # noqa: FBT001
    at_birth: bool,  # noqa: FBT001
    at_closing: bool,  # noqa: FBT001
) -> int:
    """Process steps of every tree, and return the number of outputs of each."""
    leaving = 0
    for tree in range(amounts.shape[0]):
        leaving = advance(
            tick, horizon, amounts[tree], noise[tree], cells[tree], told[tree], answers[tree],
            left[tree], unit, combined, radices, sizes, shares, open_steps, at_birth, at_closing,
        )  # fmt: skip
    return leaving

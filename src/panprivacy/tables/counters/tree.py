"""A running count as a tree of sums: an answer is the sum of a few of them, all closed.

A node of level 0 is a step; one of level `l + 1` is `radices[l]` nodes of level `l`. It starts
with noise, adds what its steps add, and leaves once, when it closes, with noise drawn then. An
answer adds up the closed nodes that cover the steps so far, so it has at most `sum(radices)` of
them, about half of that on average.

Privacy: an event is in one node of each level. Each of these hides it by its initial noise from an
intrusion after it, and by its output noise from an intrusion before it. So the loss is at most the
sum of `bound/scale` along the way from the root to a step, for any intrusion; `_scale`
and `_rest` keep that sum at epsilon or less, in whole numbers. [docs/guarantees/continual.md]

What a node leaves is worth more the longer it is used: the first of its siblings serves until the
last one closes, the last one not at all, and its epsilon is left to its own nodes. So each node has
a share of what is left of epsilon on the way to it, by its level and its place among its siblings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from panprivacy.ground.hygiene.uncounted import uncounted
from panprivacy.ground.kernels import inlined, kernel
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.counters.mechanism import (
    CounterState,
    Floats,
    Integers,
    Mechanism,
    StepAnswers,
)

_WHOLE: Final = 1 << 50
"""Epsilon in units in which it is spent along the way to a step."""
_GRID: Final = 64
"""Scales are whole multiples of `bound/(64 epsilon)`: few enough that noise is drawn in bulk."""
SHARES: Final = 1 << 10
"""Shares are whole multiples of a 1,024th."""

_ESTIMATE, _VARIANCE, _FOURTH, OWN_VARIANCE, _OWN_FOURTH = range(5)
"""The rows of `told`: of closed siblings together, and of the noise of the open node itself."""


@dataclass(frozen=True, slots=True)
class Tree(Mechanism):
    """The parameters of a tree.

    Args:
        horizon: number of steps, at most the product of the radices.
        epsilon: the loss for one event.
        radices: number of children of a node, those of the lowest level first.
        shares: of each level and place among siblings, in 1,024ths of the epsilon that is left;
            a node without a share leaves nothing.
        bound: the most that an event adds.
        open_steps: whether the memory may be seen within a step, between two events of it.
        combined: whether a node's own number is weighed with the sum of its children's, as their
            variances are.
        at_birth: whether nodes have initial noise. Without, the state is not private.
        at_closing: whether nodes leave with noise of that moment. Without, a look at the state and
            an answer together are not private.
    """

    horizon: int
    epsilon: Fraction
    radices: tuple[int, ...]
    shares: tuple[tuple[int, ...], ...]
    bound: int = 1
    open_steps: bool = False
    combined: bool = False
    at_birth: bool = True
    at_closing: bool = True
    estimates: ClassVar[int] = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Number of sums of a memory, and of columns of `told`."""
        return len(self.radices), len(self.radices)

    def initial(self, coins: Coins) -> CounterState:
        """Return the nodes of every level that begin with the first step."""
        memory = self._empty()
        if self.at_birth:
            self.rerandomise(memory, coins)
        return memory

    def add(self, memory: CounterState, amount: int) -> None:
        """Count events of the open step."""
        memory.cells += amount * (self._units(memory.tick) > 0)

    def run(self, memory: CounterState, amounts: Integers, coins: Coins) -> StepAnswers:
        """Take in steps, and answer at the end of each."""
        scales = draws_of(memory.tick, len(amounts), self.horizon, *self._shape)
        noise = self._noise(scales, coins)
        answers = np.empty((3, len(amounts)))
        most = len(amounts) + scales.size + len(memory.cells)  # steps, new nodes, nodes open now
        left = np.empty(most, np.int64)
        cells, told, end = memory.cells.copy(), memory.told.copy(), memory.tick + len(amounts)
        try:
            leaving = advance(
                memory.tick, self.horizon, amounts, noise, cells, told, answers, left,
                float(self._scale(1)), self.combined, *self._shape,
            )  # fmt: skip
            # No call between these: an interrupt, which comes as a kernel returns, finds either
            # memory whole. Nodes of one with the other's number could be without noise.
            memory.cells[:], memory.told[:], memory.tick = cells, told, end
        finally:
            wipe(noise, cells, told)
        return StepAnswers(answers[0], answers[1], answers[2], left[:leaving])

    def rerandomise(self, memory: CounterState, coins: Coins) -> None:
        """Add noise to every open node, of the same law as its initial noise."""
        scales = self._units(memory.tick)
        scales[0] *= self.open_steps
        self._disturb(memory, scales, coins)

    def hidden(self, memory: CounterState) -> float:
        """Return the most that an open node may hold back, where single steps have no output."""
        return 0.0 if any(self.shares[0]) else self.bound * (memory.tick % self.radices[0])

    def scales(self, tick: int) -> list[Fraction | None]:
        """Return the noise scale of each node of a step, the step first; None for no output."""
        return [self._scale(int(one)) if one else None for one in self._units(tick)]

    @property
    def largest_scale(self) -> Fraction:
        """The largest scale of any output noise."""
        return self._scale(int(draws_of(0, self.horizon, self.horizon, *self._shape).max()))

    def _empty(self) -> CounterState:
        """Return nodes that have counted nothing, without noise."""
        levels = len(self.radices)
        return CounterState(np.zeros(levels, np.int64), np.zeros((5, levels)))

    def _disturb(self, memory: CounterState, scales: Integers, coins: Coins) -> None:
        """Add noise of these scales to the open nodes; none where a scale is 0."""
        noise, drawn = np.zeros(scales.size, np.int64), self._noise(scales[scales > 0], coins)
        noise[scales > 0] = drawn
        memory.cells += noise
        wipe(noise, drawn)
        for level in np.flatnonzero(scales):
            more = laplace_cumulants(float(self._scale(int(scales[level]))))
            memory.told[OWN_VARIANCE:, level] += more

    def _scale(self, units: int) -> Fraction:
        return Fraction(units * self.bound, _GRID) / self.epsilon

    def _units(self, tick: int) -> Integers:
        """Return the scales of the nodes of a step, in units."""
        return _scales_of(min(tick, self.horizon - 1), *self._shape)

    @property
    def _shape(self) -> tuple[Any, ...]:
        return _shape(self.radices, self.shares, self.open_steps, self.at_birth, self.at_closing)

    def _noise(self, scales: Integers, coins: Coins) -> Integers:
        """Return noise of each scale, drawn together for all that have the same."""
        noise = np.empty(scales.size, np.int64)
        order = np.argsort(scales, kind="stable")
        found, starts = np.unique(scales[order], return_index=True)
        for units, places in zip(found, np.split(order, starts[1:]), strict=False):
            drawn = coins.discrete_laplace(self._scale(int(units)), len(places))
            noise[places] = drawn
            wipe(drawn)
        return noise


@uncounted
def _shape(
    radices: tuple[int, ...],
    shares: tuple[tuple[int, ...], ...],
    open_steps: bool,  # noqa: FBT001
    at_birth: bool,  # noqa: FBT001
    at_closing: bool,  # noqa: FBT001
) -> tuple[Any, ...]:
    """Return the description of a tree for the kernels."""
    padded = np.zeros((len(radices), max(radices)), np.int64)
    for level, row in enumerate(shares):
        padded[level, : len(row)] = row
    sizes = np.cumprod([1, *radices[:-1]], dtype=np.int64)
    return np.array(radices, np.int64), sizes, padded, open_steps, at_birth, at_closing


KERNEL_SHAPE = "int64[::1], int64[::1], int64[:, ::1], boolean, boolean, boolean"


@inlined
def _opening(tick, sizes):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the highest level of which a node begins with a step."""
    level = 0
    while level + 1 < sizes.size and tick % sizes[level + 1] == 0:
        level += 1
    return level


@inlined
def _find_scales(tick, highest, radices, sizes, shares, scales, rest):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Write the scales of the nodes of a step up to a level, and the rest of epsilon.

    An own part of what is left is rounded down, a scale up, and its cost up: so all costs together
    are at most the whole.
    """
    for level in range(highest, -1, -1):
        share = shares[level, (tick // sizes[level]) % radices[level]]
        left = rest[level + 1]
        scales[level], rest[level] = 0, left
        if share > 0:
            own = left if share == SHARES else (left // SHARES) * share
            scales[level] = (_GRID * _WHOLE + own - 1) // own
            rest[level] = left - (_GRID * _WHOLE + scales[level] - 1) // scales[level]


@kernel(f"int64[::1](int64, {KERNEL_SHAPE})")
def _scales_of(
    tick: int,
    radices: Integers,
    sizes: Integers,
    shares: Integers,
    open_steps: bool,  # noqa: ARG001, FBT001
    at_birth: bool,  # noqa: ARG001, FBT001
    at_closing: bool,  # noqa: ARG001, FBT001
) -> Integers:
    """Return the scales of all nodes of a step."""
    scales, rest = np.zeros(sizes.size, np.int64), np.full(sizes.size + 1, _WHOLE)
    _find_scales(tick, sizes.size - 1, radices, sizes, shares, scales, rest)
    return scales


@kernel(f"int64[::1](int64, int64, int64, {KERNEL_SHAPE})")
def draws_of(
    tick: int,
    steps: int,
    horizon: int,
    radices: Integers,
    sizes: Integers,
    shares: Integers,
    open_steps: bool,  # noqa: FBT001
    at_birth: bool,  # noqa: FBT001
    at_closing: bool,  # noqa: FBT001
) -> Integers:
    """Return the scales of all noise that some steps draw, in order: closing, then initial."""
    scales, rest = np.zeros(sizes.size, np.int64), np.full(sizes.size + 1, _WHOLE)
    _find_scales(tick, sizes.size - 1, radices, sizes, shares, scales, rest)
    most = 0
    for level in range(sizes.size):
        most += 2 * (steps // sizes[level] + 1)
    drawn, count = np.empty(most, np.int64), 0
    for step in range(tick, tick + steps):
        highest = _opening(step + 1, sizes)
        for level in range(highest + 1):
            if scales[level] > 0 and (at_closing or (level == 0 and not open_steps)):
                drawn[count] = scales[level]
                count += 1
        if step + 1 < horizon:
            _find_scales(step + 1, highest, radices, sizes, shares, scales, rest)
            for level in range(highest + 1):
                if scales[level] > 0 and at_birth and (level > 0 or open_steps):
                    drawn[count] = scales[level]
                    count += 1
    return drawn[:count].copy()


@inlined
def laplace_cumulants(scale: float) -> tuple[float, float]:
    """Return the variance and the fourth cumulant of discrete Laplace noise."""
    tail = math.exp(-1 / scale)
    rest = -math.expm1(-1 / scale)
    return 2 * tail / rest**2, 2 * (6 * tail**2 + tail * rest**2) / rest**4


@inlined
def _bear(highest, scales, noise, at, cells, told, unit, open_steps, at_birth):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Begin the nodes of a step up to a level; how much noise has been used then."""
    for level in range(highest + 1):
        cells[level] = 0
        told[OWN_VARIANCE, level] = told[_OWN_FOURTH, level] = 0.0
        if scales[level] > 0 and at_birth and (level > 0 or open_steps):
            cells[level] = noise[at]
            variance, fourth = laplace_cumulants(unit * scales[level])
            told[OWN_VARIANCE, level], told[_OWN_FOURTH, level] = variance, fourth
            at += 1
    return at


@kernel(
    "int64(int64, int64, int64[::1], int64[::1], int64[::1], float64[:, ::1], float64[:, ::1], "
    f"int64[::1], float64, boolean, {KERNEL_SHAPE})"
)
def advance(  # noqa: PLR0913, PLR0917 - one walk, which shares all it has
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
    """Process steps, and return the number of outputs."""
    scales, rest = np.zeros(sizes.size, np.int64), np.full(sizes.size + 1, _WHOLE)
    _find_scales(tick, sizes.size - 1, radices, sizes, shares, scales, rest)
    at = leaving = 0
    for place in range(amounts.size):
        step = tick + place
        highest = _opening(step + 1, sizes)
        for level in range(sizes.size):
            if scales[level] > 0:
                cells[level] += amounts[place]
        for level in range(highest + 1):
            value, variance, fourth = 0.0, 0.0, 0.0  # of the children, which are all closed
            if level > 0:
                value = told[_ESTIMATE, level - 1]
                variance = told[_VARIANCE, level - 1]
                fourth = told[_FOURTH, level - 1]
                told[:OWN_VARIANCE, level - 1] = 0.0
            if scales[level] > 0:
                own, own_fourth = told[OWN_VARIANCE, level], told[_OWN_FOURTH, level]
                left[leaving] = cells[level]
                if at_closing or (level == 0 and not open_steps):
                    left[leaving] += noise[at]
                    more, more_fourth = laplace_cumulants(unit * scales[level])
                    own, own_fourth = own + more, own_fourth + more_fourth
                    at += 1
                both = own + variance if combined and level > 0 else 0.0  # 0 for the least noise
                weight = variance / both if both > 0 else 1.0
                value = weight * left[leaving] + (1 - weight) * value
                variance = weight**2 * own + (1 - weight) ** 2 * variance
                fourth = weight**4 * own_fourth + (1 - weight) ** 4 * fourth
                leaving += 1
            told[_ESTIMATE, level] += value
            told[_VARIANCE, level] += variance
            told[_FOURTH, level] += fourth
            cells[level] = 0
        for row in range(3):
            answers[row, place] = told[row].sum()
        if step + 1 < horizon:
            _find_scales(step + 1, highest, radices, sizes, shares, scales, rest)
            at = _bear(highest, scales, noise, at, cells, told, unit, open_steps, at_birth)
    return leaving

"""The exact loss of programs whose view comes apart: one number of it for each noise.

A running sketch draws so much noise that its outcomes cannot be walked. But only its cells count in
a way that is not linear. All else is a sum: of a number that follows from the stream and the cells,
and of independent discrete Laplace noise. So the cells are walked, each with its exact probability.
A look shows them. Given the cells, the numbers of a view fall into parts that share no noise, and
the law of the view is the product of the laws of the parts. So losses of parts add up:

- A part with as many noises as numbers, of which each follows from the other. Noise that differs by
  `k` is at most `e**(|k|/scale)` times less likely, and on some outcome of all parts it is.
- A part of one number with several noises, of which nobody sees one alone. Its largest loss is
  `|k|` over the largest of the scales. It is approached far out.

Nothing is taken over from the program. What depends on which noise is read off by leading it
through the stream with noise of 0 and of 1. Then it has to look the same, to the last byte, under
both streams with noise and with the noise that differs so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.exact.loss import Loss
from panprivacy.audit.exact.numbers import CLOSE, exp
from panprivacy.audit.exact.shifts import ShiftedCoins
from panprivacy.audit.exact.traces import LeakError
from panprivacy.audit.streams import EventStream, Step, checked, format_stream, take
from panprivacy.errors import PlanError, allow_noise

_LARGE: Final = 1 << 20
_FACTOR: Final = 2_654_435_761
"""Noise of trials is up to the first, and as mixed as multiples of the second."""
_TRIED: Final = 32
"""Of so many views one is tried to the last byte, and the worst one."""


@dataclass(frozen=True, slots=True)
class SeparateLoss(Loss):
    """The loss as a sum over parts.

    Args:
        exact: the same, as a rational number.
        cell: the noise of the cell of the event that attains it; None without cells.
    """

    exact: Fraction | float = 0
    cell: int | None = None

    def __str__(self) -> str:
        cell = "" if self.cell is None else f", where a cell began with {self.cell}"
        return (
            f"{self.epsilon:.6g}: an intruder reads the state after step {self.after_step} of "
            f"{format_stream(self.stream)} or {format_stream(self.neighbour)}{cell} "
            f"({float(self.set_aside):.1e} were set aside)"
        )

    def within(self, claimed: Fraction | float) -> bool:
        """Return whether the loss is at most `claimed`, decided in rational numbers."""
        return self.exact <= claimed + CLOSE


class ViewNumbers(NamedTuple):
    """The whole numbers of a state.

    Args:
        cells: those that count in a way that is not linear.
        sums: those to which noise and amounts are added.
    """

    cells: Sequence[int]
    sums: Sequence[int]


@dataclass(frozen=True, slots=True)
class SeparateProgram:
    """A program whose view comes apart.

    Args:
        make: makes it with the coins it is given.
        numbers: the whole numbers of the state of a program.
        cells: number of cells, whose noise is drawn before all other.
        most: noise of a cell is walked to ± this.
    """

    make: Callable[[Any], Any]
    numbers: Callable[[Any], ViewNumbers]
    cells: int = 0
    most: int = 0


@dataclass(slots=True)
class _Run:
    """The views of a run at each moment: before the first step, and after each."""

    numbers: list[ViewNumbers] = field(default_factory=list)
    states: list[bytes] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    def view(self, look: int) -> NDArray[np.int64]:
        """Return all numbers that an intruder sees, but for cells."""
        return np.array([*self.numbers[look].sums, *self.counts], np.int64)

    def bytes(self, look: int) -> tuple[bytes, list[str]]:
        """Return the whole view of an intruder, as it is."""
        return self.states[look], self.answers


class _SeparateLife:
    """A program that is led through a stream again and again."""

    def __init__(self, program: SeparateProgram, stream: EventStream) -> None:
        self._program, self._stream = program, stream
        self._runs: dict[tuple[int, ...], _Run] = {}

    def run(self, noise: Sequence[int] = ()) -> _Run:
        """Return what is shown with this noise, and 0 for all further noise."""
        name = tuple(noise)
        if name not in self._runs:
            self._runs[name] = self.led(ShiftedCoins(name))
        return self._runs[name]

    @allow_noise()
    def led(self, coins: ShiftedCoins) -> _Run:
        """Return what is shown with these coins."""
        statistic, run = self._program.make(coins), _Run()
        self._note(statistic, run)
        for step in self._stream:
            self._take(statistic, step, run)
            self._note(statistic, run)
        return run

    def _take(self, statistic: Any, step: Step, run: _Run) -> None:
        answer = take(statistic, step)
        if answer is not None:
            run.counts += map(int, answer.counts)
            run.answers.append(repr(answer))

    def _note(self, statistic: Any, run: _Run) -> None:
        run.numbers.append(self._program.numbers(statistic))
        run.states.append(statistic.state())

    @cached_property
    def costs(self) -> list[Fraction]:
        """The loss of a difference of 1, for each noise: 1 over its scale."""
        coins = ShiftedCoins()
        self.led(coins)
        return coins.costs

    @cached_property
    def effects(self) -> list[_Run]:
        """A run for each noise that is added, with 1 for this noise."""
        added = range(self._program.cells, len(self.costs))
        return [self.led(ShiftedCoins([int(at == one) for at in range(one + 1)])) for one in added]


def separate_loss(
    program: SeparateProgram, pairs: Iterable[tuple[EventStream, EventStream]]
) -> SeparateLoss:
    """Return the exact worst loss between streams, over every intrusion time.

    Args:
        program: the program; its output noise is discrete Laplace noise.
        pairs: a stream and its neighbour each: batches and `RELEASE`, `SAVE` and `CRASH` steps.

    Raises:
        LeakError: the program tells more than sums of its noise.
        PlanError: its view does not come apart, or there are no pairs.
    """
    lives: dict[str, _SeparateLife] = {}  # many pairs have the same stream
    losses = [_Pair(program, *checked(*pair), lives).worst() for pair in pairs]
    if not losses:
        message = "there are no pairs of streams to compare"
        raise PlanError(message)
    return max(losses, key=lambda loss: loss.exact)


class _Pair:
    """A stream and its neighbour."""

    def __init__(
        self,
        program: SeparateProgram,
        stream: EventStream,
        neighbour: EventStream,
        lives: dict[str, _SeparateLife],
    ) -> None:
        self._program, self._pair = program, (stream, neighbour)
        self._first, self._second = (
            lives.setdefault(repr(one), _SeparateLife(program, one)) for one in (stream, neighbour)
        )
        self._costs = self._first.costs
        self.looks = range(len(stream) + 1)
        self.own = self._own()
        most = 0 if self.own is None else program.most
        self.cells = range(-most, most + 1)
        self._ways: dict[int, list[_SeparatePart]] = {}

    def worst(self) -> SeparateLoss:
        """Return the worst loss, over every intrusion time and every noise of the cell."""
        found = [(self.cost(look, cell), look, cell) for look in self.looks for cell in self.cells]
        cost, look, cell = max(found)
        for loss, *tried in (*found[::_TRIED], (cost, look, cell)):
            if loss < math.inf:
                self.confirm(*tried)
        shown = None if self.own is None else cell
        masses = Fraction(0), Fraction(0)
        return SeparateLoss(
            float(cost), *self._pair, look, (), masses, self.set_aside, exact=cost, cell=shown
        )

    @property
    def set_aside(self) -> Fraction:
        """The probability that the cell of the event begins with noise that was not walked."""
        if self.own is None:
            return Fraction(0)
        ratio = exp(-self._costs[self.own])
        return 2 * ratio ** (self._program.most + 1) / (1 + ratio)

    def cost(self, look: int, cell: int) -> Fraction | float:
        """Return the largest loss where the cell of the event begins with this noise."""
        other, apart = self._difference(look, cell)
        own = Fraction(0) if self.own is None else abs(other - cell) * self._costs[self.own]
        return sum((part.loss(apart, self._costs) for part in self._parts(look)), own)

    def confirm(self, look: int, cell: int) -> None:
        """Check that a view is the same under both streams with noise that differs so.

        Raises:
            LeakError: the views differ.
        """
        other, apart = self._difference(look, cell)
        size = len(self._costs)
        noise = [(one * _FACTOR + cell) % (2 * _LARGE) - _LARGE for one in range(size)]
        noise[: self._program.cells] = [one % 5 - 2 for one in noise[: self._program.cells]]
        shifts = [0] * size
        for part in self._parts(look):
            for at, shift in part.shifts(apart).items():
                shifts[at] = shift
        if self.own is not None:
            noise[self.own], shifts[self.own] = cell, other - cell
        later = [one + shift for one, shift in zip(noise, shifts, strict=True)]
        views = self._first.run(noise).bytes(look), self._second.run(later).bytes(look)
        if views[0] != views[1]:
            message = "the program tells more than its cells and sums of its noise"
            raise LeakError(message)

    def _own(self) -> int | None:
        """Return which cell is the event's, or None without cells."""
        runs = self._first.run(), self._second.run()
        touched = {
            place
            for run in runs
            for numbers in run.numbers
            for place, (one, born) in enumerate(
                zip(numbers.cells, run.numbers[0].cells, strict=True)
            )
            if one != born
        }
        if len(touched) > 1 or (self._program.cells and not touched):
            message = "all rows of both streams must be of users of one cell"
            raise PlanError(message)
        return min(touched, default=None)

    def _difference(self, look: int, cell: int) -> tuple[int, NDArray[np.int64]]:
        """Return the noise of the neighbour's cell that looks the same, and what differs then."""
        other = cell
        if self.own is not None:
            shown = self._noise(self._first, cell).numbers[look].cells[self.own]
            other += shown - self._noise(self._second, cell).numbers[look].cells[self.own]
        first, second = self._noise(self._first, cell), self._noise(self._second, other)
        if first.numbers[look].cells != second.numbers[look].cells:
            message = "noise of a cell must be added to it"
            raise PlanError(message)
        return other, first.view(look) - second.view(look)

    def _noise(self, life: _SeparateLife, cell: int) -> _Run:
        """Return the run in which the cell of the event begins with this noise."""
        return life.run([cell if at == self.own else 0 for at in range(self._program.cells)])

    def _parts(self, look: int) -> list[_SeparatePart]:
        """Return the parts of a view that share no noise."""
        if look not in self._ways:
            base = self._first.run().view(look)
            ways = np.array([one.view(look) - base for one in self._first.effects], np.int64).T
            self._ways[look] = list(_parts(ways, self._program.cells))
        return self._ways[look]


@dataclass(frozen=True, slots=True)
class _SeparatePart:
    """Numbers of a view, and the noise in them.

    Args:
        rows: places of the numbers in the view.
        noises: places of the noises among all draws.
        ways: how much each noise adds to each number.
    """

    rows: list[int]
    noises: list[int]
    ways: NDArray[np.int64]

    def loss(self, apart: NDArray[np.int64], costs: Sequence[Fraction]) -> Fraction | float:
        """Return the largest loss of numbers that differ so much."""
        wanted = apart[self.rows]
        if len(self.rows) == 1 and self.noises:
            return int(abs(wanted[0])) * min(costs[one] for one in self.noises)
        shifts = self._solved(wanted)
        if shifts is None:
            return math.inf
        pairs = zip(shifts.tolist(), self.noises, strict=True)
        return sum((abs(shift) * costs[one] for shift, one in pairs), Fraction(0))

    def shifts(self, apart: NDArray[np.int64]) -> dict[int, int]:
        """Return by how much the noises of the neighbour differ for the same view."""
        wanted = apart[self.rows]
        if len(self.rows) == 1 and self.noises:
            return {self.noises[0]: int(wanted[0])}
        shifts = self._solved(wanted)
        return {} if shifts is None else dict(zip(self.noises, shifts.tolist(), strict=True))

    def _solved(self, wanted: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return what the noises have to add, or None if they cannot."""
        if not self.noises:
            return None if wanted.any() else np.zeros(0, np.int64)
        found, _, rank, _ = np.linalg.lstsq(self.ways.astype(float), wanted.astype(float))
        if rank < len(self.noises):
            message = "noise that is seen in sums alone must be seen in one number alone"
            raise PlanError(message)
        shifts = np.rint(found).astype(np.int64)
        return shifts if (self.ways @ shifts == wanted).all() else None


def _parts(ways: NDArray[np.int64], skipped: int) -> Iterator[_SeparatePart]:
    """Yield the connected parts of what depends on which noise.

    Raises:
        PlanError: a number of one part has a noise more than once.
    """
    left = set(range(len(ways)))
    while left:
        rows, noises = {left.pop()}, set[int]()
        while True:
            more = {int(one) for row in rows for one in np.flatnonzero(ways[row])}
            found = {int(row) for one in more for row in np.flatnonzero(ways[:, one])}
            if found <= rows and more == noises:
                break
            rows, noises = rows | found, more
        left -= rows
        part, drawn = sorted(rows), sorted(noises)
        own = ways[np.ix_(part, drawn)]
        if len(part) == 1 and (np.abs(own) > 1).any():
            message = "noise must be added once"
            raise PlanError(message)
        yield _SeparatePart(part, [one + skipped for one in drawn], own)

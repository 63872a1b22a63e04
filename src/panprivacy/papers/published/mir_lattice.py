"""Sketches of whole numbers modulo M, how far their points are from 0, and noise that fits.

A linear sketch map gives each user a column; the sketch is the sum of columns times states, a
point of the lattice `Z_M**rows`. The *length* of a point is the norm of the least vector of states
that leads there. A user's states move a sketch by a multiple of the user's column, so no length
changes by
more than the length of that multiple: noise whose weight falls with the length hides the user.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", section 3.1 with its general technique. Repaired: states are whole numbers modulo M,
in no box, so the lattice is closed under updates, and the sensitivity is that of the lattice itself
(docs/published.md). docs/guarantees/published.md proves the claims.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.ground.hygiene.uncounted import uncounted
from panprivacy.privacy.guarantee import exp_bounds

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_POINTS = 1 << 16
"""The largest lattice that is enumerated."""

_MOST_WORK = 1 << 28
_LEAST_STEP = 1 << 12
"""Minimum time to shift a lattice, in points."""

STEPS = 16
"""Number of steps to the unit for a length that is no whole number; lengths are rounded up."""

_UNIT = 1 << 40
"""The least weight of a law."""

_MOST_EXPONENT = Fraction(64)
_TAIL = 48
"""Points whose weight would be below `e**-48` of the largest, over their number, weigh the same."""


class LatticeSketch(Protocol):
    """A linear sketch map of whole numbers; public, frozen, and determined by its parameters."""

    @property
    def rows(self) -> int:
        """Numbers of a sketch."""

    @property
    def modulus(self) -> int:
        """M, modulo which they are."""

    def columns(self) -> Integers:
        """Return the column of each user, int64[users, rows], each entry 0 .. M-1."""


@dataclass(frozen=True, slots=True)
class SketchMap:
    """A sketch map with these columns.

    >>> sketch = SketchMap(((1, 0), (0, 1), (1, 1)), 5)
    >>> lattice = lattice_of(sketch, 0)
    >>> lattice.length([2, 2]), lattice.length([2, 3]), sensitivity_of(sketch, 0)
    (1, 2, 1)

    Args:
        given: the column of each user, whole numbers.
        modulus: M.
    """

    given: tuple[tuple[int, ...], ...]
    modulus: int

    @property
    def rows(self) -> int:
        """Numbers of a sketch."""
        return len(self.given[0])

    def columns(self) -> Integers:
        """Return the column of each user."""
        return np.array([[entry % self.modulus for entry in column] for column in self.given])


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """The points of a sketch map, by number, and the length of each.

    Args:
        modulus: M.
        columns: int64[users, rows].
        lengths: int64[M**rows]; -1 for a point that no sketch reaches.
        unit: steps of a length to the unit of the norm.
    """

    modulus: int
    columns: Integers
    lengths: Integers
    unit: int

    @property
    def rows(self) -> int:
        """Numbers of a sketch."""
        return self.columns.shape[1]

    @property
    def shape(self) -> tuple[int, ...]:
        """An axis of M for each row."""
        return (self.modulus,) * self.rows

    @property
    def longest(self) -> int:
        """The largest length."""
        return int(self.lengths.max())

    def numbers(self, points: Sequence[Sequence[int] | Integers] | Integers) -> Integers:
        """Return the numbers of points, whose entries are taken modulo M."""
        entries = np.asarray(points, np.int64).reshape(-1, self.rows) % self.modulus
        return np.atleast_1d(np.ravel_multi_index(tuple(entries.T), self.shape))

    def length(self, point: Sequence[int] | Integers) -> int:
        """Return the length of a point, in steps; -1 if no sketch reaches it."""
        return int(self.lengths[self.numbers([point])[0]])

    @property
    def faithful(self) -> bool:
        """Whether no two vectors of states, modulo M, have the same sketch."""
        return int((self.lengths >= 0).sum()) == self.modulus ** len(self.columns)

    def convolved(self, first: Floats, second: Floats) -> Floats:
        """Return the law of the sum of two points with these laws."""
        one, other = (np.fft.fftn(law.reshape(self.shape)) for law in (first, second))
        law: Floats = np.fft.ifftn(one * other).real.ravel()
        return np.maximum(law, 0)


def _largest_power(modulus: int) -> int:
    """Return the number of rows of this modulus that can be enumerated."""
    return int(math.log(MOST_POINTS) / math.log(modulus) + 1e-9)


def check_size(rows: int, modulus: int) -> None:
    """Refuse a lattice that is too large, and say which is not.

    Raises:
        PlanError: it has more than `MOST_POINTS` points.
    """
    if modulus**rows > MOST_POINTS:
        largest = int(MOST_POINTS ** (1 / rows) + 1e-9)
        fewer = _largest_power(modulus)
        with_rows = f"modulus={largest:,} with {rows} rows" if largest > 1 else ""
        with_modulus = f"{fewer} rows with modulus={modulus:,}" if fewer else ""
        told = " or ".join(filter(None, (with_rows, with_modulus)))
        message = (
            f"a lattice of {modulus:,}**{rows} points is too large to enumerate, at most "
            f"{MOST_POINTS:,} may be: take {told or 'fewer rows'} at most"
        )
        raise PlanError(message)


@uncounted
def lattice_of(sketch: LatticeSketch, norm: int) -> Lattice:
    """Enumerate the lattice of a sketch map.

    Args:
        sketch: the map.
        norm: of the states: 0 for how many are not 0, 1 for the sum of `|state|`, 2 for the root of
            the sum of squares; `|state|` is the smaller one of `state mod M` and its negative.

    Raises:
        PlanError: there are too many points or steps; the message says what would do.
    """
    check_size(sketch.rows, sketch.modulus)
    columns = sketch.columns()
    shape = (sketch.modulus,) * sketch.rows
    if norm == 2:
        lengths = _rooted(_min_squares(columns, sketch.modulus, shape))
    else:
        lengths = _fewest_steps(_steps(columns, sketch.modulus, norm), shape)
    if not lengths.max():
        message = "columns that are all 0 modulo M tell nothing: take others"
        raise PlanError(message)
    kept = (np.frombuffer(one.astype(np.int64).tobytes(), np.int64) for one in (columns, lengths))
    return Lattice(
        sketch.modulus, next(kept).reshape(columns.shape), next(kept), STEPS if norm == 2 else 1
    )


def _steps(columns: Integers, modulus: int, norm: int) -> Integers:
    """Return the points of length 1: multiples of columns (L0), or columns and negatives (L1)."""
    distinct = np.unique(columns, axis=0)
    times = range(1, modulus) if norm == 0 else (1, -1)
    _check_work(len(distinct) * len(times), 1)
    shape = (modulus,) * columns.shape[1]
    marks = np.zeros(shape, bool)
    for each in times:
        marks[tuple((distinct * each % modulus).T)] = True
    marks.flat[0] = False
    return np.argwhere(marks)


def _check_work(steps: int, points: int) -> None:
    if steps * points > _MOST_WORK:
        message = (
            f"{steps:,} steps of a lattice of {points:,} points are too many to enumerate, at most "
            f"{_MOST_WORK // points:,} may be: take fewer users or a smaller modulus"
        )
        raise PlanError(message)


def _fewest_steps(steps: Integers, shape: tuple[int, ...]) -> Integers:
    """Return the least number of steps to each point, or -1 if the point is unreachable."""
    lengths = np.full(shape, -1, np.int64)
    lengths.flat[0], lengths[tuple(steps.T)] = 0, 1
    axes = tuple(range(len(shape)))
    new, length = lengths == 1, 1
    while new.any() and lengths.min() < 0:
        _check_work(len(steps), lengths.size)
        reached = np.zeros(shape, bool)
        for step in steps:
            reached |= np.roll(new, tuple(step), axes)
        new, length = reached & (lengths < 0), length + 1
        lengths[new] = length
    return lengths.ravel()


def _min_squares(columns: Integers, modulus: int, shape: tuple[int, ...]) -> Integers:
    """Return the least sum of squares of states that lead to each point; -1 where none do."""
    _check_work(len(columns) * (modulus - 1), max(modulus ** len(shape), _LEAST_STEP))
    far = np.iinfo(np.int64).max // 2
    least = np.full(shape, far, np.int64)
    least.flat[0] = 0
    axes = tuple(range(len(shape)))
    for column in columns:
        before = least
        for times in range(1, modulus):
            size = min(times, modulus - times)
            moved = np.roll(before, tuple(column * times), axes) + size * size
            least = np.minimum(least, moved)
    least[least >= far] = -1
    return least.ravel()


def _rooted(squares: Integers) -> Integers:
    """Return `STEPS` times the roots, rounded up."""
    known = {-1: -1}
    for square in np.unique(squares[squares >= 0]).tolist():
        target = square * STEPS**2
        known[square] = math.isqrt(target - 1) + 1 if target else 0
    return np.array([known[square] for square in squares.tolist()], np.int64)


@uncounted
def sensitivity_of(sketch: LatticeSketch, norm: int) -> int:
    """Return the largest number of steps by which one user can move the length of any sketch.

    It is exact: the largest length of a multiple of a column. Lengths obey the triangle inequality,
    and a user moves the length 0 by that much.

    Args:
        sketch: the map.
        norm: norm of the states.
    """
    lattice = lattice_of(sketch, norm)
    columns = np.unique(lattice.columns, axis=0)
    return max(
        int(lattice.lengths[lattice.numbers(columns * times)].max())
        for times in range(1, lattice.modulus // 2 + 1)
    )


@uncounted
def weights_of(sketch: LatticeSketch, norm: int, epsilon: Fraction) -> tuple[int, ...]:
    """Return whole weights of points: within a user's move none falls by more than `e**epsilon`.

    From each length to the next a weight falls by at most `e**(epsilon/sensitivity)`: each is the
    one before, times a rational number below that, rounded down. From some length on, which hardly
    any noise has, weights fall no further.

    Args:
        sketch: the map.
        norm: norm of the states.
        epsilon: epsilon of one intrusion.
    """
    lattice, sensitivity = lattice_of(sketch, norm), sensitivity_of(sketch, norm)
    ratio = exp_bounds(min(epsilon / sensitivity, _MOST_EXPONENT))[0]
    tail = math.ceil((_TAIL + math.log(len(lattice.lengths))) * sensitivity / epsilon)
    longest = min(lattice.longest, tail)
    falling = list(_rising(ratio, longest))[::-1]
    weights = [*falling, *falling[-1:] * (lattice.longest - longest), 0]  # the last for length -1
    return tuple(weights[length] for length in lattice.lengths.tolist())


def _rising(ratio: Fraction, count: int) -> Iterator[int]:
    """Return the least weight, and the weights of the lengths below the longest."""
    weight = _UNIT
    yield weight
    for _ in range(count):
        weight = math.floor(weight * ratio)
        yield weight


def probabilities(weights: Sequence[int]) -> Floats:
    """Return the law with these weights, float64; nothing that decides privacy."""
    total = sum(weights)
    return np.array([weight / total for weight in weights])


def law_of_lengths(lattice: Lattice, law: Floats) -> Floats:
    """Return the probability of each length from 0 to the longest."""
    reached = lattice.lengths >= 0
    lengths: Floats = np.bincount(lattice.lengths[reached], weights=law[reached]).astype(float)
    return lengths

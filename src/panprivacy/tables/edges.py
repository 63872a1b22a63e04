"""The edges of the bins of a histogram, and the bin of each value."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.kernels import kernel, read_only
from panprivacy.tables.decoders.intervals import Floats

MOST_BINS = 1 << 16
MOST_EDGES = 2_048
"""Edges that can be given one by one: a state has them in its public front."""

_NARROWEST, _WIDEST = 1e-290, 1e300
_NOT_A_NUMBER: Final = 1
_OUTSIDE: Final = 2
_REASONS = {
    _NOT_A_NUMBER: "the value is NaN; drop such rows or give them a value",
    _OUTSIDE: "the value lies outside of the edges: plan for wider ones, or with outside=open",
}


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges of bins: bin k holds values from its low end to below its high end.

    Args:
        inner: the edges, each above the one before; two or more.
        is_open: whether a bin below the first edge and one from the last edge on hold what lies
            outside. Without them such a value is refused, and the last bin holds the last edge.
        is_log: whether values within a bin are interpolated by their logarithms.
    """

    inner: tuple[float, ...]
    is_open: bool = True
    is_log: bool = False

    def __post_init__(self) -> None:
        """Refuse edges between which floats have no differences.

        Raises:
            PlanError: they are too far apart, or too near to each other.
        """
        _check_width(self.inner[0], self.inner[-1])

    @classmethod
    def linear(cls, low: float, high: float, bins: int, *, is_open: bool) -> Edges:
        """Return edges of bins of equal width."""
        _check_width(low, high)
        return cls(_rising(np.linspace(low, high, bins + 1)), is_open)

    @classmethod
    def log(cls, low: float, high: float, bins: int, *, is_open: bool) -> Edges:
        """Return edges of bins of equal ratio."""
        if low <= 0:
            message = "low must be above 0 where bins have equal ratios: say scale=linear"
            raise PlanError(message)
        return cls(_rising(np.geomspace(low, high, bins + 1)), is_open, is_log=True)

    def __str__(self) -> str:
        """Return how many edges there are, and from where to where."""
        low, high = self.inner[0], self.inner[-1]
        beyond = ", with a bin without an end on each side" if self.is_open else ""
        return f"{len(self.inner):,} from {low:g} to {high:g}{beyond}"

    @property
    def bins(self) -> int:
        """Number of bins, with those that have no end."""
        return len(self.inner) - 1 + 2 * self.is_open

    @property
    def lows(self) -> Floats:
        """Low end of each bin, float64[bins]; -inf for that of an open one."""
        inner = np.array(self.inner)
        return np.concatenate([[-math.inf], inner]) if self.is_open else inner[:-1]

    @property
    def highs(self) -> Floats:
        """High end of each bin, float64[bins]; inf for that of an open one."""
        inner = np.array(self.inner)
        return np.concatenate([inner, [math.inf]]) if self.is_open else inner[1:]

    @property
    def cut(self) -> tuple[Floats, Floats]:
        """Both ends of each bin, where values are cut to the first and the last edge."""
        ends = self.inner[0], self.inner[-1]
        return np.clip(self.lows, *ends), np.clip(self.highs, *ends)

    @property
    def widest(self) -> float:
        """Width of the widest bin: a ratio less 1 if logarithmic, else in the unit of values."""
        inner = np.array(self.inner)
        steps = inner[1:] / inner[:-1] - 1 if self.is_log else np.diff(inner)
        return float(steps.max())

    def at(self, position: float) -> float:
        """Return the value at a position in bins: 2.5 is the middle of bin 2, counted from 0."""
        place = min(int(position), self.bins - 1)
        low, high = (float(ends[place]) for ends in self.cut)
        share = position - place
        if self.is_log:
            return low * (high / low) ** share
        return low + share * (high - low)

    def count(
        self, values: NDArray[np.float64], deltas: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """Return the sum of the deltas of each bin, int64[bins].

        Args:
            values: of each event.
            deltas: of each event; None for 1 each.

        Raises:
            InputError: a value is NaN, or outside of closed edges. The message names the row.
        """
        counts = np.zeros((_LANES, len(self.inner) + 1), np.int64)
        given = _NO_DELTAS if deltas is None else deltas
        row, reason = _count(
            values, values.view(np.int64), given, *_search(self), self.is_open, counts
        )
        if reason:
            raise InputError(_REASONS[reason], row=int(row) + 1)
        found: NDArray[np.int64] = counts.sum(axis=0)
        if self.is_open:
            return found
        found[-2] += found[-1]  # the last edge itself
        return found[1:-1]


_LANES: Final = 4
"""Counts that are kept apart, so that equal values one after another need not wait."""
_CELLS_PER_EDGE, _MOST_CELLS = 4, 1 << 16

_NO_DELTAS = np.empty(0, np.int64)


@functools.lru_cache(maxsize=64)
def _search(edges: Edges) -> tuple[Floats, NDArray[np.int64], float, int]:
    """Return the table by which the kernel finds a bin.

    Returns:
        The edges, and a NaN that no value reaches. For each cell of a table, how many edges come
        before all values of the cell. The number of cells of one unit of value; 0 where cells are
        cut by the bits of a value, which follow its logarithm, and how many of these bits one cell
        has.
    """
    inner = np.array(edges.inner)
    size = min(_CELLS_PER_EDGE * len(inner), _MOST_CELLS)
    scale, shift = size / float(inner[-1] - inner[0]), 0
    cells = ((inner - inner[0]) * scale).astype(np.int64)
    if inner[0] > 0:
        bits = inner.view(np.int64) - inner[:1].view(np.int64)
        bits_of_cell = max(int(bits[-1]).bit_length() - size.bit_length() + 1, 0)
        if _largest_count(bits >> bits_of_cell) < _largest_count(cells):
            scale, shift, cells = 0.0, bits_of_cell, bits >> bits_of_cell
    before = np.searchsorted(cells, np.arange(int(cells[-1]) + 1), "left").astype(np.int64)
    return np.append(inner, math.nan), before, scale, shift


def _largest_count(cells: NDArray[np.int64]) -> int:
    """Return the largest number of edges that are in one cell."""
    return int(np.unique(cells, return_counts=True)[1].max())


def _check_width(low: float, high: float) -> None:
    if not _NARROWEST < high - low < _WIDEST:
        message = f"the edges must be {_NARROWEST:g} to {_WIDEST:g} apart in all"
        raise PlanError(message)


def _rising(edges: Floats) -> tuple[float, ...]:
    """Return edges as a tuple.

    Raises:
        PlanError: two are equal when they are written with 12 digits, as answers are named.
    """
    if len({f"{edge:.12g}" for edge in edges}) < len(edges):
        message = "the bins are so narrow that 12 digits do not tell their edges apart: ask for "
        message += "fewer bins"
        raise PlanError(message)
    return tuple(edges.tolist())


_VALUES, _WHOLE = read_only("float64"), read_only("int64")


@kernel(
    f"UniTuple(int64, 2)({_VALUES}, {_WHOLE}, {_WHOLE}, {_VALUES}, {_WHOLE}, float64, int64, "
    "boolean, int64[:, ::1])"
)
def _count(
    values: Floats,
    bits: NDArray[np.int64],
    deltas: NDArray[np.int64],
    edges: Floats,
    before: NDArray[np.int64],
    scale: float,
    shift: int,
    is_open: bool,  # noqa: FBT001
    counts: NDArray[np.int64],
) -> tuple[int, int]:
    """Add up deltas by the number of edges that a value reaches; return the first bad row, and why.

    A value has a cell of a table, by a function that never falls. So edges of lower cells are below
    the value, and the search goes on from there: as cells are narrow, by one edge at most, mostly.
    """
    last, weighed = edges.size - 2, deltas.size > 0
    first_bits = edges.view(np.int64)[0]
    for row in range(values.size):
        value = values[row]
        if not value >= edges[0]:
            if value != value:  # noqa: PLR0124 - NaN
                return row, _NOT_A_NUMBER
            place = 0
        elif value >= edges[last]:
            place = last + 1
        else:
            if scale == 0:
                cell = (bits[row] - first_bits) >> shift
            else:
                cell = int((value - edges[0]) * scale)
            place = before[cell]
            place += edges[place] <= value
            while edges[place] <= value:
                place += 1
        if not is_open and (value < edges[0] or value > edges[last]):
            return row, _OUTSIDE
        counts[row & (_LANES - 1), place] += deltas[row] if weighed else 1
    return 0, 0

"""Any finite local randomiser, from its law as exact fractions.

Reference: Dwork and Roth, Definition 12.1.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.papers.local.frequencies import Spread
from panprivacy.papers.local.randomiser import (
    Randomiser,
    Reports,
    Values,
    pieces,
    read_epsilon,
    read_reports,
)
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import LARGEST_EXPONENT, Epsilon, exp_bounds, format_rounded_up
from panprivacy.privacy.noise import wipe

MatrixColumn = tuple[Fraction, ...]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_ENTRIES = 1 << 20
_LEAST_SIGNAL = 1e-9


@dataclass(frozen=True, init=False)
class MatrixRandomiser(Randomiser):
    """A randomiser whose report is w with probability `matrix[value][w]`.

    >>> from fractions import Fraction
    >>> from panprivacy import local
    >>> third = Fraction(1, 3)
    >>> asked = local.MatrixRandomiser([[2 * third, third], [third, 2 * third]], epsilon=0.7)
    >>> asked.ratio
    Fraction(2, 1)
    >>> local.MatrixRandomiser([[2 * third, third], [0, 1]], epsilon=0.7)
    Traceback (most recent call last):
    ...
    panprivacy.errors.PlanError: report 0 is possible for some values only: no epsilon allows that

    Guarantee: as for each `Randomiser`; a matrix that does not keep it is refused, decided exactly.
    [tests/exact/test_local.py]

    Args:
        matrix: a row for each value, a column for each report: fractions or whole numbers, or
            texts like "1/3"; no floats, which add up to nearly 1.
        epsilon: the loss of a report, in nats.

    Raises:
        PlanError: no such matrix; a row that does not add up to 1; two probabilities of one report
            whose ratio is above `e**epsilon`.
    """

    matrix: tuple[MatrixColumn, ...] = field(repr=False)

    def __init__(self, matrix: Sequence[Sequence[Fraction | int | str]], epsilon: Epsilon) -> None:
        laws = _read(matrix)
        object.__setattr__(self, "values", len(laws))
        object.__setattr__(self, "epsilon", read_epsilon(epsilon))
        object.__setattr__(self, "matrix", laws)
        below, _ = exp_bounds(min(self.epsilon, LARGEST_EXPONENT))
        if self.ratio > below:
            message = (
                f"one report is {float(self.ratio):.6g} times as likely for one value as for "
                f"another, and epsilon {format_rounded_up(self.epsilon)} allows {float(below):.6g}"
            )
            raise PlanError(message)

    @property
    def ratio(self) -> Fraction:
        """The largest ratio within a column."""
        columns = zip(*self.matrix, strict=True)
        return max(_ratio(report, column) for report, column in enumerate(columns))

    @property
    def outcomes(self) -> int:
        """Number of possible reports."""
        return len(self.matrix[0])

    @property
    def bits(self) -> int:
        """The length of a number below the number of reports."""
        return (self.outcomes - 1).bit_length()

    @property
    def variance(self) -> float:
        """Variance of the estimates where all values have the same number of users."""
        return float(self._variances(self._weights()).mean())

    def _draw(self, values: Values, coins: Coins) -> Reports:
        """Draw once and compare with every end: the same steps for all values."""
        weights, ends = _parts(self.matrix)
        drawn = coins.categorical(weights, len(values))
        reports = np.empty(len(values), np.uint32)
        for rows in pieces(len(values), self.outcomes):
            reports[rows] = (ends[values[rows]] <= drawn[rows, None]).sum(axis=1)
        wipe(drawn)
        return reports

    def _scores(self, reports: Reports) -> NDArray[np.int64]:
        return read_reports(reports, self.outcomes)

    def _spread(self, scores: NDArray[np.int64], users: int) -> Spread:
        weights = self._weights()
        estimates = weights @ scores
        variances = self._variances(weights)
        own = np.diag(variances)
        held = np.clip(estimates, 0, users)
        others = variances @ held - own * held
        return Spread(estimates, others, own, np.ptp(weights, axis=1))

    def _weights(self) -> Floats:
        """Return the unbiased weight of each report for each value, float64[values, outcomes].

        Of all such weights they have the smallest variance where all values are as frequent.
        """
        law = self._floats()
        mean = law.mean(axis=0)
        shrunk = np.divide(law, mean, out=np.zeros_like(law), where=mean > 0)
        told = shrunk @ law.T
        if np.linalg.eigvalsh(told)[0] < _LEAST_SIGNAL:
            message = "the reports cannot tell all values apart: there is no estimate for each"
            raise PlanError(message)
        return np.linalg.solve(told, shrunk)

    def _variances(self, weights: Floats) -> Floats:
        """Return the variance that a user of each value (columns) adds to each estimate (rows)."""
        law = self._floats()
        return weights**2 @ law.T - (weights @ law.T) ** 2

    def _floats(self) -> Floats:
        return np.array([[float(one) for one in law] for law in self.matrix])


def _read(matrix: Sequence[Sequence[Fraction | int | str]]) -> tuple[MatrixColumn, ...]:
    try:
        laws = tuple(tuple(map(_exact, row)) for row in matrix)
    except (TypeError, ValueError, ZeroDivisionError):
        message = "a matrix must have rows of fractions, whole numbers or texts like 1/3"
        raise PlanError(message) from None
    widths = {len(law) for law in laws}
    if len(laws) < 2 or len(widths) > 1 or not 1 <= len(laws[0]) * len(laws) <= MOST_ENTRIES:
        message = (
            f"a matrix must have 2 rows or more, of one length, {MOST_ENTRIES:,} entries at most"
        )
        raise PlanError(message)
    for row, law in enumerate(laws):
        if min(law) < 0 or sum(law) != 1:
            message = f"row {row:,} of the matrix must be of probabilities that add up to exactly 1"
            raise PlanError(message)
    return laws


def _exact(number: Fraction | int | str) -> Fraction:
    if not isinstance(number, (Fraction, int, str)):
        raise TypeError
    return Fraction(number)


def _ratio(report: int, column: MatrixColumn) -> Fraction:
    """Return the largest probability of a report over the smallest; 1 for one that never comes."""
    least, most = min(column), max(column)
    if least == most:
        return Fraction(1)
    if least == 0:
        message = f"report {report:,} is possible for some values only: no epsilon allows that"
        raise PlanError(message)
    return most / least


@functools.lru_cache(maxsize=64)
def _parts(matrix: tuple[MatrixColumn, ...]) -> tuple[list[int], Integers]:
    """Return the parts of 0 .. 1 between the ends of reports: weights, and each report's end.

    A report w of a value has the parts from the end of the report before it on to its own,
    `ends[value, w]`.
    """
    found = [list(itertools.accumulate(law)) for law in matrix]
    marks = sorted({Fraction(0)}.union(*found))
    places = {mark: place for place, mark in enumerate(marks)}
    unit = math.lcm(*(mark.denominator for mark in marks))
    weights = [int((after - before) * unit) for before, after in itertools.pairwise(marks)]
    return weights, np.array([[places[end] for end in law] for law in found], np.int64)

"""Optimised unary encoding: a noisy bit for each value.

Reference: T. Wang, J. Blocki, N. Li, S. Jha, "Locally differentially private protocols for
frequency estimation", 2017. Two values differ in two bits, so the bits share epsilon: the bit of
the value is a fair coin, and each other one spends all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import InputError
from panprivacy.papers.local.frequencies import Spread
from panprivacy.papers.local.randomiser import Randomiser, Reports, Values, pieces
from panprivacy.papers.local.response import two_coins
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import randomised_response
from panprivacy.privacy.noise import wipe

MOST_BITS = 1 << 16
_HALF = Fraction(1, 2)


@dataclass(frozen=True, init=False)
class UnaryEncoding(Randomiser):
    """The bit of the value is a fair coin, all others are 1 with probability `other`.

    >>> from panprivacy import local
    >>> browsers = local.UnaryEncoding(20, epsilon=1)
    >>> reports = browsers.randomise([3] * 10_000)
    >>> reports.shape  # of bytes, value v in bit v % 8 of byte v // 8
    (10000, 3)
    >>> 8_000 < browsers.estimate(reports).of(3).value <= 10_000
    True

    It errs least where there are more than about `3 e**epsilon + 2` values, and its reports are the
    longest.

    Guarantee: as for each `Randomiser`. [tests/exact/test_local.py]

    Args:
        values: number of values, 2 to 2**16.
        epsilon: the loss of a report, in nats.

    Raises:
        PlanError: an argument out of range.
    """

    most_values = MOST_BITS

    @property
    def other(self) -> Fraction:
        """The probability of a 1 for each value that the user does not hold."""
        return 1 - randomised_response(self.epsilon)

    @property
    def ratio(self) -> Fraction:
        """Ratio for a 1 and a 0 among two bits: half for the value, `other` for the other one."""
        return (1 - self.other) / self.other

    @property
    def bits(self) -> int:
        """Number of bits: one for each value."""
        return self.values

    @property
    def variance(self) -> float:
        """The same whatever users hold."""
        other, gain = float(self.other), float(_HALF - self.other)
        return (1 / 4 + (self.values - 1) * other * (1 - other)) / (self.values * gain**2)

    @property
    def _nbytes(self) -> int:
        return -(-self.values // 8)

    def _draw(self, values: Values, coins: Coins) -> Reports:
        reports = np.empty((len(values), self._nbytes), np.uint8)
        for rows in pieces(len(values), self.values):
            self._fill(reports[rows], values[rows], coins)
        return reports

    def _fill(self, reports: Reports, values: Values, coins: Coins) -> None:
        """Draw the reports of some users."""
        bits = coins.bernoulli(self.other, values.size * self.values).reshape(-1, self.values)
        own = coins.bernoulli(_HALF, values.size)
        bits[np.arange(values.size), values] = own
        reports[:] = np.packbits(bits, axis=1, bitorder="little")
        wipe(bits, own)

    def _scores(self, reports: Reports) -> NDArray[np.int64]:
        given = np.asarray(reports)
        if given.dtype != np.uint8 or given.ndim != 2 or given.shape[1] != self._nbytes:
            message = f"reports must be rows of {self._nbytes:,} bytes, uint8"
            raise InputError(message)
        self._check_last(given)
        scores = np.zeros(self.values, np.int64)
        for rows in pieces(len(given), self.values):
            bits = np.unpackbits(given[rows], axis=1, count=self.values, bitorder="little")
            scores += bits.sum(axis=0, dtype=np.int64)
        return scores

    def _check_last(self, reports: Reports) -> None:
        """Refuse bits after the last value."""
        used = self.values % 8
        beyond = np.flatnonzero(reports[:, -1] >> used)
        if used and beyond.size:
            message = "a report has bits beyond its last value"
            raise InputError(message, row=int(beyond[0]) + 1)

    def _spread(self, scores: NDArray[np.int64], users: int) -> Spread:
        other, gain = float(self.other), float(_HALF - self.other)
        return two_coins(scores, users, 0.5, other, gain)

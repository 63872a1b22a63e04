"""The union of more tables than have patterns that could be counted.

A union needs one number: the share of cells that are empty in all tables. It is the mean, over
cells, of the product of all debiased bits. Nothing is known about the other sets of tables but
single ones, so the variance of the product is bounded: it is largest if all tables are empty in
the same cells, as far as they are as empty as each of them is.
"""

from __future__ import annotations

import math

import numpy as np

from panprivacy.errors import InputError
from panprivacy.ground.validation import proportion
from panprivacy.statistics.overlaps.occupancy import BitNoise, OccupancyModel
from panprivacy.statistics.overlaps.patterns import BitTables, Floats
from panprivacy.statistics.overlaps.remarks import note_of
from panprivacy.statistics.release import Name, Release
from panprivacy.tables.decoders.intervals import Measured, noise_quantile, score_interval

MOST_UNITED = 64
_CANDIDATES = 4_096
_HALVINGS = 60
_LEAST_VARIANCE = 1e-30


def union_of_many(tables: BitTables, *, confidence: float = 0.95) -> Release:
    """Return the number of users of any of up to 64 tables.

    Accuracy: the standard error and the interval are upper bounds, too large by a factor of at most
    the root of one over the share of cells that are empty in all tables.
    [tests/statistical/test_overlaps.py]

    Args:
        tables: of one addressing key.
        confidence: probability that the interval covers the truth.

    Raises:
        InputError: there are too many tables.
    """
    level, number = proportion(confidence=confidence), len(tables.packed)
    if not 1 <= number <= MOST_UNITED:
        message = f"{number:,} tables cannot be united: take 1 to {MOST_UNITED}"
        raise InputError(message)
    union = _UnionScore(tables)
    estimate = union.estimate()
    error = math.sqrt(union.score(np.array([max(estimate, 0.0)]))[1][0])
    low, high = union.interval(estimate, error, level)
    return Release(
        estimate,
        low,
        high,
        level,
        0.0,
        (),
        Name("overlap", "union"),
        "users",
        note_of(Measured(estimate, error), low, high, union.most),
        estimate,
        error,
    )


class _UnionScore:
    """What the share of cells that are empty in all tables says about the union.

    Args:
        tables: of one addressing key.
    """

    def __init__(self, tables: BitTables) -> None:
        # All users of the union are in one table here; the noise of bits does not matter.
        noise = BitNoise(tables.absent[:1], tables.present[:1])
        self._model = OccupancyModel(tables.layout, noise)
        self._empty = _empty_in_all(tables)
        self._squares = _largest_squares(tables)

    @property
    def most(self) -> float:
        """The largest union that is possible."""
        return math.inf if self._model.layout.universe is None else self._model.limit

    def score(self, users: Floats) -> tuple[Floats, Floats]:
        """Return what the counts say beyond unions, in users, and the variance of that."""
        both = np.stack((np.zeros_like(users), users), axis=-1)
        empty = self._model.empty(both)
        slopes, empty = self._model.slopes(empty)[..., 1], empty[..., 1]
        spread = np.maximum(self._squares - empty**2, _LEAST_VARIANCE)
        variances = spread / self._model.layout.cells_per_level / slopes**2
        variance = 1 / (1 / variances).sum(axis=-1)
        score = ((self._empty - empty) / slopes / variances).sum(axis=-1) * variance
        fixed = self._model.fixed(both, np.array([0.0, 1.0]))
        return score, np.maximum(variance - fixed, _LEAST_VARIANCE)

    def estimate(self) -> float:
        """Return the estimate: where the score is 0; below 0, by the slope at 0."""
        at_zero = float(self.score(np.zeros(1))[0][0])
        low, high = 0.0, self._model.limit
        if at_zero <= 0 or self._model.layout.universe is not None:
            return at_zero
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            more = float(self.score(np.array([middle]))[0][0]) > 0
            low, high = (middle, high) if more else (low, middle)
        return high

    def interval(self, estimate: float, error: float, confidence: float) -> tuple[float, float]:
        """Return both ends of all unions that the counts do not reject."""
        limit, reach = self._model.limit, noise_quantile(confidence, 0.0)
        near = max(estimate, 0.0) + min(error, limit) * np.linspace(-3, 3, _CANDIDATES)
        far = np.geomspace(0.25, limit, _CANDIDATES)
        users = np.unique(np.concatenate(([0.0, limit], np.clip(near, 0, limit), far)))
        score, variance = self.score(users)
        score[-1] = min(score[-1], 0.0)
        inside = min(max(estimate, 0.0), limit)
        _, low, high = score_interval(inside, users, score, reach * np.sqrt(variance))
        return min(low, self.most), min(high, self.most)


def _empty_in_all(tables: BitTables) -> Floats:
    """Return the mean of the product of all debiased bits, in each level."""
    layout = tables.layout
    product = np.ones(layout.cells)
    for (absent, present), numbers in _alike(tables).items():
        ones = np.zeros(layout.cells, np.uint8)
        for number in numbers:
            ones += np.unpackbits(tables.packed[number], count=layout.cells, bitorder="little")
        zero, one = (np.array([present, present - 1]) / (present - absent)).tolist()
        counted = np.arange(len(numbers) + 1)
        product *= (zero ** counted[::-1] * one**counted)[ones]
    return product.reshape(layout.levels, -1).mean(axis=-1)


def _alike(tables: BitTables) -> dict[tuple[float, float], list[int]]:
    """Return the numbers of the tables of each pair of probabilities."""
    found: dict[tuple[float, float], list[int]] = {}
    for number, pair in enumerate(zip(tables.absent, tables.present, strict=True)):
        found.setdefault(pair, []).append(number)
    return found


def _largest_squares(tables: BitTables) -> Floats:
    """Return the largest mean of the square of the product, given how empty each table is.

    The mean of a product of functions that rise is largest where the same cells are empty in all
    tables; so the emptiest table is empty where any is, and so on.
    """
    absent, present = np.array(tables.absent), np.array(tables.present)
    gap = present - absent
    if_full = present * (1 - present) / gap**2
    if_empty = np.maximum(1 + absent * (1 - absent) / gap**2, if_full)
    bits = np.array(
        [
            np.unpackbits(one, count=tables.layout.cells, bitorder="little")
            .reshape(tables.layout.levels, -1)
            .mean(axis=-1)
            for one in tables.packed
        ]
    )
    shares = np.clip((present[:, None] - bits) / gap[:, None], 0, 1)  # float64[k, levels]
    return np.array([_comonotone(one, if_empty, if_full) for one in shares.T])


def _comonotone(shares: Floats, if_empty: Floats, if_full: Floats) -> float:
    order = np.argsort(-shares)
    steps = np.append(1.0, shares[order]) - np.append(shares[order], 0.0)
    empty = np.append(1.0, np.cumprod(if_empty[order]))
    full = np.append(np.cumprod(if_full[order][::-1])[::-1], 1.0)
    return float((steps * empty * full).sum())

"""The estimate of a number of users or of a ratio of two, its standard error, and its interval.

A question is a sum over patterns of users, `c @ n`, or a ratio of two of them. The score of a
hypothesis is what the counts say beyond it, weighted as the estimate is: it has mean 0 if the
hypothesis is true, and the variance that it has then. An interval is all hypotheses that the score
does not reject. That of a ratio `t` is the hypothesis `(c - t d) @ n = 0`, as Fieller's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from panprivacy.statistics.overlaps.patterns import Floats, PatternCounts, members
from panprivacy.statistics.overlaps.unions import UnionEstimates
from panprivacy.tables.decoders.intervals import (
    Measured,
    noise_quantile,
    score_interval,
)

_NEAR = np.concatenate(
    ([0, 0.3, 0.6, 0.8], np.linspace(0.88, 1.2, 17), [1.3, 1.5, 2, 3, 5, 10, 30, 100, 1000])
)
"""Distances of hypotheses from the estimate, in half widths of a normal interval."""
_ALL_SHARES = np.linspace(0, 1, 17)
_LEAST_VARIANCE = 1e-30
_AT_ONCE = 1 << 18
"""Numbers of an array that a processor holds near."""
_CONTRADICTION = 6
"""Levels that take an estimate so many standard errors away are not of one set of users."""


@dataclass(frozen=True, slots=True, eq=False)
class SetQuery:
    """A number of users, or a ratio of two numbers.

    Args:
        chosen: weight of each pattern of users in the number; float64[2**k].
        whole: the same of what the number is divided by; None for a number of users.
    """

    chosen: Floats
    whole: Floats | None = None

    def hypothesis(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the weights of a sum over patterns, and what it is if the answer is a value."""
        if self.whole is None:
            return np.broadcast_to(self.chosen, (*values.shape, len(self.chosen))), values
        return self.chosen - values[..., None] * self.whole, np.zeros_like(values)


class OverlapEstimator:
    """What pattern counts say about users.

    Args:
        shards: the counts of each shard, of other users each; one of tables that are not divided.
    """

    def __init__(self, shards: Sequence[PatternCounts]) -> None:
        self._shards = [UnionEstimates(one) for one in shards]
        self._model = self._shards[0].model
        self._limit = sum(one.model.limit for one in self._shards)

    def measure(self, query: SetQuery) -> Measured:
        """Return the estimate, which may be negative or above 1, and its standard error."""
        if query.whole is None:
            score, variance = self._score(query.chosen)
            return Measured(self._number(query.chosen) + score, math.sqrt(variance))
        whole = max(self._number(query.whole), 1.0)
        ratio = self._number(query.chosen) / whole
        score, variance = self._score(query.chosen - ratio * query.whole)
        return Measured(ratio + score / whole, math.sqrt(variance) / whole)

    def interval(
        self, query: SetQuery, measured: Measured, confidence: float
    ) -> tuple[float, float]:
        """Return both ends of all possible answers that the counts do not reject.

        Args:
            query: the question.
            measured: what was measured of it.
            confidence: probability that the interval covers the truth.
        """
        most = self.most(query)
        reach = noise_quantile(confidence, self._output_share(query, measured))
        values = self._hypotheses(query, measured, reach)
        along = [(one.along(query.chosen), one.along(query.whole)) for one in self._shards]
        pieces = np.array_split(values, -(-len(values) * self._shards[0].size // _AT_ONCE))
        tested = [self._tested(query, piece, along) for piece in pieces]
        scores, variances, slack = np.concatenate(tested, axis=-1)
        scores[-1] = min(scores[-1], 0.0)
        estimate = min(max(measured.estimate, 0.0), float(values[-1]))
        _, low, high = score_interval(estimate, values, scores, reach * np.sqrt(variances) + slack)
        return min(max(low, 0.0), most), min(high, most)

    def is_full(self, confidence: float) -> bool:
        """Return whether cells are so full that nothing bounds the users of all tables.

        Args:
            confidence: probability that the interval of their number covers the truth.
        """
        if self._model.layout.universe is not None:
            return False
        union = SetQuery(members(self._model.tables).any(axis=0).astype(float))
        return math.isinf(self.interval(union, self.measure(union), confidence)[1])

    def contradicted(self, query: SetQuery, measured: Measured) -> bool:
        """Return whether levels say what no users would say: tables are not of one key."""
        chosen, _ = query.hypothesis(np.array(measured.estimate))
        score, variance = self._score(chosen)
        return abs(score) > _CONTRADICTION * math.sqrt(variance)

    def most(self, query: SetQuery) -> float:
        """Return the largest answer that is possible."""
        if query.whole is not None:
            return 1.0
        return math.inf if self._model.layout.universe is None else self._limit

    def _number(self, chosen: Floats) -> float:
        """Return the sum over patterns, from estimates of unions whose bias is subtracted."""
        weights = self._model.weights(chosen)
        return math.fsum(float(weights @ (one.unions - one.bias())) for one in self._shards)

    def _score(self, chosen: Floats) -> tuple[float, float]:
        """Return what levels say beyond estimates of unions alone, and the variance of the sum."""
        found = [one.score(one.unions, one.users, chosen) for one in self._shards]
        return math.fsum(one[0] for one in found), math.fsum(one[1] for one in found)

    def _output_share(self, query: SetQuery, measured: Measured) -> float:
        """Return the part of the variance that noise on counts causes, whose tails are heavier."""
        chosen, _ = query.hypothesis(np.array(measured.estimate))
        _, variance = self._score(chosen)
        return math.fsum(one.output_variance(chosen) for one in self._shards) / variance

    def _hypotheses(self, query: SetQuery, measured: Measured, reach: float) -> Floats:
        """Return candidates, from 0 to the largest one."""
        limit = self._limit if query.whole is None else 1.0
        estimate = min(max(measured.estimate, 0.0), limit)
        width = min(measured.standard_error, limit) * reach
        near = np.concatenate((estimate - width * _NEAR, estimate + width * _NEAR))
        return np.unique(np.concatenate((np.clip(near, 0, limit), limit * _ALL_SHARES)))

    def _tested(
        self, query: SetQuery, values: Floats, along: Sequence[tuple[Floats, Floats]]
    ) -> Floats:
        """Return the score of each hypothesis, its variance and half a step; float64[3, values].

        Unions are those that are likeliest under a hypothesis, to first order.

        Args:
            query: the question.
            values: its answers under the hypotheses.
            along: the covariance of unions with the number and the whole, by shard.
        """
        chosen, goals = query.hypothesis(values)
        weights = self._model.weights(chosen)
        share = values[:, None] if query.whole is not None else np.zeros((len(values), 1))
        steps = [number - share * whole for number, whole in along]
        lengths = np.maximum(sum((weights * step).sum(axis=-1) for step in steps), _LEAST_VARIANCE)
        missed = goals - sum(weights @ shard.unions for shard in self._shards)
        scores, variances, slack = np.zeros((3, len(values)))
        for shard, step in zip(self._shards, steps, strict=True):
            unions = shard.unions + step * (missed / lengths)[:, None]
            score, variance, half = shard.score(unions, shard.model.possible(unions), chosen)
            scores, variances, slack = scores + score, variances + variance, np.maximum(slack, half)
        return np.array([scores, variances, slack])

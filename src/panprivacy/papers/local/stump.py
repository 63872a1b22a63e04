"""A learner that sees no record: the best threshold on one feature, by statistical queries.

Reference: Dwork and Roth, Definition 12.5: it learns its class from queries alone, agnostically.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.ground.validation import proportion
from panprivacy.papers.local.oracle import LROracle
from panprivacy.papers.local.statistical import StatisticalQueries, users_needed
from panprivacy.privacy.guarantee import Epsilon
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.release import Release

Cuts = Sequence[Sequence[float]]
"""Public thresholds that are tried, for each feature."""


@dataclass(frozen=True, slots=True)
class Stump:
    """Says 1 where a feature is at least `cut`, and 0 below; or the other way round.

    Args:
        feature: its column.
        cut: the threshold.
        above: the prediction from the cut on, 0 or 1.
    """

    feature: int
    cut: float
    above: int = 1

    def says(self, records: NDArray[Any]) -> NDArray[np.bool_]:
        """Return the label of each record, bool[n]."""
        return (records[:, self.feature] >= self.cut) == bool(self.above)

    def errs(self, records: NDArray[Any]) -> NDArray[np.bool_]:
        """Return where the prediction differs from the label in the last column, bool[n]."""
        return self.says(records) != (records[:, -1] > 0)


@dataclass(frozen=True, slots=True)
class Learned:
    """The result of a learner.

    Args:
        stump: the rule.
        error: the share of users with a wrong prediction.
    """

    stump: Stump
    error: Release


def users_to_learn(cuts: Cuts, accuracy: float, epsilon: Epsilon, *, failure: float = 0.05) -> int:
    """Return the number of users for `learn_stump`.

    It is `2 m ln(2 m/failure) / (accuracy tanh(epsilon/2))**2`.

    >>> users_to_learn([[1, 2, 3], [5, 6]], accuracy=0.1, epsilon=1)
    24820

    Args:
        cuts: m thresholds in total.
        accuracy: alpha: the largest excess of the error over that of the best rule.
        epsilon: total privacy loss of each user, in nats.
        failure: beta: probability that the excess is larger.

    Raises:
        PlanError: an argument out of range, or no cuts.
    """
    tried = len(_rules(cuts))
    half = proportion(accuracy=accuracy) / 2
    return tried * users_needed(half, epsilon, queries=tried, failure=failure)


def learn_stump(oracle: LROracle, cuts: Cuts, accuracy: float, *, failure: float = 0.05) -> Learned:
    """Return the rule of one threshold with the smallest error, or nearly so.

    >>> import numpy as np
    >>> from panprivacy import local
    >>> age = np.arange(60_000) % 100
    >>> domain = [(years, label) for years in range(100) for label in (0, 1)]
    >>> oracle = local.LROracle(np.column_stack([age, age >= 40]), epsilon=2, domain=domain)
    >>> learned = local.learn_stump(oracle, [[20, 30, 40, 50]], accuracy=0.1, failure=1e-6)
    >>> learned.stump
    Stump(feature=0, cut=40, above=1)

    One query for each cut: how often does "1 from the cut on" fail? The opposite rule errs in all
    other cases, so it needs none of its own.

    Guarantee: that of the oracle. [tests/exact/test_local.py]

    Accuracy: with probability `1 - failure` it errs at most `accuracy` more often than the best of
    all these rules and their opposites, whatever the labels are. Each query is within
    `accuracy/2`. [tests/statistical/test_local.py]

    Args:
        oracle: whose records have a column a feature, and the label, 0 or 1, in the last one.
        cuts: for each feature the thresholds to try.
        accuracy: alpha.
        failure: beta.

    Raises:
        PlanError: an argument out of range, no cuts, or fewer users than `users_to_learn`.
    """
    rules = _rules(cuts)
    half = proportion(accuracy=accuracy) / 2
    asked = StatisticalQueries(oracle, tolerance=half, queries=len(rules), failure=failure)
    errors = [asked.ask(rule.errs) for rule in rules]
    found = [*zip(rules, errors, strict=True), *map(_opposite, rules, errors)]
    return Learned(*min(found, key=lambda one: one[1].value))


def _rules(cuts: Cuts) -> list[Stump]:
    rules = [Stump(feature, cut) for feature, tried in enumerate(cuts) for cut in tried]
    if not rules or not all(math.isfinite(rule.cut) for rule in rules):
        message = "cuts must have a list of thresholds for each feature, and one threshold or more"
        raise PlanError(message)
    return rules


def _opposite(rule: Stump, error: Release) -> tuple[Stump, Release]:
    low, high = 1 - error.high, 1 - error.low
    note = note_on(low, high, unit=error.unit, value=1 - error.value)
    value, estimate = 1 - error.value, 1 - error.estimate
    turned = replace(error, value=value, low=low, high=high, note=note, estimate=estimate)
    return Stump(rule.feature, rule.cut, 0), turned

"""Sums of answers, with an interval for the sum.

The noise of different tables is independent, so that the variances of their answers add up.
Answers of one table have noise in common: their standard errors add up, which is the most that it
can be, whatever the covariance is. Biases add up in any case.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from panprivacy.errors import PanPrivacyError
from panprivacy.ground.validation import proportion
from panprivacy.statistics.notes import note_on
from panprivacy.tables.decoders.intervals import noise_quantile

R = TypeVar("R")


def total_of(answers: Iterable[tuple[Hashable, R | None]], confidence: float) -> R:
    """Return the sum of releases as a release.

    Args:
        answers: each with what tells its table from all others; None for one that is lost.
        confidence: probability that the interval covers the sum of the truths.

    Raises:
        PanPrivacyError: there is none, one is lost, one has no standard error, or they are of
            several questions or units.
    """
    level, tables = proportion(confidence=confidence), _by_table(answers)
    summands = [one for each in tables.values() for one in each]
    _check(summands)
    estimate = math.fsum(one.estimate for one in summands)
    bias = math.fsum(one.bias for one in summands)
    error, share = _spread(tables)
    reach = noise_quantile(level, share) * error + bias
    low = max(estimate - reach, 0.0 if all(one.low >= 0 for one in summands) else -math.inf)
    endless = any(math.isinf(one.high) for one in summands)
    high = math.inf if endless else max(estimate + reach, low)
    first = summands[0]
    total: R = replace(
        first,
        value=estimate,
        low=low,
        high=high,
        confidence=level,
        epsilon=math.fsum(max(one.epsilon for one in each) for each in tables.values()),
        counts=(),
        name=_name_of(summands),
        note=note_on(low, high, unit=first.unit, value=estimate),
        estimate=estimate,
        standard_error=error,
        bias=bias,
    )
    return total


def _by_table(answers: Iterable[tuple[Hashable, R | None]]) -> dict[Hashable, list[Any]]:
    tables: dict[Hashable, list[Any]] = {}
    for table, one in answers:
        if one is None:
            message = "an answer is lost: choose those that are not with where(), and sum these"
            raise PanPrivacyError(message)
        tables.setdefault(table, []).append(one)
    return tables


def _check(summands: list[Any]) -> None:
    """Refuse what has no sum."""
    if not summands or any(math.isnan(one.standard_error + one.bias) for one in summands):
        message = "a total needs one answer or more, each with a standard error"
        raise PanPrivacyError(message)
    if len({(one.name.question, one.unit) for one in summands}) > 1:
        message = "a total is of answers to one question: choose with where(question=...)"
        raise PanPrivacyError(message)


def _name_of(summands: list[Any]) -> Any:
    """The parts of a name that all of them have."""
    first = summands[0].name
    statistics, arguments = (
        {getattr(one.name, part) for one in summands} for part in ("statistic", "arguments")
    )
    return first._replace(
        statistic=first.statistic if len(statistics) == 1 else "",
        arguments=first.arguments if len(arguments) == 1 else (),
        group=first.group if len(summands) == 1 else None,
    )


def _spread(tables: Mapping[Hashable, list[Any]]) -> tuple[float, float]:
    """Return the standard error of the sum, and how heavy its tails are.

    No answer has heavier tails than a Laplace variable. A sum of Laplace variables has the
    kurtosis of a normal variable and a Laplace variable with a share of the variance.
    """
    variances = [math.fsum(one.standard_error for one in each) ** 2 for each in tables.values()]
    variance = math.fsum(variances)
    if not 0 < variance < math.inf:
        return math.sqrt(variance), 1.0
    share = math.sqrt(math.fsum((one / variance) ** 2 for one in variances))
    return math.sqrt(variance), min(share, 1.0)

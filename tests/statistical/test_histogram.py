"""A `Histogram` is unbiased, errs as predicted, and all intervals of a release hold together.

False-alarm rate 1e-6 an assertion.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.histogram.decoder import BinsModel
from panprivacy.tables.edges import Edges

from .checks import accepted, at_least, at_most, centred, happens, rejected

RUNS = 1_500
LEVEL = 0.9
SHARES = 0.1, 0.5, 0.99


def values(count=2_000):
    """As they are in every run: noise alone differs."""
    return np.random.default_rng(7).gamma(2, 10, count)


def test_counts_are_unbiased_and_err_as_predicted():
    given = values()
    truth = np.histogram(given, np.linspace(0, 60, 31))[0]
    errors = []
    for _ in range(RUNS // 15):
        times = pp.Histogram(low=0, high=60, bins=30, epsilon=1)
        times.update(given)
        errors.append(times.release().model.values[1:-1] - truth)
    found = np.concatenate(errors)
    deviation = times.plan.deviation
    assert accepted(centred(found))
    assert accepted(at_most(found, 1.05 * deviation))
    assert rejected(at_most(1.3 * found, 1.05 * deviation))
    assert accepted(at_least(found, 0.9 * deviation))
    assert rejected(at_least(found / 1.3, 0.9 * deviation))


def held(answer, given, kind):
    """Whether all intervals of one question hold."""
    edges = np.array(answer.edges.inner)
    if kind == "counts":
        truth = np.histogram(given, [-np.inf, *edges, np.inf])[0]
        return all(
            one.low <= count <= one.high for one, count in zip(answer.bins(), truth, strict=True)
        )
    if kind == "shares":
        truth = np.searchsorted(np.sort(given), edges) / len(given)
        each = zip(answer.cumulative(), truth, strict=True)
        return all(one.low <= share <= one.high for one, share in each)
    if kind == "mean":
        one = answer.mean()
        return one.low <= np.clip(given, edges[0], edges[-1]).mean() <= one.high
    truth = np.quantile(given, SHARES, method="inverted_cdf")
    each = zip(answer.quantiles(*SHARES), truth, strict=True)
    return all(one.low <= quantile <= one.high for one, quantile in each)


@pytest.mark.long
@pytest.mark.parametrize("horizon", [1, 3])
def test_all_intervals_of_a_release_hold_together(horizon):
    given = values()
    parts = np.array_split(given, horizon)
    covered = dict.fromkeys(("counts", "shares", "mean", "quantiles"), 0)
    for _ in range(RUNS):
        times = pp.Histogram(low=0, high=60, bins=40, epsilon=1, horizon=horizon)
        for part in parts:
            times.update(part)
            answer = times.release(confidence=LEVEL)
        for kind in covered:
            covered[kind] += held(answer, given, kind)
    for kind, count in covered.items():
        assert accepted(happens(count, RUNS, LEVEL, 1)), (kind, count / RUNS)


def test_wrong_noise_would_be_found():
    draw, edges = np.random.default_rng(3), Edges.linear(0, 60, 40, is_open=True)
    truth = np.histogram(values(), [-np.inf, *edges.inner, np.inf])[0]
    deviation = 1.3 * 2.0
    covered = 0
    for _ in range(RUNS):
        noised = truth + draw.normal(0, deviation, len(truth))
        low, high = BinsModel(edges, noised, 4.0, 0.0).counts(LEVEL)
        covered += bool(((low <= truth) & (truth <= high)).all())
    assert rejected(happens(covered, RUNS, LEVEL, 1))

"""Sketches with Laplace noise: the predicted laws, and intervals that cover.

False-alarm rate 1e-6 an assertion, and each check rejects what is off by 30 %.
"""

from __future__ import annotations

import numpy as np
import pytest

from panprivacy.papers.published import CalibratedTotal, LaplaceNorm

from .checks import (
    OFF,
    accepted,
    centred,
    check_intervals,
    fits,
    happens,
    rejected,
    repeat,
    spreads,
)

RUNS = 1_500


@pytest.mark.long
def test_a_total_is_unbiased_with_the_predicted_deviation_and_intervals():
    users = np.arange(100)
    states = users % 6
    truth = int(states.sum())
    runs = repeat(
        lambda: CalibratedTotal(total=10**9, bound=5, epsilon=1), [(users, states)], truth, 3_000
    )
    answers = runs.errors + runs.truth
    assert accepted(centred(answers - truth))
    assert rejected(centred(answers * OFF - truth))
    assert rejected(centred(answers / OFF - truth))
    # The noise is a sum of two Laplace variables, of kurtosis 4.5: squares vary 1.75 times as much.
    assert accepted(spreads(runs.errors, runs.deviation, slack=1.1))
    assert rejected(spreads(runs.errors, runs.deviation * OFF, slack=1.1))
    assert rejected(spreads(runs.errors, runs.deviation / OFF, slack=1.1))
    check_intervals(runs, 0.94, 0.96)  # 95.1 %, 89.5 % if shorter


COLUMNS = [[1, 0, 2], [0, 1, 0], [0, -1, 1], [1, 1, 1]]


def law_of_a_length(plan, sketch, epoch, reach):
    """How likely each released length is, from -reach on: by convolution of its noises."""
    line = np.arange(-reach, reach + 1)

    def laplace(scale):
        law = np.exp(-np.abs(line) / float(scale))
        return law / law.sum()

    once = laplace(plan.table.scale)
    for _ in range(epoch):
        once = np.convolve(once, laplace(plan.table.later))[reach:-reach]
    law = np.ones(1)
    for entry in sketch:
        law = np.convolve(law, np.bincount(np.abs(line + entry), weights=once, minlength=reach + 1))
    return np.convolve(law, laplace(plan.reading(None, epoch).scales[0]))


@pytest.mark.long
def test_a_released_length_has_the_law_that_its_noises_have_before_and_after_an_announcement():
    reach, released, covered = 1_500, {0: [], 1: []}, 0
    for _ in range(RUNS):
        statistic = LaplaceNorm(columns=COLUMNS, bound=4, epsilon=24, releases=2, intrusions=1)
        statistic.update([0, 3], [4, 2])
        first = statistic.release(confidence=0.8)
        statistic.announce_intrusion()
        second = statistic.release(confidence=0.8)
        released[0].append(first.counts[0] + reach)
        released[1].append(second.counts[0] + reach)
        covered += first.low <= 6 <= first.high
    plan, sketch = statistic.plan, np.array([4, 2]) @ np.array(COLUMNS)[[0, 3]]
    for epoch in (0, 1):
        law = law_of_a_length(plan, sketch, epoch, reach)
        observed = np.bincount(released[epoch], minlength=len(law))
        assert accepted(fits(observed, law))
        assert rejected(fits(observed, law_of_a_length(plan, sketch, 1 - epoch, reach)))
        assert rejected(fits(observed, law_of_a_length(plan, 0 * sketch, epoch, reach)))
    assert accepted(happens(covered, RUNS, 0.8, 1))


@pytest.mark.long
def test_intervals_of_a_map_that_loses_nothing_hold_the_norm_from_both_sides():
    """Far from 0, where sizes stray as far as noise does: as often as they say, or more."""
    covered = narrow = 0
    for _ in range(RUNS):
        statistic = LaplaceNorm(columns=[[0, 1], [-1, 0]], bound=2_000, epsilon=400)
        statistic.update([0, 1], [900, 1_100])
        answer = statistic.release(confidence=0.95)
        covered += answer.low <= 2_000 <= answer.high
        half = (answer.high - answer.low) / 8
        narrow += abs(answer.value - 2_000) <= half
    assert accepted(happens(covered, RUNS, 0.95, 1))
    assert rejected(happens(narrow, RUNS, 0.95, 1))

"""Calibrated noise: no bias where none is claimed, the predicted deviation, intervals that cover.

False-alarm rate 1e-6 an assertion, and each check rejects what is off by 30 %.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from panprivacy.papers.published import (
    CalibratedDistinctCount,
    CalibratedNorm,
    StableDistinctCount,
)

from .checks import (
    OFF,
    accepted,
    centred,
    check_errors,
    check_intervals,
    fits,
    happens,
    rejected,
    repeat,
)

RUNS = 3_000
CONFIDENCE = 0.95


@pytest.mark.long
@pytest.mark.parametrize(("modulus", "there"), [(2, 900), (7, 300)])
def test_a_distinct_count_is_unbiased_with_the_predicted_deviation_and_intervals(modulus, there):
    users = np.arange(2_000)
    states = np.where(users < there, -1, 0)
    runs = repeat(
        lambda: CalibratedDistinctCount(universe=2_000, modulus=modulus, epsilon=3),
        [(users, states)],
        there,
        1_200,
    )
    answers = runs.errors + runs.truth
    assert accepted(centred(answers - runs.truth))
    assert rejected(centred(answers * OFF - runs.truth))
    assert rejected(centred(answers / OFF - runs.truth))
    check_errors(runs, slack=1.05)
    check_intervals(runs, CONFIDENCE, 0.97)


@pytest.mark.long
def test_an_announced_distinct_count_is_read_as_well():
    users = np.arange(3_000)
    runs = repeat(
        lambda: CalibratedDistinctCount(universe=3_000, modulus=3, epsilon=4, intrusions=1),
        [(users[:900], np.full(900, 2)), (users[:900], np.full(900, -1))],
        900,
        1_200,
    )
    assert accepted(centred(runs.errors))
    check_errors(runs, slack=1.05)


SIZES = {"columns": [[1, 0], [0, 1], [1, 1], [1, 2]], "modulus": 11}


def law_of_lengths(plan, sketch, reach):
    """How likely each length 0 .. reach - 1 is, up to the longest, and beyond on both sides."""
    lattice = plan.table.lattice
    points = np.stack(np.unravel_index(np.arange(len(lattice.lengths)), lattice.shape), axis=1)
    lengths = lattice.lengths[lattice.numbers(points + sketch)]
    without = np.bincount(lengths, weights=plan.noise(0))
    laplace = np.exp(-np.abs(np.arange(-reach, reach + 1)) / plan.model(0).scale)
    return np.convolve(without, laplace / laplace.sum())


@pytest.mark.long
@pytest.mark.parametrize("norm", [0, 1, 2])
def test_a_released_length_has_the_law_that_the_plan_knows(norm):
    users, states, reach = [0, 3], [4, 2], 4_000
    released, covered = [], 0
    for _ in range(RUNS):
        statistic = CalibratedNorm(norm=norm, epsilon=8, **SIZES)
        statistic.update(users, states)
        answer = statistic.release(confidence=CONFIDENCE)
        released.append(answer.counts[0] + reach)
        covered += answer.low <= (2, 6, math.sqrt(20))[norm] <= answer.high
    plan, sketch = statistic.plan, np.array([6, 4])
    law = law_of_lengths(plan, sketch, reach)
    observed = np.bincount(released, minlength=len(law))
    assert accepted(fits(observed, law))
    other = CalibratedNorm(norm=norm, epsilon=16, **SIZES).plan
    assert rejected(fits(observed, law_of_lengths(other, sketch, reach)))
    assert rejected(fits(observed, law_of_lengths(plan, 0 * sketch, reach)))
    assert accepted(happens(covered, RUNS, CONFIDENCE, 1))


@pytest.mark.long
def test_a_lower_end_is_exceeded_as_often_as_it_says():
    """One user of a map that tells two: then the sketch has the length of the states."""
    below = 0
    for _ in range(RUNS):
        statistic = CalibratedNorm(norm=0, epsilon=14, columns=[[1, 0], [0, 1]], modulus=3)
        statistic.update([1])
        answer = statistic.release(confidence=0.8)
        below += answer.low <= 1 <= answer.high
    assert accepted(happens(below, RUNS, 0.8, 1))


STABLE = {"universe": 12, "rows": 2, "modulus": 13, "grid": 2}


@pytest.mark.long
def test_a_stable_sketch_is_released_with_twice_the_noise_and_bounds_users_from_below():
    """The mean is that of all noise: near no number of users, as the factor is for no noise."""
    points, values, covered = [], [], 0
    for _ in range(RUNS):
        statistic = StableDistinctCount(epsilon=12, **STABLE)
        statistic.update([1, 5, 7], [1, 1, 1])
        answer = statistic.release(confidence=CONFIDENCE)
        points.append(answer.counts)
        values.append(answer.value)
        covered += answer.low <= 3 <= answer.high
    plan = statistic.plan
    lattice, model, once = plan.table.lattice, plan.model(0), plan.noise(0)
    sketch = lattice.columns[[1, 5, 7]].sum(axis=0)
    twice = np.roll(
        lattice.convolved(once, once).reshape(lattice.shape), tuple(sketch), (0, 1)
    ).ravel()
    observed = np.bincount(lattice.numbers(points), minlength=len(twice))
    order = np.argsort(twice)  # or pools would hold as much under any shift
    assert accepted(fits(observed[order], twice[order]))
    assert rejected(fits(observed[order], np.roll(twice, 1)[order]))
    every = np.stack(np.unravel_index(np.arange(len(twice)), lattice.shape), axis=1)
    mean = float(twice @ [model.answer(point, CONFIDENCE)[0] for point in every])
    assert accepted(centred(np.array(values) - mean))
    assert rejected(centred(np.array(values) * OFF - mean))
    assert accepted(happens(covered, RUNS, CONFIDENCE, 1))

"""Moments and inner products are unbiased, err as predicted, and their intervals hold the truth.

False-alarm rate 1e-6 an assertion; each check is shown to reject errors that are off by 30 %.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp

from .checks import OFF, accepted, centred, happens, rejected, repeat, spreads

RUNS = 1_500
BOUND, CELLS, USERS = 20, 256, 1_000
LEAST_COVERAGE = 0.94
SLACK = 1.06
"""Squares of noise have tails that a chi-square test takes for a few per cent more."""

STREAMS = {
    "nobody": np.zeros(0, np.int64),
    "uniform": np.full(USERS, 10),
    "skewed": np.minimum(USERS // np.arange(1, USERS + 1), BOUND),
    "one": np.full(1, BOUND),
}
FORMS = {"cells": 0, "squares": 600}


def batch(states, *rest):
    """Twice what stays, of which half is taken back: sums of deltas are the states."""
    users = np.arange(len(states))
    return np.concatenate([users, users]), np.concatenate([2 * states, -states]), *rest


def moment(order, clip, epsilon=2, **covers):
    sizes = {"cells": CELLS, "clip": clip, "expected": (1, 10**7)} if order == 2 else {}
    sizes |= {"bound": 2 * BOUND, "epsilon": epsilon, **covers}
    return lambda: pp.FrequencyMoment(order=order, **sizes)


SETTINGS = [("uniform", 2, "cells"), ("skewed", 2, "squares"), ("uniform", 1, "cells")]
SLOW = [
    ("nobody", 2, "cells"),
    ("nobody", 2, "squares"),
    ("one", 2, "cells"),
    ("one", 2, "squares"),
    ("skewed", 2, "cells"),
    ("uniform", 2, "squares"),
    ("nobody", 1, "cells"),
    ("skewed", 1, "cells"),
]


def check(runs, deviation):
    """Unbiased, as far off as predicted, and within the interval as often as it says."""
    errors = np.array([runs.plan.model(runs.epoch).estimate(counts) for counts in runs.counts])
    errors -= runs.truth
    assert accepted(centred(errors))
    assert rejected(centred(errors + 0.3 * deviation))
    assert accepted(spreads(errors, deviation, SLACK))
    assert rejected(spreads(OFF * errors, deviation, SLACK))
    assert accepted(happens(runs.covered(), RUNS, LEAST_COVERAGE, 1))


@pytest.mark.long
@pytest.mark.parametrize(
    ("stream", "order", "form"),
    [*SETTINGS, *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW)],
)
def test_moments_are_as_good_as_they_say(stream, order, form):
    states = STREAMS[stream]
    truth = float((states.astype(float) ** order).sum())
    runs = repeat(moment(order, FORMS[form]), [batch(states)], truth, RUNS)
    check(runs, runs.deviation)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_moment_after_an_announced_intrusion_is_as_good_as_it_says(form):
    clip = FORMS[form] and 4_000
    states = STREAMS["uniform"]
    half = batch(states // 2)
    truth = float((states.astype(float) ** 2).sum())
    runs = repeat(moment(2, clip, epsilon=4, intrusions=1), [half, half], truth, RUNS)
    check(runs, runs.deviation)


PAIRS = {
    "alike": ("uniform", "uniform"),
    "skewed and uniform": ("skewed", "uniform"),
    "one is empty": ("skewed", "nobody"),
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("pair", "form"),
    [
        ("skewed and uniform", "squares"),
        pytest.param("alike", "cells", marks=pytest.mark.slow),
        pytest.param("alike", "squares", marks=pytest.mark.slow),
        pytest.param("skewed and uniform", "cells", marks=pytest.mark.slow),
        pytest.param("one is empty", "cells", marks=pytest.mark.slow),
        pytest.param("one is empty", "squares", marks=pytest.mark.slow),
    ],
)
def test_inner_products_are_as_good_as_they_say(pair, form):
    left, right = (STREAMS[name] for name in PAIRS[pair])
    both = min(len(left), len(right))
    users, deltas, sides = (
        np.concatenate(each)
        for each in zip(
            batch(left, np.full(2 * len(left), "left")),
            batch(right, np.full(2 * len(right), "right")),
            strict=True,
        )
    )
    truth = float(left[:both] @ right[:both])
    sizes = {"bound": 2 * BOUND, "cells": 2 * CELLS, "expected": (1, 10**7)}
    runs = repeat(
        lambda: pp.InnerProduct(clip=2 * FORMS[form], epsilon=4, **sizes),
        [(users, deltas, sides)],
        truth,
        RUNS,
    )
    one, other = (float(states @ states) for states in (left, right))
    # Of users that meet, pairs of one user with himself are no collision.
    same = 2 * float((left[:both] ** 2) @ (right[:both] ** 2)) / CELLS
    worst = float(runs.plan.model(0)._deviation(np.float64(truth), one, other))
    check(runs, np.sqrt(worst**2 - same))


def test_a_noise_that_is_not_taken_away_would_be_seen():
    """The power of the mean: without what noise adds to squares, answers are far off."""
    runs = repeat(moment(2, 0), [batch(STREAMS["uniform"])], 300_000.0, 100)
    model = runs.plan.model(0)
    sums = np.array([counts @ counts for counts in runs.counts])
    assert rejected(centred(sums - runs.truth))
    assert model.noise.variance > 0

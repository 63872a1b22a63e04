"""`ThresholdCount` is unbiased, errs no more than predicted, and its intervals hold the truth.

False-alarm rate 1e-6 an assertion. Predicted deviations are those of the worst stream, so errors
may be smaller; where nobody comes they are at least 0.8 of them, elsewhere two thirds.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp

from .checks import accepted, at_least, at_most, centred, happens, rejected, repeat

RUNS = 1_000
LEAST_COVERAGE = 0.945
SIZES = {"threshold": 10, "bound": 60, "universe": 4_000, "epsilon": 2}
STREAMS = {
    "nobody": np.zeros(4_000, np.int64),
    "all above": np.full(4_000, 31),
    "some half-way": np.arange(4_000) % 9,
    "one in six above": np.arange(4_000) % 12,
}
SAMPLE = {"cells": 1_000}
HARD = {"hard": True}
SETTINGS = [("nobody", {}), ("all above", SAMPLE), ("some half-way", {}), ("all above", HARD)]
SLOW = [
    ("nobody", SAMPLE),
    ("all above", {}),
    ("some half-way", SAMPLE),
    ("nobody", HARD),
    ("one in six above", HARD),
    ("one in six above", {**HARD, **SAMPLE}),
]


def runs_of(states, **given):
    plan = pp.ThresholdCount(**SIZES, **given).plan
    truth = plan.truth(plan.name, states, states)
    users = np.arange(len(states))
    twice = np.concatenate([users, users]), np.concatenate([states // 2, states - states // 2])
    return repeat(lambda: pp.ThresholdCount(**SIZES, **given), [twice], truth, RUNS)


@pytest.mark.long
@pytest.mark.parametrize(
    ("stream", "given"),
    [*SETTINGS, *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW)],
    ids=lambda one: one if isinstance(one, str) else "-".join(one) or "all",
)
def test_answers_are_as_good_as_they_say(stream, given):
    runs = runs_of(STREAMS[stream], **given)
    model = runs.plan.model(0)
    errors = np.array([model.unbiased(counts) for counts in runs.counts]) - runs.truth
    deviation = float(model.deviation(runs.truth))

    def p_value(errors):
        return at_most(errors, 1.05 * deviation)

    assert accepted(centred(errors))
    assert accepted(p_value(errors))
    assert rejected(p_value(2 * errors))
    least = (0.8 if stream == "nobody" else 2 / 3) * deviation
    assert accepted(at_least(errors, least))
    assert rejected(at_least(errors / 2, least))
    assert accepted(happens(runs.covered(), RUNS, LEAST_COVERAGE, 1))

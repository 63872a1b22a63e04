"""Running cropped sums and counts of heavy hitters err as predicted, and their intervals hold.

False-alarm rate 1e-6 an assertion.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp

from .checks import accepted, at_least, at_most, centred, happens, rejected

RUNS, STEPS = 250, 4
LEAST_COVERAGE = 0.945
CASES = {
    "cropped": (pp.RunningCroppedSum, {"tau": 3, "universe": 4_000}, np.arange(4_000) // 2),
    "at tau": (pp.RunningCroppedSum, {"tau": 4, "universe": 2_500}, np.arange(2_000)),
    "amounts": (
        pp.RunningCroppedSum, {"tau": 60, "universe": 2_000, "bound": 5}, np.arange(2_000)),
    "a sample": (
        pp.RunningCroppedSum, {"tau": 3, "universe": 4_000, "cells": 1_000}, np.arange(2_000)),
    "hashed": (pp.RunningCroppedSum, {"tau": 3, "expected": 400}, np.arange(400)),
    "heavy": (
        pp.RunningHeavyHitters, {"k": 200, "total": 16_000}, np.repeat(np.arange(100), 18)),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "restarted"),
    [
        *((case, False) for case in ("cropped", "amounts", "heavy")),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (
                ("at tau", False),
                ("a sample", False),
                ("hashed", False),
                ("cropped", True),
                ("heavy", True),
            )
        ),
    ],
)
def test_answers_are_as_good_as_they_say(case, restarted):
    kind, sizes, users = CASES[case]
    made = {**sizes, "horizon": STEPS, "epsilon": 2}
    errors, covered = np.empty(RUNS), 0
    for at in range(RUNS):
        count, states = kind(**made), np.zeros(4_000, np.int64)
        deltas = np.full(len(users), sizes.get("bound", 1))
        for step in range(STEPS):
            if restarted and step == 2:
                later = kind(**made)
                later.resume(count.state(), released=3)
                count = later
                continue
            count.update(users, deltas)
            states += np.bincount(users, deltas, minlength=len(states)).astype(np.int64)
            answer = count.release()
        truth = count.plan.truth(None, states, states)
        errors[at] = answer.value - truth
        covered += answer.low <= truth <= answer.high
    deviation = count.plan.absolute_error()

    def p_value(found):
        return at_most(found, 1.1 * deviation)

    assert accepted(p_value(errors))
    assert accepted(happens(covered, RUNS, LEAST_COVERAGE, 1))
    if case not in {"hashed", "heavy"}:  # of which the worst stream is told
        assert accepted(centred(errors))
        assert rejected(p_value(2.2 * errors))
        assert accepted(at_least(errors, 0.6 * deviation))
        assert rejected(at_least(errors / 3, 0.6 * deviation))

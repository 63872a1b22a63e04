"""Return rates of published tables of the class that ships err as its plan predicts.

False-alarm rate 1e-6 an assertion. Errors that are off by 30 % are rejected, and intervals that are
half as wide; each of these is missed as rarely.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from benchmarks.return_rates import Pair

import panprivacy as pp

from .checks import OFF, accepted, happens, rejected, spreads

RUNS = 800
SLACK = 1.06
INSIDE = (0.935, 0.98)

CASES = {
    "hashed": Pair({"expected": 4_000, "share": "0.4"}, "3", "seizure"),
    "hashed, the table alone": Pair({"expected": 4_000, "share": "0.4"}, "1.5", "publication"),
    "levels": Pair({"expected": (1_000, 20_000), "share": "0.5"}, "4", "seizure"),
    "a universe": Pair({"universe": 8_000, "share": "0.5"}, "3", "seizure"),
    "a sample": Pair({"universe": 20_000, "cells": 8_000, "share": "0.5"}, "3", "seizure"),
}


@functools.cache
def answered(name):
    """The pair of windows, and the answers of its runs."""
    pair = CASES[name]
    return pair, pair.answers(RUNS, np.random.default_rng())


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_return_rates_err_as_predicted_and_intervals_hold_the_truth(name):
    pair, answers = answered(name)
    errors = np.array([one.estimate - pair.truth for one in answers])
    assert accepted(spreads(errors, pair.predicted, SLACK))
    assert rejected(spreads(errors, pair.predicted * OFF, SLACK))
    assert rejected(spreads(errors, pair.predicted / OFF, SLACK))
    assert accepted(happens(held(pair.truth, answers, 1.0), RUNS, *INSIDE))
    assert rejected(happens(held(pair.truth, answers, 0.5), RUNS, *INSIDE))


def held(truth, answers, part):
    """How many intervals hold the truth, after so much of each side is left."""
    return sum(
        one.estimate - part * (one.estimate - one.low) - 1e-9
        <= truth
        <= one.estimate + part * (one.high - one.estimate) + 1e-9
        for one in answers
    )


@pytest.mark.long
@pytest.mark.parametrize("given", [{"expected": 4_000}, {"universe": 9_000}], ids=str)
def test_the_number_of_users_errs_as_predicted(given):
    users, errors, inside = np.arange(4_000), [], 0
    plan = pp.plan("overlap", **given, epsilon=3)
    for _ in range(RUNS):
        window = pp.OverlapSketch(**given, epsilon=3)
        window.update(users)
        answer = window.release()
        errors.append(answer.estimate - 4_000)
        inside += answer.low <= 4_000 <= answer.high
    deviation = plan.relative_error(4_000) * (4_000 if "expected" in given else plan.largest)
    assert accepted(spreads(np.array(errors), deviation, SLACK))
    assert rejected(spreads(np.array(errors), deviation * OFF, SLACK))
    assert accepted(happens(inside, RUNS, *INSIDE))

"""`Density` is unbiased, errs as predicted, and its intervals hold the truth as often as they say.

False-alarm rate 1e-6 an assertion; predicted errors may be off by 3 %, coverage may be anything
from 94.5 to 98 %.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp

from .checks import OFF, accepted, centred, happens, rejected, repeat, spreads

RUNS, SLOW_RUNS = 1_800, 4_000
SLACK = 1.03
COVERAGE = 0.945, 0.98

FAST = {
    "a cell each": ({"universe": 1_000, "epsilon": 1}, 0.3),
    "a sample": ({"universe": 3_000, "epsilon": 4, "cells": 600}, 0.2),
    "an intrusion": ({"universe": 3_000, "epsilon": 2, "intrusions": 1}, 0.3),
}
SLOW = {
    "small epsilon": ({"universe": 100_000, "epsilon": 0.1}, 0.3),
    "large epsilon": ({"universe": 100_000, "epsilon": 6}, 0.9),
    "few users": ({"universe": 500, "epsilon": 2}, 0.3),
    "many users": ({"universe": 1_000_000, "epsilon": 1, "cells": 100_000}, 0.02),
    "five releases": ({"universe": 1_000, "epsilon": 1, "releases": 5}, 0.7),
    "an intrusion and a sample": (
        {"universe": 10_000, "epsilon": 4, "cells": 500, "intrusions": 1},
        0.7,
    ),
}


SETTINGS = [
    *(pytest.param(*one, RUNS, id=name) for name, one in FAST.items()),
    *(pytest.param(*one, SLOW_RUNS, id=name, marks=pytest.mark.slow) for name, one in SLOW.items()),
]


@pytest.mark.long
@pytest.mark.parametrize(("arguments", "share", "repeats"), SETTINGS)
def test_answers_are_as_good_as_they_say(arguments, share, repeats):
    users = np.arange(round(share * arguments["universe"]))
    batches = np.array_split(users, arguments.get("intrusions", 0) + 1)
    truth = len(users) / arguments["universe"]
    runs = repeat(lambda: pp.Density(**arguments), batches, truth, repeats)
    check_estimates(runs)
    check_errors(runs)
    check_intervals(runs)


def uncut(runs, contrast):
    """The estimates before they are cut to 0 .. 1."""
    mean = runs.counts.sum(axis=1) / runs.plan.cells
    return 0.5 + (mean - 0.5) / contrast


def check_estimates(runs):
    """They are unbiased before they are cut."""
    contrast = runs.plan.model(runs.epoch).contrast
    estimates = uncut(runs, contrast)
    np.testing.assert_allclose(runs.errors + runs.truth, np.clip(estimates, 0, 1), atol=1e-12)
    assert accepted(centred(estimates - runs.truth))
    assert rejected(centred(uncut(runs, contrast * OFF) - runs.truth))
    assert rejected(centred(uncut(runs, contrast / OFF) - runs.truth))


def check_errors(runs):
    """Their root-mean-square is the predicted one."""
    errors = uncut(runs, runs.plan.model(runs.epoch).contrast) - runs.truth
    assert accepted(spreads(errors, runs.deviation, SLACK))
    assert rejected(spreads(errors, runs.deviation * OFF, SLACK))
    assert rejected(spreads(errors, runs.deviation / OFF, SLACK))


def check_intervals(runs):
    """They hold the truth as often as they say; smaller ones do not."""
    assert accepted(happens(runs.covered(), len(runs.answers), *COVERAGE))
    assert rejected(happens(runs.covered(shrunk=OFF), len(runs.answers), *COVERAGE))

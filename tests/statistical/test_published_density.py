"""The density estimators of the papers are unbiased, and err as predicted.

False-alarm rate 1e-6 an assertion; predicted errors may be off by 3 %, coverage may be anything
from 94.5 to 98 %. `OptBernDensity` and `PPDSDensity` are `Density`, which has tests of its own.
"""

from __future__ import annotations

import numpy as np
import pytest

from panprivacy.papers.published import ContinuousDensity, DworkDensity, DworkRothDensity

from .checks import OFF, accepted, centred, happens, rejected, repeat, spreads

RUNS = 1_800
SLACK = 1.03
COVERAGE = 0.945, 0.98

SETTINGS = {
    "a sample of fair coins": (DworkDensity, {"cells": 600, "epsilon": 4}),
    "a fair coin each": (DworkRothDensity, {"epsilon": 1}),
    "fifteen steps": (ContinuousDensity, {"cells": 600, "epsilon": 4}),
    "three steps": (ContinuousDensity, {"grid": 3, "epsilon": 4, "releases": 3}),
}
USERS = 3_000


@pytest.mark.long
@pytest.mark.parametrize("setting", SETTINGS)
def test_answers_are_as_good_as_they_say(setting):
    kind, arguments = SETTINGS[setting]
    came = np.arange(round(0.3 * USERS))
    runs = repeat(lambda: kind(universe=USERS, **arguments), [came], 0.3, RUNS)
    model = runs.plan.model(0)

    def uncut(contrast):
        means = runs.counts.sum(axis=1) / runs.plan.cells
        return (means - model.absent_mean) / contrast - 0.3

    errors = uncut(model.contrast)
    np.testing.assert_allclose(runs.errors, np.clip(errors, -0.3, 0.7), atol=1e-12)
    assert accepted(centred(errors))
    assert rejected(centred(uncut(model.contrast * OFF)))
    assert rejected(centred(uncut(model.contrast / OFF)))
    assert accepted(spreads(errors, runs.deviation, SLACK))
    assert rejected(spreads(errors, runs.deviation * OFF, SLACK))
    assert rejected(spreads(errors, runs.deviation / OFF, SLACK))
    assert accepted(happens(runs.covered(), RUNS, *COVERAGE))
    assert rejected(happens(runs.covered(shrunk=OFF), RUNS, *COVERAGE))

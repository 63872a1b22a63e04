"""`RunningCount` is unbiased, errs as predicted, and its intervals hold the truth at every step.

False-alarm rate 1e-6 an assertion.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.tables.counters.mechanism import variances

from .checks import accepted, at_least, at_most, centred, happens, rejected

RUNS, STEPS = 600, 12
UNSEEN = 4, 5, 6
"""Steps that a life does not see that begins after them."""
LEAST_COVERAGE = 0.945


@pytest.mark.long
@pytest.mark.parametrize("restarted", [False, True], ids=["one life", "two lives"])
def test_answers_are_as_good_as_they_say(restarted):
    errors, deviations, covered = [], [], 0
    for _ in range(RUNS):
        visits = pp.RunningCount(horizon=STEPS, bound=5, epsilon=1)
        for step in range(STEPS):
            if restarted and step == UNSEEN[0]:
                later = pp.RunningCount(horizon=STEPS, bound=5, epsilon=1)
                later.resume(visits.state(), released=UNSEEN[-1] + 1)
                visits = later
            if restarted and step in UNSEEN:
                continue
            visits.update(["ada"] * 40, [step % 6] * 40)
            answer = visits.release()
        counted = [step for step in range(STEPS) if not (restarted and step in UNSEEN)]
        truth = 40 * sum(step % 6 for step in counted)
        errors.append(answer.value - truth)
        deviations.append((answer.high - answer.low) / 2 / 1.96)
        covered += answer.low <= truth <= answer.high
    found = np.array(errors)
    deviation = deviations[0] if restarted else variances(visits.plan.tree)[-1] ** 0.5

    def p_value(errors):
        return at_most(errors, 1.1 * deviation)

    assert accepted(centred(found))
    assert accepted(p_value(found))
    assert rejected(p_value(2 * found))
    assert accepted(at_least(found, 0.8 * deviation))
    assert rejected(at_least(found / 2, 0.8 * deviation))
    assert accepted(happens(covered, RUNS, LEAST_COVERAGE, 1))

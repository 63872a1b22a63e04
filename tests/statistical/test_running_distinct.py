"""`RunningDistinct` errs as predicted, and its intervals hold the truth at every step.

False-alarm rate 1e-6 an assertion.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp

from .checks import accepted, at_least, at_most, centred, happens, rejected

RUNS, STEPS, USERS = 250, 4, 6_000
LEAST_COVERAGE = 0.945
SIZES = {"horizon": STEPS, "expected": (1_000, 20_000), "memory": 8_192, "epsilon": 2}


@pytest.mark.long
@pytest.mark.parametrize("life", ["whole", "restarted", "announced"])
def test_answers_are_as_good_as_they_say(life):
    errors, covered = np.empty((RUNS, 2)), np.zeros(2)
    intrusions = int(life == "announced")
    for at in range(RUNS):
        count = pp.RunningDistinct(**SIZES, intrusions=intrusions)
        answers = []
        for step in range(STEPS):
            if life == "restarted" and step == 2:
                later = pp.RunningDistinct(**SIZES)
                later.resume(count.state(), released=3)
                count = later
                continue
            if life == "announced" and step == 1:
                count.announce_intrusion()
            count.update(np.arange(USERS // STEPS * (step + 1)))
            answers.append(count.release())
        for place, (answer, truth) in enumerate(
            [(answers[0], USERS // STEPS), (answers[-1], USERS)]
        ):
            errors[at, place] = answer.value - truth
            covered[place] += answer.low <= truth <= answer.high
    last = errors[:, 1]
    deviation = count.plan.absolute_error(USERS)

    def p_value(found):
        return at_most(found, 1.1 * deviation)

    assert accepted(centred(last))
    assert accepted(p_value(last))
    assert rejected(p_value(2 * last))
    assert accepted(at_least(last, 0.8 * deviation))
    assert rejected(at_least(last / 2, 0.8 * deviation))
    assert accepted(happens(covered[0], RUNS, LEAST_COVERAGE, 1))
    assert accepted(happens(covered[1], RUNS, LEAST_COVERAGE, 1))

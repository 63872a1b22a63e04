"""Set operations are unbiased, err as predicted, and their intervals hold the truth.

False-alarm rate 1e-6 an assertion. Answers and deviations that are off by 30 % are rejected, and so
are intervals that are half as wide; each of these is missed as rarely.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from benchmarks.overlaps import Case, noise_of

from panprivacy.statistics.overlaps.many import union_of_many
from panprivacy.statistics.overlaps.patterns import BitTables, CellLayout, members

from .checks import OFF, accepted, at_most, centred, happens, rejected, spreads

RUNS = 1_100
MOST_BIAS = 0.12
"""Of an estimate, in deviations: ratios and logarithms have one of second order."""
SLACK = 1.06
INSIDE, AT_AN_END = (0.94, 0.975), (0.965, 0.995)
"""Where truths can be on both sides of an estimate, and where on one."""

FIRST, SECOND = members(2)
RETURN, BOTH = (FIRST & SECOND, FIRST), (FIRST & SECOND, None)
ALL_OF_THREE = members(3).all(axis=0)
ONE_OF_OTHERS = members(3)[0] & (members(3)[1] | members(3)[2]), members(3)[0]
HASHED, LEVELS = CellLayout(30_000), CellLayout(2_000, levels=5)

CASES = {
    "direct": (CellLayout(5_000, universe=5_000), (1, 1), [0, 1_500, 500, 1_000], RETURN),
    "sampled": (CellLayout(5_000, universe=20_000), (1, 1), [0, 6_000, 2_000, 4_000], RETURN),
    "sampled jaccard": (
        CellLayout(5_000, universe=20_000),
        (1, 2),
        [0, 6_000, 2_000, 4_000],
        (FIRST & SECOND, FIRST | SECOND),
    ),
    "hashed": (HASHED, (1, 1), [0, 7_000, 7_000, 3_000], RETURN),
    "hashed union": (HASHED, (1, 1), [0, 7_000, 7_000, 3_000], (FIRST | SECOND, None)),
    "hashed difference": (HASHED, (4, 4), [0, 5_000, 5_000, 5_000], (FIRST & ~SECOND, None)),
    "hashed odd": (HASHED, (2, 2), [0, 5_000, 3_000, 5_000], (FIRST ^ SECOND, None)),
    "unequal users": (HASHED, (2, 2), [0, 1_000, 14_000, 2_000], RETURN),
    "unequal noise": (HASHED, (1, 3), [0, 5_000, 5_000, 5_000], RETURN),
    "near none": (HASHED, (1, 1), [0, 9_000, 9_000, 1_000], BOTH),
    "all of three": (HASHED, (1, 1, 1), [0, *[2_000] * 7], (ALL_OF_THREE, None)),
    "one of others": (HASHED, (1, 1, 2), [0, *[2_000] * 7], ONE_OF_OTHERS),
    "two of four": (HASHED, (2,) * 4, [0, *[1_000] * 15], (members(4).sum(axis=0) == 2, None)),
    "sparse levels": (LEVELS, (2, 2), [0, 800, 800, 800], RETURN),
    "full levels": (LEVELS, (1, 1), [0, 10_000, 10_000, 10_000], RETURN),
    "three levelled": (LEVELS, (2, 2, 2), [0, *[2_500] * 7], (ALL_OF_THREE, None)),
}
AT_ENDS = {
    "none": (HASHED, (1, 1), [0, 10_000, 10_000, 0], BOTH),
    "none, in points": (HASHED, (1, 1), [0, 10_000, 10_000, 0], RETURN),
    "everybody": (HASHED, (1, 1), [0, 0, 0, 10_000], RETURN),
    "everybody of more": (HASHED, (1, 1), [0, 0, 5_000, 8_000], RETURN),
    "none of a universe": (CellLayout(5_000, universe=5_000), (1, 1), [0, 900, 900, 0], BOTH),
    "none on levels": (LEVELS, (1, 1), [0, 5_000, 5_000, 0], BOTH),
}


@functools.cache
def answered(name):
    """The case, and the answers of its runs."""
    layout, epsilons, users, (part, whole) = (CASES | AT_ENDS)[name]
    sets = tuple(part.tolist()), None if whole is None else tuple(whole.tolist())
    case = Case(name, layout, noise_of(*epsilons), tuple(users), *sets)
    return case, case.answers(RUNS, np.random.default_rng())


def held(case, answers, shrunk=1.0):
    """How many intervals hold the truth, after making them smaller by a factor."""
    value, low, high = np.array([(one.estimate, one.low, one.high) for one in answers]).T
    above = case.truth <= value + (high - value) / shrunk + 1e-9
    return int((above & (value - (value - low) / shrunk <= case.truth + 1e-9)).sum())


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_answers_err_as_predicted_and_intervals_hold_the_truth(name):
    case, answers = answered(name)
    values = np.array([one.estimate for one in answers])

    def mean_is(truth, scale=1.0):
        errors = scale * values - truth
        most = MOST_BIAS * case.predicted
        return centred(errors - np.clip(errors.mean(), -most, most))

    assert accepted(mean_is(case.truth))
    assert rejected(mean_is(case.truth, OFF))
    errors = values - values.mean()
    assert accepted(spreads(errors, case.predicted, SLACK))
    assert rejected(spreads(errors, case.predicted * OFF, SLACK))
    assert rejected(spreads(errors, case.predicted / OFF, SLACK))
    # A stated error varies by less than 30 %, so that its median is off by 10 % in no run.
    stated = float(np.median([one.standard_error for one in answers]))
    assert stated == pytest.approx(case.predicted, rel=0.1)
    assert accepted(happens(held(case, answers), RUNS, *INSIDE))
    assert rejected(happens(held(case, answers, shrunk=2), RUNS, *INSIDE))


@pytest.mark.long
@pytest.mark.parametrize("name", AT_ENDS)
def test_intervals_hold_truths_at_an_end(name):
    case, answers = answered(name)
    assert all(0 <= one.low <= one.value <= one.high for one in answers)
    assert accepted(happens(held(case, answers), RUNS, *AT_AN_END))
    errors = np.array([one.estimate for one in answers]) - case.truth
    assert accepted(spreads(errors, case.predicted, SLACK))  # estimates are not cut
    assert rejected(spreads(errors, case.predicted * OFF, SLACK))
    outside = [abs(one.estimate - case.truth) > OFF * 1.96 * case.predicted for one in answers]
    assert accepted(happens(sum(outside), RUNS, 0.0, 0.02))
    noted = sum(one.note is not None for one in answers)
    assert accepted(happens(noted, RUNS, 0.96, 1.0)) if case.truth == 0 else noted == 0


@pytest.mark.long
@pytest.mark.parametrize("layout", [CellLayout(6_000), CellLayout(6_000, universe=6_000)])
def test_unions_of_many_tables_err_by_at_most_what_they_say(layout):
    random, tables, users, runs = np.random.default_rng(), 16, 2_000, 300
    noise = noise_of(*[2.0] * 8, *[3.0] * 8)
    errors, stated, kept = [], [], 0
    for _ in range(runs):
        came = random.random((tables, users)) < 0.1
        slots = random.permutation(users) if layout.universe else random.integers(0, 6_000, users)
        full = np.zeros((tables, layout.cells), bool)
        for table, present in zip(full, came, strict=True):
            table[slots[present]] = True
        odds = np.where(full, np.array(noise.present)[:, None], np.array(noise.absent)[:, None])
        bits = (random.random(odds.shape) < odds).astype(np.uint8)
        answer = union_of_many(BitTables.of_bits(layout, bits, noise.absent, noise.present))
        truth = int(came.any(axis=0).sum())
        errors.append(answer.estimate - truth)
        stated.append(answer.standard_error)
        kept += answer.low <= truth <= answer.high
    errors, error = np.array(errors), float(np.median(stated))
    assert accepted(centred(errors))
    assert accepted(at_most(errors, error))
    assert rejected(at_most(OFF**2 * errors, error))
    assert accepted(happens(kept, runs, 0.95, 1.0))
    assert math.isfinite(error)

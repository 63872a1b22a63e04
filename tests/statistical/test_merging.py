"""What shards contribute is merged without bias, errs as predicted, and intervals hold the truth.

The shards have very different numbers of users: what is read as if they had equal ones shows.
False-alarm rate 1e-6 an assertion. Answers off by 30 % are rejected, and so are deviations that
are off by a half, and intervals that are half as wide; each of these is missed as rarely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.merging import Merger

from .checks import OFF, accepted, at_most, centred, happens, rejected

RUNS = 600
SHARES = 0.6, 0.3, 0.1
LEVEL = 0.9

UNIVERSE = 2_000
IDS = np.arange(0, UNIVERSE, 2)
STATES = 1 + IDS // 2 % 5


@dataclass(frozen=True)
class Setting:
    """What is merged, and how well it has to be told.

    Args:
        make: makes the statistic of a shard.
        truth: what all shards should answer.
        tight: whether errors are as large as predicted; else that is the most.
        form: of the contributions.
        deltas: whether users have states.
        biased: whether collisions may hide a part, which intervals hold.
        overlapping: whether users come to several shards.
    """

    make: Callable[[], Any]
    truth: float
    tight: bool = True
    form: str = "sums"
    deltas: bool = True
    biased: bool = False
    overlapping: bool = False


def cropped(tau):
    return float(np.minimum(STATES, tau).sum())


def soft(low):
    return float(np.clip(STATES / low - 1, 0, 1).sum())


SMALL = {"universe": UNIVERSE, "epsilon": 2}
SAMPLE = {**SMALL, "cells": 700}
MANY = {"expected": (100, 10_000), "memory": 512, "epsilon": 3}
MOMENT = {"order": 2, "bound": 6, "expected": (1_000, 100_000), "memory": 1_024, "epsilon": 4}
SQUARES = float((STATES**2).sum())

SETTINGS = {
    "density": Setting(partial(pp.Density, **SMALL), 0.5, deltas=False),
    "density of a sample": Setting(partial(pp.Density, **SAMPLE), 0.5, deltas=False),
    "cropped sum": Setting(
        partial(pp.CroppedSum, tau=3, bound=9, **SMALL), cropped(3), tight=False
    ),
    "cropped sum of a sample": Setting(
        partial(pp.CroppedSum, tau=3, bound=9, **SAMPLE), cropped(3), tight=False
    ),
    "cropped sum of hashed users": Setting(
        partial(pp.CroppedSum, tau=3, bound=9, expected=5_000, epsilon=2), cropped(3), biased=True
    ),
    "threshold": Setting(
        partial(pp.ThresholdCount, threshold=4, bound=9, **SMALL), soft(2), tight=False
    ),
    "hard threshold of a sample": Setting(
        partial(pp.ThresholdCount, threshold=3, bound=9, hard=True, **SAMPLE),
        float((STATES >= 3).sum()),
    ),
    "distinct": Setting(partial(pp.DistinctCount, **MANY), len(IDS), deltas=False),
    "net distinct": Setting(
        partial(pp.DistinctCount, deletions=True, bound=9, **{**MANY, "memory": 4_096}), len(IDS)
    ),
    "strict distinct": Setting(
        partial(pp.DistinctCount, deletions="strict", **MANY), len(IDS), deltas=False
    ),
    "strict distinct, cell by cell": Setting(
        partial(pp.DistinctCount, deletions="strict", **MANY),
        len(IDS),
        form="cells",
        deltas=False,
    ),
    "sum": Setting(partial(pp.FrequencyMoment, order=1, bound=6, epsilon=2), float(STATES.sum())),
    "squares, every cell": Setting(partial(pp.FrequencyMoment, clip=0, **MOMENT), SQUARES),
    "squares, clipped": Setting(partial(pp.FrequencyMoment, clip=150, **MOMENT), SQUARES),
    "squares, cell by cell": Setting(
        partial(pp.FrequencyMoment, clip=0, **MOMENT),
        4 * SQUARES,
        form="cells",
        overlapping=True,
    ),
}

BRIEF = {"density of a sample", "distinct"}
"""What every run of the tests tries; the others are slow."""


def contributions(make, rows, *, form="sums", deltas=True, **asked):
    """What shards contribute that count these rows each."""
    parts = []
    for ids, states in rows:
        statistic = make()
        statistic.update(ids, *([states] if deltas else []))
        give = statistic.contribute if form == "sums" else statistic.contribute_cells
        parts.append(give(**asked))
    return parts


def split(rng, *, overlapping=False):
    """The rows of each shard."""
    shard = rng.choice(len(SHARES), len(IDS), p=SHARES)
    if overlapping:  # everybody comes to two shards
        chosen = [np.not_equal(IDS // 2 % 3, one) for one in range(3)]
    else:
        chosen = [shard == one for one in range(3)]
    return [(IDS[of], STATES[of]) for of in chosen]


def merged(setting):
    """The answers of many runs, and the predicted deviation."""
    rng = np.random.default_rng(5)
    rows = split(rng, overlapping=setting.overlapping)
    told, answers = {"form": setting.form, "deltas": setting.deltas}, []
    for _ in range(RUNS):
        shared = {"key": rng.bytes(16)} if setting.form == "cells" else {}
        parts = contributions(partial(setting.make, **shared), rows, **told)
        answers.append(pp.merge(parts, confidence=LEVEL))
    model = Merger(parts)._merged[0].reading.model
    return answers, float(model.deviation(setting.truth))


def covered(answers, truth, shrunk=1.0):
    """How many intervals hold the truth, after making them smaller by a factor."""
    value, low, high = np.array([(one.value, one.low, one.high) for one in answers]).T
    above = truth <= value + (high - value) / shrunk
    return int((above & (value - (value - low) / shrunk <= truth)).sum())


def check_coverage(answers, truth, *, tight=True):
    assert accepted(happens(covered(answers, truth), len(answers), LEVEL - 0.02, 1.0))
    if tight:
        assert rejected(happens(covered(answers, truth, 2), len(answers), LEVEL - 0.02, 1.0))


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [one if one in BRIEF else pytest.param(one, marks=pytest.mark.slow) for one in SETTINGS],
)
def test_merged_answers_are_as_good_as_they_say(name):
    setting = SETTINGS[name]
    answers, deviation = merged(setting)
    values = np.array([one.value for one in answers])
    errors = values - setting.truth

    def p_value(errors):
        """Of a deviation that is larger than predicted; that of levels is for equal shards."""
        return at_most(errors, 1.1 * deviation)

    assert accepted(p_value(errors))
    check_coverage(answers, setting.truth, tight=not setting.biased)
    if setting.tight and not setting.biased:
        assert rejected(p_value(1.5 * errors))
    if not setting.biased:
        assert accepted(near(errors, 0.1 * deviation))
        assert rejected(near(OFF * values - setting.truth, 0.1 * deviation))


def near(errors, most):
    """The test of a mean within `most` of 0: maximum likelihood may stray by so much."""
    return centred(errors - np.clip(errors.mean(), -most, most))


INCIDENCES = {
    "named": {"universe": UNIVERSE, "exactly": (0, 2), "at_least": (3,)},
    "named, of a sample": {"universe": UNIVERSE, "cells": 900, "exactly": (0, 2)},
    "histogram": {"universe": UNIVERSE},
    "hashed": {"expected": 1_500, "exactly": (2,), "at_least": (3,)},
    "cell by cell": {"universe": UNIVERSE, "exactly": (0, 2), "form": "cells"},
}
TOLD = {"exactly 0": UNIVERSE - len(IDS), "exactly 2": (STATES == 2).sum(),
        "at least 3": (STATES >= 3).sum()}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        one if one == "named, of a sample" else pytest.param(one, marks=pytest.mark.slow)
        for one in INCIDENCES
    ],
)
def test_merged_states_are_as_good_as_they_say(name):
    given = dict(INCIDENCES[name])
    asked = {key: given.pop(key) for key in ("exactly", "at_least", "form") if key in given}
    rows, runs = split(np.random.default_rng(5)), []
    for _ in range(RUNS):
        parts = contributions(partial(pp.Incidence, bound=5, epsilon=4, **given), rows, **asked)
        runs.append(pp.merge(parts, confidence=LEVEL))
    found = {str(name): [run[name] for run in runs] for name in runs[0] if str(name) in TOLD}
    assert set(found) >= {"exactly 2"}
    for title, answers in found.items():
        values = np.array([one.value for one in answers])
        assert accepted(centred(values - TOLD[title])), title
        assert rejected(centred(OFF * values - TOLD[title]))
        check_coverage(answers, TOLD[title])


def test_counts_of_two_tables_that_are_added_up_would_count_too_many():
    # Two tables have fewer collisions than one: what is avoided by reading each for itself.
    model = pp.plan("distinct", **MANY).model(0)
    counts = [model.moments(np.array(float(users)))[0] for users in (900, 100)]
    nobody = model.moments(np.array(0.0))[0]
    assert model.estimate(sum(counts) - nobody) > 1_020
    assert sum(map(model.estimate, counts)) == pytest.approx(1_000, rel=1e-3)

"""The interval of a mean of a cropped sum holds the truth as often as it says.

False-alarm rate 1e-6 an assertion. Each check rejects intervals that are too short by 30 %; that of
hashed users, which has fewer runs, those that are half as long.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp

from .checks import OFF, accepted, happens, rejected

LEVEL = 0.9
SIZES = {
    "a cell each": (
        {"universe": 4_000, "tau": 4, "bound": 12, "epsilon": 4},
        2_500, 700, 0.02, OFF,
    ),
    "a sample": (
        {"universe": 9_000, "cells": 3_000, "tau": 4, "bound": 12, "epsilon": 4},
        5_000, 700, 0.04, OFF,
    ),
    "hashed": ({"expected": 3_000, "tau": 4, "bound": 12, "epsilon": 6}, 3_000, 400, 0.1, 2),
}  # fmt: skip
"""Sizes, users that come, runs, how much more often than it says an interval may be right, and by
which factor intervals are shortened until that is noticed."""


def answers(sizes, users, runs):
    """Means with their intervals, and the truth."""
    states = 1 + np.arange(users) % 8
    numbered = "universe" in sizes
    draw = np.random.default_rng(7)
    found = []
    for _ in range(runs):
        count = pp.CroppedSum(**sizes)
        ids = draw.permutation(sizes["universe"])[:users] if numbered else np.arange(users)
        count.update(ids, states)
        found.append(count.release(mean=True, confidence=LEVEL))
    return found, float(np.minimum(states, sizes["tau"]).mean())


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_an_interval_of_a_mean_is_right_as_often_as_it_says(name):
    sizes, users, runs, slack, off = SIZES[name]
    found, truth = answers(sizes, users, runs)
    low = np.array([one.low for one in found])
    high = np.array([one.high for one in found])
    held = int(((low <= truth) & (truth <= high)).sum())
    assert accepted(happens(held, runs, LEVEL, min(LEVEL + slack, 1)))
    middle, reach = (low + high) / 2, (high - low) / 2 / off
    shorter = int((abs(middle - truth) <= reach).sum())
    assert rejected(happens(shorter, runs, LEVEL, min(LEVEL + slack, 1)))

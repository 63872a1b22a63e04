"""What checks the running statistics."""

from __future__ import annotations

from functools import partial

from panprivacy.statistics.cases import ANNOUNCE, RELEASE, Trial, Walk

COUNT_TRIALS = (
    Trial(
        "running count",
        {"horizon": 1},
        None,
        deltas=(1, 0),
        refused=(2, -1, 2**62),
        covers="horizon",
    ),
    Trial(
        "running count of amounts",
        {"horizon": 1, "bound": 40},
        None,
        deltas=(1, 0, 40, 17),
        refused=(41, -1, -(2**62)),
        covers="horizon",
    ),
    Trial(
        "running count with deletions",
        {"horizon": 1, "bound": 3, "signed": True},
        None,
        deltas=(1, -3, 0, 3),
        refused=(4, -4, -(2**62)),
        covers="horizon",
    ),
)

COUNT_WALKS = (
    Walk(
        "running-count",
        "the count of one step with its release, seen at any time",
        {"horizon": 1},
        [[[0], [1], RELEASE]],
        tail=6,
        state_tail=1,
    ),
    Walk(
        "running-count-signed",
        "the same where an event may take back what another adds",
        {"horizon": 1, "signed": True},
        [[[(0, 1)], [(1, -1)], RELEASE], [[(0, -1), (1, -1)], RELEASE]],
        tail=6,
        state_tail=1,
    ),
    Walk(
        "running-count-announced",
        "the same after an announced intrusion, which costs nothing",
        {"horizon": 1},
        [[[0], ANNOUNCE, [0], RELEASE]],
        intrusions=1,
        tail=10,
        state_tail=1,
    ),
    Walk(
        "running-announced-2",
        "the same after two announced intrusions",
        {"horizon": 1},
        [[[0], ANNOUNCE, ANNOUNCE, RELEASE]],
        intrusions=2,
        tail=14,
        state_tail=1,
    ),
)

DISTINCT_TRIALS = (
    Trial(
        "running distinct count",
        {"horizon": 1, "expected": (50, 1_000), "memory": 4_096},
        None,
        deltas=(1, 3),
        refused=(0, -1),
        covers="horizon",
    ),
)

DISTINCT_WALKS = (
    Walk(
        "running-distinct",
        "hashed bits and the number of ones, seen within a step",
        {"horizon": 1, "expected": 1, "memory": 1},
        [[[5]]],
        users=((5, 6),),
        tail=10,
        state_tail=1,
    ),
)

_sketch = partial(Trial, tiny=None, covers="horizon", intrusions=False)

CROPPED_TRIALS = (
    _sketch(
        "running cropped sum",
        {"tau": 5, "horizon": 1, "universe": 50_021},
        deltas=(1, 0),
        refused=(2, -1, 2**62),
    ),
    _sketch(
        "running cropped sum of amounts of a sample",
        {"tau": 40, "horizon": 1, "bound": 9, "universe": 60_013, "cells": 10_007},
        deltas=(1, 0, 9),
        refused=(10, -1),
    ),
    _sketch(
        "running cropped sum of hashed users",
        {"tau": 5, "horizon": 1, "expected": 3_000},
        deltas=(1,),
        refused=(2, -1),
    ),
)

HEAVY_TRIALS = (
    _sketch(
        "running heavy hitters",
        {"k": 300, "total": 60_000, "horizon": 1},
        deltas=(1, 0),
        refused=(2, -1, 2**62),
    ),
    _sketch(
        "running heavy hitters of amounts",
        {"k": 300, "total": 600_000, "horizon": 1, "bound": 40, "independence": 6},
        deltas=(1, 0, 40),
        refused=(41, -1),
    ),
)

SKETCH_WALKS = ()
"""Outputs lie too far apart for a complete walk.

`panprivacy.audit.crashing` and tests/exact/test_running_sketches.py add up their losses.
"""

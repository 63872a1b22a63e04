"""What checks a `RunningCroppedSum`."""

from __future__ import annotations

from panprivacy.statistics.cases import Trial

TRIALS = (
    Trial(
        "running cropped sum",
        {"tau": 5, "horizon": 1, "universe": 50_021},
        None,
        deltas=(1, 0),
        refused=(2, -1, 2**62),
        covers="horizon",
        intrusions=False,
    ),
    Trial(
        "running cropped sum of amounts of a sample",
        {"tau": 40, "horizon": 1, "bound": 9, "universe": 60_013, "cells": 10_007},
        None,
        deltas=(1, 0, 9),
        refused=(10, -1),
        covers="horizon",
        intrusions=False,
    ),
    Trial(
        "running cropped sum of hashed users",
        {"tau": 5, "horizon": 1, "expected": 3_000},
        None,
        deltas=(1,),
        refused=(2, -1),
        covers="horizon",
        intrusions=False,
    ),
)

WALKS = ()
"""Outputs lie too far apart for a complete walk.

`panprivacy.audit.crashing` and tests/exact/test_running_sketches.py add up their losses.
"""

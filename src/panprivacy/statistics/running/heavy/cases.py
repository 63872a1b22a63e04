"""What checks a `RunningHeavyHitters`."""

from __future__ import annotations

from panprivacy.statistics.cases import Trial

TRIALS = (
    Trial(
        "running heavy hitters",
        {"k": 300, "total": 60_000, "horizon": 1},
        None,
        deltas=(1, 0),
        refused=(2, -1, 2**62),
        covers="horizon",
        intrusions=False,
    ),
    Trial(
        "running heavy hitters of amounts",
        {"k": 300, "total": 600_000, "horizon": 1, "bound": 40, "independence": 6},
        None,
        deltas=(1, 0, 40),
        refused=(41, -1),
        covers="horizon",
        intrusions=False,
    ),
)

WALKS = ()
"""Outputs lie too far apart for a complete walk.

`panprivacy.audit.crashing` and tests/exact/test_running_sketches.py add up their losses.
"""

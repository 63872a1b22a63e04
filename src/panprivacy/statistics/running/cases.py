"""What checks a `RunningCount`."""

from __future__ import annotations

from panprivacy.statistics.cases import ANNOUNCE, RELEASE, Trial, Walk

TRIALS = (
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
)

WALKS = (
    Walk(
        "running-count",
        "the count of one step with its release, seen at any time",
        {"horizon": 1},
        [[[0], [1], RELEASE]],
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

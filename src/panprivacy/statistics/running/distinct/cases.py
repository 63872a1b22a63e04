"""What checks a `RunningDistinct`."""

from __future__ import annotations

from panprivacy.statistics.cases import Trial, Walk

TRIALS = (
    Trial(
        "running distinct count",
        {"horizon": 1, "expected": (50, 1_000), "memory": 4_096},
        None,
        deltas=(1, 3),
        refused=(0, -1),
        covers="horizon",
    ),
)

WALKS = (
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

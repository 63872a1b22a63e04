"""What checks a `Histogram`."""

from __future__ import annotations

from panprivacy.statistics.cases import ANNOUNCE, RELEASE, Trial, Walk

_RANGE = {"low": 0, "high": 90_000}

TRIALS = (
    Trial(
        "histogram",
        {**_RANGE, "bins": 9, "horizon": 1},
        None,
        deltas=(1, 0),
        refused=(2, -1, 2**62),
        covers="horizon",
    ),
    Trial(
        "histogram with deletions",
        {"edges": (1, 20_030, 20_200, 40_000), "horizon": 1, "signed": True},
        None,
        deltas=(1, 1, -1),
        refused=(2, -2, -(2**62)),
        covers="horizon",
    ),
    Trial(
        "histogram that refuses values",
        {"low": 1, "high": 1 << 62, "resolution": 0.5, "outside": "refuse", "horizon": 1},
        None,
        deltas=(1,),
        refused=(2, -1),
        covers="horizon",
    ),
)

_TWO = {"edges": (0, 1, 2), "outside": "refuse"}

WALKS = (
    Walk(
        "histogram",
        "the counts of two bins with their release, seen at any time",
        _TWO,
        [[[0], RELEASE]],
        tail=5,
        state_tail=1,
    ),
    Walk(
        "histogram-signed",
        "the same where an event may take back another",
        {**_TWO, "signed": True},
        [[[(0, -1)], RELEASE]],
        tail=5,
        state_tail=1,
    ),
    Walk(
        "histogram-announced",
        "the same after an announced intrusion, which costs nothing",
        {"edges": (0, 1), "outside": "refuse"},
        [[[0], ANNOUNCE, [0], RELEASE]],
        intrusions=1,
        tail=10,
        state_tail=1,
    ),
)

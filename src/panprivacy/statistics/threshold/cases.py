"""What checks a `ThresholdCount`."""

from __future__ import annotations

from panprivacy.statistics.cases import Short, Trial, Walk

TRIALS = (
    Trial(
        "threshold count",
        {"universe": 50_021, "threshold": 7, "bound": 40},
        {"universe": 3, "threshold": 2, "bound": 2},
        deltas=(1, 1, -1, 3),
        refused=(41, -41, 2**62),
    ),
    Trial(
        "threshold count of a sample",
        {"universe": 60_013, "cells": 10_007, "threshold": 100},
        {"universe": 4, "cells": 2, "threshold": 3, "bound": 3},
        deltas=(1, -2, 50),
        refused=(6_401, -6_401, -(2**62)),
    ),
    Trial(
        "threshold count with room below 0",
        {"universe": 50_021, "threshold": 8, "bound": 40, "below": 4},
        {"universe": 3, "threshold": 2, "bound": 2, "below": 1},
        intrusions=False,
        deltas=(1, -2, 3),
        refused=(41, -41, 2**62),
    ),
    Trial(
        "hard threshold count",
        {"universe": 50_021, "threshold": 7, "bound": 40, "hard": True},
        {"universe": 3, "threshold": 2, "bound": 2},
        deltas=(1, 1, -1, 3),
        refused=(41, -41, 2**62),
    ),
)

WALKS = (
    Walk(
        "threshold-hard",
        "counters of two users, who are above a hard threshold, at it, or below, a release",
        {"threshold": 2, "bound": 3, "universe": 2, "hard": True},
        [Short([[(0, 2)], [(0, 3)], [(1, -1)]], 2)],
        evenly=True,
    ),
    Walk(
        "threshold-hard-announced",
        "an announced intrusion into counters of a hard threshold",
        {"threshold": 2, "bound": 2, "universe": 2, "hard": True},
        [Short([[(0, 1)], [(0, 2)]], 2, releases=0)],
        intrusions=1,
        evenly=True,
    ),
    Walk(
        "threshold",
        "counters of two users, who counts in full and who in part, a release",
        {"threshold": 4, "bound": 4, "universe": 2},
        [Short([[(0, 3)], [(0, 4)], [(1, -1)]], 2)],
        evenly=True,
    ),
    Walk(
        "threshold-announced",
        "an announced intrusion into counters of a soft threshold",
        {"threshold": 2, "bound": 2, "universe": 2},
        [Short([[(0, 1)], [(0, 2)]], 2, releases=0)],
        intrusions=1,
        evenly=True,
    ),
)

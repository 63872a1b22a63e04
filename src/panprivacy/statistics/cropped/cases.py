"""What checks a `CroppedSum`."""

from __future__ import annotations

from panprivacy.statistics.cases import Short, Trial, Walk

TRIALS = (
    Trial(
        "cropped sum",
        {"universe": 50_021, "tau": 3, "bound": 20},
        {"universe": 3, "tau": 2, "bound": 3},
        deltas=(1, 1, -1, 3),
        refused=(41, -41, 2**62),
    ),
    Trial(
        "cropped sum of hashed users",
        {"expected": 3_000, "tau": 3, "bound": 20},
        {"expected": 1, "cells": 2, "tau": 1, "bound": 1},
        deltas=(1, 1, -1, 3),
        refused=(21, -21, 2**62),
    ),
    Trial(
        "cropped sum of very many users",
        {"expected": 200_000, "tau": 1, "bound": 2},
        None,
        deltas=(1, 1, 2),
        refused=(3, -3, 2**62),
    ),
    Trial(
        "cropped sum over levels",
        {"expected": (300, 30_000), "memory": 1 << 15, "tau": 3, "bound": 20},
        {"expected": (1, 2), "memory": 4, "tau": 1, "bound": 1},
        deltas=(1, 1, -1, 3),
        refused=(21, -21, 2**62),
    ),
    Trial(
        "cropped sum of a sample",
        {"universe": 60_013, "cells": 10_007, "tau": 40, "bound": 900},
        {"universe": 4, "cells": 2, "tau": 2, "bound": 2},
        deltas=(1, -2, 50),
        refused=(1_801, -1_801, -(2**62)),
    ),
)

WALKS = (
    Walk(
        "cropped-sum",
        "states up to 2 of two users, who go beyond it and come back, a release",
        {"tau": 2, "bound": 4, "universe": 2},
        [Short([[(0, 1)], [(0, 4)], [(1, -3)]], 2)],
        evenly=True,
    ),
    Walk(
        "cropped-sum-announced",
        "an announced intrusion into counters of a cropped sum",
        {"tau": 1, "bound": 2, "universe": 2},
        [Short([[(0, 1)], [(0, 2)]], 2, releases=0)],
        intrusions=1,
        evenly=True,
    ),
    Walk(
        "cropped-sum-announced-2",
        "two announced intrusions into counters of a cropped sum, whose values have scores",
        {"tau": 1, "bound": 1, "universe": 2},
        [Short([[(0, 1)], [(0, -1)]], 2, releases=0)],
        intrusions=2,
        evenly=True,
    ),
)

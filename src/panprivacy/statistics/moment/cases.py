"""What checks a `FrequencyMoment`."""

from __future__ import annotations

from panprivacy.statistics.cases import ANNOUNCE, RELEASE, Trial, Walk

TRIALS = (
    Trial(
        "first moment",
        {"order": 1, "bound": 40},
        None,
        deltas=(1, 5, -2),
        refused=(41, -41, 2**62),
    ),
    Trial(
        "second moment",
        {"order": 2, "bound": 40, "cells": 16_384, "clip": 0},
        None,
        deltas=(1, 5, -2),
        refused=(41, -41, -(2**62)),
    ),
)

WALKS = (
    Walk(
        "moment-sum",
        "the sum of states in one noisy cell, a release",
        {"order": 1, "bound": 1},
        [[[0], [1], RELEASE], [[0], RELEASE, [1]]],
        evenly=True,
        tail=8,
        state_tail=1,
    ),
    Walk(
        "moment-announced",
        "the same with an announced intrusion",
        {"order": 1, "bound": 1},
        [[[0], ANNOUNCE, RELEASE]],
        intrusions=1,
        evenly=True,
        tail=12,
        state_tail=1,
    ),
    Walk(
        "moment-squares",
        "users that share a cell with signs, and come back from below 0; the cell is released",
        {"order": 2, "bound": 1, "signed": True, "cells": 1, "clip": 0},
        [[[(0, 1)], [(1, -1)], RELEASE], [[(0, 1)], [(0, -1)], RELEASE]],
        evenly=True,
        tail=12,
        state_tail=2,
        key=bytes(range(40)),  # one of zeros gives all users the same sign
    ),
    Walk(
        "moment-clipped",
        "a cell that is cut off, and its square released",
        {"order": 2, "bound": 1, "cells": 1, "clip": 2},
        [[[0], [1], RELEASE], [[0], RELEASE, [1]]],
        evenly=True,
        tail=8,
        state_tail=1,
    ),
)

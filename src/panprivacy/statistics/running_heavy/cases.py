"""What checks a `RunningHeavyHitters`."""

from __future__ import annotations

from panprivacy.statistics.cases import RELEASE, Trial, Walk

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

WALKS = (
    Walk(
        "running-heavy-hitters",
        "two cells of hashed users, of whom one is heavy, seen within a step",
        {"k": 1, "total": 2, "horizon": 1, "cells": 2},
        [[[5], RELEASE]],
        users=((5, 6),),
        tail=3,
        state_tail=1,
    ),
)

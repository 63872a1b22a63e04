"""What checks a `BothCount`."""

from __future__ import annotations

from panprivacy.statistics.cases import CRASH, RELEASE, SAVE, Trial, Walk

_REFUSED = (0, -1)

TRIALS = (
    Trial(
        "both, one level",
        {"expected": 3_000},
        {"expected": 1, "cells": 1},
        refused=_REFUSED,
        intrusions=False,
    ),
    Trial(
        "both, many levels",
        {"expected": (100, 100_000), "memory": 16_384},
        None,
        refused=_REFUSED,
        intrusions=False,
    ),
)

_LEFT, _RIGHT, _OTHER = [(0, 1, "left")], [(0, 1, "right")], [(1, 1, "left"), (1, 1, "right")]

WALKS = (
    Walk(
        "both",
        "a user in two streams, beside another user of the same cell",
        {"expected": 1, "cells": 1},
        [[_LEFT, _RIGHT], [_LEFT + _RIGHT, _OTHER], [_OTHER, _RIGHT, _LEFT]],
        tail=1,
    ),
    Walk(
        "both-release",
        "a user in two streams, and the noised counts of all pairs of bits",
        {"expected": 1, "cells": 1},
        [[_LEFT, _RIGHT, RELEASE]],
        tail=1,
    ),
    Walk(
        "both-crash",
        "users whom a crash loses, and who are sent again or not",
        {"expected": 1, "cells": 1},
        [[SAVE, _LEFT, CRASH, _RIGHT], [_RIGHT, SAVE, _LEFT, CRASH, _LEFT]],
        tail=1,
    ),
)

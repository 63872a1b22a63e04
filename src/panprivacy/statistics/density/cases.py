"""What checks a `Density`."""

from __future__ import annotations

from panprivacy.statistics.cases import ANNOUNCE, CRASH, RELEASE, SAVE, Short, Trial, Walk

_REFUSED = (0, 2, -2)

TRIALS = (
    Trial("density", {"universe": 50_021}, {"universe": 3}, refused=_REFUSED),
    Trial(
        "density of a sample",
        {"universe": 60_013, "cells": 10_007},
        {"universe": 4, "cells": 2},
        refused=_REFUSED,
    ),
    Trial(
        "density with deletions",
        {"universe": 50_021},
        {"universe": 3},
        deltas=(1, -1, -1, 1, 1),
        refused=_REFUSED,
    ),
    Trial(
        "density of a sample with deletions",
        {"universe": 60_013, "cells": 10_007},
        {"universe": 4, "cells": 2},
        deltas=(1, -1, -1, 1, 1),
        refused=_REFUSED,
    ),
)

_COMES, _LEAVES, _OTHER = [(0, 1)], [(0, -1)], [(1, 1)]

WALKS = (
    Walk(
        "density",
        "presence bits of two users, two releases",
        {"universe": 2},
        [Short([[0], [1], [0, 1, 0]], 2)],
        releases=2,
    ),
    Walk(
        "density-4-cells",
        "presence bits of four users, two releases",
        {"universe": 4},
        [Short([[0]], 2), Short([[2, 0, 1]], 1), [[2, 0], RELEASE, [1, 0], RELEASE]],
        releases=2,
    ),
    Walk(
        "density-deletions",
        "users leave again",
        {"universe": 2},
        [Short([_COMES, _LEAVES, _OTHER], 3)],
    ),
    Walk(
        "density-announced",
        "an announced intrusion and an unannounced one, users that leave, a release",
        {"universe": 2},
        [Short([_COMES, _LEAVES, _OTHER], 2)],
        intrusions=1,
    ),
    Walk(
        "density-announced-2",
        "two announced intrusions and an unannounced one, users that leave, a release",
        {"universe": 2},
        [
            [_COMES, ANNOUNCE, _LEAVES, ANNOUNCE],
            [_COMES, ANNOUNCE, _COMES, ANNOUNCE, _LEAVES],
            [_COMES, ANNOUNCE, _OTHER, ANNOUNCE, RELEASE],
        ],
        intrusions=2,
    ),
    Walk(
        "density-sample",
        "two cells for three users",
        {"universe": 3, "cells": 2},
        [Short([[0], [1], [2]], 2)],
        users=((0, 1), (1, 2), (2, 0)),
    ),
    Walk(
        "density-sample-deletions",
        "users leave a sample of two out of three",
        {"universe": 3, "cells": 2},
        [Short([_COMES, _LEAVES, [(2, 1), (1, -1)]], 2)],
        users=((0, 1), (1, 2), (2, 0)),
    ),
    Walk(
        "density-crash",
        "users whom a crash loses, and who are sent again or not, a release",
        {"universe": 2},
        [
            [SAVE, [0], CRASH, RELEASE],
            [SAVE, [0], CRASH, [0], RELEASE],
        ],
    ),
)

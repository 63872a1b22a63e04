"""What checks an `OverlapSketch`."""

from __future__ import annotations

from panprivacy.statistics.cases import CRASH, RELEASE, SAVE, Trial, Walk

_REFUSED = (0, -1)

TRIALS = (
    Trial(
        "published table, one level",
        {"expected": 3_000},
        {"expected": 1, "memory": 1},
        refused=_REFUSED,
        intrusions=False,
        publishes=True,
    ),
    Trial(
        "published table, many levels",
        {"expected": (100, 100_000), "memory": 8_192},
        {"expected": (1, 1_000), "memory": 1},
        refused=_REFUSED,
        intrusions=False,
        publishes=True,
    ),
    Trial(
        "published table of a universe",
        {"universe": 50_021},
        {"universe": 3},
        refused=_REFUSED,
        intrusions=False,
        publishes=True,
    ),
    Trial(
        "published table of a sample",
        {"universe": 60_013, "cells": 10_007},
        {"universe": 4, "cells": 2},
        refused=_REFUSED,
        intrusions=False,
        publishes=True,
    ),
)

WALKS = (
    Walk(
        "published-table",
        "bits of two users that are seen once and then published",
        {"universe": 2},
        [
            [[0], RELEASE],
            [[0], [0], RELEASE],
            [[0], [1, 0], RELEASE],
            [[1], [0], RELEASE],
        ],
    ),
    Walk(
        "published-tables",
        "the bits of two windows of one user, of which one is seen",
        {"universe": 1},
        [[[0], RELEASE, [0], RELEASE], [[0], [0], RELEASE, [0], [0], RELEASE]],
        releases=2,
        users=((0, 0),),
    ),
    Walk(
        "published-table-hashed",
        "users that share hashed bits, which are published",
        {"expected": 1},
        [[[5], [6, 5], RELEASE], [[6, 5, 7], [5], RELEASE]],
        users=((5, 6),),
    ),
    Walk(
        "published-table-sample",
        "two published cells for three users",
        {"universe": 3, "cells": 2},
        [[[0], [1], RELEASE], [[2, 0], RELEASE], [[1], [1], RELEASE]],
        users=((0, 1), (1, 2), (2, 0)),
    ),
    Walk(
        "published-table-crash",
        "users whom a crash loses, and who are sent again or not, and the published table",
        {"universe": 2},
        [
            [SAVE, [0], CRASH, RELEASE],
            [SAVE, [0], CRASH, [0], RELEASE],
            [[0], SAVE, [0], CRASH, [0], RELEASE],
            [SAVE, [1, 0], CRASH, [1], RELEASE],
        ],
    ),
)

"""What checks a `DistinctCount`."""

from __future__ import annotations

from panprivacy.statistics.cases import ANNOUNCE, RELEASE, Short, Trial, Walk

_WIDE = (1_000, 1_000_000)

TRIALS = (
    Trial(
        "distinct count, one level",
        {"expected": 3_000, "memory": 4_096},
        {"expected": 1, "memory": 1},
        refused=(0, -1),
    ),
    Trial(
        "distinct count, many levels",
        {"expected": _WIDE, "memory": 4_096},
        {"expected": (1, 1_000), "memory": 1},
        refused=(0, -1),
    ),
    Trial(
        "distinct count with deletions",
        {"expected": 3_000, "memory": 4_096, "deletions": True, "bound": 2},
        {"expected": 1, "memory": 1},
        deltas=(1, 1, -1),
        refused=(3, -3, 2**62),
    ),
    Trial(
        "distinct count of signed states",
        {"expected": _WIDE, "memory": 4_096, "deletions": True, "bound": 5, "signed": True},
        {"expected": 1, "memory": 1, "bound": 2},
        deltas=(1, -3, 2),
        refused=(11, -11, -(2**62)),
    ),
    Trial(
        "distinct count of a strict stream",
        {"expected": 3_000, "memory": 512, "deletions": "strict"},
        {"expected": 1, "memory": 1},
        deltas=(1, -1, 1),
        refused=(0, 2, -2, -(2**62)),
    ),
    Trial(
        "distinct count of a strict stream, many levels",
        {"expected": _WIDE, "memory": 4_096, "deletions": "strict"},
        {"expected": (1, 1_000), "memory": 1},
        deltas=(1, 1, -1, -1),
        refused=(0, 2, -2),
    ),
)

_ENTERS, _LEAVES = [(5, 1)], [(5, -1)]

WALKS = (
    Walk(
        "distinct-count",
        "users that share hashed bits, a release",
        {"expected": (1, 4), "memory": 1},
        [[[5], RELEASE, [6, 5]], [[6, 5, 7], [5], RELEASE], [RELEASE, [5]]],
        users=((5, 6),),
    ),
    Walk(
        "distinct-count-announced",
        "an announced intrusion into hashed bits",
        {"expected": (1, 4), "memory": 1},
        [[[5, 6], ANNOUNCE, [5]]],
        intrusions=1,
        users=((5, 6),),
    ),
    Walk(
        "net-count",
        "users whose deltas do not add up to 0, a release",
        {"expected": (1, 4), "memory": 2, "deletions": True, "bound": 2},
        [Short([[(5, 1)], [(5, -1)], [(6, 2)]], 2)],
        users=((5, 6), (5, 7), (5, 8)),
    ),
    Walk(
        "net-count-announced-2",
        "two announced intrusions into counters of users who come and leave",
        {"expected": (1, 4), "memory": 2, "deletions": True, "bound": 2},
        [Short([[(5, 1)], [(5, -1)]], 2, releases=0)],
        intrusions=2,
        users=((5, 6),),
    ),
    Walk(
        "strict-count",
        "users that enter, leave, and enter twice, hashed parities, a release",
        {"expected": (1, 4), "memory": 1, "deletions": "strict"},
        [[_ENTERS, RELEASE, [(6, 1), *_LEAVES]], [_ENTERS, [(7, 1), *_ENTERS]]],
        users=((5, 6),),
    ),
    Walk(
        "strict-count-announced",
        "an announced intrusion into hashed parities",
        {"expected": 1, "memory": 1, "deletions": "strict"},
        [[[*_ENTERS, (6, 1)], ANNOUNCE, _LEAVES, RELEASE]],
        intrusions=1,
        users=((5, 6),),
    ),
)

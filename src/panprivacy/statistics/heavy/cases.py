"""What checks a `HeavyHitterCount`."""

from __future__ import annotations

from panprivacy.statistics.cases import Short, Trial, Walk

_REFUSED = (50_001, -50_001, 2**62)

TRIALS = (
    Trial(
        "heavy hitter count",
        {"k": 100, "total": 50_000, "resolution": 1},
        {"k": 1, "total": 2, "cells": 2},
        deltas=(1, 1, -1, 3),
        refused=_REFUSED,
    ),
    Trial(
        "heavy hitter count of rounded deltas",
        {"k": 100, "total": 50_000, "resolution": 4},
        {"k": 1, "total": 4, "cells": 2, "resolution": 2},
        deltas=(1, 1, -1, 3),
        refused=_REFUSED,
        rounds=True,
    ),
    Trial(
        "heavy hitter count with room below 0",
        {"k": 100, "total": 50_000, "resolution": 4, "below": 250},
        {"k": 1, "total": 4, "cells": 2, "resolution": 2, "below": 2},
        intrusions=False,
        deltas=(1, -2, 3),
        refused=_REFUSED,
        rounds=True,
    ),
)

WALKS = (
    Walk(
        "heavy-hitters",
        "users that share two hashed counters, who counts in full and who in part, a release",
        {"k": 1, "total": 2, "cells": 2},
        [Short([[(5, 1)], [(5, 2)], [(6, -1)]], 2)],
        evenly=True,
        users=((5, 6), (5, 7), (5, 8)),  # 8 has another cell than the others
        key=bytes(range(40)),  # one of zeros sends all users to one cell
    ),
    Walk(
        "heavy-hitters-announced",
        "an announced intrusion into hashed counters, a release",
        {"k": 1, "total": 2, "cells": 2},
        [Short([[(5, 1)], [(5, 2)]], 1)],
        intrusions=1,
        evenly=True,
        users=((5, 6),),
        key=bytes(range(40)),
    ),
)

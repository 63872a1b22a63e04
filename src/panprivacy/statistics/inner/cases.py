"""What checks an `InnerProduct`."""

from __future__ import annotations

from panprivacy.statistics.cases import Trial, Walk

TRIALS = (
    Trial(
        "inner product",
        {"bound": 40, "cells": 8_192, "clip": 0},
        None,
        deltas=(1, 5, -2),
        refused=(41, -41, 2**62),
    ),
)

WALKS = (
    Walk(
        "inner-product",
        "a user in two streams, who meets a cell in each table, beside another user in one",
        {"bound": 1, "cells": 2, "clip": 0},
        [[[(0, 1, "left"), (0, 1, "right")], [(1, 1, "left")]]],
        evenly=True,
        tail=4,
    ),
)

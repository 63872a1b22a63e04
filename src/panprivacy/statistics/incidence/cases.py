"""What checks an `Incidence`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from panprivacy.statistics.cases import CRASH, RELEASE, SAVE, Short, Trial, Walk
from panprivacy.tables.cells.law import Law

TRIALS = (
    Trial(
        "incidence",
        {"universe": 50_021, "bound": 7},
        {"universe": 3, "bound": 2},
        deltas=(1, 1, -1, 3),
        refused=(8, -8, 2**62),
    ),
    Trial(
        "incidence of a sample, signed",
        {"universe": 60_013, "cells": 10_007, "bound": 300, "signed": True},
        {"universe": 4, "cells": 2, "bound": 1},
        deltas=(1, -2, 5),
        refused=(601, -601, -(2**62)),
    ),
    Trial(
        "incidence of hashed users",
        {"expected": 60_000, "bound": 2},
        None,
        deltas=(1, 1, 2),
        refused=(3, -3),
    ),
)

_BATCHES = [(0, 1)], [(0, 2)], [(1, -1)]


def _modulo(modulus: int, **others: Any) -> Callable[[Fraction], Mapping[str, Any]]:
    """Counters of two users with a flat law."""

    def sizes(share: Fraction) -> Mapping[str, Any]:
        law = Law.flat(modulus, share)
        return {"universe": 2, "bound": modulus - 1, "law": law, **others}

    return sizes


WALKS = (
    *(
        Walk(
            f"incidence-named-{modulus}",
            f"counters modulo {modulus}, two releases of one named count",
            _modulo(modulus),
            [Short(_BATCHES[:tried], 2)],
            asked={"exactly": (1,)},
            releases=2,
            evenly=True,
        )
        for modulus, tried in ((3, 3), (7, 2), (11, 2))
    ),
    Walk(
        "incidence-histogram-3",
        "counters modulo 3, two releases of the whole histogram",
        _modulo(3),
        [
            [[(0, 1)], RELEASE, [(0, 1)], RELEASE],
            [RELEASE, [(0, 2)], RELEASE, [(0, -1)]],
            [[(1, 1), (0, 1)], RELEASE, RELEASE],
        ],
        releases=2,
        evenly=True,
        tail=2,
    ),
    Walk(
        "incidence-announced",
        "an announced intrusion into counters modulo 3",
        _modulo(3),
        [Short(_BATCHES, 3, releases=0)],
        releases=2,
        intrusions=1,
        evenly=True,
    ),
    Walk(
        "incidence-announced-2",
        "two announced intrusions into counters modulo 3",
        _modulo(3),
        [Short(_BATCHES[:2], 2, releases=0)],
        intrusions=2,
        evenly=True,
    ),
    Walk(
        "incidence-sample-signed",
        "two counters for three users whose states may be below 0",
        _modulo(3, universe=3, cells=2, bound=1, signed=True),
        [Short([[(0, 1)], [(1, -2)], [(2, -1)]], 2)],
        asked={"exactly": (1,)},
        evenly=True,
        users=((0, 1), (1, 2), (2, 0)),
    ),
    Walk(
        "incidence-amounts",
        "amounts of half a unit, which coins round, in counters modulo 3",
        _modulo(3, unit=2),
        [Short([[(0, 1)], [(0, 2)], [(1, 1)]], 2)],
        asked={"exactly": (1,)},
        evenly=True,
    ),
    Walk(
        "incidence-crash",
        "counters modulo 3 of which a crash loses what is sent again or not, a release",
        _modulo(3),
        [
            [SAVE, [(0, 1)], CRASH, RELEASE],
            [SAVE, [(0, 1)], CRASH, [(0, 1)], RELEASE],
        ],
        asked={"exactly": (1,)},
        evenly=True,
    ),
)

"""Cells that are drawn anew: what a plan of them spends."""

from __future__ import annotations

from contextlib import nullcontext
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.papers.published import (
    ContinuousDensity,
    DworkDensity,
    DworkRothDensity,
    OptBernDensity,
    PPDSDensity,
)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (DworkDensity, {"universe": 0}),
        (DworkDensity, {"cells": 101}),
        (DworkDensity, {"cells": 0}),
        (DworkDensity, {"epsilon": "1e-12"}),
        (DworkDensity, {"intrusions": 1}),
        (DworkDensity, {"budget": pp.Budget("0.9", "0.5")}),
        (DworkRothDensity, {"intrusions": 1}),
        (DworkRothDensity, {"cells": 10}),
        (PPDSDensity, {}),
        (PPDSDensity, {"cells": 0}),
        (OptBernDensity, {"cells": 101}),
        (ContinuousDensity, {"grid": 0}),
        (ContinuousDensity, {"grid": 256}),
        (ContinuousDensity, {"intrusions": 1}),
    ],
)
def test_sizes_that_do_not_go_together(kind, wrong):
    with pytest.raises(pp.PlanError):
        kind(**{"universe": 100, "epsilon": 1, **wrong})


@pytest.mark.parametrize("kind", [DworkDensity, DworkRothDensity, ContinuousDensity])
@pytest.mark.parametrize("epsilon", ["0.001", "0.4", "30", "1000000"])
def test_all_of_epsilon_is_spent_and_no_more(kind, epsilon):
    with pytest.warns(pp.WeakEpsilonWarning) if float(epsilon) > 20 else nullcontext():
        statistic = kind(universe=1_000, epsilon=epsilon, releases=3)
    for _ in range(3):
        statistic.release()
    spent, total = statistic.ledger.spent, statistic.ledger.total
    assert (1 - Fraction(1, 10**6)) * total < spent <= total

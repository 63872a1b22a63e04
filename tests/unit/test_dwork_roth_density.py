"""The density of the textbook: a fair bit for each user, drawn anew for whoever comes."""

from __future__ import annotations

import pytest

import panprivacy as pp
from panprivacy.papers.published import DworkRothDensity
from panprivacy.testing import SeededCoins


def made(**given):
    return DworkRothDensity(**{"universe": 2_000, "epsilon": 1, "coins": SeededCoins(1), **given})


def test_each_user_has_a_cell_that_is_fair_at_birth():
    statistic = made()
    assert statistic.plan.cells == statistic.plan.universe == 2_000
    assert statistic.internals.memory.now.table.mean() == pytest.approx(0.5, abs=0.05)
    absent, present = statistic.plan.laws.probabilities()
    assert absent[1] == pytest.approx(0.5)
    assert present[1] > absent[1]


def test_who_comes_again_is_drawn_again_and_counts_once():
    once, often = made(), made()
    once.update(range(1_000))
    for _ in range(4):
        often.update(range(1_000))
    wide = [one.release(confidence=1 - 1e-9) for one in (once, often)]
    assert all(one.low < 0.5 < one.high for one in wide)


def test_it_takes_no_cells_and_nobody_leaves():
    with pytest.raises(pp.PlanError, match="has no cells="):
        made(cells=10)
    with pytest.raises(pp.InputError, match="delta must be at least 1: nobody leaves"):
        made().update([1], [-1])
    with pytest.raises(pp.PlanError, match="the published algorithms have no announced intrusions"):
        made(intrusions=1)

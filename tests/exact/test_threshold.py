"""A threshold, soft or hard, loses no more than it claims, on every outcome of every coin."""

from __future__ import annotations

from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE, exact_loss
from panprivacy.statistics.threshold.hard import HardPlan
from panprivacy.statistics.threshold.plan import SlopedThresholdPlan, ThresholdPlan
from panprivacy.tables.cells.difference_sets import residues

BUDGET = pp.Budget(state=1, release=Fraction(3, 2))
"""Output noise of a small scale, so that few outcomes are many of all."""


def threshold(
    threshold=2,
    bound=2,
    universe=2,
    releases=1,
    intrusions=0,
    budget=BUDGET,
    cells=None,
    hard=False,
    below=0,
):
    """Two counters, modulo 3 if the threshold and the bound are 2."""
    covers = {"releases": releases, "intrusions": intrusions, "budget": budget}
    epsilon = budget.total(releases=releases, intrusions=intrusions)
    sizes = {"threshold": threshold, "bound": bound, "universe": universe, "cells": cells}
    sizes |= {"hard": hard, "below": below}
    return lambda coins: pp.ThresholdCount(coins=coins, epsilon=epsilon, **covers, **sizes)


def check(build, stream, neighbour, epsilon):
    loss = exact_loss(build, stream, neighbour)
    assert loss.within(epsilon)
    assert loss.set_aside < Fraction(1, 100)
    return loss


HISTORIES = {
    "appears once": ([[0]], [[]]),
    "is above": ([[(0, 2)]], [[]]),
    "is above beside another user": ([[(0, 2), (1, 2)]], [[(1, 2)]]),
    "appears before and after a release": ([[0], RELEASE, [0]], [[], RELEASE, []]),
    "comes and goes around a release": ([[(0, 2)], RELEASE, [(0, -2)]], [[], RELEASE, []]),
    "goes beyond the bound": ([[(0, 2)], [(0, 2)], RELEASE], [[], [], RELEASE]),
    "goes below 0 and comes back": ([[(0, -1)], RELEASE, [(0, 1)]], [[], RELEASE, []]),
}


@pytest.mark.parametrize("history", HISTORIES)
def test_a_soft_threshold_keeps_its_claim(history):
    assert threshold()(None).plan.law.modulus == 3
    check(threshold(), *HISTORIES[history], BUDGET.total(releases=1, intrusions=0))


@pytest.mark.parametrize("least", [4, 5])
def test_longer_blocks_keep_the_claim(least):
    build = threshold(threshold=least, bound=5, universe=1)
    assert build(None).plan.low == 2
    stream, neighbour = [[(0, least)], RELEASE], [[], RELEASE]
    check(build, stream, neighbour, BUDGET.total(releases=1, intrusions=0))


@pytest.mark.long
@pytest.mark.parametrize("history", HISTORIES)
def test_a_soft_threshold_with_room_below_0_keeps_its_claim(history):
    build = threshold(below=1)
    assert isinstance(build(None).plan, SlopedThresholdPlan)
    assert build(None).plan.range_of_states == (-1, 2)
    check(build, *HISTORIES[history], BUDGET.total(releases=1, intrusions=0))


@pytest.mark.long
@pytest.mark.parametrize("sizes", [{"universe": 3, "cells": 2}, {"universe": 1, "threshold": 4}])
def test_room_below_0_of_a_sample_or_of_longer_blocks_keeps_the_claim(sizes):
    sizes = {"bound": 4, "below": 1, **sizes}
    others = [(1, -1)] if sizes["universe"] > 1 else []
    stream, neighbour = [[(0, 4), *others], RELEASE], [others, RELEASE]
    check(threshold(**sizes), stream, neighbour, BUDGET.total(releases=1, intrusions=0))


def test_the_state_with_room_below_0_spends_all_that_its_law_loses():
    loss = check(threshold(threshold=4, bound=4, below=2), [[(0, -3)]], [[]], 1)
    assert float(loss) == pytest.approx(1, abs=1e-5)


def test_the_audit_catches_noise_for_less_than_the_range_of_the_scores_of_blocks(monkeypatch):
    budget = pp.Budget(state=Fraction(1, 2), release=6)
    build = threshold(bound=3, universe=1, budget=budget, below=1)
    most = build(None).plan.sensitivity(0)
    stream, neighbour = [[], [(0, 2)], RELEASE], [[], [], RELEASE]
    check(build, stream, neighbour, budget.total(releases=1, intrusions=0))
    monkeypatch.setattr(SlopedThresholdPlan, "sensitivity", lambda *_: Fraction(most, 3))
    assert not exact_loss(build, stream, neighbour).within(10)


def test_a_sample_keeps_the_claim():
    build = threshold(universe=3, cells=2)
    stream, neighbour = [[(0, 2), (1, 1)], RELEASE], [[(1, 1)], RELEASE]
    check(build, stream, neighbour, BUDGET.total(releases=1, intrusions=0))


@pytest.mark.long
def test_two_releases_keep_their_claim():
    stream, neighbour = [[0], RELEASE, [(0, 1)], RELEASE], [[], RELEASE, [], RELEASE]
    check(threshold(releases=2), stream, neighbour, BUDGET.total(releases=2, intrusions=0))


def test_an_announced_intrusion_keeps_its_claim():
    build = threshold(intrusions=1)
    stream, neighbour = [[(0, 1)], ANNOUNCE, [(0, 1)], RELEASE], [[], ANNOUNCE, [], RELEASE]
    check(build, stream, neighbour, BUDGET.total(releases=1, intrusions=1))


def test_the_state_spends_all_that_its_law_loses():
    loss = check(threshold(threshold=2, bound=6), [[(0, 3)]], [[]], 1)
    assert float(loss) == pytest.approx(1, abs=1e-5)


def test_a_hard_threshold_keeps_its_claim_around_an_announced_intrusion():
    budget = pp.Budget(Fraction(1, 2), Fraction(9))
    total = budget.total(releases=1, intrusions=1)
    sizes = {"threshold": 2, "bound": 2, "universe": 1, "hard": True, "budget": budget}

    def build(coins):
        return pp.ThresholdCount(epsilon=total, intrusions=1, coins=coins, **sizes)

    before = check(build, [[], [(0, 2)], RELEASE], [[], [], RELEASE], total)
    after = check(build, [ANNOUNCE, [], [(0, 2)], RELEASE], [ANNOUNCE, [], [], RELEASE], total)
    assert min(map(float, (before, after))) > 0.99 * float(budget.release)


@pytest.mark.long
def test_the_audit_catches_noise_for_one_count_where_a_user_moves_two(monkeypatch):
    monkeypatch.setattr(
        "panprivacy.statistics.soft.block_plans.block_sets", lambda *_: [residues(7)]
    )
    budget = pp.Budget(state=Fraction(1, 2), release=6)
    build = threshold(bound=3, universe=1, budget=budget)
    assert build(None).plan.sensitivity(0) == 2
    stream, neighbour = [[], [(0, 2)], RELEASE], [[], [], RELEASE]
    check(build, stream, neighbour, budget.total(releases=1, intrusions=0))
    monkeypatch.setattr(ThresholdPlan, "sensitivity", lambda *_: 1)
    assert not exact_loss(build, stream, neighbour).within(10)


def test_a_release_after_an_announced_intrusion_spends_all_that_it_may(monkeypatch):
    """A cell counts for 0 or 1 then: noise for two would be twice as wide as it has to be."""
    monkeypatch.setattr(
        "panprivacy.statistics.soft.block_plans.block_sets", lambda *_: [residues(7)]
    )
    budget = pp.Budget(state=Fraction(1, 2), release=3)
    build = threshold(bound=3, universe=1, budget=budget, intrusions=1)
    assert [build(None).plan.sensitivity(epoch) for epoch in (0, 1)] == [2, 1]
    stream, neighbour = [ANNOUNCE, [], [(0, 1)], RELEASE], [ANNOUNCE, [], [], RELEASE]
    loss = check(build, stream, neighbour, budget.total(releases=1, intrusions=1))
    assert float(loss) == pytest.approx(float(budget.release), abs=1e-5)  # the look is before it


@pytest.mark.parametrize("history", HISTORIES)
def test_a_hard_threshold_keeps_its_claim(history):
    check(threshold(hard=True), *HISTORIES[history], BUDGET.total(releases=1, intrusions=0))


@pytest.mark.parametrize("sizes", [{"universe": 3, "cells": 2}, {"universe": 1, "bound": 5}])
def test_a_hard_threshold_of_a_sample_or_of_more_states_keeps_its_claim(sizes):
    stream, neighbour = [[(0, 2), (1, 1)][: sizes["universe"]], RELEASE], [[(1, 1)], RELEASE]
    if sizes["universe"] == 1:
        neighbour = [[], RELEASE]
    build = threshold(hard=True, **sizes)
    check(build, stream, neighbour, BUDGET.total(releases=1, intrusions=0))


def test_the_state_of_a_hard_threshold_spends_all_that_its_law_loses():
    loss = check(threshold(threshold=2, bound=6, hard=True), [[(0, 3)]], [[]], 1)
    assert float(loss) == pytest.approx(1, abs=1e-5)


def test_the_audit_catches_noise_for_less_than_the_range_of_the_scores(monkeypatch):
    budget = pp.Budget(state=Fraction(1, 2), release=6)
    build = threshold(bound=3, universe=1, budget=budget, hard=True)
    most = build(None).plan.sensitivity(0)
    stream, neighbour = [[], [(0, 2)], RELEASE], [[], [], RELEASE]
    check(build, stream, neighbour, budget.total(releases=1, intrusions=0))
    monkeypatch.setattr(HardPlan, "sensitivity", lambda *_: Fraction(most, 3))
    assert not exact_loss(build, stream, neighbour).within(10)

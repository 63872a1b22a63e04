"""The count of heavy hitters loses no more than it claims, on every outcome of every coin."""

from __future__ import annotations

from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE, EnumeratedCoins, exact_loss
from panprivacy.statistics.heavy.plan import HeavyPlan
from panprivacy.tables.cells.difference_sets import residues

BUDGET = pp.Budget(state=1, release=Fraction(3, 2))
"""Output noise of a small scale, so that few outcomes are many of all."""


def heavy(total=2, resolution=1, releases=1, intrusions=0, budget=BUDGET, below=None):
    """Two counters, modulo 3 if the total is 2."""
    covers = {"releases": releases, "intrusions": intrusions, "budget": budget}
    epsilon = budget.total(releases=releases, intrusions=intrusions)
    sizes = {"k": 1, "cells": 2, "total": total, "resolution": resolution, "below": below}
    return lambda coins: pp.HeavyHitterCount(coins=coins, epsilon=epsilon, **covers, **sizes)


def check(build, stream, neighbour, epsilon):
    loss = exact_loss(build, stream, neighbour)
    assert loss.within(epsilon)
    assert loss.set_aside < Fraction(1, 100)
    return loss


HISTORIES = {
    "appears once": ([[0]], [[]]),
    "is heavy": ([[(0, 2)]], [[]]),
    "holds what the other one gives up": ([[(0, 2), (1, -1)]], [[(1, -1)]]),
    "appears before and after a release": ([[0], RELEASE, [0]], [[], RELEASE, []]),
    "comes and goes around a release": ([[(0, 2)], RELEASE, [(0, -2)]], [[], RELEASE, []]),
    "appears after a release": ([[], RELEASE, [(0, 2)]], [[], RELEASE, []]),
}


@pytest.mark.parametrize("history", HISTORIES)
def test_a_count_of_heavy_hitters_keeps_its_claim(history):
    assert heavy()(None).plan.law.modulus == 3
    check(heavy(), *HISTORIES[history], BUDGET.total(releases=1, intrusions=0))


@pytest.mark.parametrize("history", HISTORIES)
def test_heavy_hitters_with_room_below_0_keep_their_claim(history):
    build = heavy(below=1)
    assert build(None).plan.range_of_states == (-1, 2)
    check(build, *HISTORIES[history], BUDGET.total(releases=1, intrusions=0))


@pytest.mark.long
def test_rounded_deltas_with_room_below_0_keep_the_claim():
    build = heavy(total=4, resolution=2, below=2)
    check(build, [[(0, -3)], RELEASE], [[], RELEASE], BUDGET.total(releases=1, intrusions=0))


@pytest.mark.long
@pytest.mark.parametrize("history", ["is heavy beside one elsewhere", "takes the place of another"])
def test_users_of_different_cells_keep_the_claim(history):
    """With a key of zeros all users have one cell; with this one the users 0 and 2 have two."""
    stream, neighbour, losses = {
        "is heavy beside one elsewhere": ([[(0, 2), (2, 1)], RELEASE], [[(2, 1)], RELEASE], 1),
        "takes the place of another": ([[(0, 2)], RELEASE], [[(2, 2)], RELEASE], 2),
    }[history]
    coins = EnumeratedCoins(addressing_key=bytes(range(5, 45)))
    loss = exact_loss(heavy(), stream, neighbour, coins=coins)
    assert loss.within(losses * BUDGET.total(releases=1, intrusions=0))
    assert float(loss) > losses - 0.1


ROUNDED = {
    "is rounded": ([[(0, 1)], RELEASE], [[], RELEASE]),
    "is rounded beside another user": ([[(0, 1), (1, 3)], RELEASE], [[(1, 3)], RELEASE]),
    "comes and goes": ([[(0, 3)], [(0, -3)], RELEASE], [[], [], RELEASE]),
    "has some of its updates removed": ([[(0, 1), (0, 2)], RELEASE], [[(0, 2)], RELEASE]),
}


@pytest.mark.long
@pytest.mark.parametrize("history", ROUNDED)
def test_rounded_deltas_keep_the_claim(history):
    build = heavy(total=4, resolution=2)
    assert build(None).plan.block == 1
    check(build, *ROUNDED[history], BUDGET.total(releases=1, intrusions=0))


@pytest.mark.long
def test_two_releases_keep_their_claim():
    stream, neighbour = [[0], RELEASE, [(0, 1)], RELEASE], [[], RELEASE, [], RELEASE]
    check(heavy(releases=2), stream, neighbour, BUDGET.total(releases=2, intrusions=0))


@pytest.mark.long
@pytest.mark.parametrize("resolution", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_announced_intrusion_keeps_its_claim(resolution):
    build = heavy(total=2 * resolution, resolution=resolution, intrusions=1)
    stream, neighbour = [[(0, 1)], ANNOUNCE, [(0, 1)], RELEASE], [[], ANNOUNCE, [], RELEASE]
    check(build, stream, neighbour, BUDGET.total(releases=1, intrusions=1))


def test_the_state_spends_all_that_its_law_loses():
    loss = check(heavy(total=6), [[(0, 3)]], [[]], 1)
    assert float(loss) == pytest.approx(1, abs=1e-5)


@pytest.mark.long
def test_rounding_costs_nothing_and_spends_nothing():
    """A delta that is rounded up or down shows less than one that moves the counter for sure."""
    half, whole = (exact_loss(heavy(total=4, resolution=2), [[(0, d)]], [[]]) for d in (1, 2))
    assert float(half) < float(whole)
    assert whole.within(1)


@pytest.mark.long
def test_the_audit_catches_noise_for_one_count_where_a_user_moves_two(monkeypatch):
    """With blocks of residues a user moves the count by up to two; noise for one is too little."""
    monkeypatch.setattr(
        "panprivacy.statistics.soft.block_plans.block_sets", lambda *_: [residues(7)]
    )
    budget = pp.Budget(state=Fraction(1, 2), release=6)
    build = heavy(total=3, budget=budget)
    assert build(None).plan.sensitivity(0) == 2
    stream, neighbour = [[], [(0, 2)], RELEASE], [[], [], RELEASE]
    check(build, stream, neighbour, budget.total(releases=1, intrusions=0))
    monkeypatch.setattr(HeavyPlan, "sensitivity", lambda *_: 1)
    assert not exact_loss(build, stream, neighbour).within(10)


@pytest.mark.long
def test_a_release_after_an_announced_intrusion_spends_all_that_it_may(monkeypatch):
    """A cell counts for 0 or 1 then: noise for two would be twice as wide as it has to be."""
    monkeypatch.setattr(
        "panprivacy.statistics.soft.block_plans.block_sets", lambda *_: [residues(7)]
    )
    budget = pp.Budget(state=Fraction(1, 2), release=3)
    build = heavy(total=3, budget=budget, intrusions=1)
    assert [build(None).plan.sensitivity(epoch) for epoch in (0, 1)] == [2, 1]
    stream, neighbour = [ANNOUNCE, [], [(0, 1)], RELEASE], [ANNOUNCE, [], [], RELEASE]
    loss = check(build, stream, neighbour, budget.total(releases=1, intrusions=1))
    assert float(loss) == pytest.approx(float(budget.release), abs=1e-5)  # the look is before it

"""Density of a sample, after Digalakis."""

from __future__ import annotations

import math

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers.published import (
    PPDSDensity,
)
from panprivacy.papers.published.digalakis_density import (
    OVERFULL,
    PPDSSizes,
    overfull,
)
from panprivacy.statistics.arguments import request
from tests.unit.test_published_density import state_and_counts


def test_distinct_sampling_at_a_public_level_is_density_of_so_many_users():
    level = PPDSSizes(universe=5_000, cells=1_000).level(request(1))
    assert level == 2
    assert state_and_counts(PPDSDensity, cells=1_000) == state_and_counts(pp.Density, cells=1_250)


def test_room_for_all_ids_is_no_sample():
    assert PPDSDensity(universe=100, cells=100, epsilon=1).plan.cells == 100


@pytest.mark.parametrize(
    ("users", "room", "present"), [(40, 30, 0.6), (97, 80, 0.55), (12, 11, 0.7)]
)
def test_the_bound_of_an_overfull_sample_is_one(users, room, present):
    exact = sum(
        math.comb(users, ones) * present**ones * (1 - present) ** (users - ones)
        for ones in range(room + 1, users + 1)
    )
    assert exact <= overfull(users, room, present) <= 20 * exact + 1e-12
    assert overfull(users, users, present) == 0
    assert overfull(users, int(present * users) - 1, present) == 1


@pytest.mark.parametrize("room", [1, 100, 1_000, 10_000, 99_999])
@pytest.mark.parametrize("epsilon", ["0.2", "1", "6"])
def test_the_level_is_the_lowest_at_which_the_ids_fit(room, epsilon):
    sizes, asked = PPDSSizes(universe=100_000, cells=room), request(epsilon)
    level, plan = sizes.level(asked), sizes.plan(asked)
    assert plan.cells == 100_000 >> level
    assert overfull(plan.cells, room, float(plan.table.presence(0))) <= OVERFULL
    if level:
        assert overfull(2 * plan.cells, room, float(plan.table.presence(0))) > OVERFULL


def test_the_printed_hash_samples_the_users_of_one_residue():
    """`(a u + b) mod 2**Q` ends in L zeros for one u in `2**L`, and so for all u modulo that."""
    level, generator = 5, np.random.default_rng(1)
    users = np.arange(1 << 12)
    for _ in range(20):
        a, b = 2 * generator.integers(1 << 11) + 1, generator.integers(1 << 12)
        sampled = users[(a * users + b) % (1 << 12) % (1 << level) == 0]
        assert len(set((sampled % (1 << level)).tolist())) == 1
        assert len(sampled) == len(users) >> level

"""How a universe is addressed."""

from __future__ import annotations

import pytest

import panprivacy as pp
from panprivacy.statistics.density.plan import MAX_DIRECT_CELLS, plan_density
from panprivacy.tables.addressing import MAX_UNIVERSE, Direct, Sampled
from tests.unit.test_planning import KIB, ONE


def test_a_universe_that_fits_has_a_cell_for_every_user():
    plan = plan_density(1_000, None, ONE)
    assert (plan.cells, plan.key_bytes) == (1_000, 0)
    assert isinstance(plan.address(b""), Direct)


def test_a_universe_that_does_not_fit_is_sampled():
    plan = plan_density(MAX_UNIVERSE, None, ONE)
    assert (plan.cells, plan.key_bytes) == (MAX_DIRECT_CELLS, 16)
    assert isinstance(plan.address(bytes(16)), Sampled)
    assert plan.table.nbytes == 16 * KIB**2


UNIVERSES = pytest.mark.parametrize(
    ("statistic", "sizes"),
    [
        (pp.Density, {}),
        (pp.Incidence, {"bound": 4}),
        (pp.CroppedSum, {"tau": 2}),
        (pp.ThresholdCount, {"threshold": 4}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)


@UNIVERSES
@pytest.mark.parametrize(("cells", "key", "kind"), [(None, 0, Direct), (99, 16, Sampled)])
def test_a_universe_is_addressed_alike_in_all_plans(statistic, sizes, cells, key, kind):
    plan = statistic(universe=100, epsilon=1, cells=cells, **sizes).plan
    assert plan.key_bytes == key
    assert isinstance(plan.address(bytes(key)), kind)


@UNIVERSES
def test_no_plan_has_more_cells_than_a_universe_has_users(statistic, sizes):
    with pytest.raises(pp.PlanError, match=r"cells \(101\) exceed the universe \(100\); leave"):
        statistic(universe=100, epsilon=1, cells=101, **sizes)


def test_a_universe_beyond_all_ids_is_refused():
    with pytest.raises(pp.PlanError, match="universe must be at most"):
        pp.Density(universe=MAX_UNIVERSE + 1, epsilon=1, cells=1)


def test_a_huge_universe_is_sampled_within_the_usual_memory():
    assert pp.plan("density", universe=10**13, epsilon=1).table.nbytes == 1 << 24
    assert pp.plan("cropped-sum", universe=10**13, tau=10, epsilon=1).table.nbytes == 1 << 26

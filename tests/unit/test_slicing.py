"""The slices of a table: how many cells each has, and how their sums are put together."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.errors import PlanError
from panprivacy.statistics.slicing import address_of, cells_of, table_of, with_fields
from panprivacy.tables.addressing import Dealt
from panprivacy.tables.slices import Slice

KEY = b"sixteen letters!"
SHARDS = 3
EACH = [Slice(shard, SHARDS, KEY) for shard in range(SHARDS)]


def density():
    return pp.Density(universe=10_000, epsilon=1).plan


def distinct():
    return pp.DistinctCount(expected=(1_000, 100_000), epsilon=1).plan


def moment(order, **given):
    return pp.FrequencyMoment(
        order=order, bound=3, expected=(10_000, 1_000_000), epsilon=4, **given
    ).plan


@pytest.mark.parametrize("plan", [density(), distinct(), moment(2)], ids=["one", "levels", "sums"])
def test_slices_have_all_cells_of_the_table_together(plan):
    shares = [plan.slicing.share(one) for one in EACH]
    assert sum(shares) == plan.table.cells
    assert max(shares) - min(shares) <= plan.slicing.runs
    assert [plan.slicing.table(one).cells for one in EACH] == shares


def test_each_level_is_divided_by_itself():
    plan = distinct()
    assert plan.slicing.runs == plan.levels > 1
    assert all(plan.slicing.share(one) % plan.levels == 0 for one in EACH)
    assert plan.slicing.address(EACH[0], KEY) != plan.address(KEY)


def test_without_a_slice_it_is_the_table():
    plan = density()
    assert table_of(plan, None) == plan.table
    assert table_of(plan, EACH[1]) == plan.slicing.table(EACH[1])
    assert type(address_of(plan, None, KEY)) is type(plan.address(KEY))
    assert isinstance(address_of(plan, EACH[1], KEY), Dealt)


def test_one_cell_cannot_be_divided_so_each_shard_has_one():
    plan = moment(1)
    assert [plan.slicing.share(one) for one in EACH] == [1, 1, 1]
    assert plan.slicing.combine_sums([np.array([3]), np.array([4]), np.array([5])]).tolist() == [12]
    assert plan.slicing.reading(None, 0, SHARDS).tables == SHARDS


def test_sums_of_slices_are_added_up_and_cells_stand_side_by_side_in_each_run():
    each = [np.array([1, 2]), np.array([3, 4])]
    assert density().slicing.combine_sums(each).tolist() == [4, 6]
    assert moment(2, clip=0).slicing.combine_sums(each).tolist() == [1, 2, 3, 4]
    paired = pp.InnerProduct(
        left="a", right="b", bound=3, expected=(100_000, 1_000_000), epsilon=9, clip=0
    ).plan
    assert paired.slicing.combine_sums(each).tolist() == [1, 3, 2, 4]


def test_a_slice_contributes_its_cells_or_all_sums():
    plan = moment(2, clip=0)
    assert plan.slicing.size(EACH[0], plan.reading(None, 0)) == plan.slicing.share(EACH[0])
    assert distinct().slicing.size(EACH[0], distinct().reading(None, 0)) == distinct().levels


def test_a_running_count_has_no_slices():
    with pytest.raises(PlanError, match="a running count cannot be divided among shards"):
        _ = pp.RunningCount(horizon=10, epsilon=1).plan.slicing


def test_a_slice_without_cells_is_refused():
    assert sum(cells_of(one, 4) for one in EACH) == 4
    with pytest.raises(PlanError, match="3 shards are too many for 2 cells"):
        cells_of(EACH[0], 2)


def test_a_record_with_other_fields_is_another_record():
    plan = density()
    assert with_fields(plan, cells=7).cells == 7
    assert plan.cells != 7

"""Every statistic is divided into slices that are one table together, or refuses in one line.

Equality is exact here: the cells of all slices, put together, are the table that the same cells
would be in one place, whatever noise they were born with; and their sums are those of that table.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.cluster.routing import Router
from panprivacy.statistics.catalogue import KINDS
from panprivacy.statistics.contribution import read_parts
from panprivacy.statistics.explain.description import describe
from panprivacy.statistics.merging import Merger
from panprivacy.tables.cells.pairs import PairedBits
from panprivacy.tables.ids import read_ids
from panprivacy.testing import SeededCoins
from tests.statistical.checks import accepted, fits, rejected

from .cases import CASES

KEY = b"sixteen letters!"
SHARDS = 3

OURS = [case for case in CASES if case.kind in KINDS]
SLICED = [case for case in OURS if case.plan.hides != "event" and not case.trial.publishes]
EACH = pytest.mark.parametrize("case", SLICED, ids=lambda case: case.name)


def of_these(chosen):
    """The statistics that can be divided, of some kind."""
    return pytest.mark.parametrize("case", list(filter(chosen, SLICED)), ids=lambda case: case.name)


def is_sum(plan):
    """Whether it is one cell, of which each shard has one."""
    return getattr(plan, "order", 2) == 1


def router_of(case, shards=SHARDS):
    return Router(shards, KEY, numbered=case.plan.numbered is not None)


def slices_of(case, shards=SHARDS, **given):
    router = router_of(case, shards)
    return [case.make(slice_=router.slice(shard), **given) for shard in range(shards)]


def counted(case, made):
    """Slices that have counted some users, each those of its shard."""
    router = router_of(case, len(made))
    users = np.array(case.ids(200))
    deltas = np.resize(np.array(case.deltas), len(users))
    shards = router.shards_of(users)
    for shard, one in enumerate(made):
        one.update(users[shards == shard], deltas[shards == shard])
    return users, deltas, shards


def runs_of(plan):
    """Into how many equal runs a table is divided, as the counts of a release show."""
    return plan.slicing.runs


def cells_of(statistic):
    """What each cell holds: bits are packed."""
    cells, table = statistic.internals.memory.cells, statistic.internals.memory.now.table
    if isinstance(cells, PairedBits):
        return cells.ones(table)
    if table.dtype == np.uint8 and len(table) < cells.cells:
        return np.unpackbits(table, count=cells.cells, bitorder="little")
    return table


def whole_of(case, made):
    """The table that the cells of all slices are together."""
    plan = made[0].plan
    runs = runs_of(plan)
    tables = [np.split(cells_of(one), runs) for one in made]
    table = np.concatenate([run for several in zip(*tables, strict=True) for run in several])
    if isinstance(plan.table, PairedBits):
        halves = (np.packbits(table >> side & 1, bitorder="little") for side in (0, 1))
        return np.concatenate(list(halves))
    packed = len(made[0].internals.memory.now.table) < made[0].internals.memory.cells.cells
    return np.packbits(table, bitorder="little") if packed else table


@EACH
@pytest.mark.parametrize("announced", [0, 1])
def test_the_sums_of_all_slices_are_those_of_their_cells_in_one_table(case, announced):
    announced *= int(case.trial.intrusions)
    given = {case.covers: 1, "intrusions": announced}
    made = slices_of(case, **given)
    counted(case, made)
    for one in made * announced:
        one.announce_intrusion()
    plan, whole = made[0].plan, whole_of(case, made)
    single = case.make(**given)
    if is_sum(plan):  # a sum is one cell, of which each shard has one
        expected = np.array([whole.sum()])
    else:
        assert sum(one.internals.memory.cells.cells for one in made) == plan.table.cells
        assert single.internals.memory.cells.is_table(whole)
        expected = made[0].internals.releasing.reading().sums(single.internals.memory.cells, whole)
    scales = made[0].internals.releasing.reading().scales
    merged = Merger([one.contribute() for one in made])._merged[0]
    assert merged._sums().tolist() == expected.tolist()
    assert merged.reading.scales == scales  # the noise of one table


@EACH
def test_cells_of_a_slice_are_born_and_changed_as_those_of_the_table(case):
    """They differ in their number alone."""
    whole = case.make().internals.memory.cells
    for one in slices_of(case):
        cells = one.internals.memory.cells
        alike = dataclasses.replace(cells, cells=whole.cells)
        assert type(cells) is type(whole)
        assert alike == whole
        for field in dataclasses.fields(whole):
            mine, its = getattr(alike, field.name), getattr(whole, field.name)
            assert np.array_equal(mine, its), field.name


@of_these(lambda case: case.plan.numbered is not None)
def test_users_of_a_universe_have_a_cell_each_or_a_sample_of_them_has(case):
    """All of a universe: who has no cell is as rare in each slice as in the table."""
    plan = case.plan
    users = np.arange(plan.numbered)
    shards = router_of(case).shards_of(users)
    for shard, one in enumerate(slices_of(case)):
        own = users[shards == shard]
        slots = np.concatenate(list(one.internals.memory.addressing.slots(read_ids(own))))
        cells = one.internals.memory.cells.cells
        assert sorted(slots[slots >= 0].tolist()) == list(range(cells))  # one user each
        assert abs(cells / len(own) - plan.cells / plan.numbered) <= 1 / len(own)


@of_these(lambda case: case.plan.numbered is None and not is_sum(case.plan))
def test_hashed_users_are_spread_over_the_cells_of_their_slice(case):
    plan = case.plan
    router, users = router_of(case), np.arange(60_000)
    shards = router.shards_of(users)
    for shard, one in enumerate(slices_of(case, coins=SeededCoins(1))):
        slots = np.concatenate(
            list(one.internals.memory.addressing.slots(read_ids(users[shards == shard])))
        )
        slots_per_level = one.internals.memory.addressing.cells // getattr(plan, "levels", 1)
        first = slots[slots < slots_per_level]
        bins = np.bincount(first * 16 // slots_per_level, minlength=16)
        sizes = np.bincount(np.arange(slots_per_level) * 16 // slots_per_level, minlength=16)
        assert accepted(fits(bins, sizes))
        assert rejected(fits(bins, sizes * np.resize([1.0, 1.3], 16)))
        assert slots.max() < one.internals.memory.addressing.cells


@EACH
def test_a_slice_answers_nothing_by_itself_and_pays_nothing_for_that(case):
    one, *_ = slices_of(case)
    before, spent = one.state(), one.ledger.spent
    with pytest.raises(pp.PanPrivacyError, match="no answer of its own"):
        one.release()
    with pytest.raises(pp.PlanError, match="contribute sums"):
        one.contribute_cells()
    assert (one.state(), one.ledger.spent, one.releases) == (before, spent, 0)


@EACH
def test_a_state_says_which_slice_it_is_of_and_no_other_goes_on_from_it(case):
    one, other, _ = slices_of(case)
    counted(case, [one, other, case.make()][:1])
    state = one.state()
    (again, *_) = slices_of(case)
    again.resume(state)
    assert again.state() == state
    for wrong, named in ((other, "shard"), (slices_of(case, 2)[0], "shards"), (case.make(), "s")):
        with pytest.raises(pp.InputError, match=f"another .*{named}"):
            wrong.resume(state)
    part = read_parts(one.contribute())[0]
    described = describe(part.header)
    assert (described.slice_.shard, described.slice_.shards) == (0, SHARDS)
    assert described.plan == one.plan


@EACH
def test_what_does_not_go_together_is_refused(case):
    one, other, third = (made.contribute() for made in slices_of(case))
    (alone,) = (made.contribute() for made in slices_of(case, 1))
    for given, said in (
        ([one, third], "of the 3 slices of this table these are missing: 2"),
        ([one], "missing: 2, 3"),
        ([one, one, third], "contribution 2 is contribution 1 once more"),
        ([one, slices_of(case)[0].contribute(), third], "of the slice of contribution 1"),
        ([one, other, alone], "shards must be alike"),
        ([one, other, case.make().contribute()], "shards must be alike"),
    ):
        with pytest.raises(pp.InputError) as refused:
            pp.merge(given)
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)
    pp.merge([third, one, other])


@pytest.mark.parametrize(
    "case", [one for one in OURS if one.plan.hides == "event"], ids=lambda case: case.name
)
def test_running_counts_are_not_divided(case):
    with pytest.raises(pp.PlanError, match="count it on one machine"):
        slices_of(case)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.kind not in KINDS], ids=lambda case: case.name
)
def test_what_merge_does_not_know_is_not_divided(case):
    with pytest.raises(pp.PlanError, match="merge does not know"):
        slices_of(case)

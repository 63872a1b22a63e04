"""Nothing survives between two updates but the plan, the state and the budget."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.privacy.coins import SystemCoins
from panprivacy.statistics.slicing import table_of
from panprivacy.statistics.state import State
from panprivacy.testing import SeededCoins

from .cases import lead_through_life
from .reachable import (
    DECLARED,
    PARTS,
    attributes,
    differences,
    held,
    hidden,
    holds,
    leaves,
    package_globals,
    undeclared,
)


def lives(make, case):
    """The lives of a statistic over batches of any number of rows, with the same coins."""

    def live(count):
        statistic = make(coins=SeededCoins(1), **case.life)
        lead_through_life(statistic, case, count)
        return statistic

    return live


def test_nothing_undeclared_is_reachable(case):
    assert hidden(lives(case.make, case)) == set()


def test_in_production_the_coins_hold_nothing(case):
    statistic = case.make()
    assert type(statistic.internals.memory.coins) is SystemCoins
    assert attributes(statistic.internals.memory.coins) == {}
    assert attributes(SeededCoins(1)) != {}


def test_the_attributes_are_the_declared_ones(case):
    statistic = case.make()
    assert attributes(statistic).keys() == {"internals"}
    assert attributes(statistic.internals).keys() == {*PARTS}
    assert held(statistic).keys() == DECLARED
    assert type(statistic.internals.memory.now) is State
    assert attributes(statistic.internals.memory.now).keys() == {
        "key",
        "arrays",
        "releases",
        "intrusions",
        "tick",
    }


def test_the_table_is_as_long_as_the_plan_says_and_owns_its_memory(case):
    statistic = lives(case.make, case)(100)
    table = statistic.internals.memory.now.table
    assert table.nbytes == statistic.plan.table.nbytes
    assert table.base is None


def test_bits_are_packed(packed_case):
    plan = packed_case.make().plan
    assert plan.table.nbytes == -(-plan.cells // 8)


def test_bits_beyond_the_last_cell_stay_0(packed_case):
    statistic = lives(packed_case.make, packed_case)(100)
    bits = np.unpackbits(statistic.internals.memory.now.table, bitorder="little")
    assert bits[statistic.plan.cells :].sum() == 0


def test_the_addressing_is_a_function_of_plan_and_key(case):
    statistic = lives(case.make, case)(100)
    again = statistic.plan.address(statistic.internals.memory.now.key)
    assert type(again) is type(statistic.internals.memory.addressing)
    assert differences(again, statistic.internals.memory.addressing) == set()


def test_the_cells_are_those_of_the_plan(case):
    statistic = lives(case.make, case)(100)
    memory = statistic.internals.memory
    assert differences(table_of(statistic.plan, memory.slice), memory.cells) == set()


def test_plan_key_and_addressing_never_change(case):
    newborn = case.make(coins=SeededCoins(1), **case.life)
    grown = lives(case.make, case)(9)
    changed = {path.split(".")[-1] for path in differences(newborn, grown)}
    assert changed <= {"arrays[0]", "releases", "intrusions", "tick", "_spent", "_calls"}


def test_no_id_is_reachable(case):
    statistic = lives(case.make, case)(200)
    front = statistic.state()[: -statistic.internals.memory.now.table.nbytes]  # the table is a leaf
    kept = [*leaves(statistic).values(), front, repr(statistic), str(statistic.ledger)]
    canaries = set(case.rows(200)[0])
    assert not [value for value in kept for canary in canaries if holds(value, canary)]


def test_no_text_is_reachable(bytes_case):
    statistic = bytes_case.make()
    statistic.update([f"canary-{user}" for user in bytes_case.ids(100)])
    kept = [value for value in leaves(statistic).values() if isinstance(value, np.ndarray)]
    assert not [value for value in kept if b"canary" in value.tobytes()]
    assert b"canary" not in statistic.state()


def test_updates_leave_nothing_in_the_modules(kept_case):
    lives(kept_case.make, kept_case)(50)
    before = package_globals()
    kept_case.make(**kept_case.life).update(*kept_case.rows(60))
    assert package_globals() == before


class CountsRows(pp.Density):
    __slots__ = ("_rows",)

    def update(self, users, deltas=None):
        super().update(users, deltas)
        self._rows = len(users)


class KeepsTheBatch(pp.Density):
    def update(self, users, deltas=None):
        super().update(users, deltas)
        self.batch = np.array(users)


class KeepsAGenerator(pp.Density):
    __slots__ = ("_generator",)

    def update(self, users, deltas=None):
        super().update(users, deltas)
        self._generator = np.random.default_rng(1)


class KeepsAFunction(pp.Density):
    __slots__ = ("_decoder",)

    def update(self, users, deltas=None):
        super().update(users, deltas)
        self._decoder = lambda: users


class CountsRowsAsReleases(pp.Density):
    def update(self, users, deltas=None):
        super().update(users, deltas)
        self.internals.memory.now.releases += len(users)


class CachesSlots(pp.Density):
    __slots__ = ()

    def update(self, users, deltas=None):
        super().update(users, deltas)
        self.internals.memory.addressing.seen = set(users)


class GrowsBehindTheTable(pp.Density):
    __slots__ = ()

    def update(self, users, deltas=None):
        super().update(users, deltas)
        table = self.internals.memory.now.table
        longer = np.append(table, np.array(users, np.int64).view(np.uint8))
        self.internals.memory.now.arrays[0] = longer[: len(table)]


@pytest.mark.parametrize(
    ("violation", "where"),
    [
        (CountsRows, "_rows"),
        (KeepsTheBatch, "batch"),
        (KeepsAGenerator, "_generator"),
        (KeepsAFunction, "_decoder"),
        (CountsRowsAsReleases, "kept.releases"),
        (CachesSlots, "addressing.seen["),
        (GrowsBehindTheTable, "kept.arrays[0].base"),
    ],
)
def test_the_search_finds_planted_violations(violation, where):
    def live(count):
        statistic = violation(universe=2_000, epsilon=1, coins=SeededCoins(1))
        statistic.update(list(range(count)))
        return statistic

    assert any(path.startswith(where) for path in hidden(live))


def test_the_search_finds_planted_ids():
    statistic = CachesSlots(universe=2_000, epsilon=1)
    statistic.update([1_234])
    assert [path for path, value in leaves(statistic).items() if holds(value, 1_234)] == [
        "addressing.seen[0]"
    ]
    assert holds(b"seen: 1234", 1_234)
    assert holds(np.array([5, 1_234]), 1_234)
    assert not holds(np.array([5, 1_235]), 1_234)


def test_the_search_finds_what_is_left_in_a_module(monkeypatch):
    kept = []
    monkeypatch.setattr("panprivacy.tables.addressing.kept", kept, raising=False)
    before = package_globals()
    kept.append(1_234)
    assert package_globals() != before


def test_the_search_reports_what_it_does_not_know():
    statistic = pp.Density(universe=10, epsilon=1)
    statistic.internals.memory.now.key = iter(())
    assert undeclared(statistic) == {"kept.key"}

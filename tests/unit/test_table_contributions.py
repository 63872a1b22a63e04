"""A contribution is paid for as a release, and is a look: an announcement follows, or the end."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers.published import CalibratedNorm
from panprivacy.statistics.contribution import ID_BYTES, read_parts
from panprivacy.tables.slices import Slice
from panprivacy.testing import SeededCoins
from tests import refusals
from tests.contract.doubles import BreakableCoins, EntropyError

KEY = b"sixteen letters!"


def made(**given):
    sizes = {"universe": 500, "bound": 3, "epsilon": 4}
    statistic = pp.Incidence(**{**sizes, "coins": SeededCoins(1), **given})
    if statistic.internals.memory.slice is None:
        statistic.update([1, 2, 3])
    return statistic


def parts_of(statistic, form="sums", **asked):
    return statistic.internals.contributions.parts(form, **asked)


@pytest.mark.parametrize("form", ["sums", "cells"])
def test_a_contribution_costs_as_much_as_a_release(form):
    statistic = made(releases=2, intrusions=1)
    cost, spent = statistic.internals.releasing.release_epsilon, statistic.ledger.spent
    assert cost > 0
    parts_of(statistic, form)
    assert statistic.ledger.spent == spent + cost
    assert statistic.releases == 1


@pytest.mark.parametrize("form", ["sums", "cells"])
def test_an_intrusion_is_announced_while_one_is_left(form):
    statistic = made(releases=3, intrusions=1)
    memory = statistic.internals.memory
    before = memory.now.table.copy()
    parts_of(statistic, form)
    assert memory.announced == 1
    assert (memory.now.table != before).any()
    statistic.release()
    table = memory.now.table
    parts_of(statistic, form)
    assert not table.any()
    for use in (statistic.state, statistic.release, lambda: parts_of(statistic, form)):
        with refusals.wiped():
            use()


def test_without_a_planned_intrusion_the_state_is_wiped_at_once():
    statistic = made(releases=2)
    table = statistic.internals.memory.now.table
    assert table.any()
    parts_of(statistic)
    assert not table.any()
    with refusals.wiped():
        statistic.update([1])


@pytest.mark.parametrize("intrusions", [0, 1])
def test_cells_are_key_and_table_as_they_were_seen(intrusions):
    statistic = made(intrusions=intrusions, universe=None, expected=1_000, epsilon=9, key=KEY)
    state, key = statistic.state(), statistic.internals.memory.now.key
    (part,) = parts_of(statistic, "cells")
    assert part.told.form == "cells"
    assert state == part.header.packed() + part.body
    assert len(key) == 16
    assert part.body.startswith(key)


@pytest.mark.parametrize("intrusions", [0, 1])
def test_sums_are_those_of_the_state_that_was_seen(intrusions):
    statistic = made(intrusions=intrusions)
    memory = statistic.internals.memory
    sums = statistic.internals.releasing.reading().sums(memory.cells, memory.now.table)
    header = memory.header.packed()
    (part,) = parts_of(statistic)
    assert part.told.form == "sums"
    assert np.frombuffer(part.body, np.int64).tolist() == sums.tolist()
    assert part.header.packed() == header


def test_each_contribution_has_an_id_and_says_what_was_asked():
    visits = made(releases=2, intrusions=2)
    parts = [*parts_of(visits, exactly=2), *parts_of(visits, exactly=2)]
    assert len({part.told.id for part in parts}) == 2
    assert {len(bytes.fromhex(part.told.id)) for part in parts} == {ID_BYTES}
    assert {tuple(part.told.asked["exactly"]) for part in parts} == {(2,)}
    assert read_parts(b"".join(part.packed() for part in parts)) == parts


def test_coins_that_fail_cost_nothing():
    """The noise of the announced intrusion is drawn first: all or nothing."""
    coins = BreakableCoins(2)
    statistic = made(releases=2, intrusions=1, coins=coins)
    state, spent = statistic.state(), statistic.ledger.spent
    for reads in (0, 1):
        coins.reads_left = reads
        with pytest.raises(EntropyError):
            parts_of(statistic)
        coins.reads_left = float("inf")
        assert (statistic.state(), statistic.ledger.spent) == (state, spent)
    parts_of(statistic)


def test_sums_are_paid_for_before_they_are_read(monkeypatch):
    statistic = made(releases=2, intrusions=1)
    cost, spent = statistic.internals.releasing.release_epsilon, statistic.ledger.spent
    reading = type(statistic.internals.releasing.reading())

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(reading, "sums", fail)
    with pytest.raises(MemoryError):
        parts_of(statistic)
    assert statistic.ledger.spent == spent + cost
    assert statistic.internals.memory.announced == 0


def test_sums_are_wiped_once_they_are_packed(monkeypatch):
    statistic, taken = made(), []
    reading = type(statistic.internals.releasing.reading())
    genuine = reading.sums

    def sums(*given):
        taken.append(genuine(*given))
        return taken[-1]

    monkeypatch.setattr(reading, "sums", sums)
    (part,) = parts_of(statistic)
    assert any(part.body)
    assert [one.any() for one in taken] == [False]


def sketch():
    """Make a statistic of a paper, which `merge` does not read."""
    return CalibratedNorm(columns=[[1, 0], [3, 1]], modulus=11, universe=20, epsilon=1)


@pytest.mark.parametrize(
    ("make", "form", "asked", "said"),
    [
        (sketch, "sums", {}, "merge does not know .*: let each shard release"),
        (lambda: made(slice_=Slice(0, 2, KEY)), "cells", {},
         "the cells of slices are of different users: contribute sums"),
        (made, "sums", {"exactly": 9}, "exactly"),
        (lambda: pp.Density(universe=50, epsilon=1), "cells", {}, "cannot be added up"),
    ],
    ids=["unknown", "cells of a slice", "no such question", "bits"],
)  # fmt: skip
def test_what_cannot_be_merged_is_refused_and_changes_nothing(make, form, asked, said):
    one = make()
    state, spent = one.state(), one.ledger.spent
    for act in (one.internals.contributions.check_parts, one.internals.contributions.parts):
        with pytest.raises(pp.PlanError, match=said):
            act(form, **asked)
    assert (one.state(), one.ledger.spent) == (state, spent)


def test_a_slice_contributes_sums():
    one = made(slice_=Slice(0, 2, KEY))
    one.internals.contributions.check_parts("sums")
    assert one.releases == 0
    (part,) = parts_of(one)
    assert part.told.form == "sums"


@pytest.mark.parametrize("slice_", [None, Slice(0, 2, KEY)], ids=["whole", "slice"])
def test_no_contribution_is_left_when_all_releases_are_made(slice_):
    one = made(intrusions=2, slice_=slice_)
    parts_of(one)
    state, spent = one.state(), one.ledger.spent
    for act in (one.internals.contributions.check_parts, one.internals.contributions.parts):
        with refusals.released():
            act("sums")
    assert (one.state(), one.ledger.spent) == (state, spent)


def test_a_check_changes_nothing():
    one = made(releases=1)
    state, spent = one.state(), one.ledger.spent
    for form in ("sums", "cells"):
        one.internals.contributions.check_parts(form)
    assert (one.state(), one.ledger.spent) == (state, spent)

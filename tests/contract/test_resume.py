"""A statistic goes on from an earlier state as if it had never stopped."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.errors import InputError
from panprivacy.testing import SeededCoins
from tests import refusals

from .cases import LIFE
from .doubles import BreakableCoins, EntropyError, reads_of_an_announcement


def begun(case, **overrides):
    """A statistic with one release of two behind it, and an intrusion if there can be one."""
    statistic = case.make(**{**case.life, **overrides})
    statistic.update(*case.rows(40))
    statistic.release()
    if case.trial.intrusions:
        statistic.announce_intrusion()
    statistic.update(*case.rows(10))
    return statistic


def test_the_state_comes_back_as_it_was(case):
    before = begun(case)
    after = case.make(**case.life)
    after.resume(before.state())
    assert after.state() == before.state()
    assert after.ledger.spent == before.ledger.spent
    assert type(after.internals.memory.addressing) is type(before.internals.memory.addressing)


def test_it_goes_on_as_if_it_had_never_stopped(case):
    before = begun(case)
    after = case.make(**case.life)
    after.resume(before.state())
    for statistic in (before, after):
        statistic.internals.memory.coins = SeededCoins(3)
        statistic.update(*case.rows(60))
    assert after.state() == before.state()
    assert after.release().counts == before.release().counts
    with pytest.raises(pp.BudgetError):
        after.release()
    with pytest.raises(pp.BudgetError):
        after.announce_intrusion()


def test_releases_that_left_after_the_state_was_taken_are_spent_too(kept_case):
    state = begun(kept_case).state()
    after = kept_case.make(**kept_case.life)
    after.resume(state, released=2)
    with pytest.raises(pp.BudgetError):
        after.release()
    twice = kept_case.make(**kept_case.life)
    twice.release()
    twice.release()
    assert after.ledger.spent == twice.ledger.spent
    with pytest.raises(pp.PlanError, match="released"):
        kept_case.make(**kept_case.life).resume(state, released=3)


def test_intrusions_announced_after_the_state_was_taken_re_randomise_it(seen_case):
    before = seen_case.make(**LIFE)
    before.update(*seen_case.rows(40))
    after, same = (seen_case.make(**LIFE, coins=SeededCoins(7)) for _ in range(2))
    expected = copy.deepcopy(before.internals.memory.now)
    same.internals.memory.rerandomise(expected, same.internals.memory.fresh_noise(expected))
    after.resume(before.state(), announced=1)
    assert np.array_equal(after.internals.memory.now.table, expected.table)
    assert not np.array_equal(after.internals.memory.now.table, before.internals.memory.now.table)
    with pytest.raises(pp.BudgetError, match="intrusions="):
        after.announce_intrusion()
    again = seen_case.make(**LIFE)
    again.resume(after.state(), announced=1)  # it knows this one
    assert again.state() == after.state()


def test_more_announcements_than_were_planned_are_refused(any_case):
    after = any_case.make(**any_case.life)
    state = after.state()
    for use in (after.resume, after.internals.memory.check_state):
        with pytest.raises(pp.PlanError, match="announced"):
            use(state, announced=2)


def test_announcements_for_which_there_are_no_coins_change_nothing(seen_case):
    coins = BreakableCoins(3)
    after, earlier = seen_case.make(**LIFE, coins=coins), begun(seen_case)
    before, spent = after.state(), after.ledger.spent
    state = seen_case.make(**LIFE).state()
    coins.reads_left = reads_of_an_announcement(seen_case, **LIFE) - 1
    with pytest.raises(EntropyError):
        after.resume(state, announced=1)
    assert (after.state(), after.ledger.spent) == (before, spent)
    after.resume(earlier.state(), announced=1)
    assert after.state() == earlier.state()


def test_the_table_is_the_statistics_own(case):
    state = bytearray(begun(case).state())
    after = case.make(**case.life)
    after.resume(state)
    kept = after.state()
    state[:] = bytes(len(state))
    assert after.state() == kept


def refused(case, state, message, **overrides):
    statistic = case.make(**{**case.life, **overrides})
    before, spent = statistic.state(), statistic.ledger.spent
    with pytest.raises(InputError, match=message):
        statistic.resume(state)
    assert statistic.state() == before
    assert statistic.ledger.spent == spent


def test_a_state_of_another_plan_is_refused_by_what_differs(kept_case):
    state = begun(kept_case).state()
    refused(kept_case, state, "with another ledger", ledger=pp.Ledger(2))
    refused(kept_case, state, f"with another .*(releases|{kept_case.covers})", releases=1)


def test_a_state_of_another_statistic_or_version_is_refused_by_name(kept_case):
    state = begun(kept_case).state()
    other = pp.Incidence(universe=2, bound=1, epsilon=3)
    if not isinstance(kept_case.make(), pp.Incidence):
        refused(kept_case, other.state(), "statistic incidence")
    older = state.replace(pp.__version__.encode(), b"0" * len(pp.__version__))
    refused(kept_case, older, "version 00000, and this is")


def test_a_state_that_is_cut_off_or_has_more_is_refused(kept_case):
    state = begun(kept_case).state()
    for cut in (1, 200):
        refused(kept_case, state[:-cut], "cut off|damaged")
        refused(kept_case, state + bytes(cut), "more follows")
    refused(kept_case, b"", "no state")


def test_more_releases_than_were_planned_are_refused(case):
    state = bytearray(begun(case).state())
    state[20] = 9
    refused(case, bytes(state), "no such state can come about")


def test_a_counter_that_cannot_be_is_refused(counters_case):
    statistic = begun(counters_case)
    state = bytearray(statistic.state())
    state[-statistic.internals.memory.now.table.itemsize :] = (
        b"\xff" * statistic.internals.memory.now.table.itemsize
    )
    refused(counters_case, bytes(state), "no such state can come about")


def test_bits_beyond_the_last_cell_are_refused():
    members = pp.Density(universe=13, epsilon=1)
    state = bytearray(members.state())
    state[-1] |= 0x80
    with refusals.spoilt():
        pp.Density(universe=13, epsilon=1).resume(bytes(state))


def test_only_a_new_statistic_can_go_on(kept_case):
    used = begun(kept_case)
    with refusals.begun():
        used.resume(begun(kept_case).state())


@pytest.mark.long
def test_many_lives_have_the_law_of_one():
    """A stopped and resumed bit is 1 as often as one that never stopped."""
    ones = 0
    for _ in range(400):
        first = pp.Density(universe=64, epsilon=2)
        first.update(np.arange(32))
        second = pp.Density(universe=64, epsilon=2)
        second.resume(first.state())
        second.update(np.arange(32, 64))
        ones += int.from_bytes(second.state()[-8:], "little").bit_count()
    present = float(pp.Density(universe=64, epsilon=2).plan.table.presence(0))
    deviation = (25_600 * present * (1 - present)) ** 0.5
    assert abs(ones - 25_600 * present) < 5 * deviation

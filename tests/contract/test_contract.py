"""Coins, budget and state: what every statistic spends, shows and refuses."""

from __future__ import annotations

import copy
import os
import pickle
import re
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.ground.kernels import compile_kernels
from panprivacy.privacy import coins
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import float_above
from panprivacy.statistics.private import memory_of
from panprivacy.tables.cells.bits import SPARSE, RedrawnBits
from panprivacy.tables.ids import read_ids
from panprivacy.testing import SeededCoins
from tests import refusals

from .cases import LIFE, answer_of, answers_of, lead_through_life
from .doubles import BreakableCoins, EntropyError, SpyCoins, reads_of_an_announcement


def table_of(statistic):
    return statistic.internals.memory.now.table.copy()


# Coins


def test_birth_draws_one_coin_a_cell_and_the_key_of_the_plan(users_case):
    spy = SpyCoins()
    plan = users_case.make(coins=spy).plan
    key = [("key", plan.key_bytes)] if plan.key_bytes else []
    assert spy.calls == [*key, (users_case.noise, plan.cells)]


def test_counters_need_no_coins_to_add(adding_case):
    spy = SpyCoins()
    statistic = adding_case.make(coins=spy)
    before, calls = statistic.state(), list(spy.calls)
    statistic.update(*adding_case.rows(1_200))
    assert spy.calls == calls
    assert statistic.state() != before


@pytest.mark.parametrize("times", [1, 40])
def test_a_batch_draws_one_coin_a_touched_cell_or_a_row_where_rows_are_few(bits_case, times):
    spy = SpyCoins()
    statistic = bits_case.make(coins=spy)
    users, deltas = (column * times for column in bits_case.rows(1_200))
    slots = np.concatenate(list(statistic.internals.memory.addressing.slots(read_ids(users))))
    spy.calls.clear()
    statistic.update(users, deltas)
    touched = len(set(slots[slots >= 0].tolist()))
    cells = statistic.internals.memory.cells
    few = isinstance(cells, RedrawnBits) and len(users) * SPARSE <= cells.cells
    drawn = [call for call in spy.calls if call[1]]  # of two streams, one may have no events
    assert drawn == [(bits_case.redraw, len(users) if few else touched)]
    assert 0 < touched < len(users)


NOBODY = [[], (), np.array([], np.int64), pa.array([]), pa.chunked_array([[], []]), pl.Series([])]


def test_an_empty_batch_changes_nothing_and_draws_no_coin(kept_case):
    spy = SpyCoins()
    statistic = kept_case.make(coins=spy)
    statistic.update(*kept_case.rows(50))
    before = statistic.state()
    spy.calls.clear()
    for nobody in NOBODY:
        statistic.update(nobody)
        statistic.update(nobody, [])
        assert statistic.state() == before, type(nobody)
        assert sum(size for _, size in spy.calls) == 0, type(nobody)


def test_a_release_draws_one_noise_a_published_count(users_case):
    spy = SpyCoins()
    statistic = users_case.make(coins=spy)
    spy.calls.clear()
    counts = statistic.release().counts
    assert spy.calls == users_case.drawn_by_a_release(counts)
    reading = statistic.plan.reading(statistic.entry.query(), 0)
    assert len(counts) == len(
        reading.sums(statistic.plan.table, statistic.internals.memory.now.table)
    )
    assert len(reading.scales) in {1, len(counts)}


def test_an_announced_intrusion_draws_one_coin_a_cell(seen_users_case):
    spy = SpyCoins()
    statistic = seen_users_case.make(coins=spy, **LIFE)
    spy.calls.clear()
    statistic.announce_intrusion()
    assert spy.calls == [(seen_users_case.noise, statistic.plan.cells)]


def test_equal_coins_give_equal_states_and_answers(kept_case):
    def life(seed):
        statistic = kept_case.make(coins=SeededCoins(seed), **kept_case.life)
        return lead_through_life(statistic, kept_case), statistic.state()

    assert life(5) == life(5)
    assert life(5) != life(6)


def refuse(*_arguments, **_keywords):
    message = "randomness that does not come from coins"
    raise RuntimeError(message)


def test_all_randomness_comes_from_the_coins(kept_case, monkeypatch):
    compile_kernels()  # numba tries the folder of its cache with a file of a random name
    monkeypatch.setattr(os, "urandom", refuse)
    monkeypatch.setattr(os, "getrandom", refuse)
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(coins, "_getrandom", refuse)
    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr("secrets.token_bytes", refuse)
    monkeypatch.setattr("random._inst.random", refuse)
    monkeypatch.setattr(np.random, "default_rng", refuse)
    statistic = kept_case.make(coins=SeededCoins(1), **kept_case.life)
    lead_through_life(statistic, kept_case)
    with pytest.raises(RuntimeError, match="does not come from coins"):
        kept_case.make()


def test_the_coins_of_the_doubles_follow_the_protocol():
    assert isinstance(SpyCoins(), Coins)
    assert isinstance(BreakableCoins(1), Coins)


# Budget


SPENT = 1 - Fraction(1, 10**6)
"""Of epsilon, by all that was planned: the noise of bits is rounded to seven digits."""


def test_the_ledger_adds_up_to_epsilon(paid_case):
    statistic = paid_case.make(epsilon="0.7", releases=3)
    ledger, budget = statistic.ledger, statistic.plan.split.budget
    assert ledger.spent == budget.state
    for made in (1, 2, 3):
        cost, before = statistic.internals.releasing.release_epsilon, ledger.spent
        answer = statistic.release()
        assert (
            ledger.spent
            == before + cost
            == budget.state + statistic.internals.releasing.of_releases(made)
        )
        assert cost <= budget.release
        assert {one.epsilon for one in answers_of(answer)} == {float_above(budget.release)}
    assert ledger.total == statistic.guarantee.epsilon == Fraction(7, 10)
    assert SPENT * ledger.total < ledger.spent <= ledger.total
    assert ledger.available == 0


def test_bits_are_charged_for_the_cells_that_they_are(case):
    plan = case.make(**case.life).plan
    for what in ("surest", "laws"):
        assert getattr(plan.split.budget, what, None) == getattr(plan.table, what, None)


def test_announced_intrusions_are_paid_for_at_birth(seen_paid_case):
    statistic = seen_paid_case.make(**LIFE)
    budget = statistic.plan.split.budget
    spent = statistic.ledger.spent
    statistic.announce_intrusion()
    assert statistic.ledger.spent == spent == 2 * budget.state
    assert SPENT * statistic.ledger.total < budget.total(**LIFE) <= statistic.ledger.total


def test_a_release_too_many_raises_and_changes_nothing(kept_case):
    spy = SpyCoins()
    statistic = kept_case.make(coins=spy, **kept_case.life)
    statistic.update(*kept_case.rows(50))
    statistic.release()
    statistic.release()
    spent, state, calls = statistic.ledger.spent, statistic.state(), list(spy.calls)
    with pytest.raises(pp.BudgetError, match=f"{kept_case.covers}="):
        statistic.release()
    assert (statistic.ledger.spent, statistic.state(), spy.calls) == (spent, state, calls)


def test_a_release_too_many_raises_even_if_the_budget_leaves_something(split_case):
    statistic = split_case.make(budget=pp.Budget("0.2", "0.2"))
    statistic.release()
    with pytest.raises(pp.BudgetError, match="releases="):
        statistic.release()
    assert statistic.ledger.spent == statistic.plan.split.budget.total(releases=1, intrusions=0)


@pytest.mark.parametrize("covered", [{}, LIFE], ids=["none planned", "one planned"])
def test_an_announced_intrusion_too_many_raises_and_changes_nothing(seen_case, covered):
    spy = SpyCoins()
    statistic = seen_case.make(coins=spy, **covered)
    for _ in range(covered.get("intrusions", 0)):
        statistic.announce_intrusion()
    spent, state, calls = statistic.ledger.spent, statistic.state(), list(spy.calls)
    with pytest.raises(pp.BudgetError, match="intrusions="):
        statistic.announce_intrusion()
    assert (statistic.ledger.spent, statistic.state(), spy.calls) == (spent, state, calls)


def test_statistics_of_one_stream_share_a_ledger(kept_case):
    ledger = pp.Ledger(1)
    first, second = (kept_case.make(epsilon="0.5", ledger=ledger) for _ in range(2))
    assert first.ledger is second.ledger is ledger
    first.release()
    second.release()
    assert SPENT < ledger.spent <= 1


def test_a_statistic_that_the_ledger_cannot_pay_is_not_born(kept_case):
    spy, ledger = SpyCoins(), pp.Ledger(1)
    kept_case.make(epsilon="0.5", ledger=ledger)
    spent = ledger.spent
    with pytest.raises(pp.BudgetError, match=r"0\.5 available"):
        kept_case.make(epsilon=1, ledger=ledger, coins=spy)
    assert (ledger.spent, ledger.available, spy.calls) == (spent, Fraction(1, 2), [])


def test_a_release_of_one_statistic_cannot_spend_what_is_set_aside_for_another(paid_case):
    ledger = pp.Ledger(1)
    first = paid_case.make(epsilon="0.5", ledger=ledger)
    paid_case.make(epsilon="0.5", ledger=ledger)
    first.release()
    assert ledger.remaining > 0
    with pytest.raises(pp.BudgetError):
        first.release()


def test_a_confidence_that_is_none_is_refused_before_anything_is_spent(case):
    statistic = case.make()
    spent = statistic.ledger.spent
    for confidence in (0, 1, -0.1, 1.5, float("nan"), True, "0.95", None):
        with refusals.confidence():
            statistic.release(confidence=confidence)
        assert statistic.ledger.spent == spent, confidence
    statistic.release()


def test_a_release_says_what_it_is(count_case):
    statistic = count_case.make()
    statistic.update(*count_case.rows(50))
    answer = answer_of(statistic.plan, statistic.release(confidence=0.9))
    assert answer.low <= answer.value <= answer.high
    assert answer.confidence == 0.9
    assert all(type(count) is int for count in answer.counts)
    model = statistic.plan.model(0)
    sums = count_case.read(statistic, answer.counts)
    estimate = model.estimate(sums)
    assert answer.value == min(max(estimate, answer.low), answer.high)
    if statistic.internals.windows.lasting:
        return  # its interval is that of its step
    assert (estimate, answer.low, answer.high) == model.answer(sums, 0.9)


# State


def test_the_state_has_one_size_whatever_the_stream(kept_case):
    statistic = kept_case.make(**kept_case.life)
    size = len(statistic.state())
    for count in (1, 1_000):
        statistic.update(*kept_case.rows(count))
        statistic.release()
        assert len(statistic.state()) == size == memory_of(statistic).state_bytes


def test_reading_the_state_changes_nothing(kept_case):
    def life(*, looks):
        spy = SpyCoins()
        statistic = kept_case.make(coins=spy)
        statistic.update(*kept_case.rows(50))
        states = {statistic.state() for _ in range(looks)}
        assert len(states) <= 1
        return statistic.release().counts, statistic.state(), spy.calls

    assert life(looks=0) == life(looks=3)


def test_the_state_is_all_there_is(case):
    """The header tells the plan and the counters; key and table follow."""
    statistic = case.make(coins=SeededCoins(1), **case.life)
    seen = {statistic.state()}
    events = [lambda: statistic.update(*case.rows(200)), statistic.release]
    if case.trial.intrusions:
        events.append(statistic.announce_intrusion)
    for event in events:
        event()
        seen.add(statistic.state())
    assert len(seen) == 1 + len(events)
    key, table = statistic.internals.memory.now.key, statistic.internals.memory.now.table.tobytes()
    assert statistic.state().endswith(key + table)
    assert f'"statistic": "{case.kind.entry.name}"'.encode() in statistic.state()


def test_the_states_of_two_statistics_differ(kept_case):
    first = kept_case.make().state()
    assert any(kept_case.make().state() != first for _ in range(29))  # some keep one small number


def test_repr_shows_nothing_of_the_stream(kept_case):
    quiet, busy = kept_case.make(), kept_case.make()
    busy.update(*kept_case.rows(500))
    assert repr(busy) == repr(quiet)
    left = r"(\w+=[^>]* )?epsilon=1: (?P<left>\d+) of (?P=left) releases left>"
    assert re.fullmatch(rf"<{type(quiet).__name__} ((n=[\d,]+ )?epsilon=1>|{left})", repr(quiet))


def test_a_plain_copy_is_refused_with_the_way_out(kept_case):
    statistic = kept_case.make()
    for take_a_copy in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="sealed checkpoint"):
            take_a_copy(statistic)


# Failure


@pytest.mark.parametrize("reads_left", [0, 1])
def test_an_update_that_fails_changes_nothing(bits_case, reads_left):
    coins = BreakableCoins(3)
    statistic = bits_case.make(coins=coins)
    before = statistic.state()
    coins.reads_left = 0
    with pytest.raises(EntropyError):
        statistic.update(*bits_case.rows(1_200))
    assert statistic.state() == before
    coins.reads_left = float("inf")
    statistic.update(*bits_case.rows(1_200))
    assert statistic.state() != before


def test_an_announcement_that_fails_can_be_made_again(seen_case):
    coins = BreakableCoins(3)
    statistic = seen_case.make(coins=coins, **LIFE)
    before = statistic.state()
    coins.reads_left = reads_of_an_announcement(seen_case, **LIFE) - 1
    with pytest.raises(EntropyError):
        statistic.announce_intrusion()
    assert statistic.state() == before
    coins.reads_left = float("inf")
    statistic.announce_intrusion()


def test_a_release_that_fails_is_spent(paid_case):
    coins = BreakableCoins(3)
    statistic = paid_case.make(coins=coins)
    before = statistic.state()
    coins.reads_left = 0
    with pytest.raises(EntropyError):
        statistic.release()
    assert statistic.state() == before
    assert (
        statistic.ledger.spent
        == statistic.internals.releasing.state_epsilon
        + statistic.internals.releasing.of_releases(1)
    )
    coins.reads_left = float("inf")
    with pytest.raises(pp.BudgetError):
        statistic.release()

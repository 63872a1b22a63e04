"""What every statistic does with its state: it is born once, forgotten once, and told of."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.testing import SeededCoins


def density(**given):
    return pp.Density(**{"universe": 50, "epsilon": 1, "coins": SeededCoins(1), **given})


def test_what_was_checked_for_another_plan_is_not_counted():
    one, other = density(), density(universe=51)
    before = other.state()
    with pytest.raises(pp.InputError):
        other.internals.memory.apply(one.internals.memory.prepare([1, 2]))
    assert other.state() == before


def test_who_never_releases_and_is_never_seen_loses_less():
    made = density(releases=2)
    assert 0 < made.guarantee.unseen_loss.epsilon < made.guarantee.epsilon


def test_what_is_forgotten_is_overwritten_and_cannot_be_used():
    made = density()
    table = made.internals.memory.now.table
    assert table.any()
    made.forget()
    assert not table.any()
    for call in (lambda: made.update([1]), made.release, made.state):
        with pytest.raises(pp.PanPrivacyError):
            call()


def test_a_resumed_state_has_spent_what_had_left_since():
    made = density(releases=3)
    state = made.state()
    again = density(releases=3)
    again.resume(state, released=2)
    assert again.releases == 2
    assert (
        again.ledger.spent
        == again.internals.releasing.state_epsilon + again.internals.releasing.of_releases(2)
    )
    with pytest.raises(pp.PlanError, match="released must be at most 3"):
        density(releases=3).resume(state, released=4)


def test_nothing_of_a_batch_stays_but_its_cells():
    made = density()
    users = np.array([7, 7, 9])
    made.update(users)
    assert users.tolist() == [7, 7, 9]
    assert len(made.state()) == density().internals.memory.state_bytes

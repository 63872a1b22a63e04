"""The nodes of a tree of steps: what leaves, and when."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.tables.counters import shapes, tree
from panprivacy.tables.counters.delayed import Delayed, laplace_cumulants
from panprivacy.tables.counters.mechanism import Silent, variances
from panprivacy.testing import SeededCoins
from tests.contract.doubles import BreakableCoins
from tests.unit.test_counters import ONE


def test_a_step_that_ends_many_nodes_has_room_for_all_that_leaves():
    """Without noise at closing, far more leaves than is drawn."""
    tree = shapes.even_tree(1 << 12, ONE, 1, pan_private=False)
    memory = tree.initial(Silent())
    tree.run(memory, np.ones(4_095, np.int64), Silent())
    answers = tree.run(memory, np.ones(1, np.int64), Silent())
    assert answers.released.tolist() == [1 << level for level in range(12)]


@pytest.mark.parametrize(
    ("how", "draws"),
    [({}, (1, 2)), ({"open_steps": True}, (2, 2)), ({"pan_private": False}, (1, 1))],
    ids=str,
)
def test_a_tree_shares_epsilon_as_its_noises_need(how, draws):
    tree = shapes.mixed_radix(10_000, ONE, **how)
    error = variances(tree).mean()
    for other in {(1, 2), (2, 2), (1, 1)} - {draws}:
        shares = shapes.best_shares(tree.radices, *other)
        assert variances(replace(tree, shares=shares)).mean() >= error * 0.9999
    assert tree.shares == shapes.best_shares(tree.radices, *draws)


def test_an_interrupt_of_the_kernel_of_a_tree_changes_nothing(monkeypatch):
    """It is seen once the kernel has returned: a tick that did not follow would leave open nodes
    without noise."""
    mechanism, coins = shapes.mixed_radix(9, ONE, open_steps=True), BreakableCoins(2)
    memory = mechanism.initial(coins)
    before = memory.cells.copy(), memory.told.copy()
    advance = tree.advance

    def interrupted(*given):
        advance(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(tree, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mechanism.run(memory, np.ones(9, np.int64), coins)
    assert np.array_equal(memory.cells, before[0])
    assert np.array_equal(memory.told, before[1])
    assert memory.tick == 0


def test_a_delayed_count_begins_with_nothing_but_its_noise():
    mechanism = Delayed(horizon=1_000, epsilon=Fraction(1), delta=Fraction(1, 10**9))
    memory = mechanism.initial(SeededCoins(1))
    told = [0.0, mechanism.updates, *laplace_cumulants(float(mechanism.scales[0]))]
    assert (memory.told.tolist(), memory.tick) == (told, 0)

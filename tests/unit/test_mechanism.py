"""What counters have in common: coins of no noise, and variances that need no stream."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.privacy.coins import Coins
from panprivacy.tables.counters.mechanism import (
    CounterState,
    Mechanism,
    Silent,
    StepAnswers,
    variances,
)


class Steps(Mechanism):
    """Strays more with every step."""

    horizon, bound = 5, 1

    def initial(self, coins):
        return CounterState(coins.discrete_laplace(Fraction(9), 2), np.zeros(0))

    def run(self, memory, amounts, coins):
        assert not memory.cells.any()
        assert not amounts.any()
        assert amounts.dtype == np.int64
        steps = np.arange(1.0, len(amounts) + 1)
        return StepAnswers(steps, steps**2, steps, amounts)

    def rerandomise(self, memory, coins):
        """Nothing is open."""


def test_silent_coins_are_coins_that_never_fall():
    silent = Silent()
    assert isinstance(silent, Coins)
    for drawn, kind in (
        (silent.bernoulli(Fraction(1), 3), np.uint8),
        (silent.categorical([0, 1], 3), np.uint32),
        (silent.discrete_laplace(Fraction(9), 3), np.int64),
        (silent.discrete_gaussian(Fraction(9), 3), np.int64),
    ):
        assert drawn.tolist() == [0, 0, 0]
        assert drawn.dtype == kind
    assert silent.key(3) == bytes(3)


def test_variances_are_those_of_all_steps_or_of_the_first():
    assert variances(Steps()).tolist() == [1, 4, 9, 16, 25]
    assert variances(Steps(), 2).tolist() == [1, 4]
    assert variances(Steps(), 0).tolist() == []


def test_unless_a_counter_says_so_it_hides_nothing_and_takes_no_open_step():
    steps = Steps()
    memory = steps.initial(Silent())
    assert memory.tick == 0
    assert steps.hidden(memory) == 0
    assert (steps.grain, steps.estimates) == (1, 0)
    with pytest.raises(NotImplementedError):
        steps.add(memory, 1)

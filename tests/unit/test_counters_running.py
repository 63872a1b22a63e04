"""The running count that keeps a counter in memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from panprivacy.tables.counters.accumulator import Accumulator
from panprivacy.tables.counters.running import Running, Sum
from tests.contract.doubles import BreakableCoins, EntropyError
from tests.unit.test_counters import ONE


def test_a_running_count_that_cannot_start_anew_stays_as_it_is():
    coins = BreakableCoins(5)
    running = Running(Accumulator(20, ONE), coins)
    running.run(np.ones(7, np.int64))
    kept = running.packed()
    coins.reads_left = 0
    with pytest.raises(EntropyError):
        running.restart(9)
    assert running.packed() == kept


@pytest.mark.parametrize(("level", "quantile"), [(0.95, 1.95996), (0.5, 0.67449)])
def test_an_interval_reaches_as_far_as_its_noise(level, quantile):
    normal = Sum(100.0, 4.0, 0.0).interval(level)
    assert normal == pytest.approx((100 - 2 * quantile, 100 + 2 * quantile), rel=1e-4)
    scale = 3.0
    laplace = Sum(100.0, 2 * scale**2, 12 * scale**4, 5.0).interval(level)
    reach = -scale * math.log(1 - level)
    assert laplace == pytest.approx((100 - reach, 105 + reach), rel=1e-3)
    grained = Sum(100.0, 4.0, grain=6.0).interval(level)
    assert grained == pytest.approx((97 - 2 * quantile, 103 + 2 * quantile), rel=1e-4)
    assert Sum(-100.0, 4.0).interval(level) == (0, 0)
    assert Sum().interval(level) == (0, 0)


def test_of_no_steps_it_is_known_that_they_add_up_to_nothing():
    """What begins anew counts on from there."""
    assert Sum() == (0, 0, 0, 0, 0)
    assert Sum().interval(0.99) == (0, 0)

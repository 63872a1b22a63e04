"""The density estimators of the papers: what they are beside `Density`, levels, refused sizes."""

from __future__ import annotations

import numpy as np

from panprivacy.papers.published import (
    DworkDensity,
    DworkRothDensity,
)
from panprivacy.testing import SeededCoins

# What they are


def state_and_counts(kind, **sizes):
    statistic = kind(universe=5_000, epsilon=1, coins=SeededCoins(3), **sizes)
    statistic.update(np.arange(2_000))
    return statistic.internals.memory.now.table.tobytes(), statistic.release().counts


def test_the_sketch_of_the_textbook_is_the_sampled_bits_without_a_sample():
    assert state_and_counts(DworkRothDensity) == state_and_counts(DworkDensity)


# What they err beside bits of the same loss


# Levels


# Sizes

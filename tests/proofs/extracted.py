"""What a class that ships does with its coins, as exact tables: laws, additions, and sums."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np

from panprivacy.audit import EnumeratedCoins


def law(draw, tail=None):
    """The exact law of what `draw(coins)` returns, over every outcome of the coins.

    With a tail, that of noise of infinite support up to twice the tail.
    """
    coins, masses = EnumeratedCoins(tail=tail or 1), defaultdict(Fraction)
    for _ in coins:
        masses[draw(coins)] += coins.probability
    assert (sum(masses.values()) < 1) == (tail is not None)
    return dict(masses)


def ratio(masses):
    """The largest probability over the smallest."""
    return max(masses.values()) / min(masses.values())


def updated(cells, table, rows, coins=None):
    """The table after a batch of rows, each a slot and a delta."""
    after = table.copy()
    slots = np.array([slot for slot, _ in rows], np.int64)
    deltas = np.array([delta for _, delta in rows], np.int64)
    cells.update(after, [slots], deltas, 0, coins)
    return after


def moves(cells, tables, groups=1, epoch=0):
    """How far the sums of a release lie apart at most, over all pairs of these tables."""
    sums = [cells.group_sums(table, groups, epoch).astype(int) for table in tables]
    return max(int(np.abs(one - other).sum()) for one in sums for other in sums)


class NotingCoins(EnumeratedCoins):
    """Coins that note the scale of each noise that was asked for."""

    def __init__(self):
        super().__init__(tail=1)
        self.scales = []

    def discrete_laplace(self, scale, size):
        """The noise of the enumeration."""
        self.scales += [Fraction(scale)] * size
        return super().discrete_laplace(scale, size)

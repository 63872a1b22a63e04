"""Levels that halve in popularity: which share of the users each one takes."""

from __future__ import annotations

import numpy as np

from panprivacy.tables.decoders.intervals import Floats


def level_shares(levels: int) -> Floats:
    """Return the probability of each level: 1/2, 1/4, ..., and the rest for the last one."""
    shares: Floats = np.float64(2) ** -np.arange(1, levels + 1)
    shares[-1] *= 2
    return shares

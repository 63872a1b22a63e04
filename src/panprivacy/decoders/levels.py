"""Levels that halve in popularity: which share of the users each one takes."""

from __future__ import annotations

import numpy as np

from panprivacy.decoders.intervals import Floats


def level_shares(levels: int) -> Floats:
    """How often a user is in each level: half of the users before it, and in the last one all."""
    shares: Floats = np.float64(2) ** -np.arange(1, levels + 1)
    shares[-1] *= 2
    return shares

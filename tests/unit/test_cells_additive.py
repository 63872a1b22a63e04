"""Cells that hold noisy sums."""

from __future__ import annotations

import numpy as np

from panprivacy.tables.cells.additive import _clipped_product


def test_clipped_cells_are_multiplied_as_whole_numbers():
    rng = np.random.default_rng(1)
    one, other = rng.integers(-(2**40), 2**40, (2, 1_000))
    cut = [np.clip(cells, -(2**20), 2**20).astype(object) for cells in (one, other)]
    assert _clipped_product(one, other, 2**20) == int(cut[0] @ cut[1])

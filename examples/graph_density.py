"""How dense is a graph whose edges come and go? Its edges are the users: one edge is hidden.

    python examples/graph_density.py

The stream is strict: an edge that is there can only go, and one that is not can only come. `Density`
has a cell for each pair of vertices; `DistinctCount` needs not know which pairs there could be.
"""

from __future__ import annotations

import numpy as np

import panprivacy as pp

VERTICES = 2_000
PAIRS = VERTICES * (VERTICES - 1) // 2


def numbers(ends: np.ndarray) -> np.ndarray:
    """The number of each edge, 0 to PAIRS-1, from its two ends, int64[edges, 2], in any order."""
    low, high = ends.min(axis=1), ends.max(axis=1)
    return high * (high - 1) // 2 + low


coins = np.random.default_rng(23)  # for a graph that is made up
ends = coins.integers(0, VERTICES, (600_000, 2))
edges = np.unique(numbers(ends[ends[:, 0] != ends[:, 1]]))
gone = coins.permutation(edges)[: len(edges) // 2]
left = len(edges) - len(gone)

ledger = pp.Ledger(1)  # both count the same edges
density = pp.Density(universe=PAIRS, epsilon=0.5, ledger=ledger)
count = pp.DistinctCount(expected=1_000_000, deletions="strict", epsilon=0.5, ledger=ledger)
for statistic, truth in ((density, left / PAIRS), (count, left)):
    statistic.update(edges)
    statistic.update(gone, np.full(len(gone), -1))
    answer = statistic.release()
    print(f"{answer.value:.6g} ({answer.low:.6g} to {answer.high:.6g}), in truth {truth:.6g}")

"""Microsoft's privacy-estimates: a lower bound from the errors of an attack (Clopper and Pearson).

    python examples/auditors/with_privacy_estimates.py

The attack guesses which of two streams was counted, from one cell of the state: the guess for each
value of the cell is chosen on runs of its own.

Reference: S. Zanella-Beguelin et al., "Bayesian estimation of differential privacy" (2023).
"""

from __future__ import annotations

import numpy as np
from cases import CASES, NEIGHBOUR, STREAM, Case, verdict
from privacy_estimates import AttackResults, compute_eps_lo

RUNS = 4_000
WRONG = 1e-4


def guessed(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The values of a cell for which to guess the first stream."""
    values = np.unique(np.concatenate([one, other]))
    first, second = (
        np.array([(each == value).sum() for value in values]) + 0.5 for each in (one, other)
    )
    order = np.argsort(second / first)
    came, absent = np.cumsum(first[order]), np.cumsum(second[order])
    worth = np.log(came / absent) - 4 * (came**-0.5 + absent**-0.5)
    return values[order[: np.argmax(worth) + 1]]


def bound(case: Case) -> float:
    """The larger of two bounds: from guesses of the stream, and of its neighbour."""
    sampler = case.sampler()
    pair = [sampler(steps, RUNS)[:, 0] for steps in (STREAM, NEIGHBOUR)]
    fresh = [sampler(steps, RUNS)[:, 0] for steps in (STREAM, NEIGHBOUR)]
    found = []
    for (one, other), (came, absent) in ((pair, fresh), (pair[::-1], fresh[::-1])):
        values = guessed(one, other)
        hits, false = int(np.isin(came, values).sum()), int(np.isin(absent, values).sum())
        results = AttackResults(TP=hits, FN=RUNS - hits, FP=false, TN=RUNS - false)
        found.append(compute_eps_lo(results, delta=0.0, alpha=WRONG, method="beta"))
    return max(found)


if __name__ == "__main__":
    for case in CASES:
        print(verdict(case, bound(case)), flush=True)

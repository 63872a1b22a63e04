"""PyStatDP, OpenMined's StatDP: a hypothesis test for each epsilon.

    python examples/auditors/with_pystatdp.py

The tool chooses an event on runs of its own, and tests on others whether its probabilities may lie
within a factor of e**epsilon. The largest epsilon that it rejects is a lower bound.

Reference: Z. Ding et al., "Detecting violations of differential privacy" (2018).
"""

from __future__ import annotations

import logging
from types import SimpleNamespace

import numpy as np
from cases import CASES, CLAIM, NEIGHBOUR, STREAM, Case, verdict
from pystatdp import pystatdp

RUNS = 5_000
WRONG = 1e-4
TRIED = (0.8, 1.0)


def algorithm(came: np.ndarray, epsilon: float) -> int:  # noqa: ARG001 - the tool wants both
    """One cell of the state, after the stream or after its neighbour; child processes call it."""
    return int(shown.sampler(STREAM if came[0] else NEIGHBOUR, 1)[0, 0])


shown = SimpleNamespace(sampler=None)


def bound(case: Case) -> float:
    """The largest epsilon of those tried that is rejected; 0 if none is."""
    shown.sampler = case.sampler()
    found = pystatdp().detect_counterexample(
        algorithm, TRIED, databases=(np.array([1]), np.array([0])),
        default_kwargs={"epsilon": CLAIM}, event_iterations=RUNS, detect_iterations=RUNS,
        cores=1, quiet=True, loglevel=logging.WARNING,
    )  # fmt: skip
    return max([epsilon for epsilon, p, *_ in found if p < WRONG], default=0.0)


if __name__ == "__main__":
    for case in CASES:
        print(verdict(case, bound(case)), flush=True)

"""Writes the tables of docs/both.md and docs/guarantees/both.md: `python -m benchmarks.both`.

All numbers are predicted, so they are the same in every run. That predictions are met is tested:
tests/statistical/test_both.py. Exits with 1 if a number is outside of its limits.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

import panprivacy as pp
from benchmarks.continual import fill
from benchmarks.counters import table
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.both.laws import PairSplit, pair_law
from panprivacy.tables.cells.pairs import PairLaw

DOCS = Path(__file__).parents[1] / "docs"
LOOKS = "0.1", "0.5", "1", "2", "3", "4", "6"
EPSILONS = "0.5", "1", "2", "4"
USERS = 10_000, 100_000, 1_000_000
MANY = 10**9
"""Cells of so large a table that noise on its counts is nothing."""


GRID = 1e-4
"""A law is rounded, and errs so much more than the best one at most; of all others 0.1 %."""


def two_bits(epsilon: Fraction) -> PairLaw:
    """Two independent bits of half of epsilon each."""
    absent = Fraction(1 / (1 + math.exp(epsilon / 2))).limit_denominator(1 << 24)
    return PairLaw(absent, 1 - absent, absent**2)


def error(law: PairLaw, epsilon: Fraction) -> float:
    """The standard deviation of the users of both that the bits cause, in a large table."""
    split = PairSplit(Budget(state=epsilon, release=Fraction(1)), law)
    return math.sqrt(float(split.errors(np.array([float(MANY)]))[0]))


def shares() -> dict[str, float]:
    """By the epsilon of a look: the error of the best law, as a share of that of two bits."""
    found = {}
    for epsilon in LOOKS:
        best = pair_law(Fraction(epsilon))
        if best is None:
            message = f"no law at epsilon {epsilon}"
            raise RuntimeError(message)
        found[epsilon] = error(best, Fraction(epsilon)) / error(
            two_bits(Fraction(epsilon)), Fraction(epsilon)
        )
    return found


def law_rows() -> list[list[str]]:
    """One row: the share of each epsilon."""
    words = "error of users of both, as a share of that of two bits"
    return [[words, *(f"{one:.3f}" for one in shares().values())]]


def margin(users: int, epsilon: str) -> float:
    """How far 95 % of answers lie at most from the users of both, as a share of a stream."""
    return pp.BothCount(expected=users, epsilon=epsilon).plan.relative_margin(0.95)


def error_rows() -> list[list[str]]:
    """By epsilon: how far off the users of both are."""
    return [
        [each, *(f"±{100 * margin(users, each):.2g} %" for users in USERS)] for each in EPSILONS
    ]


def main() -> int:
    """Write both tables."""
    tables = {
        "guarantees/both.md": ("laws", table(["epsilon of a look", *LOOKS], law_rows())),
        "both.md": (
            "errors",
            table(["epsilon", *(f"{one:,} in each stream" for one in USERS)], error_rows()),
        ),
    }
    for name, (marks, body) in tables.items():
        page = DOCS / name
        print(body)
        page.write_text(fill(page.read_text(), marks, body))
    return int(max(shares().values()) > 1 + GRID)


if __name__ == "__main__":
    sys.exit(main())

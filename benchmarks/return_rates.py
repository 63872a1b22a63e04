"""Return rates of two windows of the class that ships, beside their prediction.

`python -m benchmarks.return_rates` writes docs/accuracy-sketches.md, and exits with 1 when a number
is outside of its limits. Every run makes two windows with fresh coins and a fresh addressing key,
updates them and compares their published tables.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import panprivacy as pp
from benchmarks.trials import ROOT
from panprivacy.statistics.sketch.publication import OCCUPIED, Covers, publication_law
from panprivacy.tables.cells.bits import BitCells

PAGE = ROOT / "docs" / "accuracy-sketches.md"
RUNS, STANDARD_ERRORS = 200, 5
LAWS: Sequence[tuple[str, Covers]] = (
    ("1", "publication"),
    ("1", "seizure"),
    ("2", "publication"),
    ("2", "seizure"),
    ("4", "seizure"),
)
SIZES: Sequence[Mapping[str, Any]] = (
    {"expected": 10_000, "share": "0.3"},
    {"expected": 100_000, "share": "0.5"},
    {"expected": (10_000, 1_000_000), "share": "0.5"},
    {"universe": 50_000, "share": "0.5"},
    {"universe": 200_000, "cells": 50_000, "share": "0.5"},
)
POINTS = 196
"""Half a 95 % interval in points, of a standard deviation."""


@dataclass(frozen=True)
class Pair:
    """Two windows of equally many users.

    Args:
        sizes: of the statistic.
        epsilon: of each window.
        covers: what it covers.
    """

    sizes: Mapping[str, Any]
    epsilon: str
    covers: Covers

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of the statistic."""
        return {**self.sizes, "epsilon": self.epsilon, "covers": self.covers}

    @property
    def users(self) -> int:
        """Of each window: all that are expected, the middle of a range, half a universe."""
        expected = self.sizes.get("expected")
        if expected is None:
            return int(self.sizes["universe"]) // 2
        return math.isqrt(math.prod(expected)) if isinstance(expected, tuple) else int(expected)

    @property
    def truth(self) -> float:
        """The return rate."""
        return round(self.users * float(self.sizes["share"])) / self.users

    @property
    def predicted(self) -> float:
        """The predicted standard deviation of the return rate."""
        plan = pp.plan("overlap", **self.given)
        return float(plan.return_error(self.users))

    def answer(self, random: np.random.Generator) -> pp.Release:
        """Return the return rate of two windows."""
        key, both = random.bytes(16), round(self.truth * self.users)
        first = np.arange(2 * self.users)
        if "universe" in self.sizes:
            first = random.permutation(int(self.sizes["universe"]))
        windows = first[: self.users], first[self.users - both : 2 * self.users - both]
        sketches = []
        for users in windows:
            window = pp.OverlapSketch(**self.given, key=key)
            window.update(users)
            sketches.append(window.release().sketch)
        return pp.overlap(*sketches).return_rate()

    def answers(self, runs: int, random: np.random.Generator) -> list[pp.Release]:
        """Return the answers of several runs."""
        return [self.answer(random) for _ in range(runs)]

    def __str__(self) -> str:
        sizes = ", ".join(
            f"{name}={':'.join(map(str, one)) if isinstance(one, tuple) else one}"
            for name, one in self.sizes.items()
            if name != "share"
        )
        return f"{sizes}; {self.users:,} users, {100 * self.truth:g} % return"


def rows() -> tuple[list[str], bool]:
    """Return a line for each pair, and whether all are within their limits."""
    lines, good, random = [], True, np.random.default_rng()
    for sizes in SIZES:
        for epsilon, covers in LAWS:
            pair = Pair(sizes, epsilon, covers)
            predicted = pair.predicted
            if predicted > 0.25:  # noise, which the plan says
                lines.append(f"| {pair} | {epsilon} | {covers} | {POINTS * predicted:.1f} | | |")
                continue
            answers = pair.answers(RUNS, random)
            errors = np.array([one.estimate - pair.truth for one in answers])
            measured = math.sqrt(float(np.mean(errors**2)))
            held = sum(one.low <= pair.truth <= one.high for one in answers) / RUNS
            room = STANDARD_ERRORS / math.sqrt(2 * RUNS) + 0.06
            fits = abs(measured / predicted - 1) < room
            fits &= held > 0.95 - STANDARD_ERRORS * math.sqrt(0.05 * 0.95 / RUNS)
            good &= fits
            marked = "" if fits else " !"
            lines.append(
                f"| {pair} | {epsilon} | {covers} | {POINTS * predicted:.1f} | "
                f"{POINTS * measured:.1f}{marked} | {100 * held:.1f} % |"
            )
    return lines, good


def spreads() -> list[str]:
    """Return what a published bit errs by, beside that after an announced intrusion."""
    lines = []
    for epsilon in (1, 2, 4, 8):
        found = [
            _spread(float(law.published_absent), float(law.published_present))
            for covers in ("publication", "seizure")
            for law in [publication_law(Fraction(epsilon), covers)]  # type: ignore[arg-type]
        ]
        contrast = float(BitCells(1, Fraction(epsilon, 2), 1).contrast(1))
        announced = _spread((1 - contrast) / 2, (1 + contrast) / 2)
        lines.append(f"| {epsilon} | {found[0]:.2f} | {found[1]:.2f} | {announced:.2f} |")
    return lines


def _spread(absent: float, present: float) -> float:
    mean = absent + OCCUPIED * (present - absent)
    return math.sqrt(mean * (1 - mean)) / (present - absent)


def main() -> None:
    """Write the page."""
    lines, good = rows()
    PAGE.write_text(
        f"""# Published tables, from updates to return rates

What return rates of two windows of [`OverlapSketch`](statistics.md) err by, beside the prediction
of the plan. `python -m benchmarks.return_rates` writes this page from {RUNS} runs of each line. The
mathematics alone is measured [on another page](accuracy-overlaps.md).

## Return rates

Errors are in points: half a 95 % interval as predicted, and 1.96 times the measured
root-mean-square error. `seizure` covers the published table and one look at the state of its
window, `publication` the table alone. Lines without a measured error are noise, as `plan` says.

| windows | epsilon | covers | predicted | measured | intervals that hold |
| --- | --: | --- | --: | --: | --: |
{chr(10).join(lines)}

## What a covered look costs

The standard deviation of a published bit that was divided by the contrast, where 3 of 10 cells have
users. The last column is that of an [announced intrusion](guarantees/intrusions.md#bits) between
the look and the table, with epsilon split evenly.

| epsilon | publication | seizure | announced intrusion |
| --: | --: | --: | --: |
{chr(10).join(spreads())}
"""
    )
    sys.exit(not good)


if __name__ == "__main__":
    main()

"""The measured numbers of docs/overlaps.md, which `python -m benchmarks.cohorts` writes.

Nothing here needs Theta sketches or a picture, so a test writes the page with its own numbers, and
compares what is not random with the code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import panprivacy as pp
from benchmarks.trials import ROOT

PAGE = ROOT / "docs" / "overlaps.md"
HEAD = ["published file", "bytes", "error", "what a list of candidates finds in it"]
USERS, SHARE = 100_000, 0.5
_HELD = re.compile(r"In (\d+) runs ([\d,]+) of\n([\d,]+) intervals held it\.")
_TABLE = re.compile(rf"\| {HEAD[0]} \|.*?\n\n", re.DOTALL)
_ROW = re.compile(r"^\| (.+?) \| ([\d,]+) \| ±([\d.]+) points \| (.+) \|$", re.MULTILINE)
_FOUND = re.compile(r"([\d,]+) users by name, and (none|[\d,]+) falsely")


@dataclass(frozen=True)
class Measured:
    """What the script measures.

    Args:
        runs: how often the triangle was made.
        held: of how many intervals held the truth.
        intervals: how many there were.
        theta: bytes of a Theta sketch, half a 95 % interval of its return rate in points, and
            users of a list of candidates that are found in it, and falsely.
        ours: bytes, and half a 95 % interval in points, by epsilon.
    """

    runs: int
    held: int
    intervals: int
    theta: tuple[int, float, int, int]
    ours: dict[int, tuple[int, float]]

    @classmethod
    def read(cls, text: str) -> Measured:
        """Return the numbers of a page."""
        held = _HELD.search(text)
        rows = _ROW.findall(text)
        found = _FOUND.search(rows[0][3]) if rows else None
        if held is None or found is None:
            message = "docs/overlaps.md has other sentences than this script writes"
            raise ValueError(message)
        theta = _number(rows[0][1]), float(rows[0][2]), _number(found[1]), _number(found[2])
        ours = {
            int(name.removeprefix("ours, epsilon ")): (_number(size), float(error))
            for name, size, error, _ in rows[1:]
        }
        return cls(*map(_number, held.groups()), theta, ours)

    def written(self, text: str) -> str:
        """Return a page with these numbers."""
        held = f"In {self.runs} runs {self.held:,} of\n{self.intervals:,} intervals held it."
        text = _HELD.sub(held, text)
        lines = [HEAD, ["---", "--:", "--:", "---"], *self.rows()]
        rows = "".join(f"| {' | '.join(line)} |\n" for line in lines)
        return _TABLE.sub(lambda _: f"{rows}\n", text)

    def rows(self) -> Sequence[Sequence[str]]:
        """Return the rows of the comparison."""
        size, error, found, falsely = self.theta
        wrong = f"{falsely:,}" if falsely else "none"
        said = f"{found:,} users by name, and {wrong} falsely"
        first = ["Theta sketch", f"{size:,}", f"±{error:.1f} points", said]
        return [first, *(self._row(epsilon) for epsilon in sorted(self.ours, reverse=True))]

    def _row(self, epsilon: int) -> list[str]:
        size, error = self.ours[epsilon]
        odds_change = math.exp(epsilon)
        step = 10.0 ** (math.floor(math.log10(odds_change)) - 1)
        factor = f"a factor of {math.ceil(odds_change / step) * step:.2g}"
        digits = 0 if error >= 10 else 1
        odds = "the odds of any fact about a user change by " if epsilon == max(self.ours) else ""
        said = f"nobody: {odds}{factor} at most"
        return [f"ours, epsilon {epsilon}", f"{size:,}", f"±{error:.{digits}f} points", said]


def _number(text: str) -> int:
    return 0 if text == "none" else int(text.replace(",", ""))


def plan_of(epsilon: int) -> pp.OverlapSketch:
    """Return the statistic that the comparison plans."""
    return pp.OverlapSketch(epsilon=epsilon, expected=USERS, share=SHARE, key=bytes(36))

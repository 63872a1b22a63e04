"""What is said of a sample, and the table of docs/mutants.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import beta

from benchmarks.mutants.equivalent import EQUIVALENT, UNFOUND
from benchmarks.mutants.modules import GROUPS
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.results import Results
from benchmarks.mutants.tree import ROOT

PAGE = ROOT / "docs" / "mutants.md"
CONFIDENCE = 0.95
_END = "<!-- end of samples -->"


@dataclass(frozen=True)
class Row:
    """Some of the mutants of a sample.

    Args:
        name: what they have in common.
        run: how many were run.
        same: how many were drawn and not run, since they do the same as the code.
        first: how many were found when they were run first.
        found: how many are found by the tests as they are.
    """

    name: str
    run: int
    same: int
    first: int
    found: int

    @property
    def share(self) -> float:
        """That is found; 1 of none."""
        return self.found / self.run if self.run else 1.0

    @property
    def bound(self) -> float:
        """The share of all mutants that is found, at least: by Clopper and Pearson.

        It is of the tests as they were before the sample was seen, so tests that were added for
        what survived do not raise it.
        """
        if self.first == 0:
            return 0.0
        return float(beta.ppf(1 - CONFIDENCE, self.first, self.run - self.first + 1))

    def cells(self) -> list[str]:
        """Those of a table."""
        shares = [f"{self.first / max(self.run, 1):.1%}", f"{self.bound:.1%}"]
        return [self.name, *map(str, (self.run, self.same, self.first)), *shares, str(self.found)]


_HEADINGS = (
    *("modules", "run", "do the same", "found at first", "share", "at least", "found now"),
)


@dataclass(frozen=True)
class Sample:
    """The mutants of a seed that were run, by the group of their modules, and what none finds."""

    seed: int
    groups: tuple[Row, ...]
    all: Row
    survivors: tuple[Mutant, ...]

    @classmethod
    def of(cls, seed: int, mutants: Sequence[Mutant], results: Results) -> Sample:
        """Those of the mutants that were run."""
        rows = {
            name: _row(name, [one for one in mutants if one.module in some], results)
            for name, some in GROUPS.items()
        }
        missed = [one for one in mutants if _was_run(one, results) and not results.found(one)]
        return cls(seed, tuple(rows.values()), _row("all", mutants, results), tuple(missed))


def printed(sample: Sample) -> str:
    """The table as text."""
    rows = [_HEADINGS, *(row.cells() for row in (*sample.groups, sample.all))]
    lines = ["".join(f"{cell:>16}" for cell in row) for row in rows]
    return "\n".join(["", *lines, *map(str, sample.survivors)])


def write(sample: Sample) -> None:
    """Put a sample on the page, in place of what stands there of its seed."""
    rows = [
        _HEADINGS,
        ["--:"] * len(_HEADINGS),
        *(row.cells() for row in (*sample.groups, sample.all)),
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines += [*(["", "Not found:", ""] if sample.survivors else [])]
    for one in sample.survivors:
        reason = UNFOUND.get(one.place, "no test was written")
        lines.append(f"- `{one.module}:{one.line}`: `{one.before}` as `{one.after}`: {reason}")
    first, last = f"<!-- seed {sample.seed} -->", f"<!-- end of seed {sample.seed} -->"
    block = "\n".join([first, "", f"Seed {sample.seed}:", "", *lines, "", last])
    text = PAGE.read_text()
    if first in text:
        before, _, rest = text.partition(first)
        text = before + block + rest.partition(last)[2]
    else:
        text = text.replace(_END, f"{block}\n\n{_END}")
    PAGE.write_text(text)


def _row(name: str, mutants: Sequence[Mutant], results: Results) -> Row:
    run = [one for one in mutants if _was_run(one, results)]
    same = sum(one.place in EQUIVALENT for one in mutants)
    return Row(
        name, len(run), same, sum(map(results.found_first, run)), sum(map(results.found, run))
    )


def _was_run(mutant: Mutant, results: Results) -> bool:
    return mutant.place not in EQUIVALENT and results.has(mutant)

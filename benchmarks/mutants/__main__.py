"""Draw mutants, run tests on them, and say how many are found and which survive.

A mutant takes some seconds on each of two processors. What was run is kept in build/mutants, and is
not run again as long as its module and the tests that it rests on stay as they are. It writes
docs/mutants.md, unless modules are named, and exits with 1 if fewer than 95 % are found.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from benchmarks.mutants.equivalent import EQUIVALENT
from benchmarks.mutants.modules import GROUPS, TESTS
from benchmarks.mutants.mutant import Mutant, drawn
from benchmarks.mutants.page import Sample, printed, write
from benchmarks.mutants.reach import Reach, first_of
from benchmarks.mutants.results import Results
from benchmarks.mutants.tree import ROOT, Tree

TARGET = 0.95
DRAWN = [module for group in GROUPS.values() for module in group]
KEPT = ROOT / "build" / "mutants"
_FIRST_SECONDS = 20.0
"""Of tests that a mutant has to survive before it waits for the end of the run."""


def main() -> int:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [
            Tree(Path(folder) / str(number), KEPT / "kernels") for number in range(arguments.jobs)
        ]
        mutants = drawn(trees[0].package, arguments.modules, arguments.seed)
        run = Run(trees, time.monotonic() + 60 * arguments.minutes)
        run.load(arguments.modules)
        done = run.all_of(islice(mutants, arguments.count))
    sample = Sample.of(arguments.seed, done, run.results)
    print(printed(sample))
    if arguments.modules == DRAWN:
        write(sample)
    return int(sample.all.share < TARGET)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws others")
    parser.add_argument("--minutes", type=float, default=120, help="no mutant begins later")
    parser.add_argument("--jobs", type=int, default=2, help="how many are run at a time")
    parser.add_argument("modules", nargs="*", metavar="module", help=f"some of {', '.join(TESTS)}")
    arguments = parser.parse_args()
    unknown = set(arguments.modules) - TESTS.keys()
    if unknown:
        parser.error(f"no tests are known for {', '.join(sorted(unknown))}")
    arguments.modules = arguments.modules or DRAWN
    return arguments


class Run:
    """Runs mutants in some copies of the tree until a time."""

    def __init__(self, trees: Sequence[Tree], until: float) -> None:
        KEPT.mkdir(parents=True, exist_ok=True)
        self.results = Results(KEPT / "results.jsonl", trees[0].root)
        self._reach = Reach(KEPT / "reach", trees[0].root)
        self._until = until
        self._trees = trees
        self._free = SimpleQueue[Tree]()
        for tree in trees:
            self._free.put(tree)

    def load(self, modules: Iterable[str]) -> None:
        """Know what the tests of these modules reach."""
        files = sorted({test for module in modules for test in TESTS[module]})
        with ThreadPoolExecutor(len(self._trees)) as pool:
            self._reach.load(self._record, files, pool)
        for result in self.results:
            self._reach.count(result)

    def all_of(self, mutants: Iterator[Mutant]) -> list[Mutant]:
        """Run mutants until the time has come, and return these in turn.

        Most are found in seconds. Those that survive the first tests wait for the others, so that
        as many as possible are drawn.
        """
        done, surviving = list[Mutant](), list[Mutant]()

        def quickly(tree: Tree, mutant: Mutant) -> None:
            done.append(mutant)
            if mutant.place in EQUIVALENT or self.results.known(mutant) is not None:
                return
            if self.results.has(mutant) or not self._one(tree, mutant, _FIRST_SECONDS):
                surviving.append(mutant)

        self._each(mutants, quickly, self._until)
        self._each(iter(surviving), lambda tree, one: self._one(tree, one, math.inf), math.inf)
        return done

    def _each(
        self, mutants: Iterator[Mutant], work: Callable[[Tree, Mutant], object], until: float
    ) -> None:
        """Do something with each in turn, in all trees at once."""
        turn = Lock()

        def go_on(tree: Tree) -> None:
            while time.monotonic() < until:
                with turn:
                    mutant = next(mutants, None)
                if mutant is None:
                    return
                work(tree, mutant)

        with ThreadPoolExecutor(len(self._trees)) as pool:
            list(pool.map(go_on, self._trees))

    def _record(self, file: str, to: Path) -> None:
        tree = self._free.get()
        try:
            tree.record(file, to)
        finally:
            self._free.put(tree)

    def _one(self, tree: Tree, mutant: Mutant, seconds: float) -> bool:
        """Whether tests find a mutant that take so many seconds on the code as it is."""
        tests = self._reach.tests_of(mutant.module, mutant.within, mutant.line)
        chosen = first_of(tests, seconds)
        begun = time.monotonic()
        failed = tree.finds(mutant, chosen)
        taken = time.monotonic() - begun
        result = self.results.add(mutant, failed, taken, whole=len(chosen) == len(tests))
        self._reach.count(result)
        print(f"{taken:.1f} s: {failed or 'SURVIVED'}\n{mutant}", flush=True)
        return result.whole


if __name__ == "__main__":
    sys.exit(main())

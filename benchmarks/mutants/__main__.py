"""Draw mutants, run the tests of their modules on them, and list those that none finds.

It takes about half a minute for each mutant. It exits with 1 if fewer than 95 % are found.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.mutants.equivalent import EQUIVALENT
from benchmarks.mutants.modules import TESTS
from benchmarks.mutants.mutant import Mutant, drawn
from benchmarks.mutants.tree import Tree

TARGET = 0.95


def main() -> int:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Tree(Path(folder))
        mutants = drawn(tree.package, arguments.modules, arguments.count, arguments.seed)
        asked = [one for one in mutants if _key(one) not in EQUIVALENT]
        asked, survivors = _run(tree, asked, time.monotonic() + 60 * arguments.minutes)
    _report(asked, survivors)
    return int(len(survivors) > (1 - TARGET) * len(asked))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=150, help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws others")
    parser.add_argument("--minutes", type=float, default=120, help="no mutant begins later")
    parser.add_argument("modules", nargs="*", metavar="module", help=f"some of {', '.join(TESTS)}")
    arguments = parser.parse_args()
    unknown = set(arguments.modules) - TESTS.keys()
    if unknown:
        parser.error(f"no tests are known for {', '.join(sorted(unknown))}")
    arguments.modules = arguments.modules or list(TESTS)
    return arguments


def _run(tree: Tree, mutants: Sequence[Mutant], until: float) -> tuple[list[Mutant], list[Mutant]]:
    """Those that were run, and those of them that no test finds."""
    run, survivors = [], []
    for mutant in mutants:
        if time.monotonic() > until:
            break
        failed = tree.finds(mutant, TESTS[mutant.module])
        run.append(mutant)
        if failed is None:
            survivors.append(mutant)
        print(f"{len(run)}/{len(mutants)} {failed or 'SURVIVED'}\n{_shown(mutant)}", flush=True)
    return run, survivors


def _report(mutants: Sequence[Mutant], survivors: Sequence[Mutant]) -> None:
    run_of, left_of = (Counter(one.module for one in some) for some in (mutants, survivors))
    print(f"\n{'module':<32}{'found':>8}{'survived':>10}")
    for module in filter(run_of.get, TESTS):
        print(f"{module:<32}{run_of[module] - left_of[module]:>8}{left_of[module]:>10}")
    found = len(mutants) - len(survivors)
    print(f"{'all':<32}{found:>8}{len(survivors):>10}  {found / max(len(mutants), 1):.1%} found")
    for mutant in survivors:
        print(_shown(mutant))


def _key(mutant: Mutant) -> tuple[str, str, str]:
    return mutant.module, mutant.within, mutant.after


def _shown(mutant: Mutant) -> str:
    """As in a diff."""
    return (
        f"  {mutant.module}:{mutant.line} {mutant.within}\n  - {mutant.before}\n  + {mutant.after}"
    )


if __name__ == "__main__":
    sys.exit(main())

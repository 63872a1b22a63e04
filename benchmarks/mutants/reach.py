"""Which tests reach a line, so that only these run on its mutants, those that find most first."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

from benchmarks.mutants.modules import TESTS
from benchmarks.mutants.results import Result

_SECONDS_OF_OTHERS = 20.0
"""How much is run of the tests that belong to other modules and reach the line."""


@dataclass(frozen=True)
class Test:
    """A test as it went on the code as it is.

    Args:
        name: as pytest has it.
        seconds: that it took while it was recorded, with nothing planned before.
        programs: whether it starts any, in which nothing is recorded.
        lines: that it reaches, by the module.
        collecting: what is reached before any test of its file runs, as cases are listed.
    """

    name: str
    seconds: float
    programs: bool
    lines: dict[str, frozenset[int]]
    collecting: dict[str, frozenset[int]]

    @property
    def file(self) -> str:
        """Where it is."""
        return self.name.partition("::")[0]


class Reach:
    """What all tests reach, recorded once for each file of tests and state of the package."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder, self._root = folder, root
        self._tests: list[Test] = []
        self._found = Counter[tuple[str, str, str]]()  # by module, function, and test

    def load(
        self, record: Callable[[str, Path], None], files: Iterable[str], pool: Executor
    ) -> None:
        """Read what was recorded of these files, and have recorded what was not."""
        self._folder.mkdir(parents=True, exist_ok=True)
        sources = _hash(sorted((self._root / "src").rglob("*.py")))
        state = sha256(f"{sources} {sorted(TESTS)}".encode()).hexdigest()[:16]
        kept = {
            file: self._folder / f"{state}-{_hash([self._root / file])[:32]}.json" for file in files
        }
        new = [file for file in kept if not kept[file].exists()]
        for file, _ in zip(new, pool.map(record, new, map(kept.get, new)), strict=True):
            print(f"recorded {file}", flush=True)
        self._tests = [test for path in kept.values() for test in _read(path)]

    def count(self, result: Result) -> None:
        """Have a test that found a mutant come first for others of the same function."""
        if result.test is not None:
            self._found[result.module, result.within, result.test] += 1
            self._found["", "", result.test] += 1

    def tests_of(self, module: str, within: str, line: int) -> list[Test]:
        """The tests that may find a change of a line, in the order in which they are to run.

        First those that found others in the same function, then those that find much in their
        time. A constant or a decorator has all of its module. Last come those of the module that
        start programs, or whose cases reach the line as they are listed.
        """
        lines = _statement((self._root / "src" / "panprivacy" / module).read_text(), line)
        own = set(TESTS[module])
        reaching, others, last = [], [], []
        for test in self._tests:
            reached = test.lines.get(module, frozenset())
            reaches = bool(reached & lines) if lines else bool(reached)
            before = test.collecting.get(module, frozenset()) & lines
            known = self._found[module, within, test.name]
            if known or (test.file in own and (reaches or not lines)):
                reaching.append(test)
            elif test.file in own and (test.programs or before):
                last.append(test)
            elif reaches:
                others.append(test)

        def order(test: Test) -> tuple[int, float]:
            finds = 1 + self._found["", "", test.name]
            return -self._found[module, within, test.name], test.seconds / finds

        others = first_of(sorted(others, key=order), _SECONDS_OF_OTHERS)
        return [*sorted(reaching, key=order), *others, *sorted(last, key=order)]


def first_of(tests: Sequence[Test], seconds: float) -> list[Test]:
    """Those in turn that take so long together; at least one."""
    ends = accumulate(test.seconds for test in tests)
    return [test for test, end in zip(tests, ends, strict=True) if end <= seconds] or [*tests[:1]]


def _hash(files: Iterable[Path]) -> str:
    digest = sha256()
    for file in files:
        digest.update(sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _read(kept: Path) -> Iterator[Test]:
    recorded = json.loads(kept.read_text())
    collecting = _sets(recorded["collecting"])
    for name, one in recorded["tests"].items():
        if one is None:
            print(f"left out, since it fails on the code as it is: {name}")
        else:
            lines = _sets(one["lines"])
            yield Test(name, one["seconds"], one["programs"], lines, collecting)


def _sets(lines: dict[str, list[int]]) -> dict[str, frozenset[int]]:
    return {module: frozenset(numbers) for module, numbers in lines.items()}


def _statement(source: str, line: int) -> set[int]:
    """The lines of the innermost statement in a function that holds a line; none outside of one."""
    lines: set[int] = set()
    left: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while left:
        node, inside = left.pop()
        if isinstance(node, ast.stmt):
            first, last = _header(node)
            if first <= line <= last and inside:
                lines = {*range(first, last + 1)}
        within = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        left += [(one, within) for one in ast.iter_child_nodes(node)]
    return lines


def _header(statement: ast.stmt) -> tuple[int, int]:
    """The lines of a statement without the statements in it."""
    body = getattr(statement, "body", None)
    last = statement.end_lineno or statement.lineno
    if isinstance(body, list) and body:
        last = max(statement.lineno, body[0].lineno - 1)
    return statement.lineno, last

"""What was found of which mutants, in a file, so that a run goes on where another stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from benchmarks.mutants.modules import TESTS
from benchmarks.mutants.mutant import Mutant


@dataclass(frozen=True)
class Result:
    """How a mutant went.

    Args:
        mutant: its key.
        module: which it changes.
        within: which function or class.
        test: that found it; None if none did.
        tests: a hash of that test's file, or of all files of tests of the module; empty if some of
            its tests were not run.
        seconds: that it took.
    """

    mutant: str
    module: str
    within: str
    test: str | None
    tests: str
    seconds: float


class Results:
    """Those of all runs so far, a line of JSON each."""

    def __init__(self, path: Path, root: Path) -> None:
        self._path, self._root = path, root
        self._first: dict[str, Result] = {}
        self._last: dict[str, Result] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                self._take(Result(**json.loads(line)))

    def __iter__(self) -> Iterator[Result]:
        return iter(self._last.values())

    def has(self, mutant: Mutant) -> bool:
        """Whether it was run."""
        return mutant.key in self._last

    def found_first(self, mutant: Mutant) -> bool:
        """Whether it was found when it was run first, before tests were added for what survived."""
        return self._first[mutant.key].test is not None

    def found(self, mutant: Mutant) -> bool:
        """Whether it was found when it was run last."""
        return self._last[mutant.key].test is not None

    def known(self, mutant: Mutant) -> Result | None:
        """How it went, if the tests that this rests on are as they were."""
        last = self._last.get(mutant.key)
        return last if last and last.tests == self._tests(mutant, last.test) else None

    def add(self, mutant: Mutant, test: str | None, seconds: float, *, whole: bool) -> Result:
        """Keep how a mutant went; a survivor is done with once its tests were run as a whole."""
        tests = self._tests(mutant, test) if test or whole else ""
        result = Result(mutant.key, mutant.module, mutant.within, test, tests, round(seconds, 2))
        self._take(result)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")
        return result

    def _take(self, result: Result) -> None:
        if not (first := self._first.get(result.mutant)) or not first.tests:
            self._first[result.mutant] = result
        self._last[result.mutant] = result

    def _tests(self, mutant: Mutant, test: str | None) -> str:
        """A hash of what a result rests on."""
        found_in = re.search(r"tests/[\w/]+\.py", test or "")
        files = [found_in[0]] if found_in else TESTS[mutant.module]
        return sha256(b"".join((self._root / one).read_bytes() for one in files)).hexdigest()

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
        file: a hash of the file of that test; empty if there is none.
        files: a hash of all files of tests of the module.
        whole: whether all tests were run that may find it, or one has.
        seconds: that it took.
    """

    mutant: str
    module: str
    within: str
    test: str | None
    file: str
    files: str
    whole: bool
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
        """Whether the tests found it that were there when it was run first."""
        return self._first[mutant.key].test is not None

    def found(self, mutant: Mutant) -> bool:
        """Whether it was found when it was run last."""
        return self._last[mutant.key].test is not None

    def known(self, mutant: Mutant) -> Result | None:
        """How it went, if the tests that this rests on are as they were."""
        last = self._last.get(mutant.key)
        if last is None or not last.whole:
            return None
        if last.test is not None:
            return last if last.file == self._file(last.test) else None
        return last if last.files == self._hash(*TESTS[mutant.module]) else None

    def add(self, mutant: Mutant, test: str | None, seconds: float, *, whole: bool) -> Result:
        """Keep how a mutant went; a survivor is done with once its tests were run as a whole."""
        result = Result(
            mutant.key,
            mutant.module,
            mutant.within,
            test,
            self._file(test),
            self._hash(*TESTS[mutant.module]),
            whole or test is not None,
            round(seconds, 2),
        )
        self._take(result)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")
        return result

    def _take(self, result: Result) -> None:
        """Keep it; what survived some has survived all, unless others ran before any changed."""
        first = self._first.get(result.mutant)
        if first is None or (not first.whole and first.files == result.files):
            self._first[result.mutant] = result
        self._last[result.mutant] = result

    def _file(self, test: str | None) -> str:
        """A hash of the file that a test is in, if one is named and still there."""
        named = re.search(r"tests/[\w/]+\.py", test or "")
        return self._hash(named[0]) if named and (self._root / named[0]).exists() else ""

    def _hash(self, *files: str) -> str:
        return sha256(b"".join((self._root / one).read_bytes() for one in files)).hexdigest()

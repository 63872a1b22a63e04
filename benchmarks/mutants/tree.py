"""Copies of the tree, in which the tests run on mutants."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutants import child
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.reach import Test

ROOT = Path(__file__).resolve().parents[2]
_NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "build", "dist", ".*_cache", ".hypothesis")
_SECONDS_OF_A_FILE = 1200
_PATIENCE = 30.0
"""Seconds more than ten times those of the code as it is, after which a test has no end."""

_FIRST_BATCH = 2.0
"""Seconds of tests in the first process of a mutant; each further one has twice as many."""

_UNKNOWN = "a name that no test has"

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["benchmarks.mutants.preloaded"])


class Tree:
    """A copy of the tree in a folder, for one mutant at a time.

    Args:
        folder: where the copy is made.
        kernels: where compiled kernels are kept, by what they do, for all copies.
    """

    def __init__(self, folder: Path, kernels: Path) -> None:
        self.root, self._shared, self._own = folder / "tree", kernels, folder / "kernels"
        shutil.copytree(ROOT, self.root, ignore=_NOT_COPIED)
        self._own.mkdir()

    @property
    def package(self) -> Path:
        """The folder of the package."""
        return self.root / "src" / "panprivacy"

    def record(self, file: str, to: Path) -> None:
        """Have a file of tests record what each test reaches."""
        arguments = (self.root, file, self._shared, self._own, to)
        with _started(child.record, arguments) as process:
            process.join(_SECONDS_OF_A_FILE)

    def finds(self, mutant: Mutant, tests: Sequence[Test]) -> str | None:
        """The test that fails on a mutant, or has no end; None if there is none."""
        with self._changed(mutant), self._kernels_of_programs(mutant) as programs:
            for batch in _batches(tests):
                failed = self._found_by(batch, programs)
                if failed is not None:
                    return failed
        return None

    def _found_by(self, tests: Sequence[Test], programs: Path) -> str | None:
        """Which of these fails, and fails again: some fail by chance."""
        left = list(tests)
        while left:
            failed, ended = self._run(left, programs)
            if not ended or failed is None:
                return failed
            again, _ = self._run([one for one in left if one.name == failed] or left, programs)
            if again is not None:
                return failed or "the import of the tests"
            left = [one for one in left if one.name != failed]
        return None

    def _run(self, tests: Sequence[Test], programs: Path) -> tuple[str | None, bool]:
        """The first test that fails, if one does, and whether the tests came to an end.

        Where a mutant changes the names of tests, those of the same files are run.
        """
        shutil.rmtree(self.root / ".hypothesis" / "examples", ignore_errors=True)
        seconds = {one.name: one.seconds for one in tests}
        failed, ended = self._said_of(seconds, programs)
        if failed == _UNKNOWN:
            failed, ended = self._said_of({one.file: one.seconds for one in tests}, programs)
        return "the import of the package" if failed == _UNKNOWN else failed, ended

    def _said_of(self, seconds: dict[str, float], programs: Path) -> tuple[str | None, bool]:
        said, says = _processes.Pipe(duplex=False)
        arguments = (self.root, [*seconds], self._shared, programs, says)
        with said, _started(child.run, arguments):
            says.close()
            return _heard(said, seconds)

    @contextmanager
    def _changed(self, mutant: Mutant) -> Iterator[None]:
        """The tree with the mutant in it, of the same age each time, so that kernels are kept."""
        path = self.package / mutant.module
        source, before = path.read_bytes(), path.stat().st_mtime_ns
        try:
            path.write_text(mutant.code)
            os.utime(path, ns=(before, before + 10**9))
            yield
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(before, before))

    @contextmanager
    def _kernels_of_programs(self, mutant: Mutant) -> Iterator[Path]:
        """Where programs keep kernels: numba would have them take those of callers that it kept."""
        if "_kernels import" not in mutant.code:
            yield self._own
            return
        with tempfile.TemporaryDirectory(dir=self._own.parent) as folder:
            yield Path(folder)


def _batches(tests: Sequence[Test]) -> Iterator[list[Test]]:
    """Tests in turn, few at first."""
    batch: list[Test] = []
    most = _FIRST_BATCH
    for test in tests:
        batch.append(test)
        if sum(one.seconds for one in batch) > most:
            yield batch
            batch, most = [], 2 * most
    if batch:
        yield batch


@contextmanager
def _started(target: Callable[..., None], arguments: tuple[Any, ...]) -> Iterator[Any]:
    process = _processes.Process(target=target, args=arguments)
    process.start()
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # servers that a failed test has left behind
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
        process.close()


def _heard(said: Connection, seconds: dict[str, float]) -> tuple[str | None, bool]:
    running = child.COLLECTING
    while said.poll(_PATIENCE + 10 * seconds.get(running, 0)):
        try:
            kind, text = said.recv()
        except EOFError:  # it was killed, as for memory
            return f"the end of the process in {running}", False
        if kind == "begins":
            running = text
        elif kind == "failed":
            return text, True
        elif text == str(int(pytest.ExitCode.USAGE_ERROR)):
            return _UNKNOWN, True
        else:
            return None if text == "0" else running, True
    return f"no end of {running}", False

"""A copy of the tree, in which the tests run on mutants."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
_NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "build", "dist", ".*_cache", "__pycache__")
_MOST_SECONDS = 600
_PATIENCE = 60.0
"""Seconds more than three times those of the code as it is, after which a test has no end."""


class Tree:
    """Runs tests of a copy of the tree, one process at a time.

    numba sees when the file of a kernel changes, but not when that of a function changes that the
    kernel calls. So a mutant of a file with kernels begins without any that are kept, and no
    mutant leaves its own behind.
    """

    def __init__(self, folder: Path) -> None:
        self._root, self._kept, self._used = folder / "tree", folder / "kept", folder / "used"
        shutil.copytree(ROOT, self._root, ignore=_NOT_COPIED)
        self._kept.mkdir()
        self._seconds: dict[str, float] = {}

    @property
    def package(self) -> Path:
        """The folder of the package."""
        return self._root / "src" / "panprivacy"

    def seconds(self, test: str) -> float:
        """How long a file of tests takes; it is to pass on the code as it is.

        Raises:
            RuntimeError: it does not.
        """
        if test not in self._seconds:
            begun = time.monotonic()
            code, said = self._run(test, self._kept, _MOST_SECONDS, keep=True)
            if code != 0:
                message = f"{test} does not pass on the code as it is:\n{said}"
                raise RuntimeError(message)
            self._seconds[test] = time.monotonic() - begun
        return self._seconds[test]

    def finds(self, mutant: Mutant, tests: Sequence[str]) -> str | None:
        """The test that fails on a mutant, or has no end; None if there is none."""
        shutil.rmtree(self._used, ignore_errors=True)
        if "_kernels import" in mutant.code:
            self._used.mkdir()
        else:
            shutil.copytree(self._kept, self._used)
        return next(filter(None, (self._found_by(test, mutant) for test in tests)), None)

    def _found_by(self, test: str, mutant: Mutant) -> str | None:
        """What of a file of tests fails on a mutant, and fails again: some fail by chance."""
        limit = _PATIENCE + 3 * self.seconds(test)
        by_chance: list[str] = []
        while True:
            with self._changed(mutant):
                code, said = self._run(test, self._used, limit, without=by_chance)
                if not code:
                    return None if code == 0 else f"no end of {test}"
                failure = _first_failure(said)
                if "::" not in failure or self._run(failure, self._used, limit)[0] != 0:
                    return failure
            by_chance.append(failure)

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

    def _run(
        self, test: str, kernels: Path, seconds: float, *, keep=False, without: Sequence[str] = ()
    ) -> tuple[int | None, str]:
        """The exit code of pytest, None if it took too long, and what it said."""
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(self.package.parent), os.environ.get("PYTHONPATH", "")]
            ).rstrip(os.pathsep),
            "NUMBA_CACHE_DIR": str(kernels),
            "PYTHONDONTWRITEBYTECODE": "" if keep else "1",
            "MPLBACKEND": "Agg",
        }
        options = [f"--deselect={one}" for one in without]
        options += ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, "-m", "not slow and not ray", test],
            cwd=self._root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            with suppress(ProcessLookupError):  # servers that a failed test has left behind
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return process.returncode, said


def _first_failure(said: str) -> str:
    """Which test failed first, of what pytest said."""
    failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if failed:
        return failed[0].split(" - ")[0].split(" ", 1)[1]
    return said.strip().rpartition("\n")[2][:100]

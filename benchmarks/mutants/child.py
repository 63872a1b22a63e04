"""What runs in a process of its own: tests on a copy of the tree, or a record of what they reach.

A fork server starts it, with all libraries loaded and nothing of the package, so that it starts in
half a second with whatever code stands in the copy.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import numba
import pytest

from benchmarks.mutants.kernels import keep_kernels_by_content
from benchmarks.mutants.modules import TESTS
from benchmarks.mutants.recorder import Recorder

COLLECTING = ""
"""In place of a test's name: before the first of them."""


def run(tree: Path, tests: Sequence[str], kernels: Path, programs: Path, said: Connection) -> None:
    """Run tests until one fails, and say which begins, which fails, and at last how it went.

    Args:
        tree: the copy.
        tests: their names.
        kernels: where compiled kernels are kept for this process and for those like it.
        programs: where programs keep theirs that a test starts.
        said: what is said is (kind, text): "begins" or "failed" and the name of a test, or "ends"
            and the exit code.
    """
    _enter(tree, programs)
    keep_kernels_by_content(kernels)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    said.send(("ends", str(_pytest(["-x", *tests], _Teller(said)))))


def record(tree: Path, file: str, kernels: Path, programs: Path, to: Path) -> None:
    """Write down what each test of a file reaches of the modules that have mutants."""
    import coverage  # noqa: PLC0415 - a tracer is in the way of what does not need it

    _enter(tree, programs)
    decisive = [str(tree / "src" / "panprivacy" / module) for module in TESTS]
    measured = coverage.Coverage(data_file=None, include=decisive, messages=False)
    measured.start()
    recorder = Recorder(measured)
    keep_kernels_by_content(kernels)
    _pytest([file], recorder)
    measured.stop()
    to.write_text(json.dumps(recorder.found()))


def _enter(tree: Path, programs: Path) -> None:
    """Make a process one of its own in the tree, as silent as a test is."""
    os.setsid()
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(silence, stream)
    os.chdir(tree)
    sys.path[:0] = [str(tree / "src"), str(tree)]
    for name in [one for one in sys.modules if one.partition(".")[0] == "tests"]:
        del sys.modules[name]  # those of the copy take their place
    os.environ |= {
        "PYTHONPATH": str(tree / "src"),
        "NUMBA_CACHE_DIR": str(programs),
        "MPLBACKEND": "Agg",
    }
    numba.config.CACHE_DIR = str(programs)


def _pytest(arguments: Sequence[str], plugin: object) -> int:
    loaded = "ignore::pytest.PytestAssertRewriteWarning"  # by the fork server
    options = ["-q", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-W", loaded]
    return int(pytest.main([*options, "-m", "not slow and not ray", *arguments], plugins=[plugin]))


class _Teller:
    def __init__(self, said: Connection) -> None:
        self._said = said

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._said.send(("begins", nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._said.send(("failed", report.nodeid))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._said.send(("failed", COLLECTING))

"""What it costs to start: `python -m benchmarks.startup`.

Seconds of the processor, the least of a few fresh processes, and resident memory, each beside its
target. A busy machine takes up to three times as long, so the last column compares with importing
NumPy and Arrow in the same run. The script exits with 1 when a target is missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROUNDS = 5
NAMES = "from panprivacy import DistinctCount, plan"
COUNT = "import panprivacy as pp; pp.DistinctCount(epsilon=1.0, expected=1_000).update(['ada'])"
ROW = "{:<34}{:>9}{:>9}{:>8}{:>9}{:>8}"


@dataclass(frozen=True)
class Start:
    """A process to start.

    Args:
        name: in the table.
        arguments: of Python.
        seconds: the most it may take, if there is a target.
        megabytes: the most it may have at its end, if there is a target.
    """

    name: str
    arguments: list[str]
    seconds: float | None = None
    megabytes: float | None = None


PEER = Start("import numpy, pyarrow", ["-c", "import numpy, pyarrow"])
STARTS = [
    PEER,
    Start("import numba", ["-c", "import numba"]),
    Start("import panprivacy", ["-c", "import panprivacy"], 0.45, 150),
    Start("import the names of panprivacy", ["-c", NAMES], 0.45, 150),
    Start("the first update", ["-c", COUNT]),
    Start("panprivacy --help", ["-m", "panprivacy", "--help"], 0.35),
    Start("panprivacy run --help", ["-m", "panprivacy", "run", "--help"]),
    Start("panprivacy doctor", ["-m", "panprivacy", "doctor"]),
]


def measured(arguments: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Processor seconds of one process, and the most megabytes it had."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / (1 << 10)


def least(start: Start) -> tuple[float, float]:
    """The least of a few rounds, of each."""
    seconds, megabytes = zip(*(measured(start.arguments, {}) for _ in range(ROUNDS)), strict=True)
    return min(seconds), min(megabytes)


def shown(target: float | None, digits: int) -> str:
    """A target, if there is one."""
    return "" if target is None else f"{target:.{digits}f}"


def main() -> int:
    """Print the table; whether a target is missed."""
    print(ROW.format("", "seconds", "at most", "MB", "at most", "peers"))
    peer, missed = least(PEER)[0], False
    for start in STARTS:
        seconds, megabytes = least(start)
        missed |= seconds > (start.seconds or seconds) or megabytes > (start.megabytes or megabytes)
        limits = shown(start.seconds, 2), shown(start.megabytes, 0)
        figures = (
            f"{seconds:.2f}",
            limits[0],
            f"{megabytes:.0f}",
            limits[1],
            f"{seconds / peer:.1f}",
        )
        print(ROW.format(start.name, *figures))
    with tempfile.TemporaryDirectory() as folder:
        seconds, _ = measured(["-c", COUNT], {"NUMBA_CACHE_DIR": str(Path(folder))})
    print(ROW.format("the very first update, compiling", f"{seconds:.2f}", "", "", "", ""))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

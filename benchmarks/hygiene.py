"""What it costs to overwrite freed memory: `python -m benchmarks.hygiene`.

The same command line with its launcher and without, in turn, round after round: time on the clock
and on the processor, of the whole process. The script exits with 1 when the median ratio of the
times on the clock misses a target. It tells the truth on a machine that does nothing else; the
ratios hold on others too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

ROWS = 10_000_000
ROUNDS = 5
TARGET = 1.5
"""The most that counting a file may take, with its start, in the time without the launcher."""
START_TARGET = 1.6
"""The most that starting may take: Python starts twice, and its own allocator is the faster one."""

ROOT = Path(__file__).resolve().parent.parent
REAL = ROOT.parent / "shared" / "data" / "ipsum_blocklist.parquet"
STAT = ["--stat", "distinct", "--epsilon", "1"]
HARDENED = [str(Path(sys.executable).parent / "panprivacy")]
"""`python -m panprivacy` imports the package twice: before its launcher, and after it."""
PLAIN = [sys.executable, "-c", "from panprivacy.cli import main; main()"]


@dataclass(frozen=True)
class Cost:
    """Seconds of one process, on the clock and on the processor."""

    wall: float
    processor: float


def numbers(rng: np.random.Generator, rows: int) -> pa.Table:
    """Random 64-bit ids."""
    return pa.table({"id": rng.integers(-(2**63), 2**63, rows)})


def texts(rng: np.random.Generator, rows: int) -> pa.Table:
    """Random ids of 16 hexadecimal digits."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)[rng.integers(0, 16, 16 * rows)]
    offsets = np.arange(0, 16 * rows + 1, 16, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(digits)]
    return pa.table({"id": pa.Array.from_buffers(pa.string(), rows, buffers)})


def write_ndjson(table: pa.Table, path: Path) -> None:
    """One object a line."""
    with path.open("w", encoding="ascii") as sink:
        for batch in table["id"].chunks:
            sink.writelines(f'{{"id": {user}}}\n' for user in batch.to_pylist())


def made_files(folder: Path, rows: int) -> Iterator[tuple[str, Path]]:
    """What is counted, and where it lies."""
    rng = np.random.default_rng(1)
    table = numbers(rng, rows)
    writers: dict[str, Callable[[pa.Table, Path], None]] = {
        "parquet": pq.write_table,
        "csv": pc.write_csv,
        "ndjson": write_ndjson,
    }
    for kind, write in writers.items():
        path = folder / f"numbers.{kind}"
        write(table, path)
        yield f"{kind}, whole numbers", path
    path = folder / "texts.parquet"
    pq.write_table(texts(rng, rows), path)
    yield "parquet, texts of 16 bytes", path


def cost(program: list[str], words: list[str]) -> Cost:
    """Run it to its end."""
    start = time.perf_counter()
    process = subprocess.Popen([*program, *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    spent = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        message = f"{words}: exit code {process.returncode}"
        raise RuntimeError(message)
    return Cost(spent, used.ru_utime + used.ru_stime)


def compare(name: str, words: list[str], target: float) -> bool:
    """Print one comparison, after one round that is not counted; whether it is within target."""
    rounds = [(cost(HARDENED, words), cost(PLAIN, words)) for _ in range(ROUNDS + 1)][1:]
    columns = []
    for measure in ("wall", "processor"):
        pairs = [tuple(getattr(one, measure) for one in pair) for pair in rounds]
        hardened, plain = map(statistics.median, zip(*pairs, strict=True))
        ratio = statistics.median(mine / other for mine, other in pairs)
        columns.append((hardened, plain, ratio))
    reached = columns[0][2] <= target
    text = "   ".join(
        f"{hardened:7.2f} {plain:7.2f} {ratio:6.2f}" for hardened, plain, ratio in columns
    )
    print(f"{name:32}{text}   ({target:g}){'' if reached else '  MISSED'}", flush=True)
    return reached


def main() -> int:
    """Make the files, and measure."""
    parser = argparse.ArgumentParser(description="What hardening costs.")
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=ROWS)
    rows = parser.parse_args().rows
    print(f"{rows:,} random ids, {ROUNDS} rounds in turn; medians in seconds")
    print(f"{'':32}{'on the clock':^22}   {'on the processor':^22}   (target of the first ratio)")
    print(f"{'':32}{'   with without  ratio   ' * 2}")
    reached = [compare("starting (--version)", ["--version"], START_TARGET)]
    with tempfile.TemporaryDirectory() as folder, closing(made_files(Path(folder), rows)) as files:
        for name, path in files:
            words = ["run", str(path), "--user", "id", *STAT]
            reached.append(compare(name, words, TARGET))
    if REAL.exists():
        words = ["run", str(REAL), "--user", "ip_id", *STAT]
        reached.append(compare("parquet, a list of addresses", words, TARGET))
    return int(not all(reached))


if __name__ == "__main__":
    sys.exit(main())

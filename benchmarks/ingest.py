"""Nanoseconds per row of `DistinctCount.update`, beside programs that keep no secret: `make bench`.

Contestants take turns within one process, round after round, and each round gives one ratio of
their times; the median ratio is held against a target, and the script exits with 1 when one is
missed. Times are those of the processor, over all threads: they depend on the machine and on what
else it does, ratios much less.

`--rows 1e9` streams that many made-up rows instead, and shows that memory does not grow.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import datasketches
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import panprivacy as pp

ROWS, LOOP_ROWS = 10_000_000, 1_000_000
BATCHES = {"one call": ROWS, "batches of 1,000,000": 1_000_000, "batches of 100,000": 100_000}
ROUNDS = 9
CONSTRUCTIONS = 300
TARGETS = {"whole numbers": 1.0, "texts": 1.5}
"""The most that a row may cost, in DuckDB's time for the same row."""
CONSTRUCTION_TARGET = 1e-3
STREAM_BATCH = 1_000_000
STREAM_BATCHES_HELD = 6
"""Peak memory may grow by the table and so many batches of a stream."""

MIB = 1 << 20


def made() -> pp.DistinctCount:
    """The statistic that is measured."""
    return pp.DistinctCount(epsilon=1, memory=65_536, expected=(10_000, 10_000_000))


def whole_numbers(rng: np.random.Generator) -> pa.Array:
    """Random 64-bit ids."""
    return pa.array(rng.integers(-(2**63), 2**63, ROWS))


def texts(rng: np.random.Generator) -> pa.Array:
    """Random ids of 16 hexadecimal digits."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)[rng.integers(0, 16, 16 * ROWS)]
    offsets = np.arange(0, 16 * ROWS + 1, 16, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(digits)]
    return pa.Array.from_buffers(pa.string(), ROWS, buffers)


def panprivacy(ids: pa.ChunkedArray) -> None:
    """A batch an update."""
    statistic = made()
    for batch in ids.chunks:
        statistic.update(batch)


def duck(ids: pa.ChunkedArray) -> None:
    """HyperLogLog of DuckDB, one thread, over Arrow record batches."""
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        database.register("batches", pa.table({"id": ids}))
        database.execute("SELECT approx_count_distinct(id) FROM batches").fetchall()


def polars(ids: pa.ChunkedArray) -> None:
    """HyperLogLog of Polars."""
    pl.from_arrow(ids).approx_n_unique()


def sketch(ids: list[int] | list[str]) -> None:
    """HyperLogLog of DataSketches, whose Python class takes one id a call."""
    update = datasketches.hll_sketch(12).update
    for user in ids:
        update(user)


def seconds(run: Callable[[pa.ChunkedArray], None], ids: pa.ChunkedArray) -> float:
    """Processor time of a run."""
    start = time.process_time()
    run(ids)
    return time.process_time() - start


@dataclass(frozen=True)
class Times:
    """Seconds of each contestant in each round."""

    ours: list[float]
    theirs: list[float]
    polars: list[float]

    @property
    def ratios(self) -> list[float]:
        """Our time over DuckDB's, round by round."""
        return [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]


def compete(ids: pa.ChunkedArray) -> Times:
    """All contestants, in turn, after one round that is not counted."""
    contestants = panprivacy, duck, polars
    rounds = [[seconds(one, ids) for one in contestants] for _ in range(ROUNDS + 1)]
    return Times(*(list(times) for times in zip(*rounds[1:], strict=True)))


def nanoseconds(times: list[float], rows: int = ROWS) -> str:
    return f"{statistics.median(times) / rows * 1e9:7.1f}"


def chunked(ids: pa.Array, size: int) -> pa.ChunkedArray:
    """The ids in record batches of `size` rows, in place."""
    return pa.chunked_array([ids[start : start + size] for start in range(0, ROWS, size)])


def compare() -> bool:
    """Print ns per row and the ratios; whether every median ratio is within its target."""
    print(f"{ROWS:,} rows, {ROUNDS} rounds in turn; medians, ns per row; ratio to DuckDB")
    print(f"{'':38}   ours  DuckDB  Polars   ratio: min / median / max (target)")
    reached = True
    for kind, ids in ids_of_each_kind():
        for batching, size in BATCHES.items():
            times = compete(chunked(ids, size))
            low, middle, high = (
                min(times.ratios),
                statistics.median(times.ratios),
                max(times.ratios),
            )
            reached &= middle <= TARGETS[kind]
            columns = " ".join(map(nanoseconds, (times.ours, times.theirs, times.polars)))
            verdict = "" if middle <= TARGETS[kind] else "  MISSED"
            print(
                f"{kind + ', ' + batching:38}{columns}   {low:.2f} / {middle:.2f} / {high:.2f} "
                f"({TARGETS[kind]:g}){verdict}"
            )
        loop = seconds(sketch, ids[:LOOP_ROWS].to_pylist())
        print(f"{kind}, DataSketches, {LOOP_ROWS:,} calls: {nanoseconds([loop], LOOP_ROWS)}")
    return reached


def ids_of_each_kind() -> Iterator[tuple[str, pa.Array]]:
    """The ids, one kind at a time: both together take 400 MB."""
    rng = np.random.default_rng(1)
    yield "whole numbers", whole_numbers(rng)
    yield "texts", texts(rng)


def construct() -> bool:
    """Print how long making a planned statistic takes; whether that is within its target."""
    times = []
    for _ in range(CONSTRUCTIONS):
        start = time.process_time()
        made()
        times.append(time.process_time() - start)
    middle = statistics.median(times)
    verdict = "" if middle < CONSTRUCTION_TARGET else "  MISSED"
    print(
        f"constructing a planned design: {1e3 * min(times):.2f} / {1e3 * middle:.2f} / "
        f"{1e3 * max(times):.2f} ms (target {1e3 * CONSTRUCTION_TARGET:g}){verdict}"
    )
    return middle < CONSTRUCTION_TARGET


def peak() -> int:
    """The largest resident memory so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def stream(rows: int) -> bool:
    """Count made-up rows in batches; whether peak memory grew by no more than a few batches."""
    rng = np.random.default_rng(1)
    before, start, spent = peak(), time.monotonic(), 0.0
    statistic = made()
    for first in range(0, rows, STREAM_BATCH):
        batch = rng.integers(-(2**63), 2**63, min(STREAM_BATCH, rows - first))
        spent += seconds(statistic.update, batch)
    grown = peak() - before
    allowed = statistic.state_bytes + STREAM_BATCHES_HELD * 8 * STREAM_BATCH
    verdict = "" if grown <= allowed else "  MISSED"
    print(
        f"{rows:,} rows in batches of {STREAM_BATCH:,}: {time.monotonic() - start:.0f} s in "
        f"all, {spent / rows * 1e9:.1f} ns per row counted\n"
        f"state {statistic.state_bytes:,} bytes, a batch {8 * STREAM_BATCH / MIB:.1f} MiB; peak "
        f"memory grew by {grown / MIB:.1f} MiB (target {allowed / MIB:.1f}){verdict}"
    )
    return grown <= allowed


def main() -> int:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description="Speed and memory of DistinctCount.update.")
    parser.add_argument("--rows", type=float, help="stream so many rows, such as 1e9, instead")
    rows = parser.parse_args().rows
    made()  # plans are made once and kept
    reached = [stream(int(rows))] if rows else [construct(), compare()]
    return int(not all(reached))


if __name__ == "__main__":
    sys.exit(main())

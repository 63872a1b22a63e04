"""Nanoseconds per row of `DistinctCount.update`, beside programs that keep no secret: `make bench`.

Contestants take turns within one process, round after round. The ratio of their best times is held
against a target, and the script exits with 1 when one is missed; the ratios of each round say how
much they vary. On one core times are those of the processor, over all threads; on two cores, where
there are two, they are those of the clock. They depend on the machine and on what else it does,
ratios much less.

`--rows 1e9` streams that many made-up rows instead, and shows that memory does not grow.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import datasketches
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import panprivacy as pp

ROWS, LOOP_ROWS = 4_000_000, 1_000_000
ONE_CALL, LARGE, SMALL = "one call", "batches of 100,000", "batches of 1,000"
BATCHES = {ONE_CALL: ROWS, LARGE: 100_000, SMALL: 1_000}
ROWS_OF = {SMALL: 400_000}
"""Rows that are counted, where these are not all."""
ROUNDS = 9
CONSTRUCTIONS = 300
WHOLE_NUMBERS = "whole numbers"
TARGETS = {
    (WHOLE_NUMBERS, ONE_CALL): (0.3, 0.8),
    (WHOLE_NUMBERS, LARGE): (0.4, None),
    ("texts", ONE_CALL): (0.35, 0.8),
    ("UUIDs", ONE_CALL): (0.5, 0.8),
    ("texts", LARGE): (0.55, None),
}
"""The most that a row may cost on one core, in DuckDB's and in Polars' time for the same row."""
SMALL_TARGET = 45e-6
"""The most seconds that a batch of 1,000 may cost on top of its rows in one call."""
TWO_CORES_TARGET = 1.0
"""The most that whole numbers in one call may take on two, in the time of DuckDB on two."""
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


def characters(rng: np.random.Generator, alphabet: bytes, length: int) -> np.ndarray:
    """Random texts of one length, uint8[ROWS, length]."""
    return np.frombuffer(alphabet, np.uint8)[rng.integers(0, len(alphabet), (ROWS, length))]


def column(texts: np.ndarray) -> pa.Array:
    """Texts of one length as a column."""
    rows, length = texts.shape
    offsets = np.arange(0, length * rows + 1, length, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(texts.ravel())]
    return pa.Array.from_buffers(pa.string(), rows, buffers)


def uuids(rng: np.random.Generator) -> pa.Array:
    """Random UUIDs, of 36 characters."""
    texts = characters(rng, b"0123456789abcdef", 36)
    texts[:, [8, 13, 18, 23]] = ord("-")
    return column(texts)


KINDS: dict[str, Callable[[np.random.Generator], pa.Array]] = {
    WHOLE_NUMBERS: whole_numbers,
    "hexadecimal texts": lambda rng: column(characters(rng, b"0123456789abcdef", 16)),
    "decimal texts": lambda rng: pa.array(rng.integers(10**5, 10**9, ROWS)).cast(pa.string()),
    "short texts": lambda rng: column(characters(rng, b"abcdefghijklmnopqrstuvwxyz", 6)),
    "UUIDs": uuids,
}


def panprivacy(ids: pa.ChunkedArray) -> None:
    """A batch an update."""
    statistic = made()
    for batch in ids.chunks:
        statistic.update(batch)


def duck(ids: pa.ChunkedArray) -> None:
    """HyperLogLog of DuckDB over Arrow record batches, a thread for each core."""
    with duckdb.connect() as database:
        database.execute(f"SET threads = {len(os.sched_getaffinity(0))}")
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


Clock = Callable[[], float]


def seconds(run: Callable[[Any], object], ids: Any, clock: Clock = time.process_time) -> float:
    """Processor time of a run, or that of another clock."""
    start = clock()
    run(ids)
    return clock() - start


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Leave this thread, and those that it starts, so many of its cores."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_of_them)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)


@dataclass(frozen=True)
class Times:
    """Seconds of each contestant in each round."""

    ours: list[float]
    duck: list[float]
    polars: list[float]

    def ratios(self, theirs: list[float]) -> list[float]:
        """Our time over another one's, round by round."""
        return [mine / other for mine, other in zip(self.ours, theirs, strict=True)]


def compete(ids: pa.ChunkedArray, clock: Clock = time.process_time) -> Times:
    """All contestants, in turn, after one round that is not counted."""
    contestants = panprivacy, duck, polars
    rounds = [[seconds(one, ids, clock) for one in contestants] for _ in range(ROUNDS + 1)]
    return Times(*(list(times) for times in zip(*rounds[1:], strict=True)))


def nanoseconds(times: list[float], rows: int) -> str:
    return f"{min(times) / rows * 1e9:7.1f}"


def chunked(ids: pa.Array, size: int) -> pa.ChunkedArray:
    """The ids in record batches of `size` rows, in place."""
    return pa.chunked_array([ids[start : start + size] for start in range(0, len(ids), size)])


def compare() -> bool:
    """Print ns per row and the ratios; whether every ratio of best times is within its target."""
    print(f"up to {ROWS:,} rows, {ROUNDS} rounds in turn; best times, ns per row")
    print(f"{'':38}   ours  DuckDB  Polars   ratio of best times (target), of each round")
    reached = True
    for kind, make in KINDS.items():
        ids = make(np.random.default_rng(1))
        reached &= compare_kind(kind, ids)
        if kind == WHOLE_NUMBERS and len(os.sched_getaffinity(0)) > 1:
            with on_cores(2):
                times = compete(chunked(ids, ROWS), time.perf_counter)
            reached &= report("the same in one call, two cores", times, ROWS, TWO_CORES_TARGET)
        loop = seconds(sketch, ids[:LOOP_ROWS].to_pylist())
        print(f"{kind}, DataSketches, {LOOP_ROWS:,} calls: {nanoseconds([loop], LOOP_ROWS)}")
    return reached


def compare_kind(kind: str, ids: pa.Array) -> bool:
    """Compare on one core in each size of batches; whether all are within their targets."""
    reached, once = True, 0.0
    for batching, size in BATCHES.items():
        rows = ROWS_OF.get(batching, ROWS)
        with on_cores(1):
            times = compete(chunked(ids[:rows], size))
        of_texts = TARGETS.get(("texts", batching), (None, None))
        targets = TARGETS.get((kind, batching), of_texts)
        reached &= report(f"{kind}, {batching}", times, rows, *targets)
        row = min(times.ours) / rows
        once = once or row
        if batching == SMALL:
            extra = size * (row - once)
            verdict = "" if extra <= SMALL_TARGET else " MISSED"
            reached &= extra <= SMALL_TARGET
            print(
                f"{'':38}{row / once:.1f} times the cost per row of one call; a batch costs "
                f"{1e6 * extra:.0f} microseconds more ({1e6 * SMALL_TARGET:g}){verdict}"
            )
    return reached


def report(
    name: str,
    times: Times,
    rows: int,
    duck_target: float | None = None,
    polars_target: float | None = None,
) -> bool:
    """Print one comparison; whether its ratios of best times are within their targets."""
    reached, columns = True, ""
    for peer, theirs, target in (
        ("DuckDB", times.duck, duck_target),
        ("Polars", times.polars, polars_target),
    ):
        ratios, best = times.ratios(theirs), min(times.ours) / min(theirs)
        columns += f"   {peer} {best:.2f}"
        if target is not None:
            columns += f" ({target:g})" + ("" if best <= target else " MISSED")
            reached &= best <= target
        columns += f", {min(ratios):.2f} to {max(ratios):.2f}"
    each = " ".join(nanoseconds(one, rows) for one in (times.ours, times.duck, times.polars))
    print(f"{name:38}{each}{columns}", flush=True)
    return reached


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
    size = statistic.internals.memory.state_bytes
    allowed = size + STREAM_BATCHES_HELD * 8 * STREAM_BATCH
    verdict = "" if grown <= allowed else "  MISSED"
    print(
        f"{rows:,} rows in batches of {STREAM_BATCH:,}: {time.monotonic() - start:.0f} s in "
        f"all, {spent / rows * 1e9:.1f} ns per row counted\n"
        f"state {size:,} bytes, a batch {8 * STREAM_BATCH / MIB:.1f} MiB; peak "
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

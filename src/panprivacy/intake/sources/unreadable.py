"""Rows that cannot be read: all rows before the first one count; it ends the input, or is skipped.

A parser takes a block or refuses it completely, and names only the first bad row. A refused block
is halved until the bad row is alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Protocol, TypeVar

import pyarrow as pa

from panprivacy.errors import InputError, without_frames
from panprivacy.intake.sources.columns import StartError


class Countable(Protocol):
    """Some rows that were read."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""


W = TypeVar("W")
R = TypeVar("R", bound=Countable)

Halves = Callable[[W], "tuple[W, W] | None"]
"""Function that divides several rows; None for a single row."""


class Skips:
    """Number of rows that were skipped, and the reason of the first one.

    It depends only on the rows that cannot be read.

    Args:
        file: the file of the rows, if there are several.
        total: the skips of all files, which counts them too. A part belongs to one thread.
    """

    def __init__(self, file: str | None = None, total: Skips | None = None) -> None:
        self.rows = 0
        self.reason = ""
        self._file, self._total, self._lock = file, total, Lock()

    def part(self, file: str | None = None) -> Skips:
        """Return the skips of one file, for one thread, which also count in the total."""
        return Skips(file, self)

    def add(self, error: InputError) -> None:
        """Skip a row that cannot be read."""
        if self._file is not None:
            error = InputError(f"{self._file}: {error.reason}")
        with self._lock:
            self.rows += 1
            self.reason = self.reason or error.reason
        if self._total is not None:
            self._total.add(error)

    def __str__(self) -> str:
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        return (
            f"skipped {rows} that cannot be read" + (self.rows > 0) * f"; the first: {self.reason}"
        )


def readable(
    whole: W, halves: Halves[W], read: Callable[[W], R], skips: Skips | None
) -> Iterator[R]:
    """Read a whole in the smallest number of parts.

    Args:
        whole: some rows.
        halves: divides them.
        read: reads them, or raises InputError and has changed nothing.
        skips: counts rows that cannot be read; None if the first one ends the input.

    Raises:
        InputError: the first row that cannot be read, by its position in the whole; all rows before
            it were yielded. An error from the start on is not halved.
    """
    rows = 0
    for part in _in_parts(whole, halves, read):
        if not isinstance(part, InputError):
            rows += part.num_rows
            yield part
        elif skips is None:
            raise part.after(rows)
        else:
            skips.add(part)
            rows += 1
        del part  # ids are not held while waiting


def read_before(
    whole: W, halves: Halves[W], read: Callable[[W], R], skips: Skips | None
) -> tuple[list[R], list[InputError]]:
    """Return the results of `readable`, and the error that ends it, if any.

    Its frames contain ids, and are dropped. Raise it with `pop()`: a frame that still holds the
    error that it raises would be held by it in turn.
    """
    parts: list[R] = []
    try:
        for part in readable(whole, halves, read, skips):
            parts.append(part)  # noqa: PERF402 - those before the error are needed
    except InputError as error:
        return parts, [without_frames(error)]
    return parts, []


def _in_parts(whole: W, halves: Halves[W], read: Callable[[W], R]) -> Iterator[R | InputError]:
    """Yield the readable parts, and in place of each other row its error, in order."""
    parts: tuple[W, ...] | None = ()
    try:
        outcome: R | InputError = read(whole)
    except StartError:
        raise
    except InputError as error:
        parts = halves(whole)
        outcome = InputError(error.reason, row=error.row or 1)
    if not parts:
        del whole
        yield outcome
        return
    del whole, outcome
    for part in parts:
        yield from _in_parts(part, halves, read)


def halves_of_batch(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch] | None:
    """Return the first and the second half of the rows of a batch, in place."""
    middle = batch.num_rows // 2
    return (batch.slice(0, middle), batch.slice(middle)) if middle else None

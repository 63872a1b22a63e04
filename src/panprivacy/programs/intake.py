"""Batches of a source, as the statistics take them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from panprivacy.errors import InputError
from panprivacy.ids import first_null, gatherable, read_deltas
from panprivacy.programs.counting import Counting
from panprivacy.sources import Column
from panprivacy.sources.columns import StartError, show
from panprivacy.sources.unreadable import Skips, halves_of_batch, readable


@dataclass(frozen=True)
class Read:
    """What was read of the rows of a batch that count; of each column None if it is not read."""

    users: pa.Array
    deltas: pa.Array | None
    groups: pa.Array | None
    sides: pa.Array | None


Checked = Any
"""What `prepare` gives, and `apply` takes."""


class Nulls(StrEnum):
    """What to do with a row that has no user id."""

    error = "error"
    skip = "skip"


@dataclass(frozen=True)
class Columns:
    """What is read of each row.

    Args:
        user: the user id; None where only events are counted.
        delta: by how much the user's state changes; None for 1.
        group: the group of the event; None where there are no groups.
        side: which of two streams the event is of; None where there is one.
    """

    user: Column | None = None
    delta: Column | None = None
    group: Column | None = None
    side: Column | None = None

    def wanted(self) -> list[Column]:
        """Those that there are, in order."""
        each = self.user, self.delta, self.group, self.side
        return [one for one in each if one is not None]


def with_users(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of which the first column, that of users, is not null."""
    valid = batch.column(0).is_valid()
    kept = [gatherable(column).filter(valid) for column in batch.columns]
    return pa.RecordBatch.from_arrays(kept, batch.schema.names)


class Observer(Protocol):
    """Sees the rows that count, as a demonstration does."""

    def observe(self, read: Read, rows: int) -> None:
        """Take a batch in, of so many rows before some were left out."""


class _Part(NamedTuple):
    """Some rows, ready to be counted."""

    read: Read
    checked: Checked
    num_rows: int


@dataclass(frozen=True)
class Intake:
    """Takes batches in.

    Args:
        columns: of the batches.
        nulls: what to do with a row that has no user id.
        observer: for public data.
    """

    columns: Columns
    nulls: Nulls
    observer: Observer | None = None

    def take(
        self, counting: Counting, batch: pa.RecordBatch, rows_before: int, skips: Skips | None
    ) -> bool:
        """Have one batch counted; return whether there was anything to count.

        Args:
            counting: the statistics.
            batch: of the source.
            rows_before: number of rows before the batch.
            skips: counts rows that cannot be counted; None if the first one ends the input.

        Raises:
            InputError: a row cannot be counted; all rows of the batch before it were.
        """
        counted = False
        try:
            for part in readable(batch, halves_of_batch, partial(self._part, counting), skips):
                counted = True
                counting.apply(part.checked)
                if self.observer is not None:
                    self.observer.observe(part.read, part.num_rows)
        except InputError as error:
            raise error.after(rows_before) from None
        return counted

    def prepare(self, counting: Counting, batch: pa.RecordBatch, rows_before: int) -> Checked:
        """Have one batch checked, for `counting.apply`; an error names the row, as for `take`."""
        try:
            return self._part(counting, batch).checked
        except InputError as error:
            raise error.after(rows_before) from None

    def _part(self, counting: Counting, batch: pa.RecordBatch) -> _Part:
        """What was read of a batch, and that checked."""
        try:
            read = self._read(batch)
            columns = (read.users,) if read.groups is None else (read.users, read.groups)
            sides = () if read.sides is None else (read.sides,)
            checked = counting.prepare(*columns, read.deltas, *sides)
        except InputError as error:
            if error.row is None:  # the columns are not of the right types
                raise StartError(error.reason) from None
            if self.columns.user is not None and self.nulls is Nulls.skip:  # such rows count too
                kept = np.flatnonzero(np.asarray(batch.column(0).is_valid()))
                raise InputError(error.reason, row=int(kept[error.row - 1]) + 1) from None
            raise
        return _Part(read, checked, batch.num_rows)

    def _read(self, batch: pa.RecordBatch) -> Read:
        """The columns of the rows that count.

        Where there are no users, any column stands for them.
        """
        named = self.columns.user is not None
        if named and batch.column(0).null_count:
            if self.nulls is Nulls.error:
                message = "the user id is null: leave such rows out, or have nulls= skip them"
                raise InputError(message, row=first_null(batch.column(0)) + 1)
            batch = with_users(batch)
        users, deltas, groups, sides = batch.column(0), None, None, None
        rest = iter(batch.columns[named:])
        if self.columns.delta is not None:
            deltas = next(rest)
            try:
                read_deltas(deltas, len(deltas))
            except InputError as error:  # the statistics would refuse it, but not name the column
                reason = f"column {show(self.columns.delta.name)}: {error.reason}"
                raise InputError(reason, row=error.row) from None
        if self.columns.group is not None:
            groups = next(rest)
            if pa.types.is_integer(groups.type):  # groups are declared as texts
                groups = groups.cast(pa.string())
        if self.columns.side is not None:
            sides = next(rest)
        return Read(users, deltas, groups, sides)

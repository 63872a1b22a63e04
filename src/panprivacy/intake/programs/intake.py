"""Conversion of the batches of a source for the statistics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panprivacy.errors import InputError
from panprivacy.intake.programs.counting import Counting, amount_column, first_column
from panprivacy.intake.sources import BodyReader, Column, Prefixes
from panprivacy.intake.sources.columns import StartError, show
from panprivacy.intake.sources.unreadable import Skips, halves_of_batch, readable
from panprivacy.tables.ids import first_null, gatherable, read_deltas


@dataclass(frozen=True)
class ReadRows:
    """Columns of the rows of a batch that count; None for each column that is not read."""

    users: pa.Array
    deltas: NDArray[np.int64] | None
    groups: pa.Array | None
    sides: pa.Array | None
    amounts: pa.Array | None = None
    holds_values: bool = False
    """Whether the column of users holds the value of each event in their place."""


Checked = Any
"""Result of `prepare`, and argument of `apply`."""


class Nulls(StrEnum):
    """Treatment of a row without a user id."""

    error = "error"
    skip = "skip"


@dataclass(frozen=True)
class Columns:
    """Columns that are read of each row.

    Args:
        user: the user id, or the value of an event if its column holds numbers; None if only
            events are counted.
        delta: the change of the user's state; None for 1.
        group: the group of the event; None if there are no groups.
        side: the stream of the event, of two; None if there is one.
        amount: the amount of the event, in place of its delta; None if deltas are whole.
    """

    user: Column | None = None
    delta: Column | None = None
    group: Column | None = None
    side: Column | None = None
    amount: Column | None = None

    @classmethod
    def of(
        cls,
        counting: Counting,
        *,
        user: str | None,
        value: str | None,
        delta: str | None,
        group: str | None,
        side: str | None,
        integers: bool,
        address: Prefixes | None,
    ) -> Columns:
        """Return the columns of these names; None for one that is not read.

        Args:
            counting: the statistics, which say whether the values are amounts of users.
            user: of the users.
            value: of the values or amounts.
            delta: of the deltas.
            group: of the groups.
            side: of the two streams.
            integers: whether ids are whole numbers.
            address: what of an address counts, if ids are addresses.
        """
        amount = amount_column(counting, value)
        values = None if amount else value
        return cls(
            first_column(user, values, integers=integers, address=address),
            None if delta is None else Column(delta, integers=True),
            None if group is None else Column(group),
            None if side is None else Column(side),
            amount,
        )

    def wanted(self) -> list[Column]:
        """Return the columns that exist, in order."""
        each = self.user, self.delta, self.group, self.side, self.amount
        return [one for one in each if one is not None]

    @property
    def holds_values(self) -> bool:
        """Whether the first column holds the value of each event, in place of its user."""
        return self.user is not None and self.user.numbers

    @cached_property
    def body_reader(self) -> BodyReader:
        """The reader of these columns in bodies."""
        return BodyReader(self.wanted())


def with_users(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows whose first column, that of users, is not null."""
    valid = batch.column(0).is_valid()
    kept = [gatherable(column).filter(valid) for column in batch.columns]
    return pa.RecordBatch.from_arrays(kept, batch.schema.names)


class Observer(Protocol):
    """Observer of the rows that count, for a demonstration."""

    def observe(self, read: ReadRows, rows: int) -> None:
        """Observe a batch; `rows` is its number of rows before some were left out."""


class _Part(NamedTuple):
    """Some rows, ready to be counted."""

    read: ReadRows
    checked: Checked
    num_rows: int


@dataclass(frozen=True)
class Intake:
    """Converter of batches for the statistics.

    Args:
        columns: the columns of the batches.
        nulls: treatment of a row without a user id.
        observer: for public data.
    """

    columns: Columns
    nulls: Nulls
    observer: Observer | None = None

    def take(
        self, counting: Counting, batch: pa.RecordBatch, rows_before: int, skips: Skips | None
    ) -> bool:
        """Count one batch; return whether there was anything to count.

        Args:
            counting: the statistics.
            batch: a batch of the source.
            rows_before: number of rows before the batch.
            skips: counts rows that cannot be counted; None if the first one ends the input.

        Raises:
            InputError: a row cannot be counted; all rows of the batch before it were.
        """
        counted = False
        try:
            for part in readable(batch, halves_of_batch, partial(self._part, counting), skips):
                counted = True
                counting.internals.memory.apply(part.checked)
                if self.observer is not None:
                    self.observer.observe(part.read, part.num_rows)
        except InputError as error:
            raise error.after(rows_before) from None
        return counted

    def prepare(self, counting: Counting, batch: pa.RecordBatch, rows_before: int) -> Checked:
        """Check one batch, for `counting.apply`; an error names the row, see `take`."""
        try:
            return self._part(counting, batch).checked
        except InputError as error:
            raise error.after(rows_before) from None

    def _part(self, counting: Counting, batch: pa.RecordBatch) -> _Part:
        """Return the columns of a batch, and their checked form."""
        try:
            read = self._read(batch)
            columns = (read.users,) if read.groups is None else (read.users, read.groups)
            sides = () if read.sides is None else (read.sides,)
            changes = read.deltas if read.amounts is None else read.amounts
            checked = counting.internals.memory.prepare(*columns, changes, *sides)
        except InputError as error:
            if error.row is None:  # the columns have wrong types
                raise StartError(error.reason) from None
            if self.columns.user is not None and self.nulls is Nulls.skip:  # such rows count too
                kept = np.flatnonzero(np.asarray(batch.column(0).is_valid()))
                raise InputError(error.reason, row=int(kept[error.row - 1]) + 1) from None
            raise
        return _Part(read, checked, batch.num_rows)

    def _read(self, batch: pa.RecordBatch) -> ReadRows:
        """Return the columns of the rows that count.

        If there are no users, any column is read in place of theirs.
        """
        named = self.columns.user is not None
        if named and batch.column(0).null_count:
            if self.nulls is Nulls.error:
                what = "value" if self.columns.holds_values else "user id"
                message = f"the {what} is null: leave such rows out, or have nulls= skip them"
                raise InputError(message, row=first_null(batch.column(0)) + 1)
            batch = with_users(batch)
        users, groups, sides = batch.column(0), None, None
        deltas: NDArray[np.int64] | None = None
        rest = iter(batch.columns[named:])
        if self.columns.delta is not None:
            column = next(rest)
            try:
                deltas = read_deltas(column, len(column))
            except InputError as error:  # the statistics would refuse it, but not name the column
                reason = f"column {show(self.columns.delta.name)}: {error.reason}"
                raise InputError(reason, row=error.row) from None
        if self.columns.group is not None:
            groups = next(rest)
            if pa.types.is_integer(groups.type):  # groups are declared as texts
                groups = groups.cast(pa.string())
        if self.columns.side is not None:
            sides = next(rest)
        amounts = None if self.columns.amount is None else next(rest)
        return ReadRows(users, deltas, groups, sides, amounts, self.columns.holds_values)

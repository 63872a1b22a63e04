"""Tables of answers, for Arrow, pandas and Polars."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import make_dataclass
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panprivacy.errors import PlanError

COLUMNS: Mapping[str, tuple[pa.DataType, str]] = {
    "statistic": (pa.string(), "what was counted: its name, or the one that `as` gives it"),
    "question": (pa.string(), 'what was asked of it, such as "exactly"'),
    "argument": (pa.int64(), "the whole number that belongs to the question; null if none does"),
    "arguments": (pa.string(), "all that belong to it, such as tau=10,power=2; else empty"),
    "group": (pa.string(), "the group of users; null if they are not counted by group"),
    "value": (pa.float64(), "the answer, cut to its interval; null if it is lost"),
    "low": (pa.float64(), "lower end of the interval"),
    "high": (pa.float64(), "upper end of the interval; it may be infinite"),
    "estimate": (pa.float64(), "the answer before it is cut, for sums and means; may be below 0"),
    "standard_error": (pa.float64(), "standard deviation of the estimate; null if not known"),
    "bias": (pa.float64(), "how far the mean of the estimate may be off; 0 if it is unbiased"),
    "confidence": (pa.float64(), "how often the interval holds the truth"),
    "epsilon": (pa.float64(), "the most that the release cost a user, in nats"),
    "note": (pa.string(), "what to beware of, such as an answer that is noise; else null"),
}
"""Of every table of answers, with their meaning."""

NUMBERS = ("value", "low", "high", "estimate", "standard_error", "bias", "confidence", "epsilon")
"""The columns that have the numbers of an answer."""


def as_table(rows: Sequence[Mapping[str, object]], **first: pa.DataType) -> pa.Table:
    """Rows of answers as an Arrow table; other columns that they have come first."""
    columns = {**first, **{name: kind for name, (kind, _) in COLUMNS.items()}}
    return pa.Table.from_pylist(rows, pa.schema(list(columns.items())))


class Framed(ABC):
    """Something that can be shown as a table, in any library that reads Arrow.

    `pd.DataFrame(answers)`, `pl.DataFrame(answers)` and `pa.table(answers)` read it as well.
    """

    __slots__ = ()

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """A row for each answer."""

    def to_pandas(self) -> Any:  # pandas is not a dependency
        """The same as a pandas data frame.

        Raises:
            PlanError: pandas is not there.
        """
        return as_pandas(self.to_arrow())

    def to_polars(self) -> Any:  # Polars is not a dependency
        """The same as a Polars data frame.

        Raises:
            PlanError: Polars is not there.
        """
        return as_polars(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table, by the Arrow PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


class Tabular(Framed):
    """Answers that can be shown as a table, with the columns of `COLUMNS`."""

    __slots__ = ()

    @abstractmethod
    def answers(self, most: int | None = None) -> Mapping[Any, Any]:
        """Each answer by its name; None for one that is lost.

        Args:
            most: of many states, so many that are nearest to 0; None for all.
        """

    @property
    def _named(self) -> Mapping[Any, Any]:
        return self.answers()

    def rows(self) -> list[dict[str, object]]:
        """A row for each answer; what is lost has no numbers."""
        return [
            {**dict.fromkeys(COLUMNS), **name.columns()} if one is None else one.to_dict()
            for name, one in self._named.items()
        ]

    def to_arrow(self) -> pa.Table:
        """A row for each answer."""
        return as_table(self.rows())

    def table_lines(self) -> Iterator[tuple[str, ...]]:
        """The cells of a small table for people, line by line, from the titles on."""
        yield SHOWN
        found = self.answers(MOST_SHOWN)
        several = len({name.statistic for name in found}) > 1
        for name, one in found.items():
            group = "" if name.group is None else str(name.group)
            numbers = ("lost", "", "") if one is None else one.formatted()
            note = (one and one.note) or ""
            yield name.statistic if several else "", str(name), group, *numbers, note

    def plot(self, guarantee: object = None, *, ax: Any = None) -> Any:  # Matplotlib's
        """Draw the answers as bars with their intervals; it needs the extra `plot`.

        Of the answers for more than 21 states it draws those nearest to 0. It costs no privacy: it
        is a function of the answers.

        Args:
            guarantee: the guarantee of the statistic, which is then printed below; by default only
                the loss of the release, which comes on top of that of the state.
            ax: Matplotlib axes to draw on; a new figure by default.

        Returns:
            The axes; an array of them, one for each unit, if the answers have several units.

        Raises:
            PlanError: Matplotlib is not there, all answers are lost, or `ax` is given and the
                answers have several units.
        """
        from panprivacy.statistics.plots import plot  # noqa: PLC0415 - for those who plot

        promise = None if guarantee is None else f"Guarantee: {guarantee}"
        return plot(self.answers(MOST_SHOWN), len(self._named), promise, ax)

    def _repr_html_(self) -> str:
        """A small table for a notebook."""
        return as_html(self.table_lines())


SHOWN = ("statistic", "answer", "group", "value", "low", "high", "note")
"""The titles of a small table for people; a column that has nothing is left out."""


MOST_SHOWN = 21
"""States of a histogram, where people look at it."""


class Rows(Framed):
    """Several answers; `pd.DataFrame(answers)` has the columns of `to_pandas()`.

    As an array it is a row for each answer, with a field for each column. Pandas makes columns of
    the fields of such rows, where it would take names of answers for the numbers.
    """

    __slots__ = ()

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> NDArray[np.object_]:
        """The rows of `to_arrow()`, each an object with a field for each column.

        Raises:
            TypeError: an array of numbers is wanted; says what has them.
        """
        if dtype is not None and np.dtype(dtype) != object:
            message = (
                f"{type(self).__name__} has rows of several columns: for an array of numbers take "
                "one of them, such as to_pandas()['value']"
            )
            raise TypeError(message)
        table = self.to_arrow()
        row = make_dataclass("Row", table.column_names, frozen=True)
        found = np.empty(table.num_rows, object)
        columns = (_with_nan(column) for column in table.columns)
        found[:] = [row(*cells) for cells in zip(*columns, strict=True)]
        return found


def _with_nan(column: pa.ChunkedArray) -> list[Any]:
    """The cells of a column; a number that is not there is NaN, as pandas has it."""
    absent = None if pa.types.is_string(column.type) else math.nan
    return [absent if cell is None else cell for cell in column.to_pylist()]


def as_pandas(table: pa.Table) -> Any:
    """A table as a pandas data frame.

    Raises:
        PlanError: pandas is not there.
    """
    _check_there("pandas")
    return table.to_pandas()


def as_polars(table: pa.Table) -> Any:
    """A table as a Polars data frame.

    Raises:
        PlanError: Polars is not there.
    """
    _check_there("polars")
    return import_module("polars").from_arrow(table)


def _check_there(library: str) -> None:
    if find_spec(library) is None:
        message = f"to_{library} needs {library}: pip install {library}, or take to_arrow"
        raise PlanError(message)


def as_html(lines: Iterable[Sequence[str]]) -> str:
    """A table for a notebook, of which the first line has the titles; without empty columns."""
    titles, *others = _without_empty(list(lines))
    heads = "".join(f"<th>{title}</th>" for title in titles)
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in line) for line in others)
    rows = "".join(f"<tr>{line}</tr>" for line in cells)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def as_text(lines: Sequence[Sequence[str]]) -> str:
    """A table for a terminal, of which the first line has the titles; without empty columns."""
    columns = zip(*_without_empty(lines), strict=True)
    wide = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
    return "\n".join("  ".join(line).rstrip() for line in zip(*wide, strict=True))


def _without_empty(lines: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    columns = [column for column in zip(*lines, strict=True) if any(column[1:])]
    return list(zip(*columns, strict=True)) or [()]

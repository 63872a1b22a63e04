"""The columns of a sketch map: how they are specified, and which of them a user has."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import parse_integer
from panprivacy.ground.validation import whole_number
from panprivacy.papers.published.mir_lattice import MOST_POINTS
from panprivacy.statistics.records import custom_field, integer
from panprivacy.tables.addressing import Addressing, Direct, Slots
from panprivacy.tables.ids import ByteIds, IntegerIds

MOST_UNIVERSE = 1 << 24
_MOST_COLUMNS = 1 << 12


class Repeated(Direct):
    """The column of each user of a universe: its number is the id modulo that of columns."""

    slots_are_ids = False

    def __init__(self, universe: int, columns: int) -> None:
        super().__init__(universe)
        self.cells = columns

    def _piece(self, ids: IntegerIds | ByteIds) -> Slots:
        return super()._piece(ids) % self.cells


class OneColumn(Addressing):
    """An addressing that gives all users one column."""

    def __init__(self) -> None:
        super().__init__(1, b"")

    def check(self, batch: object) -> None:
        """Accept the batch: every id has a cell."""

    def _piece(self, ids: IntegerIds | ByteIds) -> Slots:
        return np.zeros(len(ids), np.int64)


def _columns(name: str, value: object) -> tuple[tuple[int, ...], ...]:
    """Parse columns given as lists of whole numbers or as a text such as "1,0;0,1"."""
    try:
        if isinstance(value, str):
            value = [list(map(parse_integer, one.split(","))) for one in value.split(";")]
        given: Any = value
        columns = tuple(
            tuple(whole_number(-MOST_POINTS, MOST_POINTS, **{name: entry}) for entry in column)
            for column in given
        )
    except (TypeError, ValueError):
        columns = ()
    if not 1 <= len(columns) <= _MOST_COLUMNS or len({*map(len, columns)}) > 1 or not columns[0]:
        message = f"{name} must be 1 to {_MOST_COLUMNS:,} lists of whole numbers, all of one length"
        raise PlanError(message)
    return columns


SketchColumns = Annotated[
    tuple[tuple[int, ...], ...],
    custom_field(
        _columns, "A,B;C,D", "the column of each user, a list of whole numbers", "1,0;0,1"
    ),
]
"""Columns of a sketch map."""

UserCount = Annotated[
    int | None,
    integer(
        "how many users there are; those beyond the last column have them again from the first. "
        "One for each column unless told",
        MOST_UNIVERSE,
    ),
]
"""Number of users of a sketch map."""

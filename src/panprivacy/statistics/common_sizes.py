"""Sizes that several statistics have, in the same words."""

from __future__ import annotations

from typing import Annotated

from panprivacy.errors import PlanError
from panprivacy.ground.validation import MOST_BYTES
from panprivacy.statistics.amounts import read_unit
from panprivacy.statistics.records import MOST, custom_field, integer
from panprivacy.tables.addressing import MAX_UNIVERSE

_MOST_LETTERS = 64


def read_share(name: str, value: object) -> str:
    """Return a share as it is written, so that equal sizes are equal.

    Raises:
        PlanError: it is no number from 0 to 1.
    """
    try:
        share = float(str(value))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        message = f"{name} must be a number from 0 to 1"
        raise PlanError(message)
    return f"{share:g}"


def _read_label(name: str, value: object) -> str:
    """Return the label of a stream in a column."""
    if isinstance(value, str) and 0 < len(value) <= _MOST_LETTERS:
        return value
    message = (
        f"{name} must be what the column of sides calls a stream, of up to {_MOST_LETTERS} letters"
    )
    raise PlanError(message)


def check_labels(left: str, right: str) -> None:
    """Check that the labels of two streams differ.

    Raises:
        PlanError: they are equal.
    """
    if left == right:
        message = "left and right must be different words: they tell two streams apart"
        raise PlanError(message)


_IDS = integer("how many users there could be: ids 0 to N-1", MAX_UNIVERSE, example=1_000_000)

Universe = Annotated[int, _IDS]
"""Of users whose ids are their numbers."""

PerhapsUniverse = Annotated[int | None, _IDS]
"""The same, or None for open-ended ids."""

CounterCells = Annotated[
    int | None,
    integer("counters: one for each user, fewer for a sample", MOST_BYTES, example=500_000),
]
"""How many, where the plan does not choose."""

CounterMemory = Annotated[
    int | None,
    integer("most bytes of counters, in place of cells; 64 MiB unless told", MOST_BYTES,
          example=67_108_864),
]  # fmt: skip
"""Of counters, where the plan does not choose."""

Below = Annotated[
    int | None,
    integer("states down to -N do not count, whatever that costs; 0 where there are none below 0; "
          "unless told, as far as costs at most 5 % of the error", MOST, 0, example=5),
]  # fmt: skip
"""How far below 0 there is room, where a threshold is asked for."""

AmountUnit = Annotated[
    float | None,
    custom_field(read_unit, "X", "what amounts are divided by, such as seconds by 60, and rounded "
                 "to whole deltas: bound and answers are in units", 60),
]  # fmt: skip
"""Of amounts, where they are no whole deltas."""

LeftLabel = Annotated[
    str, custom_field(_read_label, "WORD", "what the column of sides calls one stream", "left")
]
"""Of two streams."""

RightLabel = Annotated[
    str,
    custom_field(_read_label, "WORD", "what the column of sides calls the other stream", "right"),
]
"""Of two streams."""

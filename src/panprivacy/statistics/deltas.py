"""Deltas of batches: what is refused, and those of several batches as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import InputError
from panprivacy.tables.cells.protocol import Deltas


def concatenated_deltas(batches: Sequence[tuple[int, Deltas | None]]) -> Deltas | None:
    """One for each row; None if no batch has any.

    Args:
        batches: of each its rows, and their deltas; None for 1 each.
    """
    given = [deltas for _, deltas in batches]
    if all(deltas is None for deltas in given):
        return None
    if len(given) == 1:
        return given[0]
    return np.concatenate(
        [np.ones(rows, np.int64) if deltas is None else deltas for rows, deltas in batches]
    )


def refuse_deltas(wrong: NDArray[np.bool_], reason: str) -> None:
    """Raise `InputError` naming the first row where `wrong` holds."""
    if wrong.any():
        raise InputError(reason, row=int(np.argmax(wrong)) + 1)


def refuse_moves(deltas: Deltas) -> None:
    """Raise `InputError` naming the first delta that neither enters a user nor has them leave."""
    refuse_deltas(
        (deltas != 1) & (deltas != -1), "delta must be 1 (the user enters) or -1 (the user leaves)"
    )


def refuse_beyond(deltas: Deltas, bound: int, *, signed: bool, what: str = "bound") -> None:
    """Raise `InputError` naming the first delta that no two states are apart."""
    most = 2 * bound if signed else bound
    refuse_deltas(
        (deltas > most) | (deltas < -most),
        f"delta must lie within ±{most:,}, as the {what} says: plan for larger ones with {what}=",
    )

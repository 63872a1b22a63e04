"""The cells of a declared universe: one for each user, or for each user of a sample."""

from __future__ import annotations

from panprivacy.addressing import Direct, Sampled
from panprivacy.cells.modular import counter_type
from panprivacy.errors import PlanError
from panprivacy.hashing import KEY_BYTES

MOST_BYTES_UNLESS_TOLD = 1 << 26
"""Counters take so much memory at most where nobody says."""


def address_in(universe: int, cells: int, key: bytes) -> Direct | Sampled:
    """Which cell a user maps to: as many cells as users are a cell each, fewer are for a sample."""
    return Direct(universe) if cells == universe else Sampled(universe, cells, key)


def key_bytes_in(universe: int | None, cells: int) -> int:
    """Bytes of addressing key; a full table needs none.

    Args:
        universe: number of possible users; None if their ids are hashed.
        cells: of the table.
    """
    return 0 if cells == universe else KEY_BYTES


def check_cells(universe: int | None, cells: int | None) -> None:
    """Refuse more cells than there are users; either is None where it was not said."""
    if universe is not None and cells is not None and cells > universe:
        message = f"cells ({cells:,}) exceed the universe ({universe:,}); leave cells out"
        raise PlanError(message)


def check_memory(cells: int | None, memory: int | None) -> None:
    """Refuse two words on one size."""
    if cells is not None and memory is not None:
        message = "say cells= or memory=, not both"
        raise PlanError(message)


def cells_within(memory: int | None, modulus: int) -> int:
    """How many counters fit in so many bytes; None for 64 MiB."""
    return (memory or MOST_BYTES_UNLESS_TOLD) // counter_type(modulus).itemsize

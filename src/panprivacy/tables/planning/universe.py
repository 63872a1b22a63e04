"""The cells of a declared universe: one for each user, or for each user of a sample."""

from __future__ import annotations

from panprivacy.errors import PlanError
from panprivacy.tables.addressing import Direct, Sampled
from panprivacy.tables.cells.modular import counter_type
from panprivacy.tables.hashing import KEY_BYTES

MOST_BYTES_UNLESS_TOLD = 1 << 26
"""Maximum memory of counters by default."""


def address_in(universe: int, cells: int, key: bytes) -> Direct | Sampled:
    """Return the addressing: one cell for each user, or for each user of a sample."""
    return Direct(universe) if cells == universe else Sampled(universe, cells, key)


def key_bytes_in(universe: int | None, cells: int) -> int:
    """Return the number of bytes of the addressing key; a full table needs none.

    Args:
        universe: number of possible users; None if their ids are hashed.
        cells: number of cells of the table.
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
    """Return the number of counters that fit in `memory` bytes; None for 64 MiB."""
    return (memory or MOST_BYTES_UNLESS_TOLD) // counter_type(modulus).itemsize

"""What a table statistic keeps."""

from __future__ import annotations

from dataclasses import dataclass

from panprivacy.tables.cells.protocol import Table


@dataclass(slots=True)
class State:
    """All that survives between two updates; all that an intruder finds beside the plan.

    Args:
        key: addressing key.
        arrays: the cells; a table statistic has one array.
        releases: number of releases made, which is public.
        intrusions: number of intrusions announced, which is public.
        tick: number of steps made, which is public; 0 where there are none.
    """

    key: bytes
    arrays: list[Table]
    releases: int = 0
    intrusions: int = 0
    tick: int = 0

    @property
    def table(self) -> Table:
        """The cells of a statistic that has one table."""
        return self.arrays[0]

    @property
    def nbytes(self) -> int:
        """Bytes of key and arrays."""
        return len(self.key) + sum(array.nbytes for array in self.arrays)

    def packed(self) -> bytes:
        """Key and arrays, one after another."""
        return b"".join([self.key, *(array.tobytes() for array in self.arrays)])

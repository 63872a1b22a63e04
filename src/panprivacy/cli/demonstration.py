"""`--demo`: the truth beside the private answers, for data that is public anyway.

It keeps raw ids and counts rows, which a real run never does.
"""

from __future__ import annotations

import time

import pyarrow as pa
import pyarrow.compute as pc


class Demonstration:
    """The exact answers, and how fast they were counted.

    Args:
        universe: number of possible users, when declared.
    """

    def __init__(self, universe: int | None) -> None:
        self._universe = universe
        self._users: list[pa.Array] = []
        self._rows = 0
        self._start = time.perf_counter()
        self._overhead = 0.0

    def observe(self, users: pa.Array, rows: int) -> None:
        """Keep the ids of one batch."""
        start = time.perf_counter()
        self._users.append(pc.unique(users))
        self._rows += rows
        self._overhead += time.perf_counter() - start

    def truths(self) -> dict[str, float]:
        """The exact answer of each statistic."""
        distinct = len(pc.unique(pa.chunked_array(self._users))) if self._users else 0
        truths: dict[str, float] = {"distinct": distinct}
        if self._universe:
            truths["density"] = distinct / self._universe
        return truths

    def rate(self) -> str:
        """How many rows, and how fast they were read and counted privately."""
        seconds = time.perf_counter() - self._start - self._overhead
        return f"{self._rows:,} rows in {seconds:.2f} s, {self._rows / seconds / 1e6:.1f} million/s"

"""`--demo`: the truth beside the private answers, for data that is public anyway.

It keeps raw ids and counts rows, which a real run never does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Facts:
    """What only a demonstration may show.

    Args:
        truth: the exact answer of each statistic.
        rows: how many rows were read.
        seconds: how long that took, without counting for the truth.
    """

    truth: dict[str, float]
    rows: int
    seconds: float

    def __str__(self) -> str:
        rate = self.rows / self.seconds / 1e6
        return f"{self.rows:,} rows in {self.seconds:.2f} s, {rate:.1f} million/s"


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

    def facts(self) -> Facts:
        """The exact answer of each statistic, and how fast rows were read and counted."""
        seconds = time.perf_counter() - self._start - self._overhead
        distinct = len(pc.unique(pa.chunked_array(self._users))) if self._users else 0
        truth: dict[str, float] = {"distinct": distinct}
        if self._universe:
            truth["density"] = distinct / self._universe
        return Facts(truth, self._rows, seconds)

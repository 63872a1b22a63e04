"""How one release is read, from the table to the answer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from panprivacy.statistics.release import Answer
from panprivacy.tables.cells.protocol import Table


class Reading(Protocol):
    """The reading of one release, from the table to the answer."""

    @property
    def scales(self) -> Sequence[Fraction]:
        """The scale of the discrete Laplace noise on each sum, or one scale for all."""

    @property
    def size(self) -> int:
        """The number of sums of one table."""

    def sums(self, cells: Any, table: Table) -> NDArray[np.int64]:
        """Return the sums of the table to which noise is added."""

    def answer(self, counts: NDArray[np.int64], confidence: float) -> Answer:
        """Return the answer of noised sums: a function of them and of the plan alone."""

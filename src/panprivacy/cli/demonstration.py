"""`--demo`: the truth beside the private answers, for data that is public anyway.

It keeps raw ids and counts rows, which a real run never does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panprivacy.statistics.release import Answers, Name
from panprivacy.statistics.statistic import Statistic

_MOST_TRUTHS = 100_000


@dataclass(frozen=True)
class Facts:
    """What only a demonstration may show.

    Args:
        truth: the exact answers.
        rows: how many rows were read.
        seconds: how long that took, without counting for the truth.
        beyond: how many users are in a state that a bound rules out; answers are wrong by as many.
        besides: what else the statistics say of the exact states.
    """

    truth: Mapping[Name, float]
    rows: int
    seconds: float
    beyond: int = 0
    besides: tuple[str, ...] = ()

    def __str__(self) -> str:
        rate = self.rows / self.seconds / 1e6
        said = f"{self.rows:,} rows in {self.seconds:.2f} s, {rate:.1f} million/s"
        if self.beyond:
            said += f"; {self.beyond:,} users went beyond the bound, so that answers are wrong"
        return "; ".join([said, *self.besides])


class Demonstration:
    """The exact answers, and how fast they were counted."""

    def __init__(self) -> None:
        self._sums: list[pa.Table] = []
        self._rows = 0
        self._start = time.perf_counter()
        self._overhead = 0.0

    def observe(self, users: pa.Array, deltas: pa.Array | None, rows: int) -> None:
        """Keep the ids of one batch, and the sum and the last of each user's deltas."""
        start = time.perf_counter()
        if deltas is None:
            deltas = pa.array(np.ones(len(users), np.int64))
        deltas = deltas.cast(pa.int64())
        self._sums.append(_summed(pa.table({"user": users, "delta": deltas, "last": deltas})))
        self._rows += rows
        self._overhead += time.perf_counter() - start

    def facts(self, statistics: Mapping[str, Statistic[Any, Any]], answers: Answers) -> Facts:
        """The exact answer to everything that was released, and how fast rows were counted."""
        seconds = time.perf_counter() - self._start - self._overhead
        states = last = np.zeros(0, np.int64)
        if self._sums:
            table = _summed(pa.concat_tables(self._sums, promote_options="permissive"))
            states, last = table["delta"].to_numpy(), table["last"].to_numpy()
        truth = {
            name: statistics[name.statistic].plan.truth(name, states, last)
            for name, one in answers.answers(_MOST_TRUTHS).items()
            if one is not None
        }
        plans = [statistics[label].plan for label in {name.statistic: None for name in truth}]
        beyond = max((plan.beyond(states) for plan in plans), default=0)
        besides = tuple(fact for plan in plans for fact in plan.facts(states))
        return Facts(truth, self._rows, seconds, beyond, besides)


def _summed(rows: pa.Table) -> pa.Table:
    """The sum of the deltas of each user, and the last of them; one thread keeps their order."""
    grouped = rows.group_by("user", use_threads=False)
    summed = grouped.aggregate([("delta", "sum"), ("last", "last")])
    return summed.select(["user", "delta_sum", "last_last"]).rename_columns(rows.column_names)

"""`--demo`: the truth beside the private answers, for data that is public anyway.

It keeps raw ids and counts rows, which a real run never does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panprivacy.cli.making import Sizes, Statistic
from panprivacy.decoders import Question
from panprivacy.statistics import Density, Incidence, IncidenceRelease, Release


@dataclass(frozen=True)
class Facts:
    """What only a demonstration may show.

    Args:
        truth: the exact answer of each statistic; those of an incidence count by name.
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
        sizes: what the user said of the size of the problem.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._sums: list[pa.Table] = []
        self._rows = 0
        self._start = time.perf_counter()
        self._overhead = 0.0

    def observe(self, users: pa.Array, deltas: pa.Array | None, rows: int) -> None:
        """Keep the ids of one batch, and the sum of each user's deltas."""
        start = time.perf_counter()
        if deltas is None:
            deltas = pa.array(np.ones(len(users), np.int64))
        self._sums.append(_summed(pa.table({"user": users, "delta": deltas.cast(pa.int64())})))
        self._rows += rows
        self._overhead += time.perf_counter() - start

    def facts(
        self,
        statistics: Mapping[str, Statistic],
        answers: Mapping[str, Release | IncidenceRelease],
    ) -> Facts:
        """The exact answer to everything that was released, and how fast rows were counted."""
        seconds = time.perf_counter() - self._start - self._overhead
        states = np.zeros(0, np.int64)
        if self._sums:
            table = _summed(pa.concat_tables(self._sums, promote_options="permissive"))
            states = table["delta"].to_numpy()
        truth: dict[str, float] = {}
        for name, statistic in statistics.items():
            answer = answers[name]
            if isinstance(statistic, Incidence) and isinstance(answer, IncidenceRelease):
                truth |= self._incidences(statistic, answer, states)
            else:
                truth[name] = self._users(statistic, states)
        return Facts(truth, self._rows, seconds)

    def _users(self, statistic: Statistic, states: NDArray[np.int64]) -> float:
        if isinstance(statistic, Density):
            present = int((states > 0).sum()) if self._sizes.deletions else len(states)
            return present / statistic.plan.universe
        return float((states != 0).sum() if self._sizes.deletions else len(states))

    def _incidences(
        self,
        statistic: Incidence,
        answer: IncidenceRelease,
        states: NDArray[np.int64],
    ) -> dict[str, float]:
        possible = statistic.plan.states

        def truth(question: Question) -> float:
            counted = int(question.scores[states % possible.modulus].sum())
            unseen = (self._sizes.universe or len(states)) - len(states)
            return float(counted + unseen * int(question.scores[0]))

        if answer.named:
            return {name: truth(question) for name, (question, _) in answer.named.items()}
        return {name: truth(possible.exactly(int(name.split()[1]))) for name in answer.answers()}


def _summed(rows: pa.Table) -> pa.Table:
    """The sum of the deltas of each user."""
    summed = rows.group_by("user").aggregate([("delta", "sum")])
    return summed.rename_columns({"delta_sum": "delta"}).select(["user", "delta"])

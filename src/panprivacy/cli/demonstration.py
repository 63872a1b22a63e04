"""`--demo`: the truth beside the private answers, for data that is public anyway.

It keeps raw ids and counts rows, which a real run never does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panprivacy.counting import Answer, Statistic
from panprivacy.decoders import Name
from panprivacy.planning import (
    AnyPlan,
    CroppedPlan,
    DensityPlan,
    HeavyPlan,
    IncidencePlan,
    NetDistinctPlan,
    ThresholdPlan,
)
from panprivacy.statistics import Grouped, IncidenceRelease


@dataclass(frozen=True)
class Facts:
    """What only a demonstration may show.

    Args:
        truth: the exact answer of each statistic; those of an incidence count by name.
        rows: how many rows were read.
        seconds: how long that took, without counting for the truth.
        beyond: how many users are in a state that the bound rules out; answers are wrong by as
            many.
        heavy: how many users hold at least 1/k of the total, where heavy hitters are counted; the
            truth that belongs to the answer is the soft count.
        deltas: what all deltas add up to, where that should be the total.
        full: how many users are in the state of a soft threshold or a higher one, where there is
            one; the truth that belongs to the answer is the soft count.
    """

    truth: dict[str, float]
    rows: int
    seconds: float
    beyond: int = 0
    heavy: int | None = None
    deltas: int | None = None
    full: int | None = None

    def __str__(self) -> str:
        rate = self.rows / self.seconds / 1e6
        said = f"{self.rows:,} rows in {self.seconds:.2f} s, {rate:.1f} million/s"
        if self.beyond:
            said += f"; {self.beyond:,} users went beyond the bound, so that answers are wrong"
        if self.full is not None:
            said += f"; {self.full:,} users are at the threshold or above"
        if self.heavy is not None:
            said += f"; {self.heavy:,} users hold 1/k of the total or more; "
            said += f"all deltas add up to {self.deltas:,}"
        return said


class Demonstration:
    """The exact answers, and how fast they were counted.

    Args:
        deletions: whether users leave.
    """

    def __init__(self, *, deletions: bool) -> None:
        self._deletions = deletions
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

    def facts(
        self,
        statistics: Mapping[str, Statistic | Grouped[Statistic]],
        answers: Mapping[str, Answer],
    ) -> Facts:
        """The exact answer to everything that was released, and how fast rows were counted."""
        seconds = time.perf_counter() - self._start - self._overhead
        states = last = np.zeros(0, np.int64)
        if self._sums:
            table = _summed(pa.concat_tables(self._sums, promote_options="permissive"))
            states, last = table["delta"].to_numpy(), table["last"].to_numpy()
        plans = {name: one.plan for name, one in statistics.items() if answers[name] is not None}
        truth: dict[str, float] = {}
        for name, plan in plans.items():
            answer = answers[name]
            if isinstance(answer, IncidenceRelease) and isinstance(plan, IncidencePlan):
                unseen = (plan.universe or len(states)) - len(states)
                truth |= {str(one): _exact(one, states, unseen) for one in answer.answers()}
            else:
                truth[name] = self._truth(plan, states, last)
        beyond = max((_beyond(plan, states) for plan in plans.values()), default=0)
        return Facts(truth, self._rows, seconds, beyond, **_full(plans.values(), states))

    def _truth(self, plan: AnyPlan, states: NDArray[np.int64], last: NDArray[np.int64]) -> float:
        """The exact answer of a statistic that has one.

        Args:
            plan: of the statistic.
            states: of the users that came.
            last: delta of each of them.
        """
        if isinstance(plan, DensityPlan):
            # Who enters twice and leaves once has left.
            return float((last > 0).sum()) / plan.universe
        if isinstance(plan, CroppedPlan):
            return float(np.minimum(np.abs(states), plan.tau).sum())
        if isinstance(plan, ThresholdPlan | HeavyPlan):
            return float(np.clip(states / plan.low - 1, 0, 1).sum())
        return float(np.count_nonzero(states) if self._deletions else len(states))


def _full(plans: Iterable[AnyPlan], states: NDArray[np.int64]) -> dict[str, int]:
    """How many users count in full by the threshold that was named, and what that rests on."""
    facts: dict[str, int] = {}
    for plan in plans:
        if isinstance(plan, ThresholdPlan):
            facts["full"] = int((states >= plan.least).sum())
        if isinstance(plan, HeavyPlan):
            facts["heavy"] = int((states >= plan.total / plan.k).sum())
            facts["deltas"] = int(states.sum())
    return facts


def _beyond(plan: AnyPlan, states: NDArray[np.int64]) -> int:
    """How many users are in a state that the bound rules out."""
    if not isinstance(plan, IncidencePlan | NetDistinctPlan | CroppedPlan | ThresholdPlan):
        return 0
    signed = not isinstance(plan, ThresholdPlan) and plan.signed
    least = -plan.bound if signed else 0
    return int(((states > plan.bound) | (states < least)).sum())


def _exact(name: Name, states: NDArray[np.int64], unseen: int) -> float:
    """The exact answer that is called "at least 2" or the like, beyond the bound too.

    Args:
        name: of the answer.
        states: of the users that came.
        unseen: number of possible users that did not come; their state is 0.
    """
    kind, argument, power = name
    if kind == "exactly":
        return float((states == argument).sum() + (unseen if argument == 0 else 0))
    if kind == "at_least":
        return float((states >= argument).sum())
    if kind == "distinct":
        return float(np.count_nonzero(states))
    return float((np.clip(states, 0, argument) ** power).sum())


def _summed(rows: pa.Table) -> pa.Table:
    """The sum of the deltas of each user, and the last of them; one thread keeps their order."""
    grouped = rows.group_by("user", use_threads=False)
    summed = grouped.aggregate([("delta", "sum"), ("last", "last")])
    return summed.select(["user", "delta_sum", "last_last"]).rename_columns(rows.column_names)

"""`--demo`: the truth beside the private answers, for data that is public anyway.

It stores raw ids and counts rows, which a real run never does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from panprivacy.errors import InputError
from panprivacy.intake.programs.intake import ReadRows
from panprivacy.statistics.abilities import Demonstrable, Detailed, Sided
from panprivacy.statistics.amounts import unit_of
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.plan import Plan, users_beyond
from panprivacy.statistics.release import Answers, Name
from panprivacy.statistics.statistic import Statistic
from panprivacy.tables.ids import CodedIds, Ids, IntegerIds, decoded, read_ids
from panprivacy.tables.numeric import read_values

_MOST_TRUTHS = 100_000
_NAME = pa.large_binary()


@dataclass(frozen=True)
class Facts:
    """Facts that only a demonstration may show.

    Args:
        truth: the exact answers.
        rows: number of rows read.
        seconds: duration, without counting for the truth.
        beyond: number of users in a state that a bound excludes; answers are off by this number.
        besides: other facts of the statistics about the exact states.
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
    """The exact answers, and the rate of counting."""

    def __init__(self) -> None:
        self._sums: list[pa.Table] = []
        self._values: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._rows = 0
        self._start = time.perf_counter()
        self._overhead = 0.0

    def observe(self, read: ReadRows, rows: int) -> None:
        """Store the ids of one batch, and the sum and the last of each user's deltas, by side.

        Of events that are counted by their value, store each value and its delta.
        """
        start = time.perf_counter()
        count = len(read.users)
        deltas: Any = np.ones(count, np.int64) if read.deltas is None else read.deltas
        if read.amounts is not None:
            deltas = read_values(read.amounts)
        if read.holds_values:
            self._values.append((read_values(read.users), deltas))
        else:
            self._add(read, deltas, count)
        self._rows += rows
        self._overhead += time.perf_counter() - start

    def _add(self, read: ReadRows, deltas: Any, count: int) -> None:
        """Store the sums of the deltas of one batch."""
        sides = pa.repeat("", count)
        if read.sides is not None:
            sides = decoded(read.sides).cast(pa.string())
        columns = {"user": _names(read.users), "side": sides, "delta": deltas, "last": deltas}
        self._sums.append(_summed(pa.table(columns)))

    def _states(self, plan: Plan) -> tuple[UserStates, UserStates]:
        """Return the sums of the deltas of each user, by side if there are two, and the last.

        Amounts are summed as they are, and rounded to whole units once. Of events that are counted
        by their value, return each value and its delta.
        """
        if plan.reads_values:
            values, deltas = zip(*self._values, strict=True) if self._values else ([], [])
            nothing = np.zeros(0)
            return np.concatenate([nothing, *values]), np.concatenate([nothing, *deltas])
        sides = plan.sides if isinstance(plan, Sided) else None
        if not self._sums:
            return np.zeros((0, 2) if sides else 0, np.int64), np.zeros(0, np.int64)
        table = pa.concat_tables(self._sums)
        if sides is None:
            table = _summed(table, "user")
            sums, last = table["delta"].to_numpy(), table["last"].to_numpy()
            unit = unit_of(plan)
            return (sums if unit is None else np.rint(sums / unit).astype(np.int64)), last
        table = _summed(table)
        codes = table["user"].combine_chunks().dictionary_encode().indices.to_numpy()
        states = np.zeros((int(codes.max(initial=-1)) + 1, 2), np.int64)
        places = pc.index_in(table["side"], value_set=pa.array(sides)).to_numpy()
        np.add.at(states, (codes, places), table["delta"].to_numpy())
        return states, np.zeros(0, np.int64)

    def facts(self, statistics: Mapping[str, Statistic[Any, Any]], answers: Answers) -> Facts:
        """Return the exact answers to all released questions, and the rate of counting."""
        seconds = time.perf_counter() - self._start - self._overhead
        found = {label: self._states(one.plan) for label, one in statistics.items()}
        truth: dict[Name, float] = {}
        plans: dict[str, Plan] = {}
        for name, one in answers.answers(_MOST_TRUTHS).items():
            plan: Plan = statistics[name.statistic].plan
            if one is not None and isinstance(plan, Demonstrable):
                truth[name] = plan.truth(name, *found[name.statistic])
                plans[name.statistic] = plan
        states = {label: found[label][0] for label in plans}
        beyond = max(
            (users_beyond(plan, states[label]) for label, plan in plans.items()), default=0
        )
        detailed = {label: plan for label, plan in plans.items() if isinstance(plan, Detailed)}
        besides = (fact for label, one in detailed.items() for fact in one.facts(states[label]))
        return Facts(truth, self._rows, seconds, beyond, tuple(besides))


def _summed(rows: pa.Table, *by: str) -> pa.Table:
    """Return the sum of the deltas of each user, and the last one; one thread keeps their order."""
    names = [*(by or ("user", "side")), "delta", "last"]
    grouped = rows.group_by(names[:-2], use_threads=False)
    summed = grouped.aggregate([("delta", "sum"), ("last", "last")])
    return summed.select([*names[:-2], "delta_sum", "last_last"]).rename_columns(names)


def _names(users: pa.Array) -> pa.ChunkedArray:
    """Return users as counting distinguishes them: equal byte strings are one user.

    If only events are counted, any column replaces users; a column of no type of ids is one user.
    """
    try:
        chunks = [_names_of(ids) for ids in read_ids(users)]
    except InputError:
        chunks = [pa.repeat(pa.scalar(b"", _NAME), len(users))]
    return pa.chunked_array(chunks, _NAME)


def _names_of(ids: Ids) -> pa.Array:
    """Return names of some users; a number has its shortest decimal form, as a text may."""
    if isinstance(ids, CodedIds):
        return _names_of(ids.values).take(pa.array(ids.codes))
    if isinstance(ids, IntegerIds):
        return pa.array(ids.values).cast(pa.large_string()).cast(_NAME)
    offsets, data = ids.offsets.astype(np.int64), np.ascontiguousarray(ids.data)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    names = pa.Array.from_buffers(_NAME, len(ids), buffers)
    long = pc.match_substring_regex(names, "^[1-9][0-9]{18,19}$")
    if not pc.any(long).as_py():
        return names
    return pc.replace_with_mask(names, long, pa.array(map(_signed, names.filter(long)), _NAME))


def _signed(name: pa.Scalar) -> bytes:
    """Return the name of the signed number with the same 64 bits, if it has no more."""
    number = int(name.as_py())
    return b"%d" % (number - (number >= 1 << 63) * (1 << 64)) if number < 1 << 64 else name.as_py()

"""Moments and inner products: measures `docs/accuracy-moments.md` and writes it anew.

    python -m benchmarks.moments

Exits with 1 when an error is further from what was predicted than chance makes it, when intervals
hold the truth too rarely, or when a million cells take more than a second to draw. It takes about
three minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

import panprivacy as pp
from benchmarks.continual import fill
from benchmarks.counters import activity, table
from benchmarks.trials import FLIGHTS, HIGGS, ROOT
from panprivacy.privacy.coins import SystemCoins

PAGE = ROOT / "docs" / "accuracy-moments.md"
RUNS, ORDINARY_RUNS = 200, 40
MOST_OFF, LEAST_COVERAGE = 1.25, 0.90
CELLS, MOST_SECONDS = 1_000_000, 1.0
BOUND = 20

Integers = NDArray[np.int64]


class NoNoise(SystemCoins):
    """Those of an ordinary sketch: keys are random, and there is no noise."""

    def discrete_laplace(self, scale: Fraction, size: int) -> Integers:  # noqa: ARG002
        """Nothing."""
        return np.zeros(size, np.int64)


@dataclass(frozen=True)
class Stream:
    """Events of users, which are numbered.

    Args:
        name: for the table.
        users: of the events.
        deltas: of each.
        right: whether an event is of the right stream of two; None where there is one.
    """

    name: str
    users: Integers
    deltas: Integers
    right: NDArray[np.bool_] | None = None

    def truth(self, order: int) -> float:
        """The moment, or the inner product of two streams."""
        if self.right is None:
            return float((self._states(np.ones(len(self.users), bool)) ** order).sum())
        return float(self._states(~self.right) @ self._states(self.right))

    def _states(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        users, deltas = self.users[chosen], self.deltas[chosen]
        return np.bincount(users, deltas, minlength=int(self.users.max()) + 1)

    def feed(self, statistic: Any) -> None:
        """Have a statistic count it."""
        sides = () if self.right is None else (np.where(self.right, "right", "left"),)
        statistic.update(self.users, self.deltas, *sides)


@dataclass(frozen=True)
class Row:
    """A statistic on a stream.

    Args:
        stream: that it counts.
        order: of the moment; 2 for an inner product.
        sizes: and epsilon.
    """

    stream: Stream
    order: int
    sizes: dict[str, Any] = field(default_factory=dict)

    def make(self, **more: Any) -> Any:
        """The statistic."""
        if self.stream.right is not None:
            return pp.InnerProduct(**self.sizes, **more)
        return pp.FrequencyMoment(order=self.order, **self.sizes, **more)

    def errors(self, runs: int, **more: Any) -> tuple[NDArray[np.float64], float]:
        """How far answers are off, and how often intervals held the truth."""
        errors, truth, covered = [], self.stream.truth(self.order), 0
        for _ in range(runs):
            statistic = self.make(**more)
            self.stream.feed(statistic)
            answer = statistic.release()
            model = statistic.plan.model(0)
            errors.append(model.estimate(answer.counts) - truth)
            covered += answer.low <= truth <= answer.high
        return np.array(errors), covered / runs

    def ordinary(self) -> float:
        """The root-mean-square error of a plain sketch of as many cells."""
        truth, found = self.stream.truth(self.order), []
        for _ in range(ORDINARY_RUNS):
            sketch = self.make(coins=NoNoise())
            self.stream.feed(sketch)
            cells = sketch.internals.memory.now.table.astype(float)
            parts = np.split(cells, sketch.plan.tables)
            answer = cells.sum() if self.order == 1 else parts[0] @ parts[-1]
            found.append(answer - truth)
        return float(np.sqrt(np.mean(np.square(found))))

    def predicted(self) -> float:
        """By the model, for this stream."""
        model = self.make().plan.model(0)
        if self.stream.right is None:
            return float(model.deviation(self.stream.truth(self.order)))
        left, right = (self.stream._states(one) for one in (~self.stream.right, self.stream.right))  # noqa: SLF001
        product = np.float64(left @ right)
        return float(model._deviation(product, left @ left, right @ right))  # noqa: SLF001


def flights() -> tuple[Stream, Stream]:
    """Flights by aircraft-day; and those, by whether they are in the morning."""
    rows = pq.read_table(FLIGHTS, columns=["aircraft_day", "scheduled"]).drop_null()
    users = _numbered(rows["aircraft_day"])
    later = np.asarray(pc.hour(rows["scheduled"])) >= 17  # noon in New York, in winter
    ones = np.ones(len(users), np.int64)
    return Stream("flights", users, ones), Stream("flights, morning and later", users, ones, later)


def departures() -> Stream:
    """Flights are inserted when they are scheduled, and deleted when they leave in time."""
    path = ROOT / "examples" / "departures.parquet"
    rows = pq.read_table(path, columns=["aircraft_day", "delta"]).drop_null()
    return Stream("departures", _numbered(rows["aircraft_day"]), rows["delta"].to_numpy())


def _numbered(ids: Any) -> Integers:
    coded = ids.combine_chunks().dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64)


def rows() -> list[Row]:
    """All that is measured."""
    all_flights, halves = flights()
    left = departures()
    found = [
        Row(all_flights, 1, {"bound": 6, "epsilon": 1}),
        Row(all_flights, 2, {"bound": 6, "epsilon": 1}),
        Row(all_flights, 2, {"bound": 6, "epsilon": 1, "expected": (300_000, 1_000_000)}),
        Row(all_flights, 2, {"bound": 6, "epsilon": 4, "expected": (300_000, 1_000_000)}),
        Row(left, 1, {"bound": 6, "epsilon": 1}),
        Row(left, 2, {"bound": 6, "epsilon": 4, "expected": (50_000, 200_000)}),
        Row(halves, 2, {"bound": 6, "epsilon": 4, "expected": (100_000, 300_000)}),
        Row(halves, 2, {"bound": 6, "epsilon": 8, "expected": (100_000, 300_000)}),
    ]
    if HIGGS.exists():
        users = activity()
        acts = Stream("higgs activity", users, np.ones(len(users), np.int64))
        found += [
            Row(acts, 1, {"bound": 656, "epsilon": 1}),
            Row(acts, 2, {"bound": 656, "epsilon": 8, "expected": (2_000_000, 8_000_000)}),
        ]
    return found


def measured_table(missed: list[str]) -> str:
    """Each row, predicted and measured."""
    lines = []
    for row in rows():
        truth, predicted, plan = row.stream.truth(row.order), row.predicted(), row.make().plan
        errors, covered = row.errors(RUNS)
        found = float(np.sqrt(np.mean(np.square(errors))))
        name = f"{row.stream.name}, {'join' if row.stream.right is not None else f'F{row.order}'}"
        if not 1 / MOST_OFF < found / predicted < MOST_OFF or covered < LEAST_COVERAGE:
            missed.append(f"{name}: {found:.4g} for {predicted:.4g}, {covered:.1%} covered")
        form = f"one sum, clip {plan.clip:,}" if plan.clip else "every cell"
        lines.append(
            [
                name,
                f"{float(plan.request.epsilon):g}",
                f"{plan.bound:,}",
                f"{truth:,.0f}",
                f"{plan.cells:,}",
                form,
                share(predicted / truth),
                share(found / truth),
                f"{covered:.1%}",
                share(row.ordinary() / truth),
            ]
        )
        print(" | ".join(lines[-1]), flush=True)
    heads = ["stream", "epsilon", "bound", "truth", "cells", "form"]
    return table([*heads, "predicted", "measured", "intervals", "ordinary"], lines)


def forms_table() -> str:
    """Both forms for known sizes of the answer, and the plan for a wide range."""
    sizes: dict[str, Any] = {"order": 2, "bound": BOUND, "epsilon": 1}
    wide = pp.plan("moment", **sizes)
    lines = []
    for power in range(4, 10):
        truth = 10**power * BOUND**2
        near = {"expected": (truth // 3, truth)}
        every = pp.plan("moment", **sizes, **near, clip=0)
        free = pp.plan("moment", **sizes, **near)
        both = [share(one.relative_error(truth)) for one in (every, free, wide)]
        lines.append([f"1e{power} bound**2", both[0], both[1], f"{free.clip:,}", both[2]])
    heads = ["F", "every cell", "the better one", "its clip (0: every cell)", "wide range"]
    return table(heads, lines)


def bounds_table() -> str:
    """What a bound costs."""
    stream, _ = flights()
    lines = []
    for bound in (6, 12, 60, 600):
        sum_of_states = pp.plan("moment", order=1, bound=bound, epsilon=1)
        expected = (300_000, 1_000_000)
        squares = pp.plan("moment", order=2, bound=bound, epsilon=1, expected=expected)
        one, two = stream.truth(1), stream.truth(2)
        errors = sum_of_states.absolute_error() / one, squares.absolute_error(two) / two
        lines.append([f"{bound:,}", *map(share, errors)])
    return table(["bound", "F1, epsilon 1", "F2, epsilon 1"], lines)


def share(number: float) -> str:
    """As a share of the truth, for a table."""
    percent = 100 * number
    return f"{percent:,.0f} %" if percent >= 100 else f"{percent:.3g} %"


def seconds(act: Callable[[], object], times: int = 5) -> float:
    """The fastest of some times."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        found.append(time.perf_counter() - start)
    return min(found)


def speed_table(missed: list[str]) -> str:
    """How long noise and updates take."""
    coins, users = SystemCoins(), np.arange(1_000_000)
    scale = Fraction(20_000, 837)
    coins.discrete_laplace(scale, 10)
    drawn = seconds(lambda: coins.discrete_laplace(scale, CELLS))
    if drawn > MOST_SECONDS:
        missed.append(f"a million cells take {drawn:.2f} s")
    moment = pp.FrequencyMoment(order=2, bound=20, epsilon=1)
    moment.update(users[:10])
    joined = pp.InnerProduct(bound=20, epsilon=1)
    sides = np.where(users % 2, "right", "left")
    joined.update(users[:10], sides=sides[:10])
    lines = [
        ["a million cells are born with noise", f"{drawn:.2f} s"],
        [
            "a million updates of a `FrequencyMoment`",
            f"{seconds(lambda: moment.update(users)):.3f} s",
        ],
        [
            "a million updates of an `InnerProduct`, by a column of sides",
            f"{seconds(lambda: joined.update(users, sides=sides)):.2f} s",
        ],
    ]
    return table(["what", "the fastest of five"], lines)


def main() -> int:
    """Measure, write the page, and say what is outside of its limits."""
    missed: list[str] = []
    tables = {
        "forms": forms_table(),
        "bounds": bounds_table(),
        "speed": speed_table(missed),
        "measured": measured_table(missed),
    }
    page = PAGE.read_text()
    for name, body in tables.items():
        print(f"{name}\n{body}", flush=True)
        page = fill(page, name, body)
    PAGE.write_text(page)
    for one in missed:
        print(f"missed: {one}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())

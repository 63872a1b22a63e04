"""What a type checker says of the public classes: `make lint` reads it, and nothing runs it.

A line that must be refused is marked, and a mark that is not needed is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

import panprivacy as pp


def accepted(texts: Sequence[str], names: list[bytes]) -> None:
    """Every form of an epsilon, and every column of ids and deltas."""
    for epsilon in (1, 0.5, "1/3", Fraction(1, 3), Decimal("0.1")):
        count = pp.DistinctCount(epsilon=epsilon, expected=100)
    count.update(np.arange(3))
    count.update(range(3), [1, 1, 2])
    count.update(texts)
    count.update(f"visitor {n}" for n in range(3))
    count.update(iter(names), map(int, texts))
    count.update(names, np.ones(len(names), np.int32))
    count.update(pa.array([1, 2]), pa.array([1, 1]))
    count.update(pa.chunked_array([[1], [2]]))
    groups = pp.Grouped(lambda share: pp.Density(epsilon=share, universe=9), "ab", epsilon=1)
    groups.update(np.arange(2), ["a", "b"])
    pp.continual.Counter(horizon=9, epsilon="1/3").step(1)
    answer: pp.Release = count.release(confidence=0.9)
    value: float = answer.value
    assert value <= answer.high
    pp.Windowed(lambda: pp.Density(epsilon=1, universe=9), every=timedelta(days=1)).update([1])
    pp.Ledger(Fraction(1, 3))
    pp.Density(epsilon=1, universe=9, budget=pp.Budget("0.9", 0.1))
    pp.Law.flat(7, "0.9")
    shards: list[bytes] = [
        count.contribute(),
        pp.Density(epsilon=1, universe=9, key=b"").contribute(),
    ]
    pp.merge(shards, confidence=0.9)
    groups.contribute_cells()


def sized() -> None:
    """Every form of a size."""
    for expected in (100, 1e6, np.int64(7), "1e3:1e6", "learn", (10, 1e6), [10, 20]):
        pp.DistinctCount(epsilon=1, expected=expected)
    pp.DistinctCount(epsilon=1, deletions="strict")
    pp.Incidence(epsilon=1, bound=9, universe=100, law=pp.Law.flat(11, "0.9"))
    pp.CroppedSum(epsilon=1, tau=10, universe=100, releases=2)
    pp.ThresholdCount(epsilon=1, threshold=10, universe=100, memory=1 << 20)
    pp.HeavyHitterCount(epsilon=1, k=100, total=1e6)
    pp.FrequencyMoment(epsilon=1, order=2, bound=20, expected="1e6:1e9")
    pp.InnerProduct(epsilon=1, bound=20, left="sale", right="return")


def refused(count: pp.DistinctCount) -> None:
    """What fails when it runs, and is told before."""
    pp.DistinctCount(epsilon=[1], expected=100)  # type: ignore[arg-type]
    pp.DistinctCount(epsilon=None, expected=100)  # type: ignore[arg-type]
    pp.DistinctCount(expected=100)  # type: ignore[call-arg]
    pp.DistinctCount(epsilon=1, expected=100, releases="2")  # type: ignore[arg-type]
    pp.DistinctCount(epsilon=1, expected={1, 2})  # type: ignore[arg-type]
    pp.DistinctCount(epsilon=1, expect=100)  # type: ignore[call-arg]
    pp.DistinctCount(epsilon=1, deletions="no")  # type: ignore[arg-type]
    pp.Density(epsilon=1)  # type: ignore[call-arg]
    pp.CroppedSum(epsilon=1, tau=[10], universe=100)  # type: ignore[arg-type]
    pp.Incidence(epsilon=1, bound=9, universe=100, law=0.9)  # type: ignore[arg-type]
    pp.DistinctCunt(epsilon=1)  # type: ignore[attr-defined]
    pp.continual.Counter(epsilon=[1])  # type: ignore[arg-type]
    pp.online.MultiCounter(3, horizon=9, epsilon=[1])  # type: ignore[arg-type]
    count.update(7)  # type: ignore[arg-type]
    count.update([0.5])  # type: ignore[arg-type]
    count.update([1], ["one"])  # type: ignore[arg-type]
    count.update({1, 2})  # type: ignore[arg-type]
    pp.Budget(1, [1])  # type: ignore[arg-type]
    pp.Ledger([1])  # type: ignore[arg-type]
    pp.Law.flat(7, [1])  # type: ignore[arg-type]
    pp.merge([count])  # type: ignore[list-item]
    pp.Density(epsilon=1, universe=9, key="text")  # type: ignore[arg-type]

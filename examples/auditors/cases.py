"""What other people's auditors are shown: two classes that ship, and each with 1.3 times its claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import panprivacy as pp
from panprivacy.audit import Sampler, read_bits, read_words
from panprivacy.testing import allow_noise

CLAIM = 1.0
OFF = Fraction(13, 10)
STREAM, NEIGHBOUR = [[5, 6]], [[6]]


def budget(times: Fraction) -> pp.Budget:
    """Nearly all of epsilon is spent on the state, which is what the tools are shown."""
    return pp.Budget(state=times * Fraction(98, 100), release=times * Fraction(1, 100))


@allow_noise()
def density(coins: Any, times: Fraction) -> pp.Density:
    """Bits."""
    return pp.Density(universe=50, epsilon=times, budget=budget(times), coins=coins)


@allow_noise()
def incidence(coins: Any, times: Fraction) -> pp.Incidence:
    """Counters."""
    return pp.Incidence(universe=20, bound=3, epsilon=times, budget=budget(times), coins=coins)


@dataclass(frozen=True)
class Case:
    """A mechanism for an auditor, which claims an epsilon of 1 and spends so many times that."""

    name: str
    make: Callable[..., Any]
    times: Fraction
    read: Callable[[bytes], Any]

    @property
    def holds(self) -> bool:
        """Whether it keeps the claim."""
        return self.times <= 1

    def sampler(self) -> Sampler:
        """One number a run: the cell that tells the two streams apart best, found beforehand."""
        whole = Sampler(partial(self.make, times=self.times), read=self.read, parts=["states"])
        return whole.screened(STREAM, NEIGHBOUR, runs=300, most=1)


CASES = [
    Case(f"{name}, {'as it ships' if times == 1 else '1.3 times its claim'}", make, times, read)
    for name, make, read in (("density", density, read_bits), ("incidence", incidence, read_words))
    for times in (Fraction(1), OFF)
]


def verdict(case: Case, bound: float) -> str:
    """A line for a case; raises if the tool rejects what holds, or misses what does not."""
    if (bound < CLAIM) != case.holds:
        message = f"{case.name}: a bound of {bound:.3f} where the claim is {CLAIM}"
        raise SystemExit(message)
    return f"{case.name:<32}at least {bound:.3f}  {'holds' if case.holds else 'caught'}"

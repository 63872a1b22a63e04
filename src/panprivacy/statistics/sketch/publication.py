"""The law of bits that are published, and its cost: the one whose published table tells most.

Of all laws whose joint loss is epsilon, the best one meets three bounds of `joint_ratio` at once:

* a published 1 where nobody came and a 0 was seen, against a redrawn bit;
* a published 0 where a 1 was seen, against redraws at both moments;
* a published 0 where a 0 was seen, against a redraw before the look.

One number is then free, the probability of a published 1 where somebody came. It is searched for.
[docs/guarantees/sketches.md]
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.guarantee import Budget, log_above, randomised_response, rounded_up
from panprivacy.tables.cells.published import BitLaw

Covers = Literal["seizure", "publication"]
"""What epsilon covers in a window: the published table and one look at the state, or the table."""

OCCUPIED: Final = 0.3
"""The share of cells with users, at which laws are compared; others change the error by 1 %."""

_GRID: Final = 1 << 64
_LARGEST = Fraction(16)
"""A larger epsilon gives the same law: its noise is below 1e-6."""
_POINTS: Final = 400
_HALVINGS: Final = 60
_ZOOMS: Final = 4
_SPLITS: Final = 24
_DIGITS: Final = 15

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, init=False)
class PublicationBudget(Budget):
    """The split of the epsilon of tables of bits, each of which is published once.

    Args:
        state: loss of one look at the state.
        release: what the table of the same window adds.
        alone: loss of a published table of a window whose state nobody sees.
        crash: what crashes add, if one of them lost rows that an intruder saw counted.
    """

    alone: Fraction
    crash: Fraction

    def __init__(
        self, state: Fraction, release: Fraction, alone: Fraction, crash: Fraction = Fraction(0)
    ) -> None:
        Budget.__init__(self, state, release)
        object.__setattr__(self, "alone", alone)
        object.__setattr__(self, "crash", crash)

    def of_releases(self, count: int) -> Fraction:
        """Return the loss of the first `count` tables: the intruder saw the state of one window."""
        return self.release + (count - 1) * self.alone if count else Fraction(0)

    def separate(self, *, releases: int, intrusions: int) -> Fraction:
        """Return the sum of the losses of a look and of tables, which together may cost less."""
        return (intrusions + 1) * self.state + releases * self.alone

    def unseen(self, *, releases: int, intrusions: int) -> Fraction:  # noqa: ARG002
        """Return the loss of the published tables if nobody ever sees the state."""
        return releases * self.alone


@dataclass(frozen=True, slots=True, init=False)
class CopyBudget(PublicationBudget):
    """The budget of states that are published as they are: the state is the first table."""

    def of_releases(self, count: int) -> Fraction:
        """Return the loss of the first `count` tables: the first one was charged as the state."""
        return max(count - 1, 0) * self.alone


def budget_of(law: BitLaw, epsilon: Fraction, tables: int) -> PublicationBudget:
    """Return the budget of a law within epsilon.

    Args:
        law: of the bits of every window.
        epsilon: loss of one look and of all tables, in nats.
        tables: how many are published.
    """
    alone = _charge(law.published_ratio)
    if law.copies:
        return CopyBudget(epsilon / tables, epsilon / tables, epsilon / tables)
    joint, state = epsilon - (tables - 1) * alone, _charge(law.state_ratio)
    ratio = law.crash_ratio
    if tables > 1:  # a crash may bring back a window that was published, which begins anew
        ratio = max(ratio, law.state_ratio * law.published_ratio)
    crash = max(_charge(ratio) - joint, Fraction(0))
    return PublicationBudget(state, joint - state, alone, crash)


@functools.lru_cache(maxsize=256)
def publication_law(epsilon: Fraction, covers: Covers, tables: int = 1) -> BitLaw:
    """Return the law of bits whose published tables err least.

    Args:
        epsilon: loss of all that it covers, in nats.
        covers: one look at the state and all published tables, or these tables.
        tables: how many are published, each of a window of its own.
    """
    if covers == "publication":
        present = randomised_response(epsilon / tables)
        return BitLaw(1 - present, present, Fraction(0), Fraction(1))
    spent = min(epsilon, tables * _LARGEST)
    joint = spent if tables == 1 else Fraction(_joint(float(spent), tables))
    margin = Fraction(1, 1 << 24)
    while True:  # the margin is for the rounding of the search
        each = joint * (1 - margin)
        law = _rounded(_searched(float(each)))
        if law.absent < law.present and law.published_absent < law.published_present:
            loss = log_above(law.joint_ratio) + (tables - 1) * _charge(law.published_ratio)
            if loss <= spent:
                return law
        margin *= 2


def _charge(ratio: Fraction) -> Fraction:
    """Return a bound of the logarithm, in so many digits that a ledger can hold it."""
    return Fraction(rounded_up(log_above(ratio), _DIGITS))


def _joint(epsilon: float, tables: int) -> float:
    """Return the loss of the window that is seen, beside which all tables are affordable."""
    low, high = epsilon / tables, min(epsilon, float(_LARGEST))
    for _ in range(_SPLITS):
        middle = (low + high) / 2
        absent, present, zero, one = _searched(middle)
        nobody, somebody = zero + (one - zero) * absent, zero + (one - zero) * present
        alone = max(math.log(somebody / nobody), math.log((1 - nobody) / (1 - somebody)))
        low, high = (middle, high) if middle + (tables - 1) * alone <= epsilon else (low, middle)
    return low


def _rounded(law: tuple[float, float, float, float]) -> BitLaw:
    return BitLaw(*(Fraction(round(probability * _GRID), _GRID) for probability in law))


def _searched(epsilon: float) -> tuple[float, float, float, float]:
    """Return the probabilities of the best law, in floating point."""
    low, high = 1e-6, 1 - 1e-6
    for _ in range(_ZOOMS):
        presents = np.linspace(low, high, _POINTS)
        laws = _laws(presents, epsilon)
        best = int(np.argmin(_spread(laws)))
        low, high = presents[max(best - 1, 0)], presents[min(best + 1, _POINTS - 1)]
    absent, present, shown_zero, shown_one = (float(one[best]) for one in laws)
    return absent, present, shown_zero, shown_one


def _laws(published: Floats, epsilon: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the laws that meet three bounds, where a published bit of a user is a 1 so often.

    Args:
        published: the probabilities.
        epsilon: of the three bounds.
    """
    least = math.exp(-epsilon)
    shown_zero = published * least
    with np.errstate(all="ignore"):
        low = (1 - shown_zero) * least / (1 - published)  # of a 0, by which a user makes it rarer
        smallest, largest = np.ones_like(published), np.full_like(published, math.exp(epsilon))
        for _ in range(_HALVINGS):
            high = (smallest + largest) / 2  # of a 1, by which a user makes it likelier
            absent = (1 - low) / (high - low)
            present, shown_one = absent * high, 1 - (1 - published) * least * high
            found = shown_zero + (shown_one - shown_zero) * present
            smallest = np.where(found > published, high, smallest)
            largest = np.where(found > published, largest, high)
    return absent, present, shown_zero, shown_one


def _spread(laws: tuple[Floats, Floats, Floats, Floats]) -> Floats:
    """Return the variance of a debiased published bit; infinity where there is no such law."""
    absent, present, zero, one = laws
    nobody, somebody = zero + (one - zero) * absent, zero + (one - zero) * present
    possible = (absent > 0) & (absent < present) & (present < 1) & (zero < one) & (one < 1)
    with np.errstate(all="ignore"):
        mean = nobody + OCCUPIED * (somebody - nobody)
        spread = mean * (1 - mean) / (somebody - nobody) ** 2
    return np.where(possible & np.isfinite(spread), spread, np.inf)

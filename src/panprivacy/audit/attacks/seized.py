"""The view of an intruder who took the state of one of our programs, and the candidates."""

from __future__ import annotations

import io
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.attacks.guesses import Guesses, Truths
from panprivacy.privacy.coins import Coins
from panprivacy.statistics.density.plan import DensityPlan
from panprivacy.statistics.header import read_header
from panprivacy.statistics.statistic import P, Statistic
from panprivacy.tables.addressing import Slots
from panprivacy.tables.cells.law import Law
from panprivacy.tables.cells.protocol import Table
from panprivacy.tables.ids import read_ids


@dataclass(frozen=True, slots=True, eq=False)
class Seized(Generic[P]):
    """The bytes of one intrusion into a statistic: addressing key and cells; its plan is public."""

    plan: P
    key: bytes
    table: Table

    @classmethod
    def of(cls, statistic: Statistic[P, Any], kind: np.dtype[Any] | None = None) -> Seized[P]:
        """Take the state of a statistic, whose cells are of this kind; None for packed bits."""
        stream = io.BytesIO(statistic.state())
        read_header(stream)
        key = stream.read(statistic.plan.key_bytes)
        return cls(statistic.plan, key, np.frombuffer(stream.read(), kind or np.uint8))

    def slots(self, people: NDArray[np.int64]) -> Slots:
        """Return the cell of each person: the key is in the state."""
        return np.concatenate(list(self.plan.address(self.key).slots(read_ids(people))))


def bits_of(statistic: Statistic[DensityPlan, Any]) -> NDArray[np.uint8]:
    """Return the bit of each user, from the state."""
    return statistic.plan.table.ones(Seized.of(statistic).table)


def guess_from_noise(
    law: Law, counters: NDArray[np.int64], came: Truths, *, visits: int
) -> Guesses:
    """Return the best guess from counters: whether their noise was likelier with visits or without.

    They are about the people whose counter is not equally likely with the visits and without.
    """
    present, absent = np.roll(law.weights, visits)[counters], law.weights[counters]
    told = present != absent
    return Guesses(came[told], (present > absent)[told])


def tossed(coins: Coins, size: int) -> Truths:
    """Return `size` tosses of a fair coin."""
    return coins.bernoulli(Fraction(1, 2), size).astype(np.bool_)


def shuffled(coins: Coins, size: int) -> NDArray[np.int64]:
    """Return the numbers from 0 to size-1 in random order."""
    return np.argsort(np.frombuffer(coins.key(8 * size), np.uint64))


def integers(coins: Coins, most: int, size: int) -> NDArray[np.int64]:
    """Return uniform whole numbers from -most to most."""
    return coins.categorical([1] * (2 * most + 1), size).astype(np.int64) - most

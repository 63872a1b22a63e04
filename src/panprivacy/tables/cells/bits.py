"""Presence bits: the cells of `Density` and `DistinctCount`.

A bit is initialised as `Bernoulli((1-t)/2)` and redrawn `Bernoulli((1+t)/2)` whenever its user
appears, `t = tanh(epsilon_state/2)`. Any other pair of laws at the same epsilon is a
post-processing of it.

An announced intrusion flips each bit with probability `(1-s)/2`. Bits of users that appeared
before then have mean `s` times what it was (in units of ±1), so later redraws use that mean too.

Reference: V. Digalakis, G. Karystinos, M. Garofalakis, "Improved pan-private stream density
estimation", Algorithm 2 (OptBern) with c = 1/2; docs/guarantees/bits.md and intrusions.md
prove the claims.
"""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy import uint8, uint64
from numpy.typing import NDArray

from panprivacy.ground.hygiene.uncounted import uncounted
from panprivacy.ground.kernels import inlined, kernel, read_only
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import LARGEST_EXPONENT, exp_bounds, randomised_response
from panprivacy.privacy.noise import wipe
from panprivacy.tables.addressing import Bitmap, CellBatch, Slots, mark_slots
from panprivacy.tables.cells.packed import PackedCells, PackedTable
from panprivacy.tables.cells.protocol import Deltas, with_deltas
from panprivacy.tables.hashing import deposit, equal_bytes, popcount

RealNumber = Fraction | float
"""Exact for what decides privacy, floating point to compare plans."""

SPARSE = 16
"""Cells for each row of a batch from which it is quicker to redraw the cells of its rows one by one
than to note which cells it touches."""

_GAIN_GRID = 1 << 20
_RATIO_BITS = 128


class RedrawnBits(PackedCells):
    """A packed table of bits, each of which is redrawn whenever its user appears."""

    __slots__ = ()

    @abstractmethod
    def presence(self, epoch: int) -> Fraction:
        """Return the probability that a bit is 1 when its user appears after `epoch` intrusions."""

    def update(
        self,
        table: PackedTable,
        slots: Iterable[Slots],
        deltas: Deltas | None,
        epoch: int,
        coins: Coins,
    ) -> None:
        """Redraw each touched bit once, or once a row where these are few: the last is observable.

        A delta below 0 deletes its user, which takes the bit back to its initial law.
        """
        if isinstance(slots, CellBatch) and len(slots) * SPARSE <= self.cells:
            fresh = coins.bernoulli(self.presence(epoch), len(slots))
            if deltas is not None:  # the inverse of a (1+t)/2 coin is a (1-t)/2 coin
                fresh ^= deltas < 0
            slots.write(fresh, table)
            wipe(fresh)
            return
        touched = np.zeros(-(-self.cells // 64), np.uint64)
        deleted = np.zeros(0 if deltas is None else len(touched), np.uint64)
        try:
            _mark(slots, deltas, touched, deleted)
            fresh = coins.bernoulli(self.presence(epoch), _count_ones(touched))
            _redraw(table, touched, deleted, fresh)
            wipe(fresh)
        finally:
            wipe(touched, deleted)


@dataclass(frozen=True, slots=True)
class BitCells(RedrawnBits):
    """A packed table of presence bits.

    Guarantee: the law of all bits seen at one unannounced and up to `intrusions` announced looks
    changes by at most `e**((intrusions + 1) * epsilon_state)` between streams that differ in
    all or some updates of one user. [tests/exact/test_exact.py]

    Args:
        cells: the number of bits.
        epsilon_state: loss of one look, in nats.
        intrusions: number of announced intrusions in the plan.
    """

    cells: int
    epsilon_state: Fraction = field(hash=False)  # costs more than all else that a look-up takes
    intrusions: int = 0

    says = "noisy bits"

    def gain(self) -> Fraction:
        """Return the factor by which an announced intrusion shrinks the mean of each ±1 bit."""
        if not self.intrusions:
            return Fraction(1)
        return 2 * keep_probability(self.epsilon_state, self.intrusions) - 1

    @property
    def surest(self) -> Fraction:
        """The highest probability of an earlier value of a bit, given the planned intrusions.

        It is for a bit that no look showed as it was: one that was drawn or flipped in between.
        """
        return Fraction(_surest(self.presence(0), self.gain(), self.intrusions))

    def contrast(self, epoch: int) -> Fraction:
        """Return mean, in units of ±1, of a bit whose user appeared, after `epoch` intrusions."""
        return _contrast(self, epoch)

    def presence(self, epoch: int) -> Fraction:
        """Return the probability that a bit is 1 when its user appears after `epoch` intrusions."""
        return _presence(self, epoch)

    def initial(self, coins: Coins) -> PackedTable:
        """Return a table in which nobody has appeared."""
        return self._draw(1 - self.presence(0), coins)

    def fresh_noise(self, coins: Coins) -> PackedTable:
        """Return which bits an announced intrusion flips: each with probability `(1-s)/2`."""
        return self._draw((1 - self.gain()) / 2, coins)


@uncounted
def _contrast(cells: BitCells, epoch: int) -> Fraction:
    return (2 * randomised_response(cells.epsilon_state) - 1) * cells.gain() ** epoch


@uncounted
def _presence(cells: BitCells, epoch: int) -> Fraction:
    return (1 + cells.contrast(epoch)) / 2


@functools.lru_cache(maxsize=1024)
def keep_probability(epsilon_state: Fraction, intrusions: int) -> Fraction:
    """Return the largest `(1+s)/2` with a total loss of `(intrusions + 1) * epsilon_state`.

    The gain `s` is rounded down to a multiple of 2**-20.
    """
    affordable, _ = exp_bounds(min((intrusions + 1) * epsilon_state, LARGEST_EXPONENT))
    present = randomised_response(epsilon_state)
    return (1 + Fraction(_largest_gain(present, affordable, intrusions), _GAIN_GRID)) / 2


def approximate_bit(epsilon_state: float, intrusions: int) -> tuple[float, float]:
    """Return the contrast after all intrusions, and the `surest`, as floats: to compare plans."""
    mean = min(math.tanh(epsilon_state / 2), 1 - 2**-50)
    present = (1 + mean) / 2
    if not intrusions:
        return mean, present
    affordable = math.exp(min((intrusions + 1) * epsilon_state, 700))
    gain = _largest_gain(present, affordable, intrusions) / _GAIN_GRID
    return mean * gain**intrusions, float(_surest(present, gain, intrusions))


def _surest(present: RealNumber, gain: RealNumber, intrusions: int) -> RealNumber:
    """Return the highest probability of a bit that no intrusion showed, given all planned ones.

    Odds multiply: those of its draw, or of what an announcement left of an earlier bit, and those
    of one look in each later epoch, through as many flips. For fractions it is rounded up.
    """
    odds: RealNumber = present / (1 - present)
    left = [(1 + gain**flips) / (1 - gain**flips) for flips in range(1, intrusions + 1)]
    if left:
        odds = max(odds * left[-1], left[0])
    for factor in left[:-1]:
        odds = _rounded_up(odds * factor)
    return odds / (1 + odds)


def _largest_gain(present: RealNumber, affordable: RealNumber, intrusions: int) -> int:
    """Bisect for the largest affordable gain, in units of 2**-20."""
    low, high = 0, _GAIN_GRID
    while high - low > 1:
        middle = (low + high) // 2
        gain = Fraction(middle, _GAIN_GRID)
        keep = (1 + (gain if isinstance(present, Fraction) else float(gain))) / 2
        if worst_ratio(present, keep, intrusions) <= affordable:
            low = middle
        else:
            high = middle
    return low


def worst_ratio(present: RealNumber, keep: RealNumber, intrusions: int) -> RealNumber:
    """Return the worst probability ratio of the bits under `intrusions + 1` intrusions.

    Over all pairs of histories, with deletions and with returns to earlier states. The first look
    costs `p/(1-p)`. At a later one a stream that left the cell alone shows the bit seen before with
    probability `keep`, and the other stream has a mean of `t s` at the first flip, and of up to
    `s**2` at later ones.

    Args:
        present: `p = (1+t)/2`.
        keep: `(1+s)/2`, the probability that a bit survives an announced intrusion.
        intrusions: the number of announced intrusions.

    Returns:
        For fractions, the exact ratio rounded up, by less than a relative `2**-128` an epoch.
    """
    gain = 2 * keep - 1
    ratio: RealNumber = present / (1 - present)
    for epoch in range(intrusions):
        mean = gain**2 if epoch else (2 * present - 1) * gain
        ratio = _rounded_up(ratio * (1 + mean) / (1 - gain))
    return ratio


def _rounded_up(ratio: RealNumber) -> RealNumber:
    """Return the ratio rounded up to few digits: exact products grow with every epoch."""
    if not isinstance(ratio, Fraction):
        return ratio
    return Fraction(-((-ratio.numerator << _RATIO_BITS) // ratio.denominator), 1 << _RATIO_BITS)


def _mark(slots: Iterable[Slots], deltas: Deltas | None, touched: Bitmap, deleted: Bitmap) -> None:
    """Note which cells the batch touches, and which of them it deletes last."""
    if deltas is None and isinstance(slots, CellBatch):
        slots.mark(touched)
        return
    for piece, given in with_deltas(slots, deltas):
        if given is None:
            mark_slots(piece, touched)
        else:
            _mark_signed(piece, given, touched, deleted)


_SLOTS = read_only("int64")
_BITMAP = "uint64[::1]"


@kernel(f"void({_SLOTS}, {_SLOTS}, {_BITMAP}, {_BITMAP})")
def _mark_signed(
    slots: Slots, deltas: Deltas, touched: NDArray[np.uint64], deleted: NDArray[np.uint64]
) -> None:
    for row in range(slots.size):
        slot = slots[row]
        if slot >= 0:
            bit = uint64(1) << uint64(slot & 63)
            touched[slot >> 6] |= bit
            if deltas[row] < 0:
                deleted[slot >> 6] |= bit
            else:
                deleted[slot >> 6] &= ~bit


@kernel(f"int64({_BITMAP})")
def _count_ones(bitmap: NDArray[np.uint64]) -> int:
    """Return the number of ones."""
    ones = uint64(0)
    for word in range(bitmap.size):
        ones += popcount(bitmap[word])
    return int(ones)


@inlined
def _coins(fresh, few, first):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the coins from `first` on, from the lowest bit up: at least those that are left.

    The last 64 are read where fewer are left, and shifted; `few` has all coins where these are
    fewer. So nothing is read that is not there, and no branch depends on the batch.
    """
    size = uint64(fresh.size)
    if size < uint64(64):
        return few >> (first & uint64(63))
    start = min(first, size - uint64(64))
    return equal_bytes(uint64(fresh.ctypes.data) + start, uint8(1)) >> (
        (first - start) & uint64(63)
    )


@inlined
def _write_last(table, mask, values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Replace the masked bits of the bytes after the last whole word of the table."""
    start = table.size & ~7
    for byte in range(table.size - start):
        cells = uint8(mask >> uint64(8 * byte))
        fresh = uint8(values >> uint64(8 * byte))
        table[start + byte] = (table[start + byte] & ~cells) | (fresh & cells)


@kernel(f"void(uint8[::1], {_BITMAP}, {_BITMAP}, {read_only('uint8')})")
def _redraw(
    table: PackedTable,
    touched: NDArray[np.uint64],
    deleted: NDArray[np.uint64],
    fresh: NDArray[np.uint8],
) -> None:
    """Write the next fresh coin into each touched cell, inverted where the user was deleted.

    The inverse of a `(1+t)/2` coin is a `(1-t)/2` coin. No branch depends on a coin or a cell.
    """
    few = uint64(0)
    if fresh.size < 64:
        for at in range(fresh.size):
            few |= uint64(fresh[at]) << uint64(at)
    coin, whole = uint64(0), table.size >> 3
    words = table[: 8 * whole].view(np.uint64)
    for word in range(touched.size):
        mask = touched[word]
        values = deposit(_coins(fresh, few, coin), mask)
        coin += popcount(mask)
        if deleted.size:
            values ^= deleted[word]
        if word < whole:
            words[word] = (words[word] & ~mask) | (values & mask)
        else:
            _write_last(table, mask, values)

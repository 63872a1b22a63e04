"""Bits that are published at the end of a window: one look at them earlier is covered as well.

A bit is initialised and redrawn as a presence bit is, with laws of its own. The table that is
published is drawn from it once: each of its bits depends on one bit of the state and a fresh coin.

docs/guarantees/sketches.md proves the claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.tables.cells.bits import RedrawnBits
from panprivacy.tables.cells.packed import PackedTable

_SAME, _ABSENT, _PRESENT = None, 0, 1
"""Which bit of the state is published: the seen one, or an absent or a present one, redrawn."""

CellHistory = tuple[int, int | None]
"""A cell until the table is published: whether the bit that was seen is one of an absent user (0)
or of a present one (1), and which bit was published."""

NEIGHBOURS: Final[tuple[tuple[CellHistory, CellHistory], ...]] = (
    ((1, _SAME), (0, _SAME)),
    ((0, _PRESENT), (0, _SAME)),
    ((1, _PRESENT), (0, _SAME)),
    ((1, _PRESENT), (1, _SAME)),
    ((1, _PRESENT), (0, _PRESENT)),
)
"""Histories of a cell in two neighbouring streams."""

AFTER_A_CRASH: Final[tuple[tuple[CellHistory, CellHistory], ...]] = (
    ((1, _ABSENT), (0, _SAME)),
    ((1, _PRESENT), (1, _ABSENT)),
)
"""The further ones of a crash that lost the bit that was seen: an earlier one was published."""


@dataclass(frozen=True, slots=True)
class BitLaw:
    """The laws of a bit of the state, and of the published bit given that one.

    Args:
        absent: probability of a 1 where nobody came.
        present: the same where somebody came.
        shown_zero: probability that a 0 of the state is published as a 1.
        shown_one: the same of a 1 of the state.
    """

    absent: Fraction
    present: Fraction
    shown_zero: Fraction
    shown_one: Fraction

    @property
    def copies(self) -> bool:
        """Whether the state itself is published."""
        return self.shown_zero == 0 and self.shown_one == 1

    @property
    def published_absent(self) -> Fraction:
        """The probability of a published 1 where nobody came."""
        return self.shown_zero + (self.shown_one - self.shown_zero) * self.absent

    @property
    def published_present(self) -> Fraction:
        """The same where somebody came."""
        return self.shown_zero + (self.shown_one - self.shown_zero) * self.present

    @property
    def state_ratio(self) -> Fraction:
        """The largest ratio of probabilities of one look at the state."""
        return _largest_ratio(self.absent, self.present)

    @property
    def published_ratio(self) -> Fraction:
        """The largest ratio of probabilities of the published table alone."""
        return _largest_ratio(self.published_absent, self.published_present)

    @property
    def joint_ratio(self) -> Fraction:
        """The largest ratio of probabilities of one look at the state and the published table."""
        return self._worst(NEIGHBOURS)

    @property
    def crash_ratio(self) -> Fraction:
        """The same if crashes may lose what was seen."""
        return self._worst((*NEIGHBOURS, *AFTER_A_CRASH))

    def _worst(self, neighbours: Sequence[tuple[CellHistory, CellHistory]]) -> Fraction:
        """Return the largest ratio over pairs of histories, both ways."""
        return max(
            max(one / other, other / one)
            for larger, smaller in neighbours
            for one, other in zip(self._views(*larger), self._views(*smaller), strict=True)
        )

    def _views(self, seen: int, published: int | None) -> list[Fraction]:
        """Return the probability of each pair of a seen bit and a published one."""
        state = (self.absent, self.present)[seen]
        shown = self.shown_zero, self.shown_one
        fresh = self.published_absent, self.published_present
        ones = shown if published is None else (fresh[published],) * 2
        return [
            weight * (one if bit else 1 - one)
            for weight, one in zip((1 - state, state), ones, strict=True)
            for bit in (0, 1)
        ]


def _largest_ratio(absent: Fraction, present: Fraction) -> Fraction:
    return max(present / absent, (1 - absent) / (1 - present))


@dataclass(frozen=True, slots=True)
class PublishedBits(RedrawnBits):
    """A packed table of presence bits that is published once.

    Guarantee: the joint law of one look at the bits and of the published table changes by a factor
    of at most `bit_law.joint_ratio` between streams that differ in all or some updates of one user.
    [tests/exact/test_sketches.py, docs/guarantees/sketches.md]

    Args:
        cells: the number of bits.
        bit_law: of a bit, and of what is published of it.
    """

    cells: int
    bit_law: BitLaw = field(hash=False)

    says = "noisy bits that are published"

    def presence(self, epoch: int) -> Fraction:  # noqa: ARG002
        """Return the probability that a bit is 1 when its user appears."""
        return self.bit_law.present

    def initial(self, coins: Coins) -> PackedTable:
        """Return a table in which nobody has appeared."""
        return self._draw(self.bit_law.absent, coins)

    def fresh_noise(self, coins: Coins) -> PackedTable:
        """Return no noise: no intrusion is announced to a table that is published."""
        raise NotImplementedError

    def published(self, table: PackedTable, coins: Coins) -> PackedTable:
        """Return the table to publish: each bit of the state is shown as its law says."""
        if self.bit_law.copies:
            return table.copy()
        ones, zeros = (
            self._draw(self.bit_law.shown_one, coins),
            self._draw(self.bit_law.shown_zero, coins),
        )
        shown: PackedTable = (table & ones) | (~table & zeros)
        wipe(ones, zeros)
        return shown

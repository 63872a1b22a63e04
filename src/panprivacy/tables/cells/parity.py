"""Parities: the cells of a `DistinctCount` of a strict stream.

In a strict stream a user is in or out: each update is the insert of a user who is absent, or the
delete of one who is present. Both toggle the user's bit. A bit has initial noise, and shows
whether an even or an odd number of its users is present, through that noise.

A parity is a counter modulo 2 that takes a bit where a counter takes a byte. It is private whatever
the stream does: in one that is not strict only the answers are wrong.

An announced intrusion flips each bit with the probability of a one in its initial noise.

docs/guarantees/modular.md proves the claims.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from numpy import uint8

from panprivacy.ground.kernels import kernel, read_only
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import randomised_response
from panprivacy.tables.addressing import Slots
from panprivacy.tables.cells.packed import PackedCells, PackedTable
from panprivacy.tables.cells.protocol import Deltas


@dataclass(frozen=True, slots=True)
class ParityCells(PackedCells):
    """A packed table of parities.

    Guarantee: the law of all bits seen at one unannounced and up to `k` announced looks changes by
    a factor of at most `e**((k+1) * epsilon_state)` between streams that differ in all or some
    updates of one user, strict or not. [tests/exact/test_strict.py]

    Args:
        cells: the number of bits.
        epsilon_state: loss of one look, in nats.
    """

    cells: int
    epsilon_state: Fraction

    says = "noisy parities"

    @property
    def noise(self) -> Fraction:
        """Probability that a bit shows the wrong parity: half of `1 - t`."""
        return 1 - randomised_response(self.epsilon_state)

    def contrast(self, epoch: int) -> Fraction:
        """Return P(right) - P(wrong) of a parity after `epoch` announced intrusions."""
        return (1 - 2 * self.noise) ** (epoch + 1)

    def initial(self, coins: Coins) -> PackedTable:
        """Return a table in which nobody is present."""
        return self._draw(self.noise, coins)

    def fresh_noise(self, coins: Coins) -> PackedTable:
        """Return which bits an announced intrusion flips."""
        return self._draw(self.noise, coins)

    def update(
        self,
        table: PackedTable,
        slots: Iterable[Slots],
        deltas: Deltas | None,  # noqa: ARG002 - who enters toggles as does who leaves
        epoch: int,  # noqa: ARG002 - later noise is the same whatever came before
        coins: Coins,  # noqa: ARG002 - toggling needs no coins
    ) -> None:
        """Toggle the cell of each row."""
        for piece in slots:
            _toggle(table, piece)


@kernel(f"void(uint8[::1], {read_only('int64')})")
def _toggle(table: PackedTable, slots: Slots) -> None:
    """Flip the bit of each row's cell."""
    for row in range(slots.size):
        slot = slots[row]
        if slot >= 0:
            table[slot >> 3] ^= uint8(1) << uint8(slot & 7)

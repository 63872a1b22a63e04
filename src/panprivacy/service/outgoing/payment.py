"""How a release comes into the ledger, once, with its answers or before them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Protocol

from panprivacy.coins import SystemCoins
from panprivacy.errors import BudgetError, InputError
from panprivacy.guarantee import Guarantee
from panprivacy.service.outgoing.records import Entry, Promised, Published, StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.outgoing.tables import IDENTITY_BYTES

PAYER_BYTES = 8
_LINE = struct.Struct(f"<qq{PAYER_BYTES}s")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOST = "the ledger has lost what was paid, so nothing is released: put the release store back"
PACKED_BYTES = IDENTITY_BYTES + _LINE.size


class Costing(Protocol):
    """What is paid for: a `Counting`, or what stands for it where it is counted elsewhere."""

    @property
    def planned(self) -> int:
        """How many releases the budget covers."""

    @property
    def state_epsilon(self) -> Fraction:
        """What the state costs, in nats."""

    @property
    def release_epsilon(self) -> Fraction:
        """What the next release costs."""


@dataclass(slots=True)
class _Attempt:
    """A line of the ledger that is to be written, and how its writer knows it again."""

    line: tuple[datetime, int]
    payer: str
    paid: bool = False


class Payment:
    """Pays for the releases of one stream, one after another.

    Args:
        stream: name of the stream.
        store: where the ledger is.
        guarantee: to the users of each window.
    """

    def __init__(self, stream: str, store: ReleaseStore, guarantee: Guarantee) -> None:
        self._stream, self._store, self._guarantee = stream, store, guarantee
        self._attempt: _Attempt | None = None
        self._last: _Attempt | None = None

    def make(
        self,
        began: datetime,
        ends: datetime,
        counting: Costing,
        number: int,
        payer: str | None = None,
    ) -> bool:
        """Have the next release of a window in the ledger before it is made.

        A line that is there though its commit was reported as failed is known by its payer. Any
        other is of an earlier window, which began at the same time before the clock was set back,
        or of another service that shares the ledger.

        Args:
            began: when the window began to be counted.
            ends: when it ends.
            counting: what is counted in it.
            number: of the release.
            payer: by whom the line is known, of `new_payer`; None if only this object needs to.

        Returns:
            Whether the release may be made; False if its line is there and not by this attempt.

        Raises:
            StoreError: the ledger cannot be written to now, or not be read.
        """
        if number > counting.planned:
            return False
        if self._attempt is None or self._attempt.line != (began, number):
            self._attempt = _Attempt((began, number), payer or new_payer())
        attempt = self._attempt
        if attempt.paid:
            return True
        if not self._is_there(self._last):
            raise StoreError(_LOST)
        if self._store.released(self._stream, began) < number:
            with suppress(BudgetError):  # another service was faster
                costs = counting.state_epsilon, counting.release_epsilon
                lines = entries(self._stream, began, ends, number, attempt.payer, costs)
                self._store.spend(lines, self._promise(lines))
        attempt.paid = self._is_there(attempt)
        if attempt.paid:
            self._last = attempt
        return attempt.paid

    def use(self, began: datetime, number: int) -> str:
        """Name the payer of a release that is made now: that of its line, if `make` has paid it."""
        attempt, self._attempt = self._attempt, None
        known = attempt is not None and attempt.line == (began, number)
        return attempt.payer if attempt is not None and known else new_payer()

    def settle(self, entries: Sequence[Entry], answers: Sequence[Published]) -> bool:
        """Have a release in the ledger and its answers in the store, in one transaction.

        Args:
            entries: of `entries`.
            answers: of the release; none if they follow.

        Returns:
            Whether they are there; False if the line is there, and of another payer.

        Raises:
            StoreError: the store cannot be used now. Call it again.
            PanPrivacyError: the store refuses the answers. Nothing was written.
        """
        line = entries[-1]
        if not self._is_there(self._last):
            raise StoreError(_LOST)
        paid = self._store.settle(entries, answers, self._promise(entries))
        if paid:
            self._last = _Attempt((line.start, line.number), line.payer, paid=True)
        return paid

    def packed(self) -> bytes:
        """Which store this is, and the line that was paid last: all of it public, of one size."""
        if self._last is None:
            return self._store.identity + bytes(_LINE.size)
        began, number = self._last.line
        since = (began - _EPOCH) // timedelta(microseconds=1)
        return self._store.identity + _LINE.pack(since, number, bytes.fromhex(self._last.payer))

    def check(self, packed: bytes) -> None:
        """Raise `InputError` unless the store has what it had when `packed` was called."""
        same = packed[:IDENTITY_BYTES] == self._store.identity
        if not same or not self._is_there(_last(packed)):
            message = f"the release store has not what stream {self._stream} had paid when this "
            message += "checkpoint was written, so its budget could be spent twice: put the store "
            message += "back as it was"
            raise InputError(message)

    def unpack(self, packed: bytes) -> None:
        """Take over what `packed` gave."""
        self._last = _last(packed)

    def _promise(self, lines: Sequence[Entry]) -> Promised | None:
        """What the users of a window are promised, with its first line; None with later ones."""
        first = lines[0]
        return None if first.number else Promised.of(self._stream, first.start, self._guarantee)

    def _is_there(self, attempt: _Attempt | None) -> bool:
        """Whether a line is in the ledger as it was paid; without one, nothing is missing."""
        if attempt is None:
            return True
        return self._store.payer(self._stream, *attempt.line) == attempt.payer


def entries(
    stream: str,
    began: datetime,
    ends: datetime,
    number: int,
    payer: str,
    costs: tuple[Fraction, Fraction],
) -> list[Entry]:
    """The lines of a release; the first one of a window pays for the state, too.

    Args:
        stream: name of the stream.
        began: when the window began to be counted.
        ends: when it ends.
        number: of the release.
        payer: by whom its lines are known.
        costs: of the state, and of the release.
    """
    state, release = costs
    priced = [(0, state)] if number == 1 else []
    priced.append((number, release))
    return [Entry(stream, began, ends, place, epsilon, payer) for place, epsilon in priced]


def new_payer() -> str:
    """A random text by which whoever writes a line of the ledger knows it again."""
    return SystemCoins().key(PAYER_BYTES).hex()


def _last(packed: bytes) -> _Attempt | None:
    """The line that was paid last, as `Payment.packed` gave it."""
    since, number, payer = _LINE.unpack(packed[IDENTITY_BYTES:])
    if not number:
        return None
    return _Attempt((_EPOCH + timedelta(microseconds=since), number), payer.hex(), paid=True)

"""Payment: a release is written to the ledger once, with its answers or before them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Protocol

from panprivacy.errors import BudgetError, InputError
from panprivacy.privacy.coins import SystemCoins
from panprivacy.privacy.guarantee import Guarantee
from panprivacy.service.outgoing.records import Entry, Promised, Published, SketchRow, StoreError
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.outgoing.tables import IDENTITY_BYTES

PAYER_BYTES = 8
_LINE = struct.Struct(f"<qq{PAYER_BYTES}s")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOST = "the ledger has lost what was paid, so nothing is released: put the release store back"
PACKED_BYTES = IDENTITY_BYTES + _LINE.size


class Costing(Protocol):
    """Costs to be paid: a `Counting`, or a stand-in for a remote one."""

    @property
    def planned(self) -> int:
        """Number of releases that the budget covers."""

    @property
    def state_epsilon(self) -> Fraction:
        """Privacy loss of the state, in nats."""

    @property
    def release_epsilon(self) -> Fraction:
        """Privacy loss of the next release, in nats."""


@dataclass(slots=True)
class _Attempt:
    """A line of the ledger that is to be written, with the identifier of its writer."""

    line: tuple[datetime, int]
    payer: str
    paid: bool = False


class Payment:
    """Payer for the releases of one stream, one after another.

    Args:
        stream: name of the stream.
        store: the store of the ledger.
        guarantee: the privacy guarantee for the users of each window.
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
        """Write the next release of a window to the ledger before it is made.

        A line that exists although its commit was reported as failed is recognised by its payer.
        Any other existing line is of another service that shares the ledger, or of a process that
        went on from the same checkpoint.

        Args:
            began: start of the counting of the window.
            ends: end of the window.
            counting: the statistics of the window.
            number: number of the release.
            payer: identifier of the payer, by `new_payer`; None if only this object needs to know
                it.

        Returns:
            Whether the release may be made; False if the line exists, by another attempt.

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
        """Return the payer of a release made now: that of its line, if `make` has paid it."""
        attempt, self._attempt = self._attempt, None
        known = attempt is not None and attempt.line == (began, number)
        return attempt.payer if attempt is not None and known else new_payer()

    def settle(
        self,
        entries: Sequence[Entry],
        answers: Sequence[Published],
        sketches: Sequence[SketchRow] = (),
    ) -> bool:
        """Write a release to the ledger and its answers to the store, in one transaction.

        Args:
            entries: a result of `entries`.
            answers: the answers of the release; empty if they follow.
            sketches: the tables that it publishes.

        Returns:
            Whether they are there; False if the line exists, by another payer.

        Raises:
            StoreError: the store cannot be used now. Call again.
            PanPrivacyError: the store refuses the answers. Nothing was written.
        """
        line = entries[-1]
        if not self._is_there(self._last):
            raise StoreError(_LOST)
        paid = self._store.settle(entries, answers, self._promise(entries), sketches)
        if paid:
            self._last = _Attempt((line.start, line.number), line.payer, paid=True)
        return paid

    def packed(self) -> bytes:
        """Return the identity of the store and the last paid line: all public, of one size."""
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
        """Restore the result of `packed`."""
        self._last = _last(packed)

    def _promise(self, lines: Sequence[Entry]) -> Promised | None:
        """Return the promise to the users of a window for its first line; None for later lines."""
        first = lines[0]
        return None if first.number else Promised.of(self._stream, first.start, self._guarantee)

    def _is_there(self, attempt: _Attempt | None) -> bool:
        """Return whether a line is in the ledger as it was paid; true if there is no attempt."""
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
    """Return the lines of a release; the first one of a window also pays for the state.

    Args:
        stream: name of the stream.
        began: start of the counting of the window.
        ends: end of the window.
        number: number of the release.
        payer: identifier of the payer.
        costs: privacy loss of the state, and of the release.
    """
    state, release = costs
    priced = [(0, state)] if number == 1 else []
    priced.append((number, release))
    return [Entry(stream, began, ends, place, epsilon, payer) for place, epsilon in priced]


def new_payer() -> str:
    """Return a random text by which the writer of a ledger line recognises it."""
    return SystemCoins().key(PAYER_BYTES).hex()


def _last(packed: bytes) -> _Attempt | None:
    """Return the last paid line of a result of `Payment.packed`."""
    since, number, payer = _LINE.unpack(packed[IDENTITY_BYTES:])
    if not number:
        return None
    return _Attempt((_EPOCH + timedelta(microseconds=since), number), payer.hex(), paid=True)

"""How a release comes into the ledger, once, before it is made."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from panprivacy.coins import SystemCoins
from panprivacy.errors import BudgetError
from panprivacy.programs.counting import Counting
from panprivacy.service.outgoing.records import Entry
from panprivacy.service.outgoing.store import ReleaseStore

_PAYER_BYTES = 8


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
    """

    def __init__(self, stream: str, store: ReleaseStore) -> None:
        self._stream, self._store = stream, store
        self._attempt: _Attempt | None = None

    def make(self, began: datetime, ends: datetime, counting: Counting, number: int) -> bool:
        """Have the next release of a window in the ledger; again until it has worked.

        A line that is there though its commit was reported as failed is known by its payer. Any
        other is of an earlier window, which began at the same time before the clock was set back,
        or of another service that shares the ledger.

        Args:
            began: when the window began to be counted.
            ends: when it ends.
            counting: what is counted in it.
            number: of the release.

        Returns:
            Whether the release may be made; False if its line is there and not by this attempt.

        Raises:
            StoreError: the ledger cannot be written to now, or not be read.
        """
        if number > counting.planned:
            return False
        if self._attempt is None or self._attempt.line != (began, number):
            self._attempt = _Attempt((began, number), SystemCoins().key(_PAYER_BYTES).hex())
        attempt = self._attempt
        if attempt.paid:
            return True
        if self._store.released(self._stream, began) < number:
            with suppress(BudgetError):  # another service was faster
                self._store.spend(self._entries(ends, counting, attempt))
        attempt.paid = self._store.payer(self._stream, began, number) == attempt.payer
        return attempt.paid

    def use(self) -> None:
        """Forget what was paid: the release was made, or is lost."""
        self._attempt = None

    def _entries(self, ends: datetime, counting: Counting, attempt: _Attempt) -> list[Entry]:
        """What a release costs; the first one pays for the state, too."""
        began, number = attempt.line
        costs = [(0, counting.state_epsilon)] if number == 1 else []
        costs.append((number, counting.release_epsilon))
        return [
            Entry(self._stream, began, ends, place, epsilon, attempt.payer)
            for place, epsilon in costs
        ]

"""A count at every step outside of the catalogue: its state, its budget, and how it resumes."""

from __future__ import annotations

import json
from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from panprivacy._version import VERSION
from panprivacy.errors import BudgetError, InputError, PanPrivacyError
from panprivacy.ground.validation import whole_number
from panprivacy.privacy.coins import Coins, SystemCoins
from panprivacy.privacy.guarantee import Ledger
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.header import Header, unpacked
from panprivacy.statistics.internals import Resumable
from panprivacy.tables.counters.running import RunningState

K = TypeVar("K", bound=RunningState)
"""State of the counts: a `Running`, or a `CounterArray` of many."""


class StepCounter(Resumable, Generic[K]):
    """A step-by-step count: its state, its budget, and how it resumes.

    `StepwiseMemory` is no substitute: that has a key, cells, a catalogue plan and a planned number
    of intrusions, and this has none of them. Both count with the same `RunningState`.

    Args:
        epsilon: the loss of all steps, in nats.
        ledger: budget shared with others; None for one of its own.
        coins: source of all randomness; None for the operating system's.
    """

    __slots__ = ("_account", "_coins", "_intrusions", "_kept", "_ledger")

    name: ClassVar[str]
    """Name of the statistic in a state."""

    def __init__(self, epsilon: Fraction, ledger: Ledger | None, coins: Coins | None) -> None:
        self._ledger = Ledger(epsilon) if ledger is None else ledger
        self._ledger.check(epsilon)
        self._coins = coins or SystemCoins()
        self._intrusions = 0
        self._kept: K | None = self._new()
        self._account = self._ledger.open(epsilon)
        self._account.spend(epsilon)

    @abstractmethod
    def _new(self) -> K:
        """Return the state before the first step."""

    @property
    @abstractmethod
    def _public(self) -> dict[str, Any]:
        """Public front of a state: the sizes and the request."""

    @staticmethod
    def crash_cost(epsilon: Fraction, *, open_steps: bool) -> Fraction:
        """Return the largest loss that one crash adds.

        It is epsilon for an event that is sent again, and once more where the open step may be
        seen: the noise of its nodes is then on both branches, of which one closes them. So each
        further crash adds epsilon, if no intrusion is announced. [docs/guarantees/crashes.md]
        """
        return 2 * epsilon if open_steps else epsilon

    @property
    def tick(self) -> int:
        """Number of completed steps."""
        return self._now.tick

    @property
    def ledger(self) -> Ledger:
        """The budget that it draws on; shared if it was given one."""
        return self._ledger

    def announce_intrusion(self) -> None:
        """Add fresh noise to the state after an intrusion, so that one more is covered.

        It costs no epsilon. Open nodes then have a larger error.
        """
        self._now.rerandomise()
        self._intrusions += 1

    def forget(self) -> None:
        """Wipe the state: it can no longer be used or read. May be repeated."""
        if self._kept is not None:
            self._kept.forget()
            self._kept = None

    def state(self) -> bytes:
        """Return exactly the view of an intruder; reading it changes nothing.

        Whoever reads it has intruded: announce that before the state may be seen again.
        """
        return self._layout.packed() + self._now.packed() + self._extra()

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        self._earlier(state, released, announced)

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Continue from an earlier state of a count with the same parameters.

        No step is repeated: if steps were made after the state was taken, their counts are lost,
        and so are those that no answer has included yet. The count continues at the step after
        them, on top of its last answers. An event that is counted again, because it was counted
        after the state was taken, costs epsilon again; see docs/guarantees/continual.md.

        Args:
            state: what `state()` returned. Wipe it afterwards if it can be wiped.
            released: the number of completed steps in total, if some came after the state was
                taken; also those whose answer was lost.
            announced: the number of announced intrusions in total, if some came after it.

        Raises:
            InputError: the state is damaged, has other parameters, or another version. Nothing
            changed.
            PanPrivacyError: this one has made steps or announced intrusions of its own.
        """
        header, body = self._earlier(state, released, announced)
        kept = self._now
        own = np.frombuffer(kept.packed(), np.uint8).copy()
        kept.unpack(header.tick, body[: kept.nbytes])
        try:
            if released > header.tick:
                kept.restart(released)
            for _ in range(announced - header.intrusions):
                kept.rerandomise()
        except BaseException:
            kept.unpack(0, own.data)
            raise
        finally:
            wipe(own)
        self._intrusions = max(header.intrusions, announced)
        self._take_extra(body[kept.nbytes :])

    def _extra(self) -> bytes:
        """Return the additional state; its length never changes."""
        return b""

    def _check_extra(self, body: memoryview) -> None:
        """Refuse what `_extra` cannot have given."""

    def _take_extra(self, body: memoryview) -> None:
        """Continue from the output of `_extra`, once `_check_extra` has accepted it."""

    def _earlier(self, state: bytes, released: int, announced: int) -> tuple[Header, memoryview]:
        if self.tick or self._intrusions:
            message = "only a new one can go on from an earlier state"
            raise PanPrivacyError(message)
        whole_number(0, self._now.horizon, released=released)
        whole_number(0, 1 << 31, announced=announced)
        header, body = unpacked(state, self._layout)
        self._now.check(header.tick, body[: self._now.nbytes])
        self._check_extra(body[self._now.nbytes :])
        if header.releases:
            message = "the state is damaged: its answers are its steps"
            raise InputError(message)
        return header, body

    @property
    def _layout(self) -> Header:
        """The public part of the state; its length depends only on the parameters."""
        text = {
            "version": VERSION,
            "statistic": self.name,
            "ledger": str(self._ledger.total),
            **self._public,
        }
        front = json.dumps(text, sort_keys=True).encode()
        body = self._now.nbytes + len(self._extra())
        return Header(front, body, 0, self._intrusions, self.tick)

    @property
    def _now(self) -> K:
        if self._kept is None:
            message = "the state was wiped; make a new one"
            raise PanPrivacyError(message)
        return self._kept

    def _check_left(self, steps: int) -> None:
        """Raise `BudgetError` if fewer steps remain."""
        now = self._now
        if steps > now.left:
            message = (
                f"{now.left:,} of {now.horizon:,} steps are left, and {steps:,} were to be made: "
                "make it with a larger horizon="
            )
            raise BudgetError(message)

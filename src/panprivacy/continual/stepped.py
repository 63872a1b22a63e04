"""What counts step by step: it pays for all steps at birth, and goes on from a state."""

from __future__ import annotations

import json
from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from panprivacy._validate import whole_number
from panprivacy._version import VERSION
from panprivacy.coins import Coins, SystemCoins
from panprivacy.errors import BudgetError, InputError, PanPrivacyError
from panprivacy.guarantee import Ledger
from panprivacy.noise import wipe
from panprivacy.statistics.header import Header, unpacked
from panprivacy.statistics.private import Resumable

K = TypeVar("K", bound=Any)
"""What is kept of the counts: a `Running`, or a `Kept` of many."""


class Stepped(Resumable, Generic[K]):
    """What all that counts step by step can do: its state, its budget, how it goes on.

    Args:
        epsilon: the loss of all steps, in nats.
        ledger: budget shared with others; None for one of its own.
        coins: source of all randomness; None for the operating system's.
    """

    __slots__ = ("_account", "_coins", "_intrusions", "_kept", "_ledger")

    name: ClassVar[str]
    """Of a state."""

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
        """What is kept before the first step."""

    @property
    @abstractmethod
    def _public(self) -> dict[str, Any]:
        """Of the public front of a state, the sizes and the request."""

    @staticmethod
    def crash_cost(epsilon: Fraction, *, open_steps: bool) -> Fraction:
        """Return the largest loss that one crash adds.

        It is epsilon for an event that is sent again, and once more where the open step may be
        seen: the noise of its nodes is then on both branches. [docs/guarantees/crashes.md]
        """
        return 2 * epsilon if open_steps else epsilon

    @property
    def tick(self) -> int:
        """How many steps have ended."""
        return int(self._now.tick)

    @property
    def ledger(self) -> Ledger:
        """The budget that it draws on; shared if it was given one."""
        return self._ledger

    def announce_intrusion(self) -> None:
        """Add fresh noise to the state after somebody has seen it, so that it may be seen again.

        It costs no epsilon. What was open then errs more.
        """
        self._now.rerandomise()
        self._intrusions += 1

    def forget(self) -> None:
        """Wipe the state: nothing can be counted or seen any more. May be repeated."""
        if self._kept is not None:
            self._kept.forget()
            self._kept = None

    def state(self) -> bytes:
        """Exactly what an intruder would get; reading it changes nothing.

        Whoever reads it has intruded: announce that before the state may be seen again.
        """
        return self._layout.packed() + self._now.packed() + self._extra()

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        self._earlier(state, released, announced)

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Go on from an earlier state of one made alike, in place of its own.

        A step that was made is never made again: if some were after the state was taken, what they
        counted is lost, and so is what no answer has told yet. It goes on at the step after them,
        on top of its last answers. An event that is counted again, because it was counted after the
        state was taken, costs epsilon again; see docs/guarantees/continual.md.

        Args:
            state: what `state()` returned. Wipe it afterwards if it can be wiped.
            released: how many steps have been made in all, if some were after the state was taken;
                also those whose answer was lost.
            announced: how many intrusions have been announced in all, if some were after it.

        Raises:
            InputError: it is damaged, made otherwise, or of another version. Nothing changed.
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
        """What else is kept; its length never changes."""
        return b""

    def _check_extra(self, body: memoryview) -> None:
        """Refuse what `_extra` cannot have given."""

    def _take_extra(self, body: memoryview) -> None:
        """Go on from what `_extra` gave, and `_check_extra` lets pass."""

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
        """The public part of the state; its length depends on what was asked alone."""
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
        """Raise `BudgetError` if the horizon has fewer steps left."""
        now = self._now
        if steps > now.left:
            message = (
                f"{now.left:,} of {now.horizon:,} steps are left, and {steps:,} were to be made: "
                "make it with a larger horizon="
            )
            raise BudgetError(message)

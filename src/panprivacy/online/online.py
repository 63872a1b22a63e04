"""What every online algorithm does: it has steps and a budget, and survives being seen."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy._validate import positive_fraction, positive_integer, whole_number
from panprivacy._version import VERSION
from panprivacy.coins import Coins, SystemCoins
from panprivacy.errors import BudgetError, InputError, PanPrivacyError, PlanError
from panprivacy.guarantee import Epsilon, Guarantee, Ledger
from panprivacy.noise import wipe
from panprivacy.online.kept import Kept
from panprivacy.planning.request import LEAST_EPSILON, MOST_EPSILON
from panprivacy.statistics.header import Header, unpacked
from panprivacy.statistics.private import Resumable

MOST_COUNTERS = 1 << 24
MOST_HORIZON = 1 << 40
MOST_ANSWERS = 1 << 24
"""Of one counter, so that errors can be predicted in seconds."""


class Online(Resumable):
    """An algorithm that decides at every step by many running counts.

    Args:
        counters: how many there are.
        horizon: how many steps there are at most.
        every: after how many steps all counters answer.
        epsilon: the loss, in nats.
        affected: how many counters a neighbour changes, each by one event.
        open_steps: whether events are counted between two answers.
        sizes: what else the public front of a state has.
        ledger: budget shared with others; None for one of its own.
        coins: source of all randomness; None for the operating system's.
    """

    __slots__ = ("_account", "_coins", "_epsilon", "_intrusions", "_kept", "_ledger", "_sizes")

    name: ClassVar[str]
    """Of a state."""

    def __init__(
        self,
        counters: int,
        horizon: int,
        every: int,
        epsilon: Epsilon,
        *,
        affected: int,
        open_steps: bool,
        sizes: dict[str, Any],
        ledger: Ledger | None,
        coins: Coins | None,
    ) -> None:
        self._epsilon = positive_fraction(epsilon=epsilon)
        if not LEAST_EPSILON <= self._epsilon <= MOST_EPSILON:
            told = f"from {float(LEAST_EPSILON):.6f} to {MOST_EPSILON:,}"
            message = f"epsilon must be {told}: most counts need 0.1 to 10"
            raise PlanError(message)
        if -(-horizon // every) > MOST_ANSWERS:
            message = f"a counter has at most {MOST_ANSWERS:,} answers: ask for fewer steps, or "
            message += "for more of them between two answers"
            raise PlanError(message)
        each = self._epsilon / affected
        if horizon > (1 << 54) * min(each, Fraction(1)):
            message = "sums and their noise must fit into 64 bits: ask for fewer steps or for "
            message += "more epsilon"
            raise PlanError(message)
        self._ledger = Ledger(self._epsilon) if ledger is None else ledger
        self._ledger.check(self._epsilon)
        self._coins = coins or SystemCoins()
        self._sizes = {"n": counters, "horizon": horizon, "every": every, **sizes}
        self._intrusions = 0
        self._kept: Kept | None = self._new(each, open_steps=open_steps)
        self._account = self._ledger.open(self._epsilon)
        self._account.spend(self._epsilon)

    @property
    def n(self) -> int:
        """How many counters, experts or elements there are."""
        return int(self._sizes["n"])

    @property
    def horizon(self) -> int:
        """How many steps there are at most."""
        return int(self._sizes["horizon"])

    @property
    def every(self) -> int:
        """After how many steps all counters answer."""
        return int(self._sizes["every"])

    @property
    def tick(self) -> int:
        """How many steps have ended."""
        return self._now.tick

    @property
    def ledger(self) -> Ledger:
        """The budget that it draws on; shared if it was given one."""
        return self._ledger

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to each event."""
        return Guarantee(self._epsilon, adjacency="event", conditions=self._conditions)

    @property
    def _conditions(self) -> tuple[str, ...]:
        return ("what is hidden is one event, not all events of a user",)

    def predicted_error(self) -> float:
        """The root of the mean over all answers of the squared error of a count's noise."""
        return float(np.sqrt(self._now.forest.variances().mean()))

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
        """Go on from an earlier state of the same program, in place of this one's own.

        A step that was made is never made again: if some were after the state was taken, what they
        counted is lost, and so is what no answer has told yet. The counts go on at the step after
        them, on top of their last answers.

        Args:
            state: what `state()` returned. Wipe it afterwards if it can be wiped.
            released: how many steps have been made in all, if some were after the state was taken.
            announced: how many intrusions have been announced in all, if some were after it.

        Raises:
            InputError: it is damaged, or of another program or version. Nothing changed.
            PanPrivacyError: this one has made steps or announced intrusions of its own.
        """
        header, body = self._earlier(state, released, announced)
        now = self._now
        later = self._new(now.forest.epsilon, open_steps=now.forest.open_steps)
        later.unpack(header.tick, body[: now.nbytes])
        try:
            if released > header.tick:
                later.restart(released)
            for _ in range(announced - header.intrusions):
                later.rerandomise()
        except BaseException:
            later.forget()
            raise
        self.forget()
        self._kept, self._intrusions = later, max(header.intrusions, announced)
        self._take_extra(body[later.nbytes :])

    def _new(self, epsilon: Fraction, *, open_steps: bool) -> Kept:
        """What is kept before the first step."""
        sizes = self.n, self.horizon, self.every
        return Kept(*sizes, epsilon, self._coins, open_steps=open_steps)

    def _extra(self) -> bytes:
        """What else is kept; its length never changes."""
        return b""

    def _check_extra(self, body: memoryview) -> None:
        """Refuse what `_extra` cannot have given."""

    def _take_extra(self, body: memoryview) -> None:
        """Go on from what `_extra` gave, and `_check_extra` lets pass."""

    def _earlier(self, state: bytes, released: int, announced: int) -> tuple[Header, memoryview]:
        if self.tick or self._intrusions:
            message = "only a new program can go on from an earlier state"
            raise PanPrivacyError(message)
        whole_number(0, self.horizon, released=released)
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
            "sizes": self._sizes,
            "request": {"epsilon": str(self._epsilon)},
        }
        front = json.dumps(text, sort_keys=True).encode()
        body = self._now.nbytes + len(self._extra())
        return Header(front, body, 0, self._intrusions, self.tick)

    @property
    def _now(self) -> Kept:
        if self._kept is None:
            message = "the state was wiped; make a new one"
            raise PanPrivacyError(message)
        return self._kept

    def _check_left(self, steps: int) -> None:
        """Raise `BudgetError` if the horizon has fewer steps left."""
        left = self._now.left
        if steps > left:
            message = (
                f"{left:,} of {self.horizon:,} steps are left, and {steps:,} were to be made: "
                "make it with a larger horizon="
            )
            raise BudgetError(message)

    def _numbers(self, given: ArrayLike, least: int) -> NDArray[np.int64]:
        """A copy of numbers of counters, to be wiped.

        Raises:
            InputError: they are no row of whole numbers, or one is out of range.
        """
        try:
            taken = np.asarray(given)
        except ValueError:  # rows of several lengths
            taken = np.empty((0, 0))
        if taken.ndim != 1 or (taken.size and taken.dtype.kind not in "iu"):
            message = "say which by whole numbers, in one row of integers"
            raise InputError(message)
        outside = (taken < least) | (taken >= self.n)
        if outside.any():
            none = ", or -1 for none" if least < 0 else ""
            message = f"each is a whole number, 0 to {self.n - 1:,}{none}"
            raise InputError(message, row=int(outside.argmax()) + 1)
        numbers = np.array(taken, np.int64)
        if isinstance(given, (list, tuple)):  # else it is the caller's own
            wipe(taken)
        return numbers

    def __repr__(self) -> str:
        return f"<{type(self).__name__} n={self.n:,} epsilon={float(self._epsilon):g}>"


def sizes_of(n: object, horizon: object) -> tuple[int, int]:
    """Read how many counters and how many steps there are.

    Raises:
        PlanError: one is out of range.
    """
    return positive_integer(MOST_COUNTERS, n=n), positive_integer(MOST_HORIZON, horizon=horizon)

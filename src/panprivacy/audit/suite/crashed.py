"""Counters that crash, and go on from a sealed checkpoint; each keeps what it claims for that.

A crash costs the events that it loses, if somebody saw the state before it, and those that are sent
again. `Restarted` in the place of a program walks both branches of its life.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

from panprivacy.audit.crashes import Restarted
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.streams import CRASH, RELEASE, SAVE, Stream
from panprivacy.audit.subject import Subject
from panprivacy.coins import Coins
from panprivacy.continual.counter import Counter
from panprivacy.online import MultiCounter
from panprivacy.statistics.running.statistic import RunningCount
from panprivacy.statistics.running_distinct.sizes import RunningDistinctSizes
from panprivacy.statistics.running_distinct.statistic import RunningDistinct

LIVES: Sequence[Stream] = (
    [SAVE, [0], CRASH, RELEASE],
    [SAVE, [0], CRASH, [0], RELEASE],
)
"""An event that a crash loses, and one that is sent again in the same step."""

SEEN_LATER: Sequence[Stream] = (*LIVES, [SAVE, [0], CRASH, RELEASE, [0], RELEASE])
"""And one that is sent again in the next step."""


def crashed(epsilon: Fraction) -> list[Subject]:
    """What hides one event, with one crash."""
    coins = EnumeratedCoins(tail=5, state_tail=1)
    product = partial(Subject, kind="product", adjacency="event", users=((0, 0),), coins=coins)
    one: dict[str, Any] = {"horizon": 1, "epsilon": epsilon}

    def counter(coins: Coins | None) -> Events:
        return Events(Counter(**one, open_steps=True, coins=coins))

    def multi(coins: Coins | None) -> Steps:
        return Steps(MultiCounter(1, **one, every=1, coins=coins))

    def distinct(coins: Coins | None) -> OneBit:
        return OneBit(**one, expected=1, memory=1, coins=coins)

    return [
        product(
            "running-count-crash",
            says="a count of which a crash loses an event, which is sent again in the next step",
            make=partial(Restarted, partial(TwoSteps, one)),
            claimed=RunningCount(**one).guarantee.crashed(1).epsilon,
            streams=SEEN_LATER,
        ),
        product(
            "running-distinct-crash",
            says="one bit and the number of ones, of which a crash loses an event",
            make=partial(Restarted, distinct),
            claimed=distinct(None).guarantee.crashed(1).epsilon,
            streams=LIVES,
            coins=replace(coins, tail=9),
        ),
        product(
            "counter-crash",
            says="a counter with open steps, of which a crash loses an event",
            make=partial(Restarted, counter),
            claimed=counter(None).counter.guarantee.crashed(1).epsilon,
            streams=LIVES,
        ),
        product(
            "multi-counter-crash",
            says="one of many counters, of which a crash loses an event",
            make=partial(Restarted, multi),
            claimed=multi(None).program.guarantee.crashed(1).epsilon,
            streams=LIVES,
        ),
    ]


class TwoSteps:
    """Two running counts of one step, one after the other, as a tree of two steps has them.

    The walk wants all noise that a release draws in its answer, so the second count begins with the
    first batch after that. What the first one has left is public, and is not kept.

    Args:
        sizes: of each.
        coins: source of all randomness.
    """

    def __init__(self, sizes: dict[str, Any], coins: Coins) -> None:
        self._sizes, self._coins = sizes, coins
        self._count: RunningCount | None = RunningCount(**sizes, coins=coins)

    def update(self, *rows: Any) -> None:
        """Count events of the open step."""
        if self._count is None:
            self._count = RunningCount(**self._sizes, coins=self._coins)
        self._count.update(*rows)

    def release(self) -> Any:
        """End the step."""
        count, self._count = self._count, None
        return None if count is None else count.release()

    def state(self) -> bytes:
        """The state of the open step."""
        return b"" if self._count is None else self._count.state()

    def resume(self, state: bytes, **since: int) -> None:
        """Go on from an earlier state within the first step."""
        if self._count is not None:
            self._count.resume(state, **since)

    def forget(self) -> None:
        """Wipe the state."""
        if self._count is not None:
            self._count.forget()


class OneBitSizes(RunningDistinctSizes, frozen=True, tag="running-distinct-of-one-bit"):
    """The sizes of a table of one bit."""

    def plan(self, request: Any) -> Any:
        """Plan a table of one bit."""
        return replace(super().plan(request), levels=1, cells_per_level=1)


class OneBit(RunningDistinct, sizes=OneBitSizes):
    """All users share one bit: eight of them, the fewest that are planned, are too many to walk."""


class Events:
    """A counter with open steps: a row is an event, and a release ends a step."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.state, self.resume, self.forget = counter.state, counter.resume, counter.forget

    def update(self, rows: Sequence[object], _deltas: Any = None) -> None:
        """Count events of the open step."""
        for _ in rows:
            self.counter.add(1)

    def release(self) -> Any:
        """End the step."""
        return self.counter.step()


class Steps:
    """Counters: a row is an event of the counter that it names, and a release ends a step.

    Args:
        program: the counters.
        decided: what of them follows from their answers; nothing unless given.
    """

    def __init__(
        self, program: MultiCounter, decided: Callable[[Any], object] = lambda _: None
    ) -> None:
        self.program, self.decided = program, decided
        self.state, self.announce_intrusion = program.state, program.announce_intrusion
        self.resume, self.forget = program.resume, program.forget

    def update(self, which: Sequence[int], _deltas: Any = None) -> None:
        """Count events of the open step."""
        self.program.count(which)

    def release(self) -> SimpleNamespace:
        """End the step; counts where answers were due, and what was decided."""
        program = self.program
        program.step()
        counts = program.values.astype(int).tolist() if program.answered == program.tick else ()
        return SimpleNamespace(counts=tuple(counts), decided=self.decided(program))

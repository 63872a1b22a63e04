"""Programs that crash, and go on from a sealed checkpoint; each keeps what it claims for that.

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
from panprivacy.statistics.density.statistic import Density
from panprivacy.statistics.running.statistic import RunningCount
from panprivacy.statistics.running_distinct.sizes import RunningDistinctSizes
from panprivacy.statistics.running_distinct.statistic import RunningDistinct

LIVES: Sequence[Stream] = (
    [SAVE, [0], CRASH, RELEASE],
    [SAVE, [0], CRASH, [0], RELEASE],
)
"""An event that a crash loses, and one that is sent again in the same step."""

LATER: Sequence[Stream] = (*LIVES, [SAVE, [0], CRASH, RELEASE, [0], RELEASE])
"""And one that is sent again in the next step."""


def crashed(epsilon: Fraction) -> list[Subject]:
    """What hides one event, with one crash; and a user who is sent again in the next window."""
    return [*_counts(epsilon), _windows(epsilon)]


def _windows(epsilon: Fraction) -> Subject:
    """Two windows, of which a crash takes a user from the first one to the second."""

    def density(coins: Coins | None) -> Density:
        return Density(universe=1, epsilon=epsilon, coins=coins)

    return Subject(
        "window-crash",
        "product",
        "a user whom a crash takes from a window, and who is sent again in the next one",
        partial(Restarted, partial(OneAfterAnother, density)),
        density(None).guarantee.over(2).epsilon,
        LATER,
        users=((0, 0),),
        coins=EnumeratedCoins(tail=4),
    )


def _counts(epsilon: Fraction) -> list[Subject]:
    """What hides one event."""
    coins = EnumeratedCoins(tail=5, state_tail=1)
    product = partial(Subject, kind="product", adjacency="event", users=((0, 0),), coins=coins)
    one: dict[str, Any] = {"horizon": 1, "epsilon": epsilon}

    def count(coins: Coins | None) -> RunningCount:
        return RunningCount(**one, coins=coins)

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
            make=partial(Restarted, partial(OneAfterAnother, count)),
            claimed=count(None).guarantee.crashed(1).epsilon,
            streams=LATER,
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


class OneAfterAnother:
    """A program for each step or window, the next one after the last release of the one before.

    The walk wants all noise that a release draws in its answer, so the next one begins with the
    first batch after that. What has left is public, and is not kept.

    Args:
        make: makes one with the coins it is given.
        coins: source of all randomness.
    """

    def __init__(self, make: Callable[[Any], Any], coins: Coins) -> None:
        self._make, self._coins = make, coins
        self._current = make(coins)

    def update(self, *rows: Any) -> None:
        """Count a batch."""
        if self._current is None:
            self._current = self._make(self._coins)
        self._current.update(*rows)

    def release(self) -> Any:
        """Publish an answer, and end with the last one."""
        current = self._current
        answer = current.release()
        if current.releases == current.planned:
            self.forget()
        return answer

    def state(self) -> bytes:
        """The state of the current one; nothing between two."""
        return b"" if self._current is None else self._current.state()

    def resume(self, state: bytes, **since: int) -> None:
        """Go on from an earlier state of the first one."""
        self._current.resume(state, **since)

    def forget(self) -> None:
        """Wipe the state."""
        self._current.forget()
        self._current = None


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

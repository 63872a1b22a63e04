"""Programs that crash, and go on from a sealed checkpoint; each keeps what it claims for that.

A crash costs the events that it loses, if somebody saw the state before it, and those that are sent
again. `Restarted` in the place of a program walks both branches of its life.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

from panprivacy.audit.crashes import Restarted
from panprivacy.audit.crashing import EventCounter, counter_crashes, cropped_crash, heavy_crash
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.streams import CRASH, RELEASE, SAVE, EventStream
from panprivacy.audit.subject import Subject
from panprivacy.continual.counter import Counter
from panprivacy.papers.online import MultiCounter
from panprivacy.privacy.coins import Coins
from panprivacy.statistics.density.statistic import Density
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.running.count import RunningCount
from panprivacy.statistics.running.distinct import RunningDistinct, RunningDistinctSizes

LIVES: Sequence[EventStream] = (
    [SAVE, [0], CRASH, RELEASE],
    [SAVE, [0], CRASH, [0], RELEASE],
)
"""An event that a crash loses, and one that is sent again in the same step."""

LATER: Sequence[EventStream] = (*LIVES, [SAVE, [0], CRASH, RELEASE, [0], RELEASE])
"""And one that is sent again in the next step."""

TWICE: Sequence[EventStream] = (
    [SAVE, [0], CRASH, [0], CRASH, RELEASE],
    [SAVE, [0], CRASH, RELEASE, [0], RELEASE, CRASH, [0], RELEASE],
)
"""An event that two crashes lose, and one that is sent again in a later step after each."""


def crashed(epsilon: Fraction) -> list[Subject]:
    """Return subjects that hide one event, with a crash, or a user repeated in the next window."""
    coins = EnumeratedCoins(tail=5, state_tail=1)
    product = partial(Subject, kind="product", adjacency="event", users=((0, 0),), coins=coins)
    one: dict[str, Any] = {"horizon": 1, "epsilon": epsilon}
    apart = cropped_crash(epsilon), heavy_crash(epsilon), counter_crashes(epsilon)
    return [*_counts(product, one), *_counters(product, one), *apart, _windows(epsilon)]


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


def _counts(product: Callable[..., Subject], one: Mapping[str, Any]) -> list[Subject]:
    """Statistics that hide one event."""

    def count(coins: Coins | None) -> RunningCount:
        return RunningCount(**one, coins=coins)

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
            "running-count-crashes",
            says="a count of which two crashes lose an event, which is sent again after each",
            make=partial(Restarted, partial(OneAfterAnother, count)),
            claimed=count(None).guarantee.crashed(2).epsilon,
            streams=TWICE,
        ),
        product(
            "running-distinct-crash",
            says="one bit and the number of ones, of which a crash loses an event",
            make=partial(Restarted, distinct),
            claimed=distinct(None).guarantee.crashed(1).epsilon,
            streams=LIVES,
            coins=EnumeratedCoins(tail=9, state_tail=1),
        ),
    ]


def _counters(product: Callable[..., Subject], one: Mapping[str, Any]) -> list[Subject]:
    """Counters that hide one event."""

    def counter(coins: Coins | None) -> EventCounter:
        return EventCounter(Counter(**one, open_steps=True, coins=coins))

    def multi(coins: Coins | None) -> Steps:
        return Steps(MultiCounter(1, **one, every=1, coins=coins))

    return [
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
        if current.releases == current.internals.releasing.planned:
            self.forget()
        return answer

    def state(self) -> bytes:
        """The state of the current one; nothing between two."""
        return b"" if self._current is None else self._current.state()

    def resume(self, state: bytes, *, released: int, announced: int) -> None:
        """Resume an earlier state of the first statistic; start the next if that has answered."""
        if released < self._current.internals.releasing.planned:
            self._current.resume(state, released=released, announced=announced)
        else:
            self.forget()

    def forget(self) -> None:
        """Wipe the state, if there is one."""
        if self._current is not None:
            self._current.forget()
            self._current = None


class OneBitSizes(RunningDistinctSizes, frozen=True, tag="running-distinct-of-one-bit"):
    """The sizes of a table of one bit."""

    def plan(self, request: Any) -> Any:
        """Plan a table of one bit."""
        return replace(super().plan(request), levels=1, cells_per_level=1)


class OneBit(RunningDistinct):
    """All users share one bit: eight of them, the fewest that are planned, are too many to walk."""

    entry = CatalogueEntry(OneBitSizes)


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

"""Programs that crash, whose views come apart: running sketches, and a counter with two crashes.

Their noise is too wide to be walked: `panprivacy.audit.exact.separate` adds up what they lose.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np

from panprivacy.audit.crashes import Restarted
from panprivacy.audit.exact.separate import ViewNumbers
from panprivacy.audit.streams import CRASH, RELEASE, SAVE, EventStream
from panprivacy.audit.subject import Separate
from panprivacy.continual.counter import Counter
from panprivacy.errors import allow_noise
from panprivacy.privacy.coins import Coins
from panprivacy.statistics.running.cropped import RunningCroppedSum
from panprivacy.statistics.running.heavy import RunningHeavyHitters

RISING: Sequence[EventStream] = ([RELEASE, SAVE, [0], CRASH, RELEASE, [0], RELEASE, [0], RELEASE],)
"""An event that a crash loses and that is sent again in a later step, and one after that."""

AGAIN_AND_AGAIN: Sequence[EventStream] = (
    [SAVE, [0], CRASH, RELEASE, [0], RELEASE, CRASH, [0], RELEASE],
    [SAVE, [0], CRASH, [0], CRASH, RELEASE, RELEASE, RELEASE],
)
"""An event that two crashes lose: sent again in a later step after each, and in the same step."""

SCALES: Final = 18
"""Noise of a cell is walked so far: what lies further out has a probability of `e**-18`."""

_OF_A_LEVEL: Final = 8 * (1 + 5 + 11)
"""Bytes of a counter of one level: its sum, what is known of its answers, and of the last one."""


@functools.cache
@allow_noise()
def cropped_crash(epsilon: Fraction) -> Separate:
    """A running cropped sum, whose cell is walked and whose sums come apart."""

    def cropped(coins: Coins | None) -> RunningCroppedSum:
        horizon = RISING[0].count(RELEASE)
        return RunningCroppedSum(tau=1, universe=1, horizon=horizon, epsilon=epsilon, coins=coins)

    return _sketch_crash(
        "running-cropped-crash",
        "a running cropped sum of which a crash loses an event, which is sent again later",
        cropped,
    )


@functools.cache
@allow_noise()
def heavy_crash(epsilon: Fraction) -> Separate:
    """A running count of heavy hitters, with two cells."""

    def heavy(coins: Coins | None) -> RunningHeavyHitters:
        sizes: dict[str, Any] = {"k": 1, "total": 2, "cells": 2}
        horizon = RISING[0].count(RELEASE)
        return RunningHeavyHitters(**sizes, horizon=horizon, epsilon=epsilon, coins=coins)

    return _sketch_crash(
        "running-heavy-crash",
        "a running count of heavy hitters of which a crash loses an event, which is sent again",
        heavy,
    )


def _sketch_crash(name: str, says: str, make: Callable[[Coins | None], Any]) -> Separate:
    """A running sketch with one crash."""
    guarantee, plan = make(None).guarantee, make(None).plan
    return Separate(
        name=name,
        kind="product",
        says=says,
        make=partial(Restarted, make),
        claimed=guarantee.crashed(1).epsilon,
        streams=RISING,
        users=((0, 0),),
        adjacency="event",
        numbers=_sketch_numbers,
        cells=plan.cells,
        most=math.ceil(SCALES * plan.inner.scale),
    )


def _sketch_numbers(restarted: Any) -> ViewNumbers:
    """Return the cells of a running sketch, and the nodes of its sum."""
    program = restarted.program
    table = program.plan.table
    state = np.frombuffer(program.state()[-table.nbytes :], np.int64)
    (nodes,) = table.of_sums(state)
    return ViewNumbers(table.of_cells(state).tolist(), nodes[: table.nodes.cells].tolist())


@functools.cache
@allow_noise()
def counter_crashes(epsilon: Fraction) -> Separate:
    """A counter with two crashes, which has no cells, and only adds."""

    def counter(coins: Coins | None) -> EventCounter:
        horizon = AGAIN_AND_AGAIN[0].count(RELEASE)
        return EventCounter(Counter(horizon, epsilon=epsilon, open_steps=True, coins=coins))

    return Separate(
        name="counter-crashes",
        kind="product",
        says="a counter of which two crashes lose an event, which is sent again later after each",
        make=partial(Restarted, counter),
        claimed=counter(None).counter.guarantee.crashed(2).epsilon,
        streams=AGAIN_AND_AGAIN,
        users=((0, 0),),
        adjacency="event",
        numbers=_counter_numbers,
    )


def _counter_numbers(restarted: Any) -> ViewNumbers:
    """Return the one open node of a counter of few steps; public numbers follow it."""
    return ViewNumbers(
        [], np.frombuffer(restarted.program.state()[-_OF_A_LEVEL:], np.int64)[:1].tolist()
    )


class EventCounter:
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

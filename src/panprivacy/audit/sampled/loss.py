"""A lower bound on the privacy loss from runs of the shipping code, for sizes beyond enumeration.

Both streams are run many times with the coins of production. A first sample of each shows which
words of the states tell the streams apart, a second one which released counts and intervals do, and
picks two events, one for each direction. A third one, by which nothing was chosen, counts how often
they happen.

Reference: C. Clopper, E. Pearson, "The use of confidence or fiducial limits illustrated in the case
of the binomial" (1934).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np

from panprivacy.audit.binomial import clopper_pearson
from panprivacy.audit.sampled.events import (
    CellCounts,
    Events,
    Runs,
    Summary,
    events_by,
    fit,
    screen,
    summed_up,
)
from panprivacy.audit.sampled.looks import FixedKeyCoins, look
from panprivacy.audit.streams import ANNOUNCE, EventStream, checked
from panprivacy.errors import PlanError, allow_noise
from panprivacy.ground.validation import proportion, whole_number
from panprivacy.privacy.coins import Coins

_LEAST_RUNS, _MOST_RUNS = 100, 1 << 32
_CHUNK: Final = 500
"""Runs whose views are held at a time."""


@dataclass(frozen=True, slots=True)
class SampledLoss:
    """The result of the search for a lower bound.

    Args:
        epsilon: lower bound on the loss, in nats; 0 where nothing was found.
        confidence: probability that it is not above the loss.
        hits: how often the event happened on the stream, and on its neighbour.
        runs: number of runs of each, in which that was counted.
        words: places of the words of the states that define the event.
        counts: places of the released counts that define it.
        bars: places by which it is told among the value, the low and the high end and the width of
            each answer, one after the other.
    """

    epsilon: float
    confidence: float
    hits: tuple[int, int]
    runs: int
    words: tuple[int, ...]
    counts: tuple[int, ...]
    bars: tuple[int, ...]


@allow_noise()
def sampled_loss(
    make: Callable[[Coins], Any],
    stream: EventStream,
    neighbour: EventStream,
    *,
    after_step: int | None = None,
    runs: int = 20_000,
    confidence: float = 1 - 1e-6,
    cell_bytes: int | None = None,
    summary: Summary | None = None,
    addressing_key: bytes | None = None,
) -> SampledLoss:
    """Return a lower bound on the privacy loss between two streams.

    The view is the state at one moment, the states at announced intrusions before it, and the
    counts, values and intervals of all releases. A release is judged by what it tells beyond the
    score of the states and the summary: what only single bits of a state and a release tell
    together is missed.

    Guarantee: the bound exceeds the true loss with a probability of at most `1 - confidence`. The
    two events are fixed before the runs that count them, and each of their four proportions has a
    one-sided Clopper-Pearson bound that is wrong with a quarter of that probability.
    [tests/unit/test_sampled.py, tests/statistical/test_sampled_loss.py]

    Accuracy: with 20,000 runs and a confidence of `1 - 1e-6`, a loss of 1.29 is bounded by about
    1.16 in one of 10,000 bits and by 1.10 in one of 1,000 counters modulo 1093, give or take 0.02
    and 0.04: found to be above 1 with a probability of 99 %.

    Args:
        make: makes the statistic with the coins it is given. A `Windowed` needs a clock that stands
            still: its moment is in the state, and would tell the first runs from the later ones.
        stream: batches and `RELEASE` and `ANNOUNCE` steps.
        neighbour: the same steps, with rows of one user added or removed.
        after_step: number of steps before the intrusion; None for all of them.
        runs: number of runs of each stream; half of that chooses the events.
        confidence: probability that the bound is not above the loss.
        cell_bytes: of the words that states are read as, 1 to 8, from the end; None for those of
            the statistic's tables, and 1 where it says none.
        summary: numbers of a state on which releases depend linearly, but for noise; None
            for the number of ones, with longer words how many have each value.
        addressing_key: the key of all runs, cut or repeated to length; None for one that looks
            random.

    Raises:
        PlanError: the streams differ in more than rows, which is public, an argument is out of
            range, or the statistic's cells have other bytes.
    """
    total = whole_number(_LEAST_RUNS, _MOST_RUNS, runs=runs)
    level = proportion(confidence=confidence)
    stream, neighbour = checked(stream, neighbour)
    announced = [number + 1 for number, step in enumerate(stream) if step == ANNOUNCE]
    asked = len(stream) if after_step is None else after_step
    looked = whole_number(max(announced, default=0), len(stream), after_step=asked)
    coins = FixedKeyCoins(addressing_key)
    width = _width(make(coins), cell_bytes)

    def runs_of(steps: EventStream) -> Runs:
        return lambda size: (look(make(coins), steps, looked) for _ in range(size))

    pair = runs_of(stream), runs_of(neighbour)
    cells = screen(pair, 3 * total // 8, width)
    summarise = summary or cells.summarise
    counts = len(next(pair[0](1)).counts)
    events = _chosen(pair, total, counts, cells, summarise)
    return _evaluate(pair, events, counts, total // 2, level)


def _chosen(
    pair: Sequence[Runs], runs: int, counts: int, cells: CellCounts, summarise: Summary
) -> Events:
    """Return the events that promise most: by counts, by intervals, or by both.

    Where intervals follow from counts they tell nothing more, and would be counted twice.
    """
    samples = [summed_up(run(runs // 8), cells, summarise) for run in pair]
    both = np.arange(samples[0].released.shape[1])
    tried = [fit(samples, one, cells, summarise) for one in (both[:counts], both[counts:], both)]
    return max((events_by(one, samples, runs // 2, 5) for one in tried), key=lambda one: one.worth)


def _width(statistic: Any, asked: int | None) -> int:
    """Return the bytes of a word; words unlike cells would hide the cell of the user."""
    one = getattr(statistic, "current", statistic)
    members = getattr(one, "statistics", {"": one}).values()
    tables = [member.plan.table for member in members if hasattr(member, "plan")]
    widths = {max(table.nbytes // table.cells, 1) for table in tables}
    if asked is None:
        return widths.pop() if len(widths) == 1 else 1
    width = whole_number(1, 8, cell_bytes=asked)
    if widths and not {width} & {1, *widths}:
        message = f"cells of this statistic have {max(widths)} bytes: leave cell_bytes out"
        raise PlanError(message)
    return width


def _evaluate(
    pair: Sequence[Runs], events: Events, counts: int, runs: int, level: float
) -> SampledLoss:
    """Count both events in fresh runs; four bounds share the probability of error."""
    score, hits = events.score, list[tuple[int, int]]()
    for run in pair:
        above, below, seen = 0, 0, run(runs)
        while chunk := list(islice(seen, _CHUNK)):
            scores = score(summed_up(chunk, score.cells, score.summarise))
            above += int((scores >= events.above).sum())
            below += int((scores <= events.below).sum())
        hits.append((above, below))
    high, low = zip(*hits, strict=True)
    error = (1 - level) / 4
    epsilon, worst = max(
        (_log_ratio(high, runs, error), high), (_log_ratio(low[::-1], runs, error), low)
    )
    words, told = tuple(score.cells.places.tolist()), score.places.tolist()
    bars = tuple(place - counts for place in told if place >= counts)
    numbers = tuple(place for place in told if place < counts)
    return SampledLoss(epsilon, level, worst, runs, words, numbers, bars)


def _log_ratio(hits: tuple[int, int], runs: int, error: float) -> float:
    """Return a lower bound on the logarithm of the ratio of two probabilities, at least 0."""
    low, high = clopper_pearson(hits[0], runs, error)[0], clopper_pearson(hits[1], runs, error)[1]
    return max(0.0, math.log(low / high)) if low else 0.0

"""Many counters at once: which one rose stays private, at a logarithm of work for each event.

Reference: Naor, "Foundations of Privacy", lecture 10, slides 36 to 39. There the counters are
leaves of a tree, and an event is in `log2(n) + 1` registers that share epsilon. Here each counter
has a tree of time for itself, so an event is in one counter, which has all of epsilon; what keeps
work small is that all counters answer together, and not at every step.
"""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.ground.validation import positive_integer, proportion
from panprivacy.papers.online.online import MOST_HORIZON, Online, sizes_of
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Epsilon, Ledger
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.frames import MOST_SHOWN, as_text
from panprivacy.statistics.notes import format_number
from panprivacy.tables.counters.mechanism import Floats, Integers

_AT_ONCE: Final = 1 << 20
"""Numbers that a run makes ready at a time: counters times answers."""


class MultiCounter(Online):
    """The running number of occurrences of each of n things.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> pages = pp.online.MultiCounter(1_000, horizon=100_000, epsilon=1.0)
    >>> pages.run(np.arange(50_000) % 10)  # an event a step: which page was asked for
    >>> bool(abs(pages.values[3] - 5_000) < pages.largest_error() + pages.every)
    True

    A step is a time that everybody knows, not a row: it goes on with or without an event. All
    counters answer together, every `every` steps. An object belongs to one thread at a time.

    Guarantee: the joint law of the state at any one time and of all answers changes by a factor of
    at most `e**epsilon` when one event is added or removed, and of `e**(2 epsilon)` when it
    happened to another counter. Announced intrusions before that time are covered as well, for
    nothing. [tests/exact/test_online.py, docs/guarantees/online.md]

    Accuracy: the answers are of the step `answered`, at most `every` steps ago, and unbiased. The
    root of the mean of their squared errors is `predicted_error()`; with the probability that it is
    asked for, no answer of any counter ever errs by more than `largest_error()`. With the default a
    step causes at most `4 (log2(n) + 1)` draws of noise on average.
    [tests/statistical/test_online.py]

    Args:
        n: number of counters.
        horizon: maximum number of steps.
        epsilon: the loss for one event, in nats.
        every: after how many steps all counters answer; None for `n/n.bit_length()`, rounded up.
        ledger: budget shared with others that count the same events; None for one of its own.
        coins: source of all randomness; None for the operating system's.

    Raises:
        PlanError: an argument out of range, or some that do not go together.
        BudgetError: the ledger has less than `epsilon` available.
    """

    __slots__ = ()
    name = "multi-counter"

    def __init__(
        self,
        n: int,
        horizon: int,
        *,
        epsilon: Epsilon,
        every: int | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        counters, steps = sizes_of(n, horizon)
        between = every_of(counters) if every is None else every
        super().__init__(
            counters,
            steps,
            positive_integer(MOST_HORIZON, every=between),
            epsilon,
            affected=1,
            open_steps=True,
            sizes={},
            ledger=ledger,
            coins=coins,
        )

    @property
    def answered(self) -> int:
        """The step after which the last answers were given; 0 before the first ones."""
        return self._now.answered

    @property
    def values(self) -> Floats:
        """The last answers, float64[n]: the events of each counter up to the step `answered`."""
        return self._now.last.values.copy()

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return both ends of intervals around the last answers, float64[n] each.

        Each of them holds its count up to the step `answered` so often.
        """
        reach = self._now.last.reach(proportion(confidence=confidence))
        values = self._now.last.values
        return np.maximum(values - reach, 0.0), np.maximum(values + reach, 0.0)

    def __str__(self) -> str:
        """Return the last answers as a table for people."""
        low, high = self.interval()
        lines: list[tuple[str, ...]] = [("counter", "value", "low", "high")]
        for which, ends in enumerate(zip(self.values[:MOST_SHOWN], low, high, strict=False)):
            lines.append((str(which), *(format_number(float(end), "events") for end in ends)))
        hidden = self.n - len(lines) + 1
        more = f"\n... and {hidden:,} more" if hidden else ""
        return f"{as_text(lines)}{more}\nafter step {self.answered:,}"

    def largest_error(self, confidence: float = 0.95) -> float:
        """Return a bound on the error of all answers together, with probability `confidence`.

        It is about the count up to the step `answered`, of programs without announced intrusions
        and crashes. [docs/guarantees/online.md]
        """
        squares, most = self._now.forest.exponents()
        answers = self.n * self._now.forest.horizon
        log = math.log(2 * answers / (1 - proportion(confidence=confidence)))
        theta = math.sqrt(min(log / (2 * squares), most**2)) if squares else most
        return 2 * theta * squares + log / theta

    def count(self, which: ArrayLike) -> None:
        """Count events of the open step; its end is `step()`.

        Args:
            which: the counter of each event, any number of them.

        Raises:
            InputError: one is out of range. Nothing was changed.
            BudgetError: all steps of the horizon have ended. Nothing was changed.
        """
        events = self._numbers(which, 0)
        try:
            self._check_left(1)
            self._now.count(events)
        finally:
            wipe(events)

    def step(self) -> None:
        """End a step, and answer if it is time to.

        Raises:
            BudgetError: all steps of the horizon have ended. Nothing was changed.
        """
        self._check_left(1)
        if self._now.due > 1:
            self._now.wait(1)
        else:
            self._now.answer(np.zeros((self.n, 1), np.int64))

    def run(self, which: ArrayLike) -> None:
        """Take in many steps at once, each with one event or none.

        While it runs, they are in memory as they are: of events that come one by one, take each
        with `count`. A run that is interrupted has made some of its steps: `tick` says how many.

        Args:
            which: the counter of the event of each step; -1 for none.

        Raises:
            InputError: one is out of range. Nothing was changed.
            BudgetError: the horizon has fewer steps left. Nothing was changed.
        """
        events = self._numbers(which, -1)
        try:
            self._check_left(len(events))
            for steps in self._pieces(len(events)):
                self._take(events[steps])
        finally:
            wipe(events)

    def _pieces(self, steps: int) -> list[slice]:
        """Cut a run into pieces of few answers, each of which ends with one, and what follows."""
        first, every, most = self._now.due, self.every, max(_AT_ONCE // self.n, 1)
        last = steps - (steps - first) % every if steps >= first else 0
        marks = [0, *range(first + (most - 1) * every, last, most * every), last, steps]
        return [slice(*pair) for pair in itertools.pairwise(dict.fromkeys(marks))]

    def _take(self, events: Integers) -> Floats:
        """Make the steps of a piece; what all counters answer meanwhile, float64[n, answers]."""
        now, happened = self._now, events >= 0
        try:
            if len(events) < now.due:
                present = events[happened]
                now.count(present)
                wipe(present)
                now.wait(len(events))
                return np.empty((self.n, 0))
            return now.answer(self._rises(events, happened)).values
        finally:
            wipe(happened)

    def _rises(self, events: Integers, happened: NDArray[np.bool_]) -> Integers:
        """Return the rise of each counter until each answer of a piece: int64[n, answers]."""
        answers = 1 + (len(events) - self._now.due) // self.every
        places = events * answers
        places += self._answers_before(len(events))
        present = places[happened]
        rises = np.bincount(present, minlength=self.n * answers)
        wipe(places, present)
        return rises.reshape(self.n, answers)

    def _answers_before(self, steps: int) -> Integers:
        """Return the number of answers before the event of each of the next steps."""
        return (np.arange(steps) + self.every - self._now.due) // self.every


def every_of(counters: int) -> int:
    """Return the answer interval, in steps, for logarithmic work for each event."""
    return -(-counters // counters.bit_length())

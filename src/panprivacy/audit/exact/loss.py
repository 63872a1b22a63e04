"""The exact privacy loss of a statistic, by walking every outcome of its coins.

The audit compares two laws: that of what an intruder sees (the state at one moment, the states at
announced intrusions, all releases) under a stream, and under its neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from panprivacy.audit.exact.chain import Audited, Chain
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.exact.laws import Comparison, Laws, View
from panprivacy.audit.exact.numbers import CLOSE, exp, ln
from panprivacy.audit.exact.traces import LeakError, check_traces
from panprivacy.audit.streams import ANNOUNCE, RELEASE, EventStream, checked, format_stream
from panprivacy.errors import PlanError

_MOST_SHOWN: Final = 8
"""Bytes of a state in words."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The outcome of an audit; `print` says it in words.

    Args:
        epsilon: the exact worst loss over all intrusion times and outcomes; may be infinite.
        after_step: the intrusion time that attains it, in steps of the stream.
        view: the outcome that attains it.
        probabilities: of that outcome and all that tell the same, under stream and neighbour.
        set_aside: the largest total probability of views that were not compared, because output
            noise beyond the enumerated range could reach them.
        shared: how many bytes at their start all states have in common, and are not shown.
    """

    epsilon: float
    stream: EventStream
    neighbour: EventStream
    after_step: int
    view: View
    probabilities: tuple[Fraction, Fraction]
    set_aside: Fraction
    shared: int = 0

    def __float__(self) -> float:
        return self.epsilon

    def __str__(self) -> str:
        first, second = (float(probability) for probability in self.probabilities)
        view, seen = iter(self.view), []
        for place, step in enumerate([*self.stream, None]):
            if place == self.after_step:
                seen.append(f"reads the state {self._differing(next(view))} after step {place}")
            if step == ANNOUNCE:
                seen.append(f"read the state {self._differing(next(view))} in step {place + 1}")
            if step == RELEASE:
                seen.append(f"is told {next(view)} or the like in step {place + 1}")
        aside = f" ({float(self.set_aside):.2%} were set aside)" if self.set_aside else ""
        return (
            f"{self.epsilon:.6g}: an intruder {', '.join(seen)}, with probability {first:.4g} "
            f"after {format_stream(self.stream)} and {second:.4g} after "
            f"{format_stream(self.neighbour)}{aside}"
        )

    def _differing(self, state: object) -> str:
        """Return the bytes of a state that are not the same in all; of many, the last."""
        if not isinstance(state, bytes) or not state:
            return "that holds nothing" if state == b"" else str(state)
        end = state[self.shared :][-_MOST_SHOWN:]
        return f"{'…' if len(end) < len(state) else ''}{end.hex()}"

    def within(self, claimed: Fraction | float) -> bool:
        """Return whether the loss is at most `claimed`, decided in rational numbers to 1e-30."""
        if claimed == math.inf:
            return True
        smaller, larger = sorted(self.probabilities)
        allowed = exp(Fraction(claimed)) * (1 + CLOSE)
        return larger == 0 or (smaller > 0 and larger / smaller <= allowed)


def exact_loss(
    make: Callable[[EnumeratedCoins], Audited],
    stream: EventStream,
    neighbour: EventStream,
    *,
    coins: EnumeratedCoins | None = None,
) -> Loss:
    """Return the exact worst loss between two streams, over every intrusion time and every outcome.

    The state may be seen once, after any step since the last announced intrusion (or before the
    first step), and at each announced one. Releases before and after it are seen as well, with
    everything that can be reached from an answer.

    Output noise must be added to whole numbers, one noise to each, and the answer has the sums as
    `counts`. It is walked to ±2·tail; answers that noise beyond ±tail can reach are set aside, and
    `Loss.set_aside` is their probability. The loss is that of all others; with discrete Laplace
    noise those set aside tell no more (docs/audit.md).

    A child process first leads the program through both streams, with the same coins and the same
    counts: whatever differs then in files, lines, warnings, variables of modules or answers is
    refused (`docs/audit.md` says what is seen).

    Args:
        make: makes the statistic with the coins it is given.
        stream: batches and `RELEASE` and `ANNOUNCE` steps.
        neighbour: the same steps, with other rows.
        coins: an own `EnumeratedCoins`, for another key or tail.

    Raises:
        LeakError: the program tells more than its state and its counts do.
        PlanError: the streams differ in more than rows, which is public; the class cannot be
            audited (the message says why); or a tail is too short.
    """
    return worst_loss(make, [(stream, neighbour)], coins=coins)


def worst_loss(
    make: Callable[[EnumeratedCoins], Audited],
    pairs: Iterable[tuple[EventStream, EventStream]],
    *,
    coins: EnumeratedCoins | None = None,
) -> Loss:
    """Return the worst `exact_loss` over many pairs of streams; see `panprivacy.audit.neighbours`.

    Raises:
        PlanError: as for `exact_loss`; or there are no pairs.
    """
    drawn = EnumeratedCoins() if coins is None else coins
    tried = [checked(*pair) for pair in pairs]
    says_more = check_traces(make, tried, drawn) if tried else None
    laws = Laws(Chain(make, drawn))
    loss = worst_of(laws, tried)
    check_answers(says_more or laws.says_more, [loss])
    return loss


def check_answers(says_more: str | None, losses: Iterable[Loss]) -> None:
    """Raise `LeakError` for answers that say more than counts, unless an infinite loss shows it."""
    if says_more is not None and all(math.isfinite(loss.epsilon) for loss in losses):
        raise LeakError(says_more)


def worst_of(laws: Laws, pairs: Iterable[tuple[EventStream, EventStream]]) -> Loss:
    """Return the `worst_loss` of a statistic whose laws are walked for other pairs as well."""
    worst: tuple[Comparison, EventStream, EventStream] | None = None
    set_aside = Fraction(0)
    for stream, neighbour in pairs:
        pair = checked(stream, neighbour)
        for found in laws.comparisons(*pair):
            set_aside = max(set_aside, found.set_aside)
            if worst is None or found.exceeds(worst[0]):
                worst = found, *pair
    if worst is None:
        message = "there are no pairs of streams to compare"
        raise PlanError(message)
    found, stream, neighbour = worst
    step, view, masses, shared = found.after_step, found.view, found.masses, found.shared
    return Loss(ln(found.ratio), stream, neighbour, step, view, masses, set_aside, shared)

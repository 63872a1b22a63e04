"""The exact privacy loss of a statistic, by walking every outcome of its coins.

The audit knows a statistic by its public methods only. It runs a stream once for every outcome of
every coin, notes what an intruder could see (the state at one moment, and all releases) with its
exact probability, does the same for a neighbouring stream, and compares the two laws.

Probabilities are `Fraction`s. Those of discrete Laplace noise involve `exp(-1/scale)`, for which
a rational number within 1e-40 stands, the same one everywhere.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

RELEASE: Final = "release"
"""A step of a stream: the statistic publishes its answer."""

ANNOUNCE: Final = "announce"
"""A step of a stream: somebody reads the state, and the statistic is told."""

Step = Sequence[object] | str
"""A batch of user ids, or of pairs `(user, delta)`, or `RELEASE`, or `ANNOUNCE`."""

View = tuple[object, ...]
"""What an intruder sees: a state, the states before it that were announced, all releases."""

TAIL: Final = 6
"""Output noise is enumerated to ±2·TAIL; views that noise beyond ±TAIL can reach are set aside."""


class Audited(Protocol):
    """The public methods that the audit calls."""

    def update(self, users: object, deltas: object = None) -> None:
        """Take in one batch."""

    def release(self) -> Any:
        """Publish the answer, which has `counts`."""

    def announce_intrusion(self) -> None:
        """Re-randomise the state."""

    def state(self) -> bytes:
        """The whole state."""


@dataclass(slots=True)
class EnumeratedCoins:
    """Coins that walk every outcome: iterate, and run the same program once for each round.

    >>> coins = EnumeratedCoins()
    >>> [(coins.bernoulli(Fraction(1, 3), 2).tolist(), str(coins.probability)) for _ in coins]
    [([0, 0], '4/9'), ([0, 1], '2/9'), ([1, 0], '2/9'), ([1, 1], '1/9')]

    Keys are public constants: the law of a key does not depend on the stream, and the guarantee
    holds for every key, so the audit fixes one.

    Args:
        addressing_key: what `key` returns, cut or repeated to length.
        tail: noise beyond ± this marks the outcome as `far`.
    """

    addressing_key: bytes = bytes(16)
    tail: int = TAIL
    probability: Fraction = Fraction(1)
    far: bool = False
    _choices: list[list[int]] = field(default_factory=list)
    _depth: int = 0

    def __iter__(self) -> Iterator[None]:
        """Yield once for every outcome."""
        self._choices = []
        while True:
            self.probability, self.far, self._depth = Fraction(1), False, 0
            yield
            while self._choices and self._choices[-1][0] + 1 == self._choices[-1][1]:
                self._choices.pop()
            if not self._choices:
                return
            self._choices[-1][0] += 1

    def _choose(self, law: Sequence[Fraction]) -> int:
        """The outcome of one draw in this round; impossible outcomes are skipped."""
        possible = [index for index, weight in enumerate(law) if weight]
        if self._depth == len(self._choices):
            self._choices.append([0, len(possible)])
        index = possible[self._choices[self._depth][0]]
        self._depth += 1
        self.probability *= law[index]
        return index

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.uint8]:
        """Bits that are 1 with `probability`."""
        law = (1 - probability, probability)
        return np.array([self._choose(law) for _ in range(size)], np.uint8)

    def categorical(self, weights: Sequence[int], size: int) -> NDArray[np.uint32]:
        """Indices; `i` has probability `weights[i] / sum(weights)`."""
        law = [Fraction(weight, sum(weights)) for weight in weights]
        return np.array([self._choose(law) for _ in range(size)], np.uint32)

    def discrete_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Integers with `P(k)` proportional to `exp(-|k|/scale)`, up to ±2·tail."""
        return self._noise(_laplace_law(scale, 2 * self.tail), size)

    def discrete_gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        """Integers with `P(k)` proportional to `exp(-k**2/(2*variance))`, up to ±2·tail."""
        return self._noise(_gaussian_law(variance, 2 * self.tail), size)

    def _noise(self, law: Sequence[Fraction], size: int) -> NDArray[np.int64]:
        noise = np.array([self._choose(law) for _ in range(size)], np.int64) - 2 * self.tail
        self.far |= bool((np.abs(noise) > self.tail).any())
        return noise

    def key(self, nbytes: int) -> bytes:
        """The fixed key."""
        return (self.addressing_key * (nbytes // len(self.addressing_key) + 1))[:nbytes]


@dataclass(frozen=True, slots=True)
class Loss:
    """The outcome of an audit.

    Args:
        epsilon: the exact worst loss over all intrusion times and outcomes; may be infinite.
        after_step: the intrusion time that attains it, in steps of the stream.
        view: the outcome that attains it.
        probabilities: of that outcome, under the stream and under its neighbour.
        set_aside: the largest total probability of views that were not compared, because output
            noise beyond the enumerated range could reach them.
    """

    epsilon: float
    after_step: int
    view: View
    probabilities: tuple[Fraction, Fraction]
    set_aside: Fraction

    def __float__(self) -> float:
        return self.epsilon

    def within(self, claimed: Fraction | float) -> bool:
        """Whether the loss is at most `claimed`, decided exactly."""
        smaller, larger = sorted(self.probabilities)
        allowed = _exp(Fraction(claimed)) * (1 + _CLOSE)
        return larger == 0 or (smaller > 0 and larger / smaller <= allowed)


def exact_loss(
    make: Callable[[EnumeratedCoins], Audited],
    stream: Sequence[Step],
    neighbour: Sequence[Step],
    *,
    coins: EnumeratedCoins | None = None,
) -> Loss:
    """The exact worst loss between two streams, over every intrusion time and every outcome.

    The state may be seen once, after any step since the last announced intrusion (or before the
    first step), and at each announced one. Releases before and after it are seen as well.

    Args:
        make: makes the statistic with the coins it is given.
        stream: batches and `RELEASE` and `ANNOUNCE` steps.
        neighbour: the same steps, with rows of one user added or removed.
        coins: an own `EnumeratedCoins`, for another key or tail.

    Raises:
        ValueError: the streams differ in more than rows, which is public.
    """
    if [_public(step) for step in stream] != [_public(step) for step in neighbour]:
        message = "streams must agree in the number of steps and in every step but the batches"
        raise ValueError(message)
    walk = EnumeratedCoins() if coins is None else coins
    laws = [_views(make, steps, walk) for steps in (stream, neighbour)]
    return max(
        (_compare(time, laws[0][time], laws[1][time]) for time in laws[0]),
        key=lambda loss: _ratio(loss.probabilities),
    )


def _public(step: Step) -> str:
    return step if isinstance(step, str) else "batch"


@dataclass(slots=True)
class _Law:
    """The law of the view at one intrusion time, and the views that far noise can reach."""

    mass: defaultdict[View, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    far: set[View] = field(default_factory=set)


def _views(
    make: Callable[[EnumeratedCoins], Audited], steps: Sequence[Step], coins: EnumeratedCoins
) -> dict[int, _Law]:
    """The law of what an intruder sees, for each intrusion time."""
    last_announced = max((i + 1 for i, step in enumerate(steps) if step == ANNOUNCE), default=0)
    laws = {time: _Law() for time in range(last_announced, len(steps) + 1)}
    for _ in coins:
        states, announced, releases = _run(make(coins), steps)
        for time, law in laws.items():
            view = (states[time], announced, releases)
            law.mass[view] += coins.probability
            if coins.far:
                law.far.add(view)
    return laws


def _run(statistic: Audited, steps: Sequence[Step]) -> tuple[list[bytes], View, View]:
    """All states, those at announced intrusions, and the released counts of one run."""
    states, announced, releases = [statistic.state()], [], []
    for step in steps:
        if step == RELEASE:
            releases.append(statistic.release().counts)
        elif step == ANNOUNCE:
            announced.append(states[-1])
            statistic.announce_intrusion()
        else:
            _update(statistic, step)
        states.append(statistic.state())
    return states, tuple(announced), tuple(releases)


def _update(statistic: Audited, batch: Step) -> None:
    pairs = [row for row in batch if isinstance(row, tuple)]
    if pairs:
        statistic.update([user for user, _ in pairs], [delta for _, delta in pairs])
    else:
        statistic.update(list(batch))


def _compare(time: int, first: _Law, second: _Law) -> Loss:
    """The worst ratio of two laws, over the views that were enumerated completely."""
    far = first.far | second.far
    views = (first.mass.keys() | second.mass.keys()) - far
    pairs = [((first.mass[view], second.mass[view]), view) for view in views]
    nothing: tuple[tuple[Fraction, Fraction], View] = ((Fraction(0), Fraction(0)), ())
    probabilities, view = max(pairs, key=lambda pair: _ratio(pair[0]), default=nothing)
    compared = min(sum((law.mass[view] for view in views), Fraction(0)) for law in (first, second))
    return Loss(_loss(probabilities), time, view, probabilities, 1 - compared)


def _ratio(probabilities: tuple[Fraction, Fraction]) -> Fraction | float:
    """The larger over the smaller, exactly; infinite if one of them is 0."""
    smaller, larger = sorted(probabilities)
    if larger == 0:
        return Fraction(1)
    return larger / smaller if smaller else math.inf


def _loss(probabilities: tuple[Fraction, Fraction]) -> float:
    ratio = _ratio(probabilities)
    return float(_ln(ratio)) if isinstance(ratio, Fraction) else ratio


@functools.lru_cache(maxsize=64)
def _laplace_law(scale: Fraction, reach: int) -> tuple[Fraction, ...]:
    """The probabilities of -reach .. reach."""
    ratio = _exp(-1 / scale)
    return tuple((1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-reach, reach + 1))


@functools.lru_cache(maxsize=64)
def _gaussian_law(variance: Fraction, reach: int) -> tuple[Fraction, ...]:
    """The probabilities of -reach .. reach; terms below e**-100 are left out of the total."""
    far = max(reach, math.isqrt(math.ceil(200 * variance)) + 1)
    weights = {k: _exp(-k * k / (2 * variance)) for k in range(far + 1)}
    total = 2 * sum(weights.values()) - 1
    return tuple(weights[abs(k)] / total for k in range(-reach, reach + 1))


_PRECISION: Final = 60
_CLOSE: Final = Fraction(1, 10**30)


def _exp(exponent: Fraction) -> Fraction:
    with localcontext(prec=_PRECISION):
        return Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())


def _ln(ratio: Fraction) -> Decimal:
    with localcontext(prec=_PRECISION):
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()

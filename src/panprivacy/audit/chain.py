"""A statistic as a chain: what survives one step, and nothing else, decides what follows.

The audit knows a statistic by its public methods only: it makes one, runs it forward once for every
outcome of its coins, and notes what is published and what survives. What follows from an object in
which the same survives is walked only once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Protocol

from panprivacy.audit.coins import EnumeratedCoins, Path
from panprivacy.audit.survivors import Survivors

RELEASE: Final = "release"
"""A step of a stream: the statistic publishes its answer."""

ANNOUNCE: Final = "announce"
"""A step of a stream: somebody reads the state, and the statistic is told."""

Step = Sequence[object] | str
"""A batch of user ids, or of pairs `(user, delta)`, or `RELEASE`, or `ANNOUNCE`."""

Stream = Sequence[Step]
"""What a statistic lives through."""


class Audited(Protocol):
    """The public methods that the audit calls.

    For `RELEASE` and `ANNOUNCE` steps also `release()`, of whose answer everything that can be
    reached is public, and `announce_intrusion()`.
    """

    def update(self, users: Any, deltas: Any = None, /) -> None:
        """Take in one batch."""

    def state(self) -> bytes:
        """The whole state."""


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A moment in the life of a statistic; equal points are the same object.

    Args:
        state: what an intruder would get.
        steps: one way to get there.
        path: and how the coins fell.
    """

    state: bytes
    steps: tuple[Step, ...]
    path: Path


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """What left, as the public sees it; equal things are the same object.

    Args:
        counts: the noised numbers, to be shown.
    """

    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way for a step to end.

    Args:
        probability: of it.
        point: where the statistic is then.
        published: what left; None for steps that publish nothing.
        noise: the output noise that was drawn.
        far: whether some of it lies beyond the tail.
    """

    probability: Fraction
    point: Point
    published: Published | None
    noise: tuple[int, ...]
    far: bool


_End = tuple[Point, Published | None, tuple[int, ...], bool]


class Chain:
    """All that a statistic can do, walked as far as it is asked for.

    Args:
        make: makes the statistic with the coins it is given.
        coins: which it is given.
    """

    def __init__(self, make: Callable[[EnumeratedCoins], Audited], coins: EnumeratedCoins) -> None:
        self.coins = coins
        self._make = make
        self._survivors = Survivors(coins)
        self._points: dict[Hashable, Point] = {}
        self._published: dict[Hashable, Published] = {}
        self._known: dict[tuple[Point | None, Hashable], tuple[Outcome, ...]] = {}

    def births(self) -> tuple[Outcome, ...]:
        """Every way for the statistic to begin."""
        if (None, None) not in self._known:
            found = ((self._make(self.coins), None) for _ in self.coins)
            self._known[None, None] = self._merged(found, ())
        return self._known[None, None]

    def after(self, point: Point, step: Step) -> tuple[Outcome, ...]:
        """Every outcome of one more step."""
        name = point, step if isinstance(step, str) else tuple(step)
        if name not in self._known:
            steps = (*point.steps, step)
            self._known[name] = self._merged(self._runs(point, step), steps)
        return self._known[name]

    def _runs(self, point: Point, step: Step) -> Iterator[tuple[Audited, Published | None]]:
        """The statistic after each outcome of a step, and what it published."""
        for _ in self.coins.after(point.path):
            statistic = self._make(self.coins)
            for earlier in point.steps:
                take(statistic, earlier)
            answer = take(statistic, step)
            yield statistic, self._interned(answer) if step == RELEASE else None

    def _merged(
        self, runs: Iterator[tuple[Audited, Published | None]], steps: tuple[Step, ...]
    ) -> tuple[Outcome, ...]:
        """Outcomes, those that nothing tells apart added up."""
        masses: dict[_End, Fraction] = defaultdict(Fraction)
        for statistic, published in runs:
            drawn = tuple(self.coins.noise), self.coins.far
            end = self._point(statistic, steps), published, *drawn
            masses[end] += self.coins.probability
        return tuple(Outcome(mass, *end) for end, mass in masses.items())

    def _point(self, statistic: Audited, steps: tuple[Step, ...]) -> Point:
        path = self.coins.path  # before anything else may draw
        survives = self._survivors.fingerprint(statistic)
        if survives not in self._points:
            self._points[survives] = Point(statistic.state(), steps, path)
        return self._points[survives]

    def _interned(self, answer: Any) -> Published:
        tells = self._survivors.fingerprint(answer)
        if tells not in self._published:
            self._published[tells] = Published(tuple(answer.counts))
        return self._published[tells]


def take(statistic: Any, step: Step) -> Any:
    """One step; the answer if it is a release."""
    if step == RELEASE:
        return statistic.release()
    if step == ANNOUNCE:
        statistic.announce_intrusion()
    else:
        _update(statistic, step)
    return None


def _update(statistic: Audited, batch: Sequence[object]) -> None:
    pairs = [row for row in batch if isinstance(row, tuple)]
    if pairs:
        statistic.update([user for user, _ in pairs], [delta for _, delta in pairs])
    else:
        statistic.update(list(batch))

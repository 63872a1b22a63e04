"""A statistic as a chain: what survives one step, and nothing else, decides what follows.

The audit knows a statistic by its public methods only: it makes one, runs it forward once for every
outcome of its coins, and notes what is published and what survives. What follows from an object in
which the same survives is walked only once.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any, Protocol

from panprivacy.audit.exact.coins import EnumeratedCoins, Path
from panprivacy.audit.exact.survivors import Survivors
from panprivacy.audit.streams import RELEASE, Step, take
from panprivacy.errors import PlanError, allow_noise


class Audited(Protocol):
    """The public methods that the audit calls.

    For `RELEASE` and `ANNOUNCE` steps also `release()`, of whose answer everything that can be
    reached is public, and `announce_intrusion()`.
    """

    def update(self, users: Any, deltas: Any = None, /) -> None:
        """Take in one batch."""

    def state(self) -> bytes:
        """Return the complete state."""


@dataclass(frozen=True, slots=True, eq=False)
class ReachedState:
    """A moment in the life of a statistic: its state, and one way to get there by steps and coins.

    Equal points are the same object.
    """

    state: bytes
    steps: tuple[Step, ...]
    path: Path


@dataclass(frozen=True, slots=True, eq=False)
class PublicOutputs:
    """Transcript: the public outputs of a step. Equal transcripts are one object.

    Args:
        counts: the noisy numbers.
        answer: the complete output.
        alike: the number of other answers with the same counts.
    """

    counts: tuple[int, ...]
    answer: Any
    alike: Counter[tuple[int, ...]]

    def public_view(self) -> object:
        """Return the counts, or the answer where the counts are not all of it."""
        return repr(self.answer) if self.alike[self.counts] > 1 else self.counts


@dataclass(frozen=True, slots=True)
class Transition:
    """One outcome of a step; `far` is true if some of its noise lies beyond the tail."""

    probability: Fraction
    point: ReachedState
    published: PublicOutputs | None
    noise: tuple[int, ...]
    far: bool


_MANY_RUNS = 300_000
"""Outcomes that take a minute or two to walk."""

_LONG = (
    f"{_MANY_RUNS:,} outcomes have been walked and there are more: try fewer cells or "
    "a smaller tail, or sampled_loss"
)

_UNREPEATABLE = (
    "the class comes out otherwise although its coins fall as before: it draws from something "
    "else, keeps memory in a module or a class variable, or state() draws or changes it"
)

_End = tuple[ReachedState, PublicOutputs | None, tuple[int, ...], bool]


class Chain:
    """All outcomes of a statistic with these coins, enumerated on demand."""

    def __init__(self, make: Callable[[EnumeratedCoins], Audited], coins: EnumeratedCoins) -> None:
        self.coins = coins
        self._make = make
        self._survivors = Survivors(coins)
        self._points: dict[Hashable, ReachedState] = {}
        self._published: dict[Hashable, PublicOutputs] = {}
        self._runs = 0
        self._alike: Counter[tuple[int, ...]] = Counter()
        self._known: dict[tuple[ReachedState | None, str], tuple[Transition, ...]] = {}

    def births(self) -> tuple[Transition, ...]:
        """Return every initial state of the statistic."""
        return self._walked(None, ())

    def after(self, point: ReachedState, step: Step) -> tuple[Transition, ...]:
        """Return every outcome of one more step."""
        return self._walked(point, (*point.steps, step))

    def _walked(
        self, point: ReachedState | None, steps: tuple[Step, ...]
    ) -> tuple[Transition, ...]:
        """Return every outcome of the last step; indistinguishable ones are added up."""
        name = point, repr(steps[-1:])
        if name not in self._known:
            masses: dict[_End, Fraction] = defaultdict(Fraction)
            for _ in self.coins.after(() if point is None else point.path):
                self._runs += 1
                if self._runs == _MANY_RUNS:
                    warnings.warn(_LONG, stacklevel=2)
                masses[self._run(point, steps)] += self.coins.probability
            first = next(iter(masses))
            for _ in self.coins.after(() if point is None else point.path):
                if self._run(point, steps) != first:  # once more, after all others
                    raise PlanError(_UNREPEATABLE)
                break
            self._known[name] = tuple(Transition(mass, *end) for end, mass in masses.items())
        return self._known[name]

    @allow_noise()
    def _run(self, point: ReachedState | None, steps: tuple[Step, ...]) -> _End:
        """Make the statistic and lead it through the steps, as the coins fall."""
        self.coins.publishing = False
        statistic, answer = self._make(self.coins), None
        for step in steps[:-1]:
            self._take(statistic, step)
        if point is not None:
            if self.coins.tossed != len(point.path) or statistic.state() != point.state:
                raise PlanError(_UNREPEATABLE)
            answer = self._take(statistic, steps[-1])
        drawn = tuple(self.coins.noise), self.coins.far
        published = self._interned(answer) if steps[-1:] == (RELEASE,) else None
        path, survives = self.coins.path, self._survivors.fingerprint(statistic)
        state: Any = statistic.state()
        if not isinstance(state, bytes):
            message = f"state() must return bytes, not {type(state).__name__}"
            raise PlanError(message)
        after = self._points.setdefault(survives, ReachedState(state, steps, path))
        if after.state != state or self.coins.path != path:
            raise PlanError(_UNREPEATABLE)
        return after, published, *drawn

    def _take(self, statistic: Audited, step: Step) -> Any:
        """Run one step of a statistic; the coins distinguish output noise from state noise."""
        self.coins.publishing = step == RELEASE
        return take(statistic, step)

    def _interned(self, answer: Any) -> PublicOutputs:
        tells = self._survivors.fingerprint(answer)
        if tells not in self._published:
            given: Any = getattr(answer, "counts", None)
            numbers: list[Any] = list(given) if isinstance(given, Iterable) else [None]
            if not all(isinstance(number, Integral) for number in numbers):
                message = "what release() returns must have `counts`: the noised whole numbers"
                raise PlanError(message)
            counts = tuple(map(int, numbers))
            self._alike[counts] += 1
            self._published[tells] = PublicOutputs(counts, answer, self._alike)
        return self._published[tells]

"""The laws of what an intruder sees under two streams, and where they differ most.

Probabilities are whole numbers over one denominator, so nothing is rounded. Two things make it
fast, and both are exact: what follows from the same survivors is walked once, and answers that tell
the same (their probabilities are proportional, whatever the statistic holds) are one.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from panprivacy.audit.exact.chain import Chain, PublicOutputs, ReachedState, Transition
from panprivacy.audit.exact.noise import check_noise
from panprivacy.audit.exact.traces import SAYS_MORE
from panprivacy.audit.streams import ANNOUNCE, RELEASE, EventStream, Step
from panprivacy.errors import PlanError

View = tuple[object, ...]
"""View of an intruder, in the order of time: states as bytes, releases as tuples of counts."""

ViewLaw = Mapping[tuple[ReachedState, View], int]
"""Weight of a place together with the view on the way to it."""

Move = tuple[Fraction, ReachedState, PublicOutputs | None, bool]
"""Probability of a move, its end, its output, and whether noise that stays in the state lies beyond
the tail."""

Moves = Mapping[ReachedState, Sequence[Move]]
"""Moves from each point of a law."""

WeightedMove = tuple[int, ReachedState, PublicOutputs | None, bool]
"""A move, its probability as a whole number over a common denominator."""

WeightedMoves = Mapping[ReachedState, Sequence[WeightedMove]]
"""Weighted moves from each point of a law."""

_Reached = tuple[frozenset[ReachedState], frozenset[ReachedState]]
"""Possible points of a statistic, under a stream and under its neighbour."""

_CLOSE: Final = 1e-12
"""Ratios that are closer, relatively, are compared exactly: quotients are good to 1e-15."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The worst outcome at one intrusion time, as in `Loss`; weights are over the denominator."""

    weights: tuple[int, int]
    denominator: int
    after_step: int
    view: View
    set_aside: Fraction
    shared: int

    @property
    def masses(self) -> tuple[Fraction, Fraction]:
        """The two probabilities."""
        first, second = self.weights
        return Fraction(first, self.denominator), Fraction(second, self.denominator)

    @property
    def ratio(self) -> Fraction | float:
        """The larger over the smaller, exactly; infinite if one of them is 0."""
        smaller, larger = sorted(self.weights)
        if larger == 0:
            return Fraction(1)
        return Fraction(larger, smaller) if smaller else math.inf

    def exceeds(self, other: Comparison) -> bool:
        """Return whether this ratio is the larger one."""
        return _is_above(self.weights, other.weights)


@dataclass(frozen=True, slots=True)
class _Weighed:
    """The moves of a step under a stream and its neighbour, and where they lead.

    `far` says whether some noise that stays in the state lies beyond the tail.
    """

    moves: tuple[WeightedMoves, WeightedMoves]
    denominator: int
    reached: _Reached
    far: bool


class Laws:
    """Comparison of the views under streams and their neighbours; each pair serves the next.

    `says_more` is why answers that far noise reaches are refused, once some were seen that do not
    follow from their counts; None if all do.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self.says_more: str | None = None
        self._weighed: dict[Hashable, _Weighed] = {}
        self._releases: dict[frozenset[ReachedState], Moves] = {}
        self._compared: dict[str, list[Comparison]] = {}

    def comparisons(self, stream: EventStream, neighbour: EventStream) -> Sequence[Comparison]:
        """Return the worst outcome for each intrusion time."""
        pair = repr((stream, neighbour))
        if pair not in self._compared:
            self._compared[pair] = list(self._compare(stream, neighbour))
        return self._compared[pair]

    def _compare(self, stream: EventStream, neighbour: EventStream) -> Iterator[Comparison]:
        walk = _PairLaws(self, stream, neighbour)
        if self._chain.coins.gaussian:
            message = "Gaussian noise has no finite loss of this kind: ratios grow without end"
            raise PlanError(message)
        announced = [place + 1 for place, step in enumerate(stream) if step == ANNOUNCE]
        laws, near = walk.births(), walk.births(near=True)
        for time in range(len(stream) + 1):
            if time >= max(announced, default=0):
                ends = walk.complete_laws(_looked_at(laws), time)
                nears = walk.complete_laws(_looked_at(near), time, near=True) if walk.far else ends
                weights, view, aside = _worst(ends, nears, walk.denominator)
                shared = _shared(point.state for law in laws for point, _ in law)
                yield Comparison(weights, walk.denominator, time, view, aside, shared)
            if time < len(stream):
                laws = walk.advanced(laws, time)
                near = walk.advanced(near, time, near=True) if walk.far else laws

    def births(self) -> Sequence[Move]:
        """Return the initial moves of the statistic."""
        return _plain(self._chain.births())

    def weighed(self, reached: _Reached, steps: tuple[Step, Step]) -> _Weighed:
        """Return the moves of a step under a stream and its neighbour; pairs begin in one state."""
        name = *reached, repr(steps)
        if name not in self._weighed:
            if steps[0] == RELEASE:  # answers are told apart by all that the statistic may hold
                reached = (reached[0] | reached[1],) * 2
            self._weighed[name] = _rescaled(
                [self._moves(points, step) for points, step in zip(reached, steps, strict=True)]
            )
        return self._weighed[name]

    def _moves(self, points: frozenset[ReachedState], step: Step) -> Moves:
        """Return the moves of a step, from each of the points."""
        if step != RELEASE:
            return {point: _plain(self._chain.after(point, step)) for point in points}
        if points not in self._releases:
            outcomes = {point: self._chain.after(point, step) for point in points}
            check_noise(outcomes, self._chain.coins)
            if _far_ones_say_more(outcomes):
                self.says_more = SAYS_MORE
            self._releases[points] = _distinct_moves(outcomes)
        return self._releases[points]


class _PairLaws:
    """The laws of a stream and its neighbour, over one denominator.

    Noise of infinite support that stays in the state is walked to twice the tail. What came of
    noise within the tail, `near`, under one stream is compared with all that was walked under the
    other: noise that makes up for another stream lies within twice the tail, as long as the streams
    move the state by no more than the tail.
    """

    def __init__(self, laws: Laws, stream: EventStream, neighbour: EventStream) -> None:
        self._steps = list(zip(stream, neighbour, strict=True))
        births = laws.births()
        self.denominator = _common_denominator([births])
        self._births = [
            (_numerator(mass, self.denominator), point, far) for mass, point, _, far in births
        ]
        self.far = any(far for _, _, far in self._births)
        self._weights: list[tuple[WeightedMoves, WeightedMoves]] = []
        reached = (frozenset(point for _, point, _, _ in births),) * 2
        for steps in self._steps:
            step = laws.weighed(reached, steps)
            reached = step.reached
            self._weights.append(step.moves)
            self.denominator *= step.denominator
            self.far |= step.far

    def births(self, *, near: bool = False) -> tuple[ViewLaw, ViewLaw]:
        """Return both laws before the first step; of noise within the tail alone, or of all."""
        start: dict[tuple[ReachedState, View], int] = defaultdict(int)
        for weight, point, far in self._births:
            if not (near and far):
                start[point, ()] += weight
        return start, start

    def advanced(
        self, laws: tuple[ViewLaw, ViewLaw], time: int, *, near: bool = False
    ) -> tuple[ViewLaw, ViewLaw]:
        """Return both laws after the step that follows `time`; of near noise alone, or of all."""
        seen = _looked_at(laws) if self._steps[time][0] == ANNOUNCE else laws
        first, second = (
            _moved(law, weights, near=near)
            for law, weights in zip(seen, self._weights[time], strict=True)
        )
        return first, second

    def complete_laws(
        self, laws: tuple[ViewLaw, ViewLaw], time: int, *, near: bool = False
    ) -> list[dict[View, int]]:
        """Return the laws of the complete view, with an intrusion at `time`."""
        for step in range(time, len(self._steps)):
            laws = self.advanced(laws, step, near=near)
        ends: list[dict[View, int]] = []
        for law in laws:
            views: dict[View, int] = defaultdict(int)
            for (_, view), weight in law.items():
                views[view] += weight
            ends.append(views)
        return ends


def _moved(
    law: ViewLaw, moves: WeightedMoves, *, near: bool
) -> dict[tuple[ReachedState, View], int]:
    after: dict[tuple[ReachedState, View], int] = defaultdict(int)
    for (point, view), weight in law.items():
        for factor, end, told, far in moves[point]:
            if not (near and far):
                after[end, view if told is None else (*view, told)] += weight * factor
    return after


def _looked_at(laws: tuple[ViewLaw, ViewLaw]) -> tuple[ViewLaw, ViewLaw]:
    """Return both laws with the state added to the view."""
    first, second = (
        {(point, (*view, point.state)): weight for (point, view), weight in law.items()}
        for law in laws
    )
    return first, second


def _shared(states: Iterable[bytes]) -> int:
    """Return the number of leading bytes that all states share: those of the first and the last."""
    distinct = {*states} or {b""}
    ends = zip(min(distinct), max(distinct), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], ends))


def _worst(
    ends: list[dict[View, int]], nears: list[dict[View, int]], denominator: int
) -> tuple[tuple[int, int], View, Fraction]:
    """Return the view with the worst ratio, its weights, and the probability of what was set aside.

    A view is as likely under one stream as noise within the tail makes it, and under the other as
    all noise does that was walked; where no noise stays in the state the two are the same.
    """
    (first, second), (near_first, near_second) = ends, nears
    found: dict[tuple[int, int], View] = {}  # many have the same weights
    for view in {**near_first, **near_second}:
        likelier = near_first.get(view, 0), second.get(view, 0)
        rarer = first.get(view, 0), near_second.get(view, 0)
        if likelier[0] >= likelier[1]:
            found.setdefault(likelier, view)
        if rarer[1] >= rarer[0]:
            found.setdefault(rarer, view)
    worst: tuple[tuple[int, int], View] = (0, 0), ()
    for weights, view in found.items():
        if _is_above(weights, worst[0]):
            worst = weights, view
    compared = min(sum(near_first.values()), sum(near_second.values()))
    shown = tuple(
        told.public_view() if isinstance(told, PublicOutputs) else told for told in worst[1]
    )
    return worst[0], shown, 1 - Fraction(compared, denominator)


def _is_above(weights: tuple[int, int], others: tuple[int, int]) -> bool:
    """Return whether one ratio, larger over smaller, exceeds another, decided in whole numbers."""
    small, large = weights if weights[0] < weights[1] else weights[::-1]
    other_small, other_large = others if others[0] < others[1] else others[::-1]
    if other_large == 0:
        return large > 0
    try:
        ratio, other = large / small, other_large / other_small
    except (OverflowError, ZeroDivisionError):  # too far apart for floats
        ratio = other = 1.0
    if abs(ratio - other) > _CLOSE * ratio:
        return ratio > other
    return large * other_small > other_large * small


def _plain(outcomes: Sequence[Transition]) -> list[Move]:
    """Return the moves of a step that publishes nothing."""
    masses: dict[tuple[ReachedState, bool], Fraction] = defaultdict(Fraction)
    for outcome in outcomes:
        masses[outcome.point, outcome.far] += outcome.probability
    return [(mass, point, None, far) for (point, far), mass in masses.items()]


def _far_ones_say_more(outcomes: Mapping[ReachedState, Sequence[Transition]]) -> bool:
    """Return whether an answer that is set aside shares its counts with another answer."""
    ends = [one for each in outcomes.values() for one in each if one.published is not None]
    answers: dict[Hashable, set[PublicOutputs | None]] = defaultdict(set)
    for one in ends:
        answers[one.published and one.published.counts].add(one.published)
    return any(one.far and len(answers[one.published and one.published.counts]) > 1 for one in ends)


def _distinct_moves(outcomes: Mapping[ReachedState, Sequence[Transition]]) -> Moves:
    """Return the moves of a release; answers that far noise can reach are left out.

    Two answers tell the same if their probabilities, from every point to every next one, are
    proportional: then they change every ratio equally, and one stands for both.
    """
    ways: dict[Any, dict[tuple[ReachedState, ReachedState], Fraction]] = defaultdict(
        lambda: defaultdict(Fraction)
    )
    for point, each in outcomes.items():
        for one in each:
            ways[one.published][point, one.point] += one.probability
    for far in {one.published for each in outcomes.values() for one in each if one.far}:
        del ways[far]
    moves: dict[tuple[ReachedState, ReachedState, PublicOutputs], Fraction] = defaultdict(Fraction)
    likes: dict[Hashable, PublicOutputs] = {}
    for published, way in ways.items():
        total = sum(way.values())
        like = frozenset((ends, mass / total) for ends, mass in way.items())
        told = likes.setdefault(like, published)
        for (point, end), mass in way.items():
            moves[point, end, told] += mass
    by_point: dict[ReachedState, list[Move]] = {point: [] for point in outcomes}
    for (point, end, told), mass in moves.items():
        by_point[point].append((mass, end, told, False))
    return by_point


def _rescaled(moves: Sequence[Moves]) -> _Weighed:
    """Return the moves of a stream and of its neighbour."""
    scale = _common_denominator([way for each in moves for way in each.values()])
    first, second = (
        {
            point: [(_numerator(mass, scale), end, told, far) for mass, end, told, far in way]
            for point, way in each.items()
        }
        for each in moves
    )
    ends = [[move for way in each.values() for move in way] for each in (first, second)]
    reached, neighbours = (frozenset(end for _, end, _, _ in each) for each in ends)
    far = any(far for each in ends for *_, far in each)
    return _Weighed((first, second), scale, (reached, neighbours), far)


def _common_denominator(ways: Sequence[Sequence[Move]]) -> int:
    return math.lcm(*(mass.denominator for way in ways for mass, *_ in way))


def _numerator(mass: Fraction, denominator: int) -> int:
    return mass.numerator * (denominator // mass.denominator)

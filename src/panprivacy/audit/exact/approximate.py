"""The exact loss of a program at a delta: where some outcomes may tell more than is claimed.

Every outcome of the coins is walked, to twice the tail, and whole streams are compared: what is
released, with the states after all steps, or with the one state that an intruder sees.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from panprivacy.audit.exact.chain import Audited, Chain, ReachedState
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.exact.loss import Loss
from panprivacy.audit.exact.numbers import exp, ln
from panprivacy.audit.streams import ANNOUNCE, RELEASE, EventStream, checked, take
from panprivacy.errors import allow_noise

AnswerView = tuple[Any, ...]


class WholeViews:
    """The laws of all states and all that is released, each stream walked once.

    Nothing is merged, so it is for small programs.

    Args:
        make: makes the program with the coins that it is given.
        coins: enumerated coins for the tail; outcomes beyond twice the tail go to `Loss.set_aside`.
    """

    def __init__(self, make: Callable[[EnumeratedCoins], Audited], coins: EnumeratedCoins) -> None:
        self._make, self._coins = make, coins
        self._laws: dict[str, Mapping[AnswerView, Fraction]] = {}

    def worst(
        self,
        pairs: Iterable[tuple[EventStream, EventStream]],
        *,
        claimed: Fraction,
        delta: Fraction,
    ) -> Loss:
        """Return the worst loss of any event, once `delta` of its probability is given away.

        For each pair the event is the one that tells most at the claimed epsilon: all views that
        are more than `e**claimed` times as likely under one stream as under the other. So the
        claim holds exactly if the loss is within it.
        """
        factor = exp(claimed)
        found = [
            _compared(one, other, self._law(one), self._law(other), factor, delta)
            for pair in pairs
            for one, other in (checked(*pair), checked(*pair)[::-1])
        ]
        return max(found, key=lambda loss: loss.epsilon)

    def _law(self, stream: EventStream) -> Mapping[AnswerView, Fraction]:
        name = repr(stream)
        if name not in self._laws:
            self._laws[name] = self._walked(stream)
        return self._laws[name]

    @allow_noise()
    def _walked(self, stream: EventStream) -> Mapping[AnswerView, Fraction]:
        views: dict[AnswerView, Fraction] = defaultdict(Fraction)
        for _ in self._coins:
            program = self._make(self._coins)
            seen: list[Any] = []
            for step in stream:
                seen.append(program.state())
                answer = take(program, step)
                if step == RELEASE:
                    seen.append(answer.counts)
            views[*seen, program.state()] += self._coins.probability
        return views


class OneLook:
    """The laws of all releases and of one state, for every moment of an intrusion.

    States at announced intrusions are seen as well. What follows from the same survivors is walked
    once.

    Args:
        make: makes the program with the coins that it is given.
        coins: for the tail; what lies beyond twice of it is not walked, and `Loss.set_aside`.
    """

    def __init__(self, make: Callable[[EnumeratedCoins], Audited], coins: EnumeratedCoins) -> None:
        self._chain = Chain(make, coins)
        self._laws: dict[str, Mapping[AnswerView, Fraction]] = {}

    def worst(
        self,
        pairs: Iterable[tuple[EventStream, EventStream]],
        *,
        claimed: Fraction,  # noqa: ARG002 - as for WholeViews
        delta: Fraction,
    ) -> Loss:
        """Return the least epsilon that holds for every event and moment at this delta."""
        found = []
        for pair in pairs:
            for one, other in (checked(*pair), checked(*pair)[::-1]):
                announced = [place + 1 for place, step in enumerate(one) if step == ANNOUNCE]
                for look in range(max(announced, default=0), len(one) + 1):
                    laws = self._law(one, look), self._law(other, look)
                    loss = _deciding_loss(one, other, *laws, delta)
                    found.append(replace(loss, after_step=look))
        return max(found, key=lambda loss: loss.epsilon)

    def _law(self, stream: EventStream, look: int) -> Mapping[AnswerView, Fraction]:
        name = repr((stream, look))
        if name not in self._laws:
            self._laws[name] = self._walked(stream, look)
        return self._laws[name]

    @allow_noise()
    def _walked(self, stream: EventStream, look: int) -> Mapping[AnswerView, Fraction]:
        law: dict[tuple[ReachedState, AnswerView], Fraction] = defaultdict(Fraction)
        for birth in self._chain.births():
            law[birth.point, ()] += birth.probability
        for place, step in enumerate([*stream, None]):
            if look == place or step == ANNOUNCE:
                law = _added(law, lambda point: point.state)
            if step is None:
                break
            grown: dict[tuple[ReachedState, AnswerView], Fraction] = defaultdict(Fraction)
            for (point, view), mass in law.items():
                for move in self._chain.after(point, step):
                    told = () if move.published is None else (move.published.public_view(),)
                    grown[move.point, (*view, *told)] += mass * move.probability
            law = grown
        views: dict[AnswerView, Fraction] = defaultdict(Fraction)
        for (_, view), mass in law.items():
            views[view] += mass
        return views


def _deciding_loss(
    stream: EventStream,
    neighbour: EventStream,
    law: Mapping[AnswerView, Fraction],
    other: Mapping[AnswerView, Fraction],
    delta: Fraction,
) -> Loss:
    """Return the loss of the event that decides: views join it from those that tell most downwards.

    With `e**epsilon` between the ratio of the last view in it and that of the next one, what it has
    beyond `e**epsilon` times its probability under the neighbour is delta.
    """
    nothing = Fraction(0)
    ratios = {
        view: mass / other[view] if other.get(view) else math.inf for view, mass in law.items()
    }
    views = sorted(law, key=lambda view: ratios[view], reverse=True)
    likelier = rarer = nothing
    for place, view in enumerate(views):
        likelier, rarer = likelier + law[view], rarer + other.get(view, nothing)
        following = ratios[views[place + 1]] if place + 1 < len(views) else nothing
        if likelier - delta >= following * rarer:
            break
    likelier = max(likelier - delta, rarer)
    ratio = likelier / rarer if rarer else math.inf if likelier else Fraction(1)
    aside = 1 - min(sum(law.values(), nothing), sum(other.values(), nothing))
    told = ln(ratio), stream, neighbour, len(stream), views[0], (likelier, rarer), aside
    return Loss(*told)


def _added(
    law: Mapping[tuple[ReachedState, AnswerView], Fraction], seen: Callable[[ReachedState], object]
) -> dict[tuple[ReachedState, AnswerView], Fraction]:
    """Return the same law, with more of the view added to each point."""
    return {(point, (*view, seen(point))): mass for (point, view), mass in law.items()}


def _compared(
    stream: EventStream,
    neighbour: EventStream,
    law: Mapping[AnswerView, Fraction],
    other: Mapping[AnswerView, Fraction],
    factor: Fraction,
    delta: Fraction,
) -> Loss:
    event = [view for view in law if law[view] > factor * other.get(view, Fraction(0))]
    rarer = sum((other.get(view, Fraction(0)) for view in event), Fraction(0))
    likelier = max(sum((law[view] for view in event), Fraction(0)) - delta, rarer)
    aside = 1 - min(sum(law.values(), Fraction(0)), sum(other.values(), Fraction(0)))
    ratio = likelier / rarer if rarer else math.inf if likelier else Fraction(1)
    view = event[0] if event else ()
    return Loss(ln(ratio), stream, neighbour, len(stream), view, (likelier, rarer), aside)

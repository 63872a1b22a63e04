"""The subject of an audit, its streams, and the row of the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Final, Literal

from panprivacy.audit.exact.approximate import OneLook, WholeViews
from panprivacy.audit.exact.chain import Audited, Chain
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.exact.laws import Laws
from panprivacy.audit.exact.loss import Loss, check_answers, worst_of
from panprivacy.audit.exact.separate import SeparateProgram, ViewNumbers, separate_loss
from panprivacy.audit.exact.traces import LeakError, check_traces
from panprivacy.audit.neighbours import add_remove, event, pairs, replace
from panprivacy.audit.streams import EventStream

SubjectKind = Literal["product", "control"]
Adjacency = Literal["add_remove", "replace", "event"]

Losses = dict[Adjacency, Loss]
"""The worst loss for each adjacency."""

ADJACENCIES: Final[tuple[Adjacency, ...]] = ("add_remove", "replace", "event")


@dataclass(frozen=True, slots=True)
class Subject:
    """A program, what is claimed of it, and the streams on which the claim is tried.

    Args:
        kind: a product has to keep its claim, a control has to be caught.
        claimed: the loss that is claimed, in nats.
        streams: each is compared with its neighbours.
        users: whose rows neighbours lack, and to whom they are moved.
        coins: for the key and the tail.
        adjacency: for which the claim is made; twice the claim holds for `replace` otherwise.
    """

    name: str
    kind: SubjectKind
    says: str
    make: Callable[[EnumeratedCoins], Audited]
    claimed: Fraction
    streams: Sequence[EventStream]
    users: Sequence[tuple[object, object]] = ((0, 1),)
    coins: EnumeratedCoins = field(default_factory=EnumeratedCoins)
    adjacency: Adjacency = "add_remove"

    def neighbours(self, adjacency: Adjacency, stream: EventStream) -> Iterator[EventStream]:
        """Yield the neighbours of a stream."""
        for user, other in self.users:
            if adjacency == "replace":
                yield from replace(stream, user, by=other)
            else:
                yield from {"add_remove": add_remove, "event": event}[adjacency](stream, user)

    def row(self) -> Row:
        """Return the audit of this subject."""
        try:
            return Row(self, self.losses())
        except LeakError as error:
            return Row(self, {}, str(error))

    def losses(self) -> Losses:
        """Return the worst loss over all streams, for each adjacency.

        Raises:
            LeakError: the program tells more than its state and its counts do.
        """
        laws = Laws(Chain(self.make, self.coins))
        tried = {
            adjacency: list(pairs(self.streams, partial(self.neighbours, adjacency)))
            for adjacency in ADJACENCIES
        }
        says_more = check_traces(self.make, tried[self.adjacency], self.coins)
        losses = {adjacency: worst_of(laws, each) for adjacency, each in tried.items()}
        check_answers(says_more or laws.says_more, losses.values())
        return losses

    def losses_at(self, delta: Fraction, walk: type[WholeViews | OneLook] = WholeViews) -> Losses:
        """Return the same where the claim has a delta: the losses of events less so much of them.

        Args:
            delta: delta of the claim.
            walk: what an intruder sees: all states, or one of them.

        Raises:
            LeakError: the program tells more than its state and its counts do.
        """
        tried = {
            adjacency: list(pairs(self.streams, partial(self.neighbours, adjacency)))
            for adjacency in ADJACENCIES
        }
        check_traces(self.make, tried[self.adjacency], self.coins)
        views = walk(self.make, self.coins)
        return {
            adjacency: views.worst(each, claimed=self.claimed, delta=delta)
            for adjacency, each in tried.items()
        }

    @property
    def allowed(self) -> Fraction:
        """The delta of the claim."""
        return Fraction(0)

    def limit(self, adjacency: Adjacency) -> Fraction | float:
        """Return the claim for an adjacency: to replace is to remove and to add.

        A claim that hides one event gives no bound for a user of several events.
        """
        if self.adjacency == "event" and adjacency == "add_remove":
            return math.inf
        doubled = adjacency == "replace" and self.adjacency != "replace"
        return 2 * self.claimed if doubled else self.claimed


@dataclass(frozen=True, slots=True)
class Approximate(Subject):
    """A subject whose claim has a delta.

    Args:
        delta: delta of the claim.
    """

    delta: Fraction = Fraction(0)

    @property
    def allowed(self) -> Fraction:
        """The delta of the claim."""
        return self.delta

    def losses(self) -> Losses:
        """Return the worst loss over all streams at the delta by adjacency, all states visible."""
        return self.losses_at(self.delta)


@dataclass(frozen=True, slots=True)
class SeenOnce(Approximate):
    """A subject of which an intruder sees one state, not all."""

    def losses(self) -> Losses:
        """Return the worst loss over all streams and moments at the delta, for each adjacency."""
        return self.losses_at(self.delta, OneLook)


@dataclass(frozen=True, slots=True, kw_only=True)
class Separate(Subject):
    """A subject whose view comes apart, for the adjacency of its claim.

    Args:
        numbers: the whole numbers of the state of a program.
        cells: number of cells, whose noise is drawn before all other.
        most: noise of a cell is walked to ± this.
    """

    numbers: Callable[[Audited], ViewNumbers]
    cells: int = 0
    most: int = 0

    @property
    def program(self) -> SeparateProgram:
        """The program, and how its numbers are read."""
        return SeparateProgram(self.make, self.numbers, self.cells, self.most)

    def losses(self) -> Losses:
        """Return the worst loss over all streams, for the adjacency of the claim.

        Raises:
            LeakError: the program tells more than its state and its counts do.
        """
        tried = list(pairs(self.streams, partial(self.neighbours, self.adjacency)))
        says_more = check_traces(self.make, tried, self.coins)
        loss = separate_loss(self.program, tried)
        check_answers(says_more, [loss])
        return {self.adjacency: loss}


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of the audit of one subject.

    Args:
        losses: the worst one for each adjacency; none if it was refused.
        refused: why it was; empty if it was not.
    """

    subject: Subject
    losses: Losses
    refused: str = ""

    @property
    def holds(self) -> bool:
        """Whether the claim holds on every stream and outcome, decided exactly."""
        return not self.refused and all(
            loss.within(self.subject.limit(adjacency)) for adjacency, loss in self.losses.items()
        )

    @property
    def verdict(self) -> str:
        """Verdict in one word."""
        if self.refused:
            return "refused"
        if self.subject.kind == "product":
            return "holds" if self.holds else "exceeds"
        return "missed" if self.holds else "caught"

    @property
    def is_right(self) -> bool:
        """Whether a product satisfies its claim, or a control was caught or refused."""
        return self.holds == (self.subject.kind == "product")

    @property
    def worst(self) -> Loss:
        """The loss under the adjacency of the claim."""
        return self.losses[self.subject.adjacency]

    @property
    def says(self) -> str:
        """Reason of the refusal, or the place that attains the loss."""
        return self.refused or str(self.worst)

    @property
    def set_aside(self) -> Fraction:
        """The largest probability of what was not compared."""
        return max((loss.set_aside for loss in self.losses.values()), default=Fraction(0))

"""The base class of controls: programs that the audit must catch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from panprivacy.audit.exact.chain import Audited
from panprivacy.audit.exact.coins import TAIL, EnumeratedCoins
from panprivacy.audit.exact.loss import Loss, exact_loss
from panprivacy.audit.exact.separate import SeparateLoss, separate_loss
from panprivacy.audit.neighbours import short_streams
from panprivacy.audit.streams import RELEASE, EventStream
from panprivacy.audit.subject import Losses, Separate, Subject, SubjectKind


@dataclass(frozen=True, slots=True)
class Counted:
    """A release of a printed algorithm: the noisy numbers."""

    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control(Subject):
    """A subject with a claim that does not hold.

    Args:
        pair: a stream and its neighbour that show it.
        true_loss: what it loses on them, in nats.
        refused: why it is refused, in the words of the audit; empty where the loss shows it.
    """

    kind: SubjectKind = field(default="control", init=False)
    pair: tuple[EventStream, EventStream]
    true_loss: float = math.inf
    refused: str = ""

    def measured_loss(self) -> Loss:
        """Return the exact loss on the pair.

        Raises:
            LeakError: it is one of those.
        """
        return exact_loss(self.make, *self.pair, coins=self.coins)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeparateControl(Control):
    """A control whose view comes apart.

    Args:
        like: makes a subject with the same program.
    """

    like: Callable[[], Separate]

    def measured_loss(self) -> SeparateLoss:
        """Return the exact loss on the pair."""
        return separate_loss(self.like().program, [self.pair])

    def losses(self) -> Losses:
        """Return the worst loss over all streams, for the adjacency of the claim."""
        like = replace(self.like(), streams=self.streams)
        return like.losses()


def revealed_by_single(
    name: str,
    says: str,
    make: Callable[[EnumeratedCoins], Audited],
    *,
    claimed: Fraction,
    true_loss: float = math.inf,
    releases: int = 0,
    tail: int = TAIL,
    refused: str = "",
) -> Control:
    """Return a control that a single appearance reveals after some releases."""
    published = [RELEASE] * releases
    return Control(
        name=name,
        says=says,
        make=make,
        claimed=claimed,
        streams=list(short_streams([[0], [1]], 2, releases=releases)),
        coins=EnumeratedCoins(tail=tail),
        pair=([[0], *published], [[], *published]),
        true_loss=true_loss,
        refused=refused,
    )

"""What a control is."""

from __future__ import annotations

from dataclasses import dataclass, field

from panprivacy.audit.exact.loss import Loss, exact_loss
from panprivacy.audit.streams import Stream
from panprivacy.audit.suite.subject import Kind, Subject


@dataclass(frozen=True, slots=True)
class Answer:
    """A release of a printed algorithm.

    Args:
        counts: the noised numbers.
    """

    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control(Subject):
    """A subject with a claim that does not hold.

    Args:
        pair: a stream and its neighbour that show it.
        true_loss: what it loses on them, in nats.
    """

    kind: Kind = field(default="control", init=False)
    pair: tuple[Stream, Stream]
    true_loss: float

    def shown(self) -> Loss:
        """The exact loss on the pair."""
        return exact_loss(self.make, *self.pair, coins=self.coins)

"""Choice of the encoding with the smallest error, by epsilon and the number of values."""

from __future__ import annotations

from panprivacy.errors import PlanError
from panprivacy.papers.local.hadamard import HadamardResponse
from panprivacy.papers.local.randomiser import Randomiser
from panprivacy.papers.local.response import RandomisedResponse
from panprivacy.papers.local.unary import MOST_BITS, UnaryEncoding
from panprivacy.privacy.guarantee import Epsilon


def best_encoding(values: int, epsilon: Epsilon, *, most_bits: int | None = None) -> Randomiser:
    """Return the encoding with the smallest `variance` whose reports are short enough.

    >>> best_encoding(4, 1), best_encoding(100, 1)
    (RandomisedResponse(values=4, epsilon=Fraction(1, 1)), UnaryEncoding(values=100, ...))
    >>> best_encoding(100, 1, most_bits=16)
    HadamardResponse(values=100, epsilon=Fraction(1, 1))

    Without a limit it is `RandomisedResponse` up to about `3 e**epsilon + 2` values and
    `UnaryEncoding` beyond; with one, `HadamardResponse` takes the place of the latter.

    Args:
        values: number of values.
        epsilon: the loss of a report, in nats.
        most_bits: the longest report; None for any.

    Raises:
        PlanError: no encoding has reports so short, or an argument is out of range.
    """
    kinds = [RandomisedResponse, HadamardResponse]
    made: list[Randomiser] = [kind(values, epsilon) for kind in kinds]
    if values <= MOST_BITS:
        made.append(UnaryEncoding(values, epsilon))
    short = [one for one in made if most_bits is None or one.bits <= most_bits]
    if not short:
        least = min(one.bits for one in made)
        message = f"a report about {values:,} values has {least} bits or more: raise most_bits"
        raise PlanError(message)
    return min(short, key=lambda one: one.variance)

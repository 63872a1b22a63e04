"""Conditions on output noise under which the numbers of the audit are correct.

Noise is walked to twice the tail, and answers that noise beyond the tail can reach are set aside.
An answer that is compared came from one point by noise within the tail. From another point, whose
counts lie at most a tail apart, it can come only by noise within twice the tail, which was walked:
so its probabilities are complete. This needs noise that is added to whole numbers, one to each.
Where the program is then may depend on the answer, which it may keep.

What is set aside tells no more if the noise is discrete Laplace: beyond all counts the ratio of two
probabilities no longer changes, and answers as far out as that are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from panprivacy.audit.exact.chain import ReachedState, Transition
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.errors import PlanError


def check_noise(
    outcomes: Mapping[ReachedState, Sequence[Transition]], coins: EnumeratedCoins
) -> None:
    """Raise `PlanError` if outcomes of a release, from all points reached, cannot be compared."""
    sums = {counts for each in outcomes.values() for counts in _without_noise(each)}
    apart = max((max(column) - min(column) for column in zip(*sums, strict=True)), default=0)
    if apart > coins.tail and any(one.noise for each in outcomes.values() for one in each):
        message = (
            f"counts without noise lie {apart} apart and noise is told from far noise at "
            f"{coins.tail}: give coins=EnumeratedCoins(tail={apart}) or more"
        )
        raise PlanError(message)


def _without_noise(outcomes: Sequence[Transition]) -> set[tuple[int, ...]]:
    """Return the counts before noise, which must not depend on the noise.

    Raises:
        PlanError: the noise was not added, one to each count.
    """
    laws: dict[tuple[int, ...], dict[tuple[int, ...], Fraction]] = defaultdict(
        lambda: defaultdict(Fraction)
    )
    for one in outcomes:
        counts = () if one.published is None else one.published.counts
        if one.noise and len(one.noise) != len(counts):
            raise PlanError(_ADDED)
        noise = one.noise or (0,) * len(counts)
        sums = tuple(count - drawn for count, drawn in zip(counts, noise, strict=True))
        laws[one.noise][sums] += one.probability
    totals = [(law, sum(law.values())) for law in laws.values()]
    first, *others = [{sums: mass / total for sums, mass in law.items()} for law, total in totals]
    if any(other != first for other in others):
        raise PlanError(_ADDED)
    return set(first)


_ADDED = "noise must be added to whole numbers, one to each, and the sums be the `counts`"

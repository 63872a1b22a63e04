"""How much do the states of all users, or the squares of these, add up to?

Noisy sums of deltas, to which random polynomials send users, each with a sign of their own: the
expectation of the square of such a sum is that of the squares of states, and the signs make what
users have in common cancel. A sum of states is one cell, in which nobody has a sign.

Reference: N. Alon, Y. Matias, M. Szegedy, "The space complexity of approximating the frequency
moments", 1999; M. Thorup, Y. Zhang, "Tabulation based 4-universal hashing with applications to
second moment estimation", 2004, for one cell a user. Where we differ: the cells are born with
noise, whose part in the answer is known and taken away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.moment.cases import TRIALS, WALKS
from panprivacy.statistics.moment.plan import MomentPlan
from panprivacy.statistics.moment.sizes import MomentSizes
from panprivacy.statistics.records import Whole
from panprivacy.statistics.release import Release
from panprivacy.statistics.statistic import Statistic


class FrequencyMoment(Statistic[MomentPlan, Release]):
    """The sum of all users' states (order 1), or that of their squares (order 2).

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> uneven = pp.FrequencyMoment(order=2, bound=20, epsilon=2)
    >>> uneven.update(np.arange(100_000), np.full(100_000, 20))
    >>> uneven.update(np.arange(100_000), np.full(100_000, -10))  # half of it is taken back
    >>> answer = uneven.release(confidence=1 - 1e-9)
    >>> answer.low < 10_000_000 < answer.high  # 100,000 * 10**2
    True

    The second moment tells how uneven users are: over the square of the first it is the chance that
    two events, drawn at random, are of one user. It is the size of a join of a table with itself.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, *while the
    states of that user stay within 0 .. bound*, or -bound .. bound if `signed`. Who goes c times
    as far loses c times as much. With `intrusions=k` that includes the states at k announced
    intrusions before that time. [tests/contract, tests/exact/test_moments.py,
    docs/guarantees/moments.md]

    Accuracy: unbiased before it is cut to its interval, also after deletions and beyond the bound.
    The error is proportional to the bound: of a sum about `6 bound/epsilon`, whatever the sum is;
    of a sum of squares F about `8 bound sqrt(F)/epsilon` where the cells fit F, and several times
    that far from it. So the answer is worth its noise where F is above about `1000
    (bound/epsilon)**2`: a bound far above what users do costs more than any other size.
    `plan.absolute_error(F)` predicts it. [tests/statistical/test_moments.py,
    docs/accuracy-moments.md]

    A release publishes every cell with noise of its own, or one noised sum of squares of cells that
    are cut off far out; the plan takes what errs less. An answer is cut to its interval,
    which begins at 0.
    """

    __slots__ = ()

    entry = CatalogueEntry(MomentSizes, trials=TRIALS, walks=WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            order: Whole,
            bound: Whole,
            signed: bool = False,
            expected: tuple[Whole, Whole] | Whole | str | None = None,
            cells: Whole | None = None,
            memory: Whole | None = None,
            clip: Whole | None = None,
            **arguments: Unpack[Arguments],
        ) -> None: ...

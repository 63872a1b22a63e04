"""How many users hold at least 1/k of a public total?

Several times k counters with noise on blocks of `total/2k`, whatever the number of users; random
polynomials send users to them.
What leaves is one noised count, which is affine in a threshold that rises from `total/2k` to
`total/k`.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", Algorithm 3. Where we differ: they subtract two estimates of cropped sums, each from
a table of its own and each right up to a factor of 2, so the difference may be off by a multiple
of k. Here one count of one table has the threshold as its mean, and a look costs half as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.heavy.cases import TRIALS, WALKS
from panprivacy.statistics.heavy.plan import HeavyPlan, SlopedHeavyPlan
from panprivacy.statistics.heavy.sizes import HeavySizes
from panprivacy.statistics.records import Whole
from panprivacy.statistics.release import Release
from panprivacy.statistics.statistic import Statistic


class HeavyHitterCount(Statistic[HeavyPlan | SlopedHeavyPlan, Release]):
    """The number of users whose deltas add up to at least `total / k`, in a memory of k alone.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> heavy = pp.HeavyHitterCount(k=1_000, total=1_000_000, epsilon=4)
    >>> heavy.update(np.arange(600), np.full(600, 1_500))  # of 100,000 users
    >>> heavy.update(np.arange(600, 100_000))
    >>> answer = heavy.release(confidence=1 - 1e-9)
    >>> answer.low < 600 < answer.high
    True

    A user of `total/k` or more counts as 1, one of `total/2k` or less as 0, and one between as
    the share of the way: the *soft count*, which lies between the number of users with at least
    `total/k` and that with more than `total/2k`. The interval is for it. The answer is the soft
    count of cells, which users who share one can raise: in the worst stream, where everybody
    holds just `total/2k`, by `2 k**2 / cells`.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do and however deltas are rounded; `total` is public. With `intrusions=1` that includes
    the state at an announced intrusion before that time.
    [tests/contract, tests/exact/test_heavy.py, docs/guarantees/heavy.md]

    Accuracy: with m cells the standard deviation is at most about `1.5 sqrt(m)/t`,
    `t = tanh(epsilon/2)`, and so at epsilon 1 the answer says little unless k is in the thousands.
    `plan.absolute_error()` predicts the root-mean-square error in the worst stream; the plan takes
    as many cells as make it smallest.
    [tests/unit/test_heavy.py, tests/statistical/test_heavy_hitters.py]

    If the total is wrong, so are the thresholds; privacy does not rest on it. A user whose deltas
    add up to `-a` counts as `min(a/L, 1)`, with `L = total/2k`, and each answer says so, unless
    `below=N` makes room down to -N, at 1.1 to 1.4 times the error; the total then is what states
    above 0 add up to, and few may be below. Deltas are
    rounded to multiples of the resolution, up or down at random, so that the mean is right; the
    interval covers that for deltas of at least 0, so where many are taken back, give a finer one.
    What is said of collisions needs an `independence` of 4; with 64 an update takes several times
    as long (benchmarks/heavy.py). An announced intrusion, at most one, multiplies the error by the
    root of the number of values of a counter.
    """

    __slots__ = ()

    entry = CatalogueEntry(HeavySizes, trials=TRIALS, walks=WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            k: Whole,
            total: Whole,
            cells: Whole | None = None,
            memory: Whole | None = None,
            resolution: Whole | None = None,
            independence: Whole = 4,
            below: Whole | None = None,
            **arguments: Unpack[Arguments],
        ) -> None: ...

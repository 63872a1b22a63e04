"""How much have all users done, if nobody counts for more than tau?

A counter for each user of a universe or of a sample of it, or hashed counters for open-ended ids,
with noise on blocks of tau values. What leaves is a noised count of cells, which is affine in the
cropped sum; or one of each level, where nobody knows how many users will come.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", Algorithm 2. Where we differ: the law of the noise. Theirs has a bump of one value
and needs random weights, so its answer is biased by up to a factor of 2, and its deviation grows
with `tau**2`; that of blocks is unbiased and grows with `tau`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.cropped.cases import TRIALS, WALKS
from panprivacy.statistics.cropped.plan import Cropped
from panprivacy.statistics.cropped.sizes import CroppedSizes
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.means.mean_query import CroppedQuery
from panprivacy.statistics.records import ManyUsers, Whole
from panprivacy.statistics.release import Release
from panprivacy.statistics.statistic import Statistic


class CroppedSum(Statistic[Cropped, Release]):
    """The sum of `min(|state|, tau)` over users; a state is the sum of a user's deltas.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> spent = pp.CroppedSum(tau=10, bound=500, universe=100_000, epsilon=1.0)
    >>> spent.update(np.arange(50_000), np.full(50_000, 4))
    >>> spent.update(np.arange(1_000), np.full(1_000, 400))  # whales count for 10 each
    >>> answer = spent.release()
    >>> 140_000 < answer.low < answer.value < answer.high < 270_000
    True

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do. With `intrusions=k` that includes the states at k announced intrusions before that
    time. [tests/contract, tests/exact/test_cropped.py, docs/guarantees/blocks.md,
    docs/guarantees/thresholds.md]

    Accuracy: with a universe unbiased. With m cells the standard deviation is at most about
    `tau sqrt(m)/t`, `t = tanh(epsilon/2)`, whatever the bound; `plan.absolute_error()` predicts it.
    Of open-ended ids, two that share a cell hide a part of each other, and the interval covers what
    they may hide. Of very many a histogram is read where that errs less, and nobody is hidden; far
    more than `expected` then lose the answer (`LostReleaseError`). Levels err by about as large a
    share of any sum in their range; the prediction is good where that share is below a fifth.
    Collisions move the mean of an answer by at most `Release.bias`; `plan` says by how much.
    [tests/unit/test_cropped.py, tests/statistical/test_cropped_sum.py]

    `release(mean=True)` answers the mean of the users that came in place of the sum: those whose
    state is 1 or more. A second count tells how many they are, with a standard deviation of about
    `sqrt(tau m)/t` with m cells, and Fieller's interval covers the ratio. Where states may be below
    0, those from 1 - tau to -1 are taken for users that did not come.
    [tests/statistical/test_means.py, docs/guarantees/blocks.md]

    A state beyond `plan.range_of_states`, which reaches beyond the bound where that costs at most
    5 % of the error, is taken for another one when it is released; privacy does not rest on it, and
    on the way states may go as far as they like. States below 0 count by their distance
    from 0 if there is a universe; without one there must be none. An announced intrusion
    multiplies the error by about `sqrt(tau q)/t` with q blocks, and each further one by more: where
    the bound is not small, a fresh statistic is better. [docs/intrusions.md]
    """

    __slots__ = ()

    entry = CatalogueEntry(CroppedSizes, CroppedQuery, trials=TRIALS, walks=WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            tau: Whole,
            bound: Whole | str | None = None,
            universe: Whole | None = None,
            expected: ManyUsers | None = None,
            cells: Whole | None = None,
            memory: Whole | None = None,
            unit: float | str | None = None,
            **arguments: Unpack[Arguments],
        ) -> None: ...

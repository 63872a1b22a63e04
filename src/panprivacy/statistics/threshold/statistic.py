"""How many users are in a state of about `threshold` or more?

A counter for each user of a universe or of a sample of it, with noise on blocks of `threshold/2`
values. What leaves is one noised count, which is affine in a threshold that rises from half of it
to all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from panprivacy.statistics.records import Whole
from panprivacy.statistics.release import Release
from panprivacy.statistics.statistic import Arguments, Statistic
from panprivacy.statistics.threshold.cases import TRIALS, WALKS
from panprivacy.statistics.threshold.plan import ThresholdPlan
from panprivacy.statistics.threshold.sizes import ThresholdSizes


class ThresholdCount(Statistic[ThresholdPlan, Release], sizes=ThresholdSizes):
    """The number of users whose deltas add up to about `threshold` or more: a soft threshold.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> busy = pp.ThresholdCount(threshold=100, bound=5_000, universe=100_000, epsilon=1.0)
    >>> busy.update(np.arange(20_000), np.full(20_000, 700))
    >>> busy.update(np.arange(20_000, 90_000), np.full(70_000, 30))
    >>> answer = busy.release()
    >>> 12_000 < answer.low < answer.value < answer.high < 28_000
    True

    A user of `threshold` or more counts as 1, one of half of it or less as 0, and one between as
    the share of the way. So the answer lies between the number of users with at least `threshold`
    and that with more than half of it. A threshold that cuts hard,
    `Incidence.release(at_least=...)`, costs about `sqrt(threshold)` times a fixed error; this one
    costs the same for every `threshold`.
    [docs/decoding.md]

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do. With `intrusions=1` that includes the state at an announced intrusion before that
    time. [tests/contract, tests/exact/test_threshold.py, docs/guarantees/heavy.md]

    Accuracy: unbiased while states stay within 0 .. bound when it is released; with m cells the
    standard deviation is at most about `1.5 sqrt(m)/t`, `t = tanh(epsilon/2)`.
    `plan.absolute_error()` predicts it.
    [tests/unit/test_threshold.py, tests/statistical/test_threshold.py]

    An odd threshold counts as the even one below it. A state beyond `plan.range_of_states`, which
    reaches beyond the bound where that costs at most 5 % of the error, is taken for another one. A
    state below 0 counts by how far it is below, in full from minus half of the threshold on: where
    there are such states, ask `Incidence(signed=True)` for `at_least`. Privacy rests on none of
    that. An announced intrusion, at most one, multiplies
    the error by the root of the number of values of a counter: a fresh statistic is better.
    """

    __slots__ = ()

    trials, walks = TRIALS, WALKS

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            threshold: Whole,
            universe: Whole,
            bound: Whole | None = None,
            cells: Whole | None = None,
            memory: Whole | None = None,
            **arguments: Unpack[Arguments],
        ) -> None: ...

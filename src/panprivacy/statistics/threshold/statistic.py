"""How many users are in a state of about `threshold` or more, or of exactly that?

A counter for each user of a universe or of a sample of it, with noise on blocks of `threshold/2`
values. What leaves is one noised count, which is affine in a threshold that rises from half of it
to all of it. Or the noise is larger on a set that is shaped to a threshold that cuts hard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Whole
from panprivacy.statistics.release import Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.statistics.threshold.cases import TRIALS, WALKS
from panprivacy.statistics.threshold.hard import HardPlan
from panprivacy.statistics.threshold.plan import SoftThreshold
from panprivacy.statistics.threshold.sizes import ThresholdSizes


class ThresholdCount(Statistic[SoftThreshold | HardPlan, Release]):
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
    and that with more than half of it, and costs the same for every `threshold`.
    With `hard=True` it is the number of users with at least `threshold`, exactly that: by a law
    shaped to it, whose price grows with the logarithm of `threshold`.
    `Incidence.release(at_least=...)` cuts where a release says; that costs about
    `sqrt(threshold)` times a fixed error.
    [docs/decoding.md, docs/accuracy-answers.md]

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do. With `intrusions=k` that includes the states at k announced intrusions before that
    time. [tests/contract, tests/exact/test_threshold.py, docs/guarantees/heavy.md,
    docs/guarantees/thresholds.md]

    Accuracy: unbiased while states stay within 0 .. bound when it is released; with m cells the
    standard deviation is at most about `1.5 sqrt(m)/t`, `t = tanh(epsilon/2)`.
    `plan.absolute_error()` predicts it. A hard threshold of 10 errs 1.4 times as much at epsilon 1,
    one of 100 twice as much; rounding of its scores moves it by at most a 64th of that.
    [tests/unit/test_threshold.py, tests/statistical/test_threshold.py]

    An odd threshold counts as the even one below it. A state beyond `plan.range_of_states`, which
    reaches beyond the bound where that costs at most 5 % of the error, is taken for another one.
    States below 0 do not count down to a half, a quarter or less of the threshold, the first that
    costs at most 5 % of the error, and lower ones count in part. Where none does, a state of -d
    counts `min(d/L, 1)`, L half of the threshold, and each answer says so: `below=N` makes room
    down to -N, at 1.05 to 1.25 times the error. Privacy rests on none of that. An announced
    intrusion multiplies the error by about the root of the number of values of a counter, and each
    further one by more: where the bound is not small, a fresh statistic is better.
    [docs/intrusions.md] A hard threshold takes every state up to the bound right and counts those
    beyond in part, and takes a second to plan for a bound of 1,000, up to ten for 4,095; a soft one
    takes up to a second.
    """

    __slots__ = ()

    entry = CatalogueEntry(ThresholdSizes, trials=TRIALS, walks=WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            threshold: Whole,
            universe: Whole,
            bound: Whole | str | None = None,
            cells: Whole | None = None,
            memory: Whole | None = None,
            hard: bool = False,
            below: Whole | None = None,
            **arguments: Unpack[Arguments],
        ) -> None: ...

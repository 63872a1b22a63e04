"""What share of a known universe appeared?

One presence bit for each user of the universe, or of a uniform sample of it, and discrete Laplace
noise on the number of ones.

Reference: V. Digalakis, G. Karystinos, M. Garofalakis, "Improved pan-private stream density
estimation", Algorithm 2. Where we differ: the output noise is that of the true sensitivity (1 for
the number of ones; the printed scale is too small), it is discrete, and the sample is a keyed
permutation, which stores bits instead of ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.density.cases import TRIALS, WALKS
from panprivacy.statistics.density.plan import DensityPlan
from panprivacy.statistics.density.sizes import DensitySizes
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Whole
from panprivacy.statistics.release import Release
from panprivacy.statistics.statistic import Statistic


class Density(Statistic[DensityPlan, Release]):
    """The share of a declared universe that appeared, or is present in a stream with deletions.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> members = pp.Density(universe=100_000, epsilon=1.0)
    >>> members.update(np.arange(25_000))
    >>> answer = members.release()
    >>> 0.2 < answer.low < answer.value < answer.high < 0.3
    True

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed. With
    `intrusions=k` that includes the states at k announced intrusions before that time.
    [tests/contract, tests/exact/test_exact.py]

    Accuracy: with m cells the standard deviation is about `1/(2 t sqrt(m))`,
    `t = tanh(epsilon/2)`, and with fewer cells than users that of a sample of m.
    [tests/statistical/test_density.py]
    """

    __slots__ = ()

    entry = CatalogueEntry(DensitySizes, trials=TRIALS, walks=WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            universe: Whole,
            cells: Whole | None = None,
            memory: Whole | None = None,
            **arguments: Unpack[Arguments],
        ) -> None: ...

"""How many users have a total of exactly t, for every t?

A counter for each user of a universe or of a sample of it, or hashed counters for open-ended ids,
modulo a number above the largest state. What leaves is either one noised count of cells for each
statistic that is named, or the noised histogram of cell values, from which all of them follow.

Reference: M. Naor, "Foundations of Privacy", lecture 10 (incidence counting); D. Mir, S.
Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics on sketches",
Algorithm 3. Where we differ: one modulus above the bound in place of many primes, noise laws on
difference sets, and collisions of hashed cells are undone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.incidence.cases import TRIALS, WALKS
from panprivacy.statistics.incidence.plan import IncidencePlan
from panprivacy.statistics.incidence.query import IncidenceQuery
from panprivacy.statistics.incidence.release import IncidenceRelease
from panprivacy.statistics.incidence.sizes import IncidenceSizes
from panprivacy.statistics.records import ManyUsers, Whole
from panprivacy.statistics.statistic import Statistic
from panprivacy.tables.cells.law import Law


class Incidence(Statistic[IncidencePlan, IncidenceRelease]):
    """How many users are in each state: how many came exactly t times, or at least k times.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> visits = pp.Incidence(universe=100_000, bound=30, epsilon=1.0)
    >>> visits.update(np.arange(60_000))
    >>> visits.update(np.arange(20_000))
    >>> answer = visits.release(exactly=(0, 1, 2), at_least=(2,))
    >>> twice = answer.exactly(2)
    >>> 10_000 < twice.low < twice.value < twice.high < 30_000
    True

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do. With `intrusions=k` that includes the states at k announced intrusions before that
    time. [tests/contract, tests/exact/test_counters.py]

    Accuracy: with m cells the standard deviation of an entry is about `sqrt(m)/t`,
    `t = tanh(epsilon/2)`, whatever the bound, and `e**(users/m)` times that with hashed cells; the
    whole histogram adds the noise of its `M` values. `plan.absolute_error()` predicts it.
    [tests/statistical/test_incidence.py, docs/accuracy-counters.md]

    Counters have room for states beyond the bound where that costs at most 5 % of the error:
    `plan.range_of_states` says which states count right, and a histogram ends with the number of
    users above the bound. A state beyond that range is taken for another one, without a word. One
    below 0 is taken for one far above the bound, so that thresholds and cropped sums count it,
    which each of them says: `below=N` tells states apart down to -N, `signed` down to minus the
    bound, at the price of as many more states. Privacy rests on none of that, and `law=` fixes the
    room.

    An announced intrusion multiplies the error by a large factor (docs/decoding.md): a fresh
    statistic is mostly better. With one user a cell, a few named statistics have much less output
    noise than the histogram; with hashed cells all of them are read off the histogram.
    """

    __slots__ = ()

    entry = CatalogueEntry(IncidenceSizes, IncidenceQuery, trials=TRIALS, walks=WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            bound: Whole | str,
            universe: Whole | None = None,
            expected: ManyUsers | None = None,
            cells: Whole | None = None,
            memory: Whole | None = None,
            signed: bool = False,
            below: Whole | None = None,
            law: Law | str | None = None,
            unit: float | str | None = None,
            **arguments: Unpack[Arguments],
        ) -> None: ...

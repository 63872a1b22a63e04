"""How many different users appeared, or are left after deletions, when nobody knows who might?

Presence bits at hashed cells, in levels that halve in popularity, so that some level is about
half full whatever the number of users; noise on the number of ones of each level; maximum
likelihood across levels. With deletions, counters modulo a prime in place of bits: each user's
deltas take a factor of their own, so a counter tells a sum of 0 from any other. In a strict stream,
where a user is in or out, bits do again: each update toggles one.

Reference: the bits of V. Digalakis, G. Karystinos, M. Garofalakis, "Improved pan-private stream
density estimation", Algorithm 2. Where we differ from their Algorithm 3: a user's level is fixed
by the hash, not by the history of the sample, which is not pan-private for any epsilon.
The counters: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via
statistics on sketches", asks the same question (Algorithm 1); the sketch here is another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.distinct.cases import TRIALS, WALKS
from panprivacy.statistics.distinct.plan import LevelledPlan
from panprivacy.statistics.distinct.sizes import DistinctSizes
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import ManyUsers, Whole
from panprivacy.statistics.release import Release
from panprivacy.statistics.statistic import Statistic


class DistinctCount(Statistic[LevelledPlan, Release]):
    """The number of different users that appeared, in a fixed and small memory.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> visitors = pp.DistinctCount(epsilon=1.0, expected=(1_000, 1_000_000))
    >>> visitors.update(np.arange(50_000) % 20_000)
    >>> answer = visitors.release()
    >>> 14_000 < answer.low < answer.value < answer.high < 26_000
    True

    In a strict stream each update is the insert of a user who is out, or the delete of one who is
    in. `deletions="strict"` counts who is in, as `deletions=True, bound=1` does in 8 times the
    memory:

    >>> guests = pp.DistinctCount(epsilon=1.0, expected=(1_000, 1_000_000), deletions="strict")
    >>> guests.update(np.arange(50_000))
    >>> guests.update(np.arange(30_000), np.full(30_000, -1))
    >>> answer = guests.release()
    >>> 14_000 < answer.low < answer.value < answer.high < 26_000
    True

    Where a stream is not strict, a user counts if they have an odd number of updates.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whether or not
    the stream keeps to what `deletions` says. With `intrusions=k` that includes the states at k
    announced intrusions before that time. [tests/contract, tests/exact]

    Accuracy: `plan.relative_error(users)` is the predicted standard deviation as a share of the
    users; with 64 KiB and epsilon 1 it is below 1 % from 200,000 to 9 million users when those are
    expected.
    [tests/statistical/test_distinct_count.py, docs/accuracy.md]
    """

    __slots__ = ()

    entry = CatalogueEntry(DistinctSizes, trials=TRIALS, walks=WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            expected: ManyUsers = (1_000, 1_000_000_000),
            memory: Whole = 65_536,
            deletions: bool | Literal["strict"] = False,
            bound: Whole | None = None,
            signed: bool = False,
            **arguments: Unpack[Arguments],
        ) -> None: ...

"""Cropped sums, distinct users and heavy hitters from counters modulo `2 tau`.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", Algorithms 2 and 3 and the remark after Theorem 7. Repaired: the factor 2 that the
estimator lacks, whole numbers on a grid for real ones, the loss when a user is replaced by
another, and the epsilon of two runs. docs/published.md has each with its number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, cast

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.ground.validation import positive_integer, proportion
from panprivacy.papers.published.mir_moments import MOST_UNIVERSE, CroppedMomentPlan, plan_moment
from panprivacy.privacy.coins import Coins, SystemCoins
from panprivacy.privacy.guarantee import Budget, Epsilon, Ledger
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.arguments import instance, request
from panprivacy.statistics.cases import Short, Trial, Walk
from panprivacy.statistics.composites.members import (
    JoinedContributions,
    JoinedInternals,
    JoinedMemory,
    JoinedReleasing,
    JoinedWindows,
    Members,
)
from panprivacy.statistics.composites.together import Together
from panprivacy.statistics.entry import Cases, CatalogueEntry
from panprivacy.statistics.notes import note_on
from panprivacy.statistics.records import Sizes, integer
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.statistics.table.memory import Batch
from panprivacy.tables.addressing import Hashed
from panprivacy.tables.cells.law import MOST_MODULUS
from panprivacy.tables.hashing import KEY_BYTES
from panprivacy.tables.ids import IntegerIds, Labels, WholeNumbers, read_ids, shared
from panprivacy.tables.planning.request import Request

_MOST_GRID = 255
_MOST_TAU = MOST_MODULUS // 2
_MOST_TOTAL = 1 << 48
_MOST_SHARE = 1 << 20
_CELLS_PER_K = 4


_Bound = Annotated[
    int | None,
    integer("the largest state, on which the interval alone depends; 64 tau unless told"),
]
_Grid = Annotated[int, integer("steps to the unit, one less than a power of two", _MOST_GRID)]
_UniverseSize = Annotated[
    int, integer("how many users there could be: ids 0 to N-1", MOST_UNIVERSE)
]


_DELTAS = 1, 3, -2
MOMENT_TRIALS = (
    Trial(
        "cropped first moment",
        {"tau": 4, "universe": 60_013},
        None,
        deltas=_DELTAS,
        intrusions=False,
    ),
)
DISTINCT_TRIALS = (
    Trial("cropped distinct count", {"universe": 60_013}, None, deltas=_DELTAS, intrusions=False),
)

HITTER_TRIALS = (
    Trial(
        "cropped heavy hitters",
        {"k": 5, "total": 500, "cells": 4_096},
        None,
        deltas=_DELTAS,
        intrusions=False,
    ),
)

_ONE_STEP = {"tau": 2, "universe": 2, "grid": 1}

MOMENT_WALKS = (
    Walk(
        "cropped-moment",
        "a counter modulo 4 with a weight, a release",
        _ONE_STEP,
        [Short([[(0, 1)], [(0, 3)]], 2)],
        evenly=True,
        tail=12,
    ),
)
DISTINCT_WALKS = (
    Walk(
        "cropped-distinct",
        "a counter modulo 6 with a weight",
        {"tau": 3, "universe": 2, "grid": 1},
        [Short([[(0, 1)], [(0, 5)]], 2, releases=0)],
    ),
)
HITTER_WALKS = (
    Walk(
        "cropped-heavy",
        "two runs of a counter each",
        {"k": 1, "total": 2, "cells": 1, "grid": 1},
        [Short([[(0, 1)], [(0, 3)], [(1, 1)]], 2, releases=0)],
        tail=1,
    ),
)


class CroppedMomentSizes(Sizes, frozen=True, tag="cropped-first-moment"):
    """The sum of the states, each cropped at tau, estimated with random weights."""

    tau: Annotated[int, integer("where states are cropped", _MOST_TAU)]
    universe: _UniverseSize
    bound: _Bound = None
    grid: _Grid = _MOST_GRID

    def plan(self, request: Request) -> CroppedMomentPlan:
        """Return the plan of one run of Algorithm 2."""
        return plan_moment(self.tau, self.tau, self.bound, self.universe, self.grid, request)


class DistinctMomentSizes(Sizes, frozen=True, tag="cropped-distinct-count"):
    """The number of users with a state above 0, as far as random weights tell it."""

    universe: _UniverseSize
    tau: Annotated[int, integer("a small constant greater than 2", _MOST_TAU, 3)] = 3
    bound: _Bound = None
    grid: _Grid = _MOST_GRID

    def plan(self, request: Request) -> CroppedMomentPlan:
        """Return the plan of one run of Algorithm 2 in which each user counts for 1."""
        return plan_moment(self.tau, 1, self.bound, self.universe, self.grid, request)


class CroppedFirstMoment(Statistic[CroppedMomentPlan, Release]):
    """The sum of `min(state, tau)` over users, as far as random weights tell it.

    >>> import numpy as np
    >>> from panprivacy.papers.published import CroppedFirstMoment
    >>> spent = CroppedFirstMoment(tau=4, bound=40, universe=20_000, epsilon=2)
    >>> spent.update(np.arange(20_000), np.full(20_000, 3))
    >>> 70_000 < spent.release().value < 110_000  # 60,000, and half as much again
    True

    The answer is about `T' = sum (w a mod 2 tau)`, `w` a weight of 1 to 2: 1.5 times what users
    below tau have, and 0.9 to 1.5 times tau for larger ones, less what the last unit below
    `2 tau` loses. The interval is for the sum of `min(state, tau)` and covers all of that.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do, and of `e**(2 epsilon)` when one user is replaced by another (Definition 4 of the
    paper). [tests/exact/test_published.py, docs/guarantees/published.md]

    Accuracy: unbiased for `T'`, but for weighted states in the last unit below `2 tau`. With m
    users the standard deviation is about `2 tau**2/(sqrt(3) (e**epsilon - 1))` times `sqrt(m)`.
    [tests/unit/test_published.py, tests/statistical/test_published.py]

    Reference: Algorithm 2. Different from print: `2 tau**2 m` where `tau**2 m` is printed; a grid;
    the split of epsilon.
    """

    __slots__ = ()

    entry = CatalogueEntry(CroppedMomentSizes, trials=MOMENT_TRIALS, walks=MOMENT_WALKS)


class CroppedDistinctCount(Statistic[CroppedMomentPlan, Release]):
    """The number of users with a state above 0, by Algorithm 2 with a small tau.

    >>> import numpy as np
    >>> from panprivacy.papers.published import CroppedDistinctCount
    >>> users = CroppedDistinctCount(tau=3, universe=20_000, epsilon=2)
    >>> users.update(np.arange(10_000))
    >>> answer = users.release(confidence=1 - 1e-9)
    >>> answer.low < 10_000 < answer.high
    True

    A user adds at least 1.5, for a state of 1, and at most about `tau + 1/2`. The answer is divided
    by the geometric middle, so at a tau of 3 it may be off by a factor of 1.53 either way.

    Guarantee: as for `CroppedFirstMoment`. [tests/exact/test_published.py]

    Accuracy: right up to the factor, and a standard deviation of about `4 sqrt(m)` at epsilon 1.
    [tests/statistical/test_published.py]

    Reference: the remark after Theorem 7.
    """

    __slots__ = ()

    entry = CatalogueEntry(DistinctMomentSizes, trials=DISTINCT_TRIALS, walks=DISTINCT_WALKS)


class HashedMemory(JoinedMemory[str, CroppedFirstMoment]):
    """The memory of both runs, and the key by which users are hashed to their counters.

    Args:
        name: of the class, in a state.
        members: the runs.
        key: of the hash function.
    """

    __slots__ = ("_addressing", "_key")

    def __init__(self, name: str, members: Members[str, CroppedFirstMoment], key: bytes) -> None:
        super().__init__(name, members)
        self._resume_own(key)

    @property
    def _own(self) -> bytes:
        return self._key

    def _resume_own(self, own: bytes) -> None:
        self._key = own
        self._addressing = Hashed(self.members.first.plan.universe, own)

    def prepare(self, users: Labels, deltas: WholeNumbers | None = None) -> list[Batch]:
        """Check one batch of events without counting it; takes and raises as `HeavyHitterCount`."""
        pieces = list(self._addressing.slots(read_ids(users)))
        counters = np.concatenate([np.empty(0, np.int64), *pieces])
        wipe(*pieces)
        changes = shared(deltas)
        return [run.prepare(counters, changes) for run in self.members.memories]

    def apply(self, *batches: Sequence[Batch]) -> None:
        """Count what `prepare` has checked, and wipe the counters that it found."""
        try:
            super().apply(*batches)
        finally:
            chunks = [chunk for batch in batches for chunk in batch[0].ids]
            wipe(*(chunk.values for chunk in chunks if isinstance(chunk, IntegerIds)))


class DifferenceReleasing(JoinedReleasing[str, CroppedFirstMoment]):
    """The releases of both runs as one answer.

    Args:
        members: the runs.
        limit: the largest answer.
    """

    __slots__ = ("_limit",)

    def __init__(self, members: Members[str, CroppedFirstMoment], limit: int) -> None:
        super().__init__(members)
        self._limit = limit

    def release(self, *, confidence: float = 0.95) -> Release:  # type: ignore[override]
        """Publish the answer; see `CroppedHeavyHitters.release`."""
        level = proportion(confidence=confidence)
        self.check_release()
        runs = list(self.members.programs.values())
        upper, lower = (run.release(confidence=(1 + level) / 2) for run in runs)
        apart = runs[0].plan.tau - runs[1].plan.tau
        low, high = (upper.low - lower.high) / apart, (upper.high - lower.low) / apart
        low, high = (min(max(end, 0.0), self._limit) for end in (low, high))
        value = (upper.value - lower.value) / apart
        return Release(
            value,
            low,
            high,
            level,
            upper.epsilon + lower.epsilon,
            upper.counts + lower.counts,
            Name("", "heavy_hitters", (("k", self._limit),)),
            note=note_on(low, high, value=value),
            estimate=(upper.estimate - lower.estimate) / apart,
            standard_error=math.hypot(upper.standard_error, lower.standard_error) / apart,
            bias=(upper.bias + lower.bias) / apart,
        )


class CroppedHeavyHitters(Together[str, CroppedFirstMoment]):
    """The number of users that hold at least 1/k of a public total, from two cropped moments.

    >>> from panprivacy.papers.published import CroppedHeavyHitters
    >>> heavy = CroppedHeavyHitters(k=10, total=1_000, epsilon=20)
    >>> heavy.update(["ada", "grace", "ada"], [400, 300, 300])
    >>> answer = heavy.release(confidence=1 - 1e-9)
    >>> answer.low <= 2 <= answer.high
    True

    Users are hashed to `cells` counters. The difference of the moments at `total/k` and
    `total/(c k)`, over the difference of these, would be a count of counters that rises from 0 to
    1 between the two. But each moment is right only up to a factor, and so the difference is off
    by a multiple of k; the interval says so.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do; `total` is public. Each run gets half of epsilon. [tests/exact/test_published.py]

    Accuracy: the interval is for counters, not users, and is mostly all of 0 .. k: the random
    weights of the counters alone could make up that much.
    [tests/statistical/test_published.py, docs/published.md]

    Args:
        epsilon: total loss of state and releases, in nats.
        k: users that hold 1/k of the total are counted.
        total: what the deltas of all users add up to, public; no user's add up to less than 0.
        spacing: c, by which the lower threshold is below the upper one.
        cells: number of counters, which users are hashed to; None for 4k.
        grid: steps to the unit, one less than a power of two, at most 255.
        releases: number of releases that epsilon covers.
        budget: the split of epsilon between state and releases, both runs together; None for the
            smallest error of each run.
        ledger: budget shared with other statistics of the same stream.
        coins: source of all randomness; None for the operating system's.

    Raises:
        PlanError: an argument out of range.
        BudgetError: the ledger has less than `epsilon` available.

    Reference: Algorithm 3. Different from print: half of epsilon for each run, and Algorithm 2 as
    repaired.
    """

    __slots__ = ()

    entry = Cases(trials=HITTER_TRIALS, walks=HITTER_WALKS)

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        k: int,
        total: int,
        spacing: int = 2,
        cells: int | None = None,
        grid: int = _MOST_GRID,
        releases: int = 1,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        asked = request(epsilon, releases, 0, budget)
        share = positive_integer(_MOST_SHARE, k=k)
        size = _CELLS_PER_K * share if cells is None else cells
        counters = positive_integer(MOST_UNIVERSE, cells=size)
        taus = _thresholds(total, share, spacing)
        common = instance(Ledger, ledger=ledger) or Ledger(asked.epsilon)
        common.check(asked.epsilon)
        source = SystemCoins() if coins is None else coins
        key = source.key(KEY_BYTES)
        whole = asked.budget
        half = None if whole is None else Budget(whole.state / 2, whole.release / 2)
        runs = {
            name: CroppedFirstMoment(
                epsilon=asked.epsilon / 2,
                tau=tau,
                universe=counters,
                grid=grid,
                releases=asked.releases,
                budget=half,
                ledger=common,
                coins=source,
            )
            for name, tau in zip(("upper", "lower"), taus, strict=True)
        }
        super().__init__(runs)
        joined = self._joint
        self.internals = JoinedInternals(
            HashedMemory(type(self).__name__, joined, key),
            JoinedWindows(joined),
            JoinedContributions(joined),
            DifferenceReleasing(joined, min(share, counters)),
        )

    @property
    def plans(self) -> tuple[CroppedMomentPlan, CroppedMomentPlan]:
        """The public parameters of the runs at the upper and at the lower threshold."""
        upper, lower = self.members.values()
        return upper.plan, lower.plan

    def release(self, *, confidence: float = 0.95) -> Release:  # type: ignore[override]
        """Publish the answer; the budget is spent first.

        Args:
            confidence: probability, 0 to 1, that the interval covers the number of counters, each
                as far as it is on the way from the lower threshold to the upper one.

        Returns:
            The difference, cut to its interval, which is within 0 .. k.

        Raises:
            BudgetError: all planned releases have been made. Nothing was spent.
        """
        return cast("Release", super().release(confidence=confidence))


def _thresholds(total: object, k: int, spacing: object) -> tuple[int, int]:
    """Return `total/k` and `total/(c k)`, rounded down."""
    whole = positive_integer(_MOST_TOTAL, total=total)
    upper = whole // k
    lower = upper // positive_integer(_MOST_SHARE, spacing=spacing)
    if not 1 <= lower < upper:
        message = f"the total ({whole:,}) must be at least spacing * k, and spacing at least 2"
        raise PlanError(message)
    return upper, lower

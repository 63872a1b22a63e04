"""The share of a universe: optimal bits of a sample, distinct sampling, and cells on a grid.

Reference: V. Digalakis, G. Karystinos, M. Garofalakis, "Improved pan-private stream density
estimation", Algorithms 2 and 3 and section 4.4. Repaired: output noise of the true sensitivity,
`c = 1/2`, a level that does not depend on the stream, and a sample that is one.
docs/published.md has each with its number.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Unpack

from panprivacy.papers.published.dwork_density import REFUSED, SampleSize
from panprivacy.papers.published.redrawn import WEIGHT, CellLaws, RedrawnPlan, plan_redrawn
from panprivacy.privacy.guarantee import LARGEST_EXPONENT, exp_bounds
from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.cases import Short, Trial, Walk
from panprivacy.statistics.common_sizes import Universe
from panprivacy.statistics.density.plan import MAX_DIRECT_CELLS, DensityPlan, plan_density
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Sizes, Whole, integer
from panprivacy.statistics.release import Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.tables.planning.request import Request

_LEAVES = (0, 2, -2)
_MOST_GRID = 255

OVERFULL = 1e-6
"""Bound on the probability that a sample of ids overflows at any one time."""


class OptBernSizes(Sizes, frozen=True, tag="optbern-density"):
    """The share of a universe that appeared, from optimal bits of a sample."""

    universe: Universe
    cells: Annotated[
        int | None, integer("users in the sample; all unless told", MAX_DIRECT_CELLS)
    ] = None

    def plan(self, request: Request) -> DensityPlan:
        """Return the plan of `Density`."""
        return plan_density(self.universe, self.cells, request)


class OptBernDensity(Statistic[DensityPlan, Release]):
    """The share of a declared universe that appeared: `Density` under the name of the paper.

    >>> import numpy as np
    >>> from panprivacy.papers.published import OptBernDensity
    >>> members = OptBernDensity(universe=100_000, cells=50_000, epsilon=1)
    >>> members.update(np.arange(25_000))
    >>> 0.2 < members.release().value < 0.3
    True

    Repaired, Algorithm 2 is `Density(cells=m)`: the same bits, the same estimate, the same noise.
    The paper keeps the ids of its sample beside the bits; a keyed permutation of the universe
    samples without them, so that the same memory has room for 18 times as many bits of a universe
    of 100,000.

    Guarantee: as for `Density`. [tests/exact/test_published_density.py, docs/guarantees/bits.md]

    Accuracy: as for `Density`. [tests/statistical/test_density.py]

    Reference: Algorithm 2 with `c = 1/2`. Different from print: the update, which our copy lacks,
    redraws a bit with probability `(1+t)/2`; any other c up to 4/5 loses more than epsilon; noise
    on the sum of bits, before it is divided by `t`.
    """

    __slots__ = ()

    entry = CatalogueEntry(
        OptBernSizes,
        trials=(
            Trial(
                "optbern density",
                {"universe": 60_013, "cells": 10_007},
                {"universe": 4, "cells": 2},
                refused=_LEAVES,
            ),
        ),
        walks=(
            Walk(
                "optbern-density",
                "two of three users in the sample, a release",
                {"universe": 3, "cells": 2},
                [Short([[0], [1]], 2)],
                users=((0, 1), (1, 2)),
            ),
        ),
    )

    if TYPE_CHECKING:

        def __init__(
            self, *, universe: Whole, cells: Whole | None = None, **arguments: Unpack[Arguments]
        ) -> None: ...


class PPDSSizes(Sizes, frozen=True, tag="ppds-density"):
    """The share of a universe that appeared, from a sample of ids, of a level fixed in advance."""

    universe: Universe
    cells: Annotated[int, integer("ids that the sample has room for", MAX_DIRECT_CELLS)]

    def plan(self, request: Request) -> DensityPlan:
        """Return the plan for the lowest level at which the ids of any set of users fit."""
        return plan_sample(self.universe, self.cells, request)[1]

    def level(self, request: Request) -> int:
        """Return the level L: one user in `2**L` is sampled; a function of public numbers alone."""
        return plan_sample(self.universe, self.cells, request)[0]


@functools.lru_cache(maxsize=256)
def plan_sample(universe: int, room: int, request: Request) -> tuple[int, DensityPlan]:
    """Return the lowest level at which the ids fit with probability `1 - OVERFULL`, and its plan.

    Each of the users of a level is in the sample with probability `(1+t)/2` at most.
    """
    level = 0
    while (users := max(universe >> level, 1)) > MAX_DIRECT_CELLS:
        level += 1
    plan = plan_density(universe, users, request)
    while overfull(users, room, float(plan.table.presence(0))) > OVERFULL:
        level += 1
        users = max(universe >> level, 1)
        plan = plan_density(universe, users, request)
    return level, plan


def overfull(users: int, room: int, present: float) -> float:
    """Return the Chernoff bound on the probability that the sample holds more than `room` users.

    Args:
        users: the number of users.
        room: the number of users that fit.
        present: an upper bound on the probability that a user is in the sample.
    """
    share = (room + 1) / users
    if share > 1:
        return 0.0
    if share <= present:
        return 1.0
    rest = (1 - share) * math.log((1 - share) / (1 - present)) if share < 1 else 0.0
    return math.exp(-users * (share * math.log(share / present) + rest))


class PPDSDensity(Statistic[DensityPlan, Release]):
    """The share of a declared universe that appeared, from distinct sampling at a public level.

    >>> import numpy as np
    >>> from panprivacy.papers.published import PPDSDensity
    >>> members = PPDSDensity(universe=100_000, cells=20_000, epsilon=1)
    >>> members.update(np.arange(25_000))
    >>> 0.2 < members.release().value < 0.3
    True
    >>> members.plan.cells  # one user in four is sampled, and 20,000 ids have room
    25000

    The paper keeps the ids of sampled users that appeared, with noise, and halves the sampled
    universe whenever there are `cells` of them. Both the level that follows from that and the
    redraws that a full sample cuts off tell how often a user came. Here the level L is the lowest
    one at which the ids fit with probability `1 - 10**-6` at any one time, for any set of users: it
    follows from `universe`, `cells` and `epsilon`. A bit for each of the `universe/2**L` sampled
    users says which ids there are, so nothing ever overflows, and nobody is evicted; where ids
    would be stored, one in a million looks would find more than `cells`.

    Guarantee: as for `Density`. [tests/exact/test_published_density.py, docs/guarantees/bits.md]

    Accuracy: that of `Density` with `universe/2**L` cells, from about half to nearly twice as many
    as there is room for ids. [tests/unit/test_published_density.py]

    Reference: Algorithm 3. Different from print: the level; output noise on the sum; a keyed
    permutation in place of the hash, which puts users into the sample by their id modulo `2**L`.
    """

    __slots__ = ()

    entry = CatalogueEntry(
        PPDSSizes,
        trials=(
            Trial(
                "ppds density",
                {"universe": 60_013, "cells": 9_000},
                {"universe": 4, "cells": 1},
                refused=_LEAVES,
            ),
        ),
        walks=(
            Walk(
                "ppds-density",
                "one user of two at level 1, a release",
                {"universe": 2, "cells": 1},
                [Short([[0], [1]], 2)],
                users=((0, 1), (1, 0)),
            ),
        ),
    )

    if TYPE_CHECKING:

        def __init__(
            self, *, universe: Whole, cells: Whole, **arguments: Unpack[Arguments]
        ) -> None: ...


class ContinuousSizes(Sizes, frozen=True, tag="continuous-density"):
    """The share of a universe that appeared, from a number between 0 and 1 for each user."""

    universe: Universe
    cells: SampleSize = None
    grid: Annotated[int, integer("steps from 0 to 1", _MOST_GRID)] = 15

    def plan(self, request: Request) -> RedrawnPlan:
        """Return exponential laws that spend all of the state's epsilon."""
        return plan_continuous(self.universe, self.cells, self.grid, request)


@functools.lru_cache(maxsize=256)
def plan_continuous(universe: int, cells: int | None, grid: int, request: Request) -> RedrawnPlan:
    """Plan cells on a grid."""
    return plan_redrawn(universe, cells, functools.partial(exponential, grid), request)


def exponential(grid: int, state: Fraction) -> CellLaws:
    """Return the weights `e**(-state x)` for x from 0 to 1 in `grid` steps, and their reverse.

    They are rounded so that the largest ratio of the two laws is at most `e**state`.
    """
    exponent = min(state, LARGEST_EXPONENT)
    absent = tuple(
        -(-WEIGHT // exp_bounds(exponent * Fraction(step, grid))[0]) if step else WEIGHT
        for step in range(grid + 1)
    )
    return CellLaws(absent, absent[::-1])


class ContinuousDensity(Statistic[RedrawnPlan, Release]):
    """The share of a declared universe that appeared, from a number for each user of a sample.

    >>> import numpy as np
    >>> from panprivacy.papers.published import ContinuousDensity
    >>> members = ContinuousDensity(universe=100_000, epsilon=1)
    >>> members.update(np.arange(25_000))
    >>> 0.2 < members.release().value < 0.3
    True

    A cell is a number x from 0 to 1 on a grid, initialised with weights `e**(-epsilon_state x)`,
    and redrawn with weights `e**(epsilon_state x)` when its user appears. The paper leaves its
    distributions to a thesis; the log ratio of these is linear in x. With one step they are optimal
    bits.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed. That is what
    it loses, exactly: `epsilon_state + ln E e**(rho (1 - x))`, x of an absent user, `rho` the sum
    of the releases' epsilons. [tests/exact/test_published_density.py, docs/guarantees/published.md]

    Accuracy: unbiased before it is cut to 0 .. 1. No such cell can beat a bit of the same loss, of
    which it is a post-processing: on fine grids its variance is 3 times as large, and more from
    epsilon 1 on.
    [tests/unit/test_published_density.py, tests/statistical/test_published_density.py]

    Reference: section 4.4. Different from print: a grid in place of real numbers, of which the low
    digits would leak; discrete noise on the sum. Nobody leaves, and no intrusion can be announced.
    """

    __slots__ = ()

    entry = CatalogueEntry(
        ContinuousSizes,
        trials=(
            Trial(
                "continuous density",
                {"universe": 60_013, "cells": 10_007},
                {"universe": 4, "cells": 2, "grid": 1},
                refused=REFUSED,
                intrusions=False,
            ),
        ),
        walks=(
            Walk(
                "continuous-density",
                "numbers of two users in two steps, a release",
                {"universe": 2, "grid": 2},
                [Short([[0], [1]], 2)],
                tail=8,
            ),
        ),
    )

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            universe: Whole,
            cells: Whole | None = None,
            grid: Whole = 15,
            **arguments: Unpack[Arguments],
        ) -> None: ...

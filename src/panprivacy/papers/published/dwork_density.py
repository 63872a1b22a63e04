"""The share of a universe from a sample of bits that appear more often than a fair coin.

Reference: C. Dwork, M. Naor, T. Pitassi, G. Rothblum, S. Yekhanin, "Pan-private streaming
algorithms", 2010, as V. Digalakis, G. Karystinos, M. Garofalakis, "Improved pan-private stream
density estimation", have it as Algorithm 1. Repaired: the output noise, which is too small as
printed, is that of the integer sum of bits, and discrete. docs/published.md has the numbers.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Unpack

from panprivacy.errors import PlanError
from panprivacy.ground.validation import positive_fraction
from panprivacy.papers.published.redrawn import (
    MOST_CELLS,
    WEIGHT,
    CellLaws,
    RedrawnPlan,
    plan_redrawn,
)
from panprivacy.privacy.guarantee import (
    LARGEST_EXPONENT,
    Epsilon,
    exp_bounds,
    log_above,
    rounded_up,
)
from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.cases import Short, Trial, Walk
from panprivacy.statistics.common_sizes import Universe
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Sizes, Whole, integer
from panprivacy.statistics.release import Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.tables.planning.request import Request

_LOSS_DIGITS = 15

REFUSED = (0, -1)
"""Deltas that cannot be counted: a user cannot depart."""

SampleSize = Annotated[int | None, integer("users in the sample; all unless told", MOST_CELLS)]


def biased_coin(state: Fraction) -> CellLaws:
    """Return a fair coin, and one that is 1 with probability `1 - e**-state/2`.

    The bias is rounded so that the loss, which a 0 tells, is at most `state`.
    """
    below, _ = exp_bounds(min(state, LARGEST_EXPONENT))
    zero = -(-WEIGHT // (2 * below))  # ceiling of WEIGHT/2 * e^-state
    return CellLaws((1, 1), (zero, WEIGHT - zero))


def loss_of_bias(bias: Epsilon) -> Fraction:
    """Return the privacy loss of bits of probability 1/2 and `1/2 + bias`.

    It is the loss under one intrusion, `-ln(1 - 2 bias)`, rounded up.

    Dwork et al. print a bias of `epsilon/4`, Dwork and Roth one of `epsilon`:

    >>> import panprivacy as pp
    >>> from panprivacy.papers.published import DworkDensity, loss_of_bias
    >>> printed = pp.Budget(state=loss_of_bias(0.2 / 4), release=0.2)
    >>> members = DworkDensity(universe=1_000, epsilon=0.4, budget=printed)
    >>> float(members.internals.releasing.state_epsilon)  # in place of 0.2
    0.10536051565782...

    Args:
        bias: above 0 and below 1/2.

    Raises:
        PlanError: bias is outside that range.
    """
    exact = positive_fraction(bias=bias)
    if exact >= Fraction(1, 2):
        message = "bias must be below 1/2"
        raise PlanError(message)
    return Fraction(rounded_up(log_above(1 / (1 - 2 * exact)), _LOSS_DIGITS))


class DworkSizes(Sizes, frozen=True, tag="dwork-density"):
    """The share of a universe that appeared, from a fair coin and a biased one for each user."""

    universe: Universe
    cells: SampleSize = None

    def plan(self, request: Request) -> RedrawnPlan:
        """Return the bias that spends all of the state's epsilon."""
        return plan_biased(self.universe, self.cells, request)


@functools.lru_cache(maxsize=256)
def plan_biased(universe: int, cells: int | None, request: Request) -> RedrawnPlan:
    """Plan bits of probability 1/2, and more once their user appears."""
    return plan_redrawn(universe, cells, biased_coin, request)


class DworkDensity(Statistic[RedrawnPlan, Release]):
    """The share of a declared universe that appeared, from a fair coin for each user of a sample.

    >>> import numpy as np
    >>> from panprivacy.papers.published import DworkDensity
    >>> members = DworkDensity(universe=100_000, cells=50_000, epsilon=1)
    >>> members.update(np.arange(25_000))
    >>> 0.2 < members.release().value < 0.3
    True

    The initial bit is fair. It is redrawn with probability `1/2 + b` of a 1 when its user appears.
    The paper has `b = epsilon/4`, of which the true loss is `-ln(1 - epsilon/2)`, about half of
    what is allotted. Here `b = (1 - e**-epsilon_state)/2`, so that the state loses what it is
    given, and estimators can be compared at equal loss; `loss_of_bias` gives the budget of the
    printed bias.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed. That is what
    it loses, exactly: the larger of `ln((1 + 2b)(1 + e**rho)/2)` and
    `-ln(1 - 2b) - sum ln(1/2 - b + (1/2 + b) e**-rho_i)` for releases of epsilon `rho_i`, `rho` in
    all. [tests/exact/test_published_density.py, docs/guarantees/published.md]

    Accuracy: unbiased before it is cut to 0 .. 1. With m cells the variance of the bits is
    `(1/4 - b**2 d)/(b**2 m)`, which is `e**epsilon_state` times that of `Density` where nobody
    came and `2 - e**-epsilon_state` times where all did.
    [tests/unit/test_published_density.py, tests/statistical/test_published_density.py]

    Reference: Algorithm 1. Different from print: the noise, the bias, and a keyed permutation in
    place of the ids of the sample. Nobody leaves, and no intrusion can be announced.
    """

    __slots__ = ()

    entry = CatalogueEntry(
        DworkSizes,
        trials=(
            Trial(
                "dwork density",
                {"universe": 60_013, "cells": 10_007},
                {"universe": 4, "cells": 2},
                refused=REFUSED,
                intrusions=False,
            ),
        ),
        walks=(
            Walk(
                "dwork-density",
                "fair and biased bits of two users, two releases",
                {"universe": 2},
                [Short([[0], [1], [0, 1]], 2)],
                releases=2,
            ),
        ),
    )

    if TYPE_CHECKING:

        def __init__(
            self, *, universe: Whole, cells: Whole | None = None, **arguments: Unpack[Arguments]
        ) -> None: ...

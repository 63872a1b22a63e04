"""The share of a universe from a bit for each user: the sketch of a textbook.

Reference: C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", section 12.2.
Repaired: its bits of probability 1/2 and `1/2 + epsilon` are called `epsilon`-private and lose
`-ln(1 - 2 epsilon)`; its estimate `z` must be divided by `2 epsilon`; its noise is not specified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Unpack

from panprivacy.papers.published.dwork_density import REFUSED, plan_biased
from panprivacy.papers.published.redrawn import MOST_CELLS, RedrawnPlan
from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.cases import Short, Trial, Walk
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Sizes, Whole, integer
from panprivacy.statistics.release import Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.tables.planning.request import Request


class DworkRothSizes(Sizes, frozen=True, tag="dwork-roth-density"):
    """The share of a universe that appeared, from a bit for each user, as a textbook has it."""

    universe: Annotated[int, integer("how many users there could be: ids 0 to N-1", MOST_CELLS)]

    def plan(self, request: Request) -> RedrawnPlan:
        """Return a bit for each user."""
        return plan_biased(self.universe, self.universe, request)


class DworkRothDensity(Statistic[RedrawnPlan, Release]):
    """The share of a declared universe that appeared, from a fair coin for each user.

    >>> import numpy as np
    >>> from panprivacy.papers.published import DworkRothDensity
    >>> members = DworkRothDensity(universe=100_000, epsilon=1)
    >>> members.update(np.arange(25_000))
    >>> 0.2 < members.release().value < 0.3
    True

    It is `DworkDensity` without a sample; what is printed differs in the name of the bias alone.
    For the printed bias ask for `budget=Budget(state=loss_of_bias(printed), ...)`.

    Guarantee: as for `DworkDensity`. [tests/exact/test_published_density.py]

    Accuracy: as for `DworkDensity` with a cell for each user.
    [tests/statistical/test_published_density.py]

    Reference: section 12.2. Different from print: the bias spends what it is given, the estimate is
    divided by twice the bias, and the sum of the bits has discrete Laplace noise.
    """

    __slots__ = ()

    entry = CatalogueEntry(
        DworkRothSizes,
        trials=(
            Trial(
                "dwork-roth density",
                {"universe": 50_021},
                {"universe": 3},
                refused=REFUSED,
                intrusions=False,
            ),
        ),
        walks=(
            Walk(
                "dwork-roth-density",
                "fair and biased bits of two users, a release",
                {"universe": 2},
                [Short([[0], [1]], 2)],
            ),
        ),
    )

    if TYPE_CHECKING:

        def __init__(self, *, universe: Whole, **arguments: Unpack[Arguments]) -> None: ...

"""How many users appeared in two streams of one window?

Two tables of noisy bits of one addressing key: a user has the same cell in both. The bits of a cell
are born by a joint law, and each is redrawn when a user of the cell appears in its stream. A
release publishes how many cells show each pair of bits, with noise.

Reference: the bits of V. Digalakis, G. Karystinos, M. Garofalakis, "Improved pan-private stream
density estimation", Algorithm 2. The joint law is ours: docs/guarantees/both.md shows that there is
no other one, and docs/overlaps-decoding.md how counts are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.both.cases import TRIALS, WALKS
from panprivacy.statistics.both.plan import BothPlan
from panprivacy.statistics.both.sizes import BothSizes
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.inner.statistic import SidedMemory
from panprivacy.statistics.records import ManyUsers, Whole
from panprivacy.statistics.release import Answers
from panprivacy.statistics.statistic import Statistic


class BothCount(Statistic[BothPlan, Answers]):
    """The users of two streams of one window: how many are in each, in both, in either.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> pages = pp.BothCount(expected=100_000, left="shoes", right="checkout", epsilon=1)
    >>> pages.update(np.arange(100_000), sides="shoes")
    >>> pages.update(np.arange(60_000, 130_000), sides="checkout")
    >>> answers = pages.release(confidence=1 - 1e-9)
    >>> answers["intersection"].low < 40_000 < answers["intersection"].high
    True
    >>> answers["share"].low < 0.4 < answers["share"].high  # of those who saw shoes
    True

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user, in both streams, are added or
    removed. [tests/contract, tests/exact/test_both.py, docs/guarantees/both.md]

    Accuracy: `plan.absolute_error(users)` predicts the error of the users of both, of streams of so
    many users each. [tests/statistical/test_both.py]
    """

    __slots__ = ()

    entry = CatalogueEntry(BothSizes, trials=TRIALS, walks=WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            expected: ManyUsers,
            left: str = "left",
            right: str = "right",
            memory: Whole = 1_048_576,
            cells: Whole | None = None,
            share: float | str = "0.5",
            **arguments: Unpack[Arguments],
        ) -> None: ...

    _memory = SidedMemory

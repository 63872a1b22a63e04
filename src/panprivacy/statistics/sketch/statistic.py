"""Who came in a window, as a noisy table that is published and compared with others.

Presence bits as those of `DistinctCount` and `Density`. At the end of a window each bit is
published through one more coin. Tables of one addressing key tell how many users two windows have
in common, and anything else that sets can be asked.

Reference: the bits of V. Digalakis, G. Karystinos, M. Garofalakis, "Improved pan-private stream
density estimation", Algorithm 2. The laws of the bits, of what is published of them, and the set
operations are ours: docs/guarantees/sketches.md and docs/overlaps-decoding.md derive them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack

from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import ManyUsers, Whole
from panprivacy.statistics.sketch.cases import TRIALS, WALKS
from panprivacy.statistics.sketch.plan import OverlapPlan
from panprivacy.statistics.sketch.publishing import SketchMemory, SketchReleasing
from panprivacy.statistics.sketch.released import SketchRelease
from panprivacy.statistics.sketch.sizes import OverlapSizes
from panprivacy.statistics.statistic import Statistic


class OverlapSketch(Statistic[OverlapPlan, SketchRelease]):
    """The users of a window, as a noisy table that is published and compared with others.

    >>> import panprivacy as pp
    >>> key = b"public, but the same for all windows"
    >>> def window(users):
    ...     visitors = pp.OverlapSketch(epsilon=2, expected=20_000, key=key)
    ...     visitors.update(users)
    ...     return visitors.release().sketch
    >>> import numpy as np
    >>> monday, tuesday = window(np.arange(20_000)), window(np.arange(10_000, 30_000))
    >>> answer = pp.overlap(monday, tuesday).return_rate()
    >>> 0.3 < answer.value < 0.7  # half of them came back
    True

    Guarantee: the joint law of the state at any one time before the release and of the published
    table changes by a factor of at most `e**epsilon` when all or some updates of one user are added
    or removed. With `covers="publication"` that is the law of the published table, of a window
    whose state nobody sees. Whatever is computed from published tables costs nothing more.
    [tests/contract, tests/exact/test_sketches.py, docs/guarantees/sketches.md]

    Accuracy: `plan.remarks` predicts the error of a return rate, `plan.relative_error(users)` that
    of the number of users. [tests/statistical/test_sketches.py, docs/overlaps.md]

    A release ends the statistic: its table is overwritten, and nothing more can be counted.
    """

    __slots__ = ()

    entry = CatalogueEntry(OverlapSizes, trials=TRIALS, walks=WALKS)

    _memory = SketchMemory
    _releasing = SketchReleasing

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            expected: ManyUsers | None = None,
            universe: Whole | None = None,
            cells: Whole | None = None,
            memory: Whole | None = None,
            covers: Literal["seizure", "publication"] = "seizure",
            share: float | str = "0.5",
            **arguments: Unpack[Arguments],
        ) -> None: ...
